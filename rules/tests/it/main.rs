//! Promises about whatever text comes: of rule files, headers, paths and keys.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected should stop")]

mod checks;
mod random;
