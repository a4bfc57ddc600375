use axum::{
    Router,
    http::{HeaderName, HeaderValue, Method, header::RETRY_AFTER},
    routing::get,
};
use hotgate::Gate;
use tower_http::cors::CorsLayer;

fn app(gate: &Gate) -> Router {
    let cors = CorsLayer::new()
        .allow_origin(HeaderValue::from_static("https://shop.example"))
        .allow_methods([Method::GET])
        .expose_headers([
            RETRY_AFTER,
            HeaderName::from_static("ratelimit"),
            HeaderName::from_static("ratelimit-policy"),
        ]);
    Router::new()
        .route("/products/{id}", get(|| async { "a teapot" }))
        .layer(gate.layer())
        .layer(cors)
}
