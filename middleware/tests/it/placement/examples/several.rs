use axum::{Router, routing::get};
use hotgate::Gate;

fn app(site: &Gate, api: &Gate) -> Router {
    let orders = Router::new().route("/orders", get(|| async { "none yet" })).layer(api.layer());
    Router::new().route("/", get(|| async { "welcome" })).nest("/api", orders).layer(site.layer())
}
