use std::time::Duration;

use axum::{Router, extract::DefaultBodyLimit, http::StatusCode, routing::MethodRouter};
use hotgate::Gate;
use tower::{ServiceBuilder, limit::GlobalConcurrencyLimitLayer};
use tower_http::timeout::TimeoutLayer;

fn app(gate: &Gate, report: MethodRouter) -> Router {
    let timeout = Duration::from_secs(10);
    Router::new().route("/report", report).layer(
        ServiceBuilder::new() // here the first is outermost
            .layer(gate.layer())
            .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, timeout))
            .layer(GlobalConcurrencyLimitLayer::new(1)) // one report at a time
            .layer(DefaultBodyLimit::max(64 * 1024)),
    )
}
