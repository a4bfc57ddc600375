//! The gate in process, over services of every temper.

#![allow(clippy::unwrap_used, reason = "the lint knows tests, not what they share")]

#[cfg(feature = "admin")]
mod admin;
mod allocations;
mod answers;
#[cfg(feature = "axum")]
mod axum_app;
mod bodies;
mod check;
mod contract;
mod doors;
mod hooks;
mod inner_door;
mod observe;
mod operator;
mod parallel;
mod peers;
#[cfg(feature = "axum")]
mod placement;
mod respond;
mod settling;
mod support;
