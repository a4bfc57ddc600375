//! Under Axum: routers, nesting, routes, and a real socket's peer.

use std::net::SocketAddr;

use axum::{Router, body::Body, extract::ConnectInfo, routing::get};
use hotgate::Gate;
use http::{Request, StatusCode};

use crate::support::{limit, status};

fn gate(rules: &str) -> Gate {
    Gate::builder().rules(format!("app = \"test\"\n{rules}").parse().unwrap()).build().unwrap()
}

fn from(client: u8, path: &str) -> Request<Body> {
    let peer = ConnectInfo(SocketAddr::from(([203, 0, 113, client], 40_000)));
    Request::get(path).extension(peer).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn the_layer_works_inside_and_around_a_router_and_on_one_route() {
    let rules = limit("2/1m", "throttle = {}");
    let route = || get(|| async { "ok" });
    let inside = Router::new().route("/", route()).route("/b", route()).layer(gate(&rules).layer());
    let on_a_route = Router::new().route("/", route().layer(gate(&rules).layer()));
    let around = tower::ServiceBuilder::new()
        .layer(gate(&rules).layer())
        .service(Router::new().route("/", route()));
    for (client, expected) in [(1, 200), (1, 200), (1, 429), (2, 200)] {
        assert_eq!(status(&inside, from(client, "/")).await.as_u16(), expected, "inside");
        assert_eq!(status(&on_a_route, from(client, "/")).await.as_u16(), expected, "on a route");
        assert_eq!(status(&around, from(client, "/")).await.as_u16(), expected, "around");
    }
    assert_eq!(
        status(&inside, from(1, "/b")).await,
        StatusCode::TOO_MANY_REQUESTS,
        "one count for all routes"
    );
    assert_eq!(
        status(&inside, from(2, "/nowhere")).await,
        StatusCode::NOT_FOUND,
        "the fallback counts too"
    );
    assert_eq!(status(&inside, from(2, "/nowhere")).await, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_layer_inside_a_nested_router_sees_the_whole_path() {
    let rules = limit("1/1m", "match = \"/api/{*rest}\"\nthrottle = {}");
    let inner = Router::new().route("/orders", get(|| async { "ok" })).layer(gate(&rules).layer());
    let app = Router::new().nest("/api", inner);
    assert_eq!(status(&app, from(1, "/api/orders")).await, StatusCode::OK);
    assert_eq!(status(&app, from(1, "/api/orders")).await, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn the_matched_route_is_a_key() {
    let rules = "[[rule]]\nname = \"route\"\nkey = [\"route\"]\nover = \"2/1m\"\nthrottle = {}\n";
    let app = Router::new()
        .route("/products/{id}", get(|| async { "ok" }))
        .route("/", get(|| async { "ok" }))
        .layer(gate(rules).layer());
    assert_eq!(status(&app, from(1, "/products/1")).await, StatusCode::OK);
    assert_eq!(status(&app, from(2, "/products/2")).await, StatusCode::OK);
    assert_eq!(
        status(&app, from(3, "/products/3")).await,
        StatusCode::TOO_MANY_REQUESTS,
        "one route, one key"
    );
    assert_eq!(status(&app, from(3, "/")).await, StatusCode::OK);
}
