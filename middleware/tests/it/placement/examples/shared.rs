use axum::{Router, routing::get};
use hotgate::Gate;

/// Two services, on two ports, say; a client has one quota for both.
fn services(gate: &Gate) -> [Router; 2] {
    let shop = Router::new().route("/products/{id}", get(|| async { "a teapot" }));
    let api = Router::new().route("/api/products/{id}", get(|| async { "{}" }));
    [shop.layer(gate.layer()), api.layer(gate.layer())]
}
