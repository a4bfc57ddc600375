use std::{path::Path, time::Duration};

use axum::{
    Router,
    extract::Request,
    http::StatusCode,
    middleware::{Next, from_fn},
    response::Response,
    routing::get,
};
use hotgate::{BuildError, Gate};
use tower_http::{
    compression::CompressionLayer,
    cors::CorsLayer,
    timeout::TimeoutLayer,
    trace::{DefaultOnResponse, TraceLayer},
};
use tracing::Level;

/// What authentication leaves in a request.
#[derive(Clone)]
struct User(String);

fn gate(rules: &Path) -> Result<Gate, BuildError> {
    Gate::builder()
        .file(rules)
        .user(|parts| parts.extensions.get::<User>().map(|user| user.0.as_str().into()))
        .build()
}

fn app(gate: &Gate) -> Router {
    let timeout = Duration::from_secs(10);
    let log = DefaultOnResponse::new().level(Level::INFO);
    Router::new()
        .route("/api/orders", get(|| async { "one teapot, ".repeat(100) }))
        .layer(gate.inner_layer()) // innermost: rules by `user`
        .layer(from_fn(authenticate))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, timeout))
        .layer(CompressionLayer::new())
        .layer(gate.layer()) // all other rules
        .layer(CorsLayer::permissive())
        .layer(TraceLayer::new_for_http().on_response(log)) // outermost
}

/// In short: a real one checks the token.
async fn authenticate(mut request: Request, next: Next) -> Result<Response, StatusCode> {
    let field = request.headers().get("authorization").and_then(|field| field.to_str().ok());
    let token = field.and_then(|field| field.strip_prefix("Bearer "));
    let user = User(token.ok_or(StatusCode::UNAUTHORIZED)?.to_owned());
    request.extensions_mut().insert(user);
    Ok(next.run(request).await)
}
