//! The gate in process, over services of every temper.

#![allow(clippy::unwrap_used, reason = "the lint knows tests, not what they share")]

#[cfg(feature = "admin")]
mod admin;
mod answers;
#[cfg(feature = "axum")]
mod axum_app;
mod bodies;
mod contract;
mod doors;
mod observe;
mod operator;
mod parallel;
mod peers;
mod settling;
mod support;
