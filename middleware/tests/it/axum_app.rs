//! Under Axum: routers, nesting, routes, and a real socket's peer.

use std::{future::IntoFuture as _, net::SocketAddr};

use axum::{
    Router,
    body::Body,
    extract::{self, ConnectInfo},
    middleware::{Next, from_fn},
    response::IntoResponse as _,
    routing::{get, post},
};
use hotgate::Gate;
use http::{HeaderValue, Request, StatusCode};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::support::{Logged, User, answered, in_time, limit, status};

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

#[tokio::test]
async fn in_a_nested_router_the_route_is_the_whole_template() {
    let rules = "[[rule]]\nname = \"route\"\nkey = [\"route\"]\nover = \"1/1m\"\nthrottle = {}\n";
    let gate = gate(rules);
    let orders = || Router::new().route("/orders/{id}", get(|| async { "ok" })).layer(gate.layer());
    let app = Router::new().nest("/api", orders()).nest("/old", orders());
    assert_eq!(status(&app, from(1, "/api/orders/1")).await, StatusCode::OK);
    assert_eq!(status(&app, from(1, "/api/orders/2")).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(status(&app, from(1, "/old/orders/2")).await, StatusCode::OK, "another template");
}

#[tokio::test]
async fn a_gate_around_and_inside_nested_routers_counts_once() {
    let gate = gate(&limit("3/1m", "throttle = {}"));
    let orders = Router::new().route("/orders", get(|| async { "ok" })).layer(gate.layer());
    let app = Router::new().nest("/api", orders).layer(gate.layer());
    let app = tower::ServiceBuilder::new().layer(gate.layer()).service(app);
    for expected in [200, 200, 200, 429] {
        assert_eq!(status(&app, from(1, "/api/orders")).await.as_u16(), expected);
    }
}

#[tokio::test]
async fn the_inner_door_stands_inside_an_authentication_layer() {
    let rules = "[[rule]]\nname = \"user\"\nmatch = \"/api/{*rest}\"\nkey = [\"user|client\"]\nover = \"2/1m\"\nthrottle = {}\n"
        .to_owned()
        + &limit("9/1m", "throttle = {}");
    let rules = format!("app = \"test\"\n{rules}").parse().unwrap();
    let gate = Gate::builder().rules(rules).user(User::of).build().unwrap();
    let authenticate = async |mut request: extract::Request, next: Next| {
        let Some(name) = request.headers().get("x-user") else {
            return StatusCode::UNAUTHORIZED.into_response();
        };
        let user = if name == "alice" { "alice" } else { "bob" };
        request.extensions_mut().insert(User(user));
        next.run(request).await
    };
    let app = Router::new()
        .route("/api/orders", get(|| async { "ok" }))
        .route("/api/products/{id}", get(|| async { "ok" }))
        .layer(gate.inner_layer())
        .layer(from_fn(authenticate))
        .layer(gate.layer());
    let of = |user: &'static str, path: &str| {
        let mut request = from(1, path);
        request.headers_mut().insert("x-user", HeaderValue::from_static(user));
        request
    };
    for _ in 0..4 {
        assert_eq!(status(&app, from(1, "/api/orders")).await, StatusCode::UNAUTHORIZED);
    }
    for (path, expected) in [("/api/orders", 200), ("/api/products/7", 200), ("/api/orders", 429)] {
        assert_eq!(status(&app, of("alice", path)).await.as_u16(), expected, "alice, {path}");
    }
    assert_eq!(status(&app, of("bob", "/api/orders")).await, StatusCode::OK);
    assert_eq!(
        status(&app, from(1, "/api/orders")).await,
        StatusCode::UNAUTHORIZED,
        "the ninth of this client"
    );
    assert_eq!(
        status(&app, from(1, "/api/orders")).await,
        StatusCode::TOO_MANY_REQUESTS,
        "the outer door goes before authentication"
    );
}

#[tokio::test]
async fn a_handler_returns_what_its_check_refused() {
    let rules = "[[rule]]\nname = \"login\"\nmatch = []\nkey = [\"user\"]\nover = \"1/1m\"\nthrottle = {}\n";
    let gate = gate(rules);
    let login = move |body: String| async move {
        if let Err(refused) = gate.check("login", [("user", &body)]) {
            return refused.into_response();
        }
        "welcome".into_response()
    };
    let app = Router::new().route("/login", post(login));
    let of = |user: &'static str| Request::post("/login").body(Body::from(user)).unwrap();
    assert_eq!(status(&app, of("alice")).await, StatusCode::OK);
    let (code, headers, body) = answered(&app, of("alice")).await;
    assert_eq!(code, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(headers["content-type"], "application/problem+json");
    assert_eq!(headers["content-length"], body.len().to_string());
    assert_eq!(status(&app, of("bob")).await, StatusCode::OK);
}

/// What a served app answers to `GET /`, over a connection of its own.
async fn over_a_socket(address: SocketAddr) -> String {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.lines().next().unwrap().to_owned()
    };
    in_time(exchange).await
}

#[tokio::test]
async fn a_server_that_tells_no_peer_is_no_outage_and_one_warning() {
    // C11
    let logged = Logged::start();
    let rules = limit("1/1m", "throttle = {}");
    let app = || Router::new().route("/", get(|| async { "ok" })).layer(gate(&rules).layer());
    let listen = async || TcpListener::bind("127.0.0.1:0").await.unwrap();

    let listener = listen().await;
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(axum::serve(listener, app()).into_future());
    for _ in 0..3 {
        assert_eq!(over_a_socket(address).await, "HTTP/1.1 200 OK");
    }
    assert_eq!(logged.lines_with("into_make_service_with_connect_info").len(), 1);
    server.abort();

    let listener = listen().await;
    let address = listener.local_addr().unwrap();
    let app = app().into_make_service_with_connect_info::<SocketAddr>();
    let server = tokio::spawn(axum::serve(listener, app).into_future());
    for expected in ["HTTP/1.1 200 OK", "HTTP/1.1 429 Too Many Requests"] {
        assert_eq!(over_a_socket(address).await, expected, "what the warning says helps");
    }
    server.abort();
}
