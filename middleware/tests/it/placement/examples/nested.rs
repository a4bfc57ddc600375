use axum::{Router, http::StatusCode, routing::get};
use hotgate::Gate;

fn app(gate: &Gate) -> Router {
    let orders = Router::new().route("/orders/{id}", get(|| async { "an order" }));
    let pages = Router::new().route("/", get(|| async { "welcome" }));
    Router::new()
        .nest("/api", orders)
        .merge(pages)
        .fallback(|| async { (StatusCode::NOT_FOUND, "nothing here") })
        .layer(gate.layer()) // around all that stands above, the fallback too
        .route("/healthz", get(|| async { "well" })) // added after: outside of the gate
}
