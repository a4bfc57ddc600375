//! The gate in process, over services of every temper.

mod answers;
#[cfg(feature = "axum")]
mod axum_app;
mod bodies;
mod contract;
mod doors;
mod observe;
mod parallel;
mod peers;
mod settling;
mod support;
