//! The engine against the rule file's meaning, through its public face only.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected should stop")]

mod allocations;
mod extracted;
mod harness;
mod ids;
mod oracle;
mod parallel;
mod reload;
mod responses;
mod scope;
mod several_rules;
mod verdicts;
mod windows;
