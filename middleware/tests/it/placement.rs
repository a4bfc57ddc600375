//! Where the layer stands in a stack: the examples of docs/placement.md, run, and what that page says.

use std::{convert::Infallible, future::pending, net::SocketAddr};

use axum::{
    Extension, Router,
    body::Body,
    extract::ConnectInfo,
    http::{HeaderMap, Request, StatusCode, header},
    routing::get,
};
use bytes::Bytes;
use hotgate::{Gate, Peer, PeerAddr};
use http_body_util::{BodyExt as _, Channel};
use tower::{ServiceBuilder, ServiceExt as _};
use tower_http::{compression::CompressionLayer, cors::CorsLayer};

use crate::support::{Calls, Logged, answered, in_time, limit, status};

/// The page's examples, one in a file; each is a part of a module below.
const EXAMPLES: [&str; 9] = [
    include_str!("placement/examples/stack.rs"),
    include_str!("placement/examples/cors.rs"),
    include_str!("placement/examples/busy.rs"),
    include_str!("placement/examples/nested.rs"),
    include_str!("placement/examples/unix.rs"),
    include_str!("placement/examples/connection.rs"),
    include_str!("placement/examples/login.rs"),
    include_str!("placement/examples/shared.rs"),
    include_str!("placement/examples/several.rs"),
];

fn gate(rules: &str) -> Gate {
    Gate::builder().rules(format!("app = \"test\"\n{rules}").parse().unwrap()).build().unwrap()
}

/// `GET path` of 203.0.113.`client`.
fn from(client: u8, path: &str) -> Request<Body> {
    let peer = ConnectInfo(SocketAddr::from(([203, 0, 113, client], 40_000)));
    Request::get(path).extension(peer).body(Body::empty()).unwrap()
}

/// The same of a page of another site, in a browser.
fn of_a_page(client: u8, path: &str) -> Request<Body> {
    let mut request = from(client, path);
    request.headers_mut().insert(header::ORIGIN, "https://shop.example".parse().unwrap());
    request
}

#[test]
fn the_pages_examples_are_those_that_are_run_here() {
    let page = include_str!("../../../docs/placement.md");
    let shown: Vec<&str> = page
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("every block ends").0)
        .collect();
    for example in &shown {
        assert!(EXAMPLES.contains(example), "shown, and not run:\n{example}");
    }
    for example in EXAMPLES {
        assert!(shown.contains(&example), "run, and not shown:\n{example}");
    }
}

mod stack {
    use super::*;

    include!("placement/examples/stack.rs");

    const RULES: &str = "app = \"test\"\n[[rule]]\nname = \"user\"\nkey = [\"user\"]\nover = \"2/1m\"\nthrottle = {}\n";

    fn stack(more: &str) -> Router {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hotgate.toml");
        std::fs::write(&path, RULES.to_owned() + more).unwrap();
        app(&gate(&path).unwrap())
    }

    fn of_user(user: &str, client: u8) -> Request<Body> {
        let mut request = of_a_page(client, "/api/orders");
        request.headers_mut().insert("authorization", format!("Bearer {user}").parse().unwrap());
        request.headers_mut().insert("accept-encoding", "gzip".parse().unwrap());
        request
    }

    #[tokio::test]
    async fn the_inner_door_counts_authenticated_users_and_the_outer_one_everybody() {
        let app = stack(&limit("7/1m", "throttle = {}"));
        for _ in 0..3 {
            assert_eq!(
                status(&app, from(1, "/api/orders")).await,
                StatusCode::UNAUTHORIZED,
                "anonymous requests are no user's"
            );
        }
        for expected in [200, 200, 429] {
            assert_eq!(status(&app, of_user("alice", 1)).await.as_u16(), expected, "alice");
        }
        assert_eq!(status(&app, of_user("bob", 1)).await, StatusCode::OK, "another user");
        assert_eq!(
            status(&app, from(1, "/api/orders")).await,
            StatusCode::TOO_MANY_REQUESTS,
            "the outer door has counted all seven, and refuses before authentication"
        );
        assert_eq!(status(&app, of_user("bob", 2)).await, StatusCode::OK);
    }

    #[tokio::test]
    async fn a_refusal_stands_in_the_trace_and_can_be_read_by_the_page() {
        // C22
        let logged = Logged::start();
        let app = stack(&limit("1/1m", "throttle = {}"));
        let (code, headers, _) = answered(&app, of_user("alice", 1)).await;
        assert_eq!(
            (code, &headers["content-encoding"]),
            (StatusCode::OK, &"gzip".parse().unwrap())
        );
        let (code, headers, body) = answered(&app, of_user("alice", 1)).await;
        assert_eq!(code, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(headers["access-control-allow-origin"], "*");
        assert!(!headers.contains_key("content-encoding"), "nobody compresses a refusal");
        assert_eq!(headers["content-length"], body.len().to_string());
        assert_eq!(logged.lines_with("status=429").len(), 2, "of the gate, and of the trace");
        assert_eq!(logged.lines_with("finished processing request").len(), 2);
    }
}

mod cors {
    use super::*;

    include!("placement/examples/cors.rs");

    #[tokio::test]
    async fn a_page_may_read_when_to_come_back() {
        // C22
        let app = app(&gate(&limit("1/1m", "throttle = {}")));
        status(&app, of_a_page(1, "/products/7")).await;
        let (code, headers, _) = answered(&app, of_a_page(1, "/products/7")).await;
        assert_eq!(code, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(headers["access-control-allow-origin"], "https://shop.example");
        let exposed = headers["access-control-expose-headers"].to_str().unwrap().to_lowercase();
        for field in ["retry-after", "ratelimit", "ratelimit-policy"] {
            assert!(exposed.split(',').any(|one| one.trim() == field), "{field} in {exposed}");
            assert!(headers.contains_key(field), "{field} is sent");
        }
    }

    #[tokio::test]
    async fn with_the_gate_outside_a_page_cannot_read_the_refusal() {
        let gate = gate(&limit("1/1m", "throttle = {}"));
        let app = Router::new()
            .route("/", get(|| async { "ok" }))
            .layer(CorsLayer::permissive())
            .layer(gate.layer());
        let (_, headers, _) = answered(&app, of_a_page(1, "/")).await;
        assert!(headers.contains_key("access-control-allow-origin"));
        let (code, headers, _) = answered(&app, of_a_page(1, "/")).await;
        assert_eq!(code, StatusCode::TOO_MANY_REQUESTS);
        assert!(
            !headers.contains_key("access-control-allow-origin"),
            "the wrong order is as bad as the page says"
        );
    }
}

mod busy {
    use super::*;

    include!("placement/examples/busy.rs");

    #[tokio::test]
    async fn a_refused_client_is_answered_while_the_service_is_saturated() {
        let (started, running) = tokio::sync::oneshot::channel();
        let started = std::sync::Arc::new(std::sync::Mutex::new(Some(started)));
        let report = get(move || {
            let _ = started.lock().unwrap().take().expect("one at a time").send(());
            pending::<&str>()
        });
        let app = app(&gate(&limit("1/1m", "throttle = {}")), report);
        let first = tokio::spawn(app.clone().oneshot(from(1, "/report")));
        in_time(running).await.unwrap();
        assert_eq!(
            status(&app, from(1, "/report")).await,
            StatusCode::TOO_MANY_REQUESTS,
            "without waiting for the one permit"
        );
        first.abort();
    }

    fn slow() -> Router {
        Router::new().route("/", get(pending::<&str>))
    }

    fn timeout() -> TimeoutLayer {
        TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(1))
    }

    #[tokio::test]
    async fn a_timeout_inside_counts_as_its_status_and_outside_as_cancelled() {
        for (counted, inside, outside) in [("504", 403, 504), ("\"cancelled\"", 504, 403)] {
            let count = format!("count = {{ status = [{counted}] }}\nblock = {{ for = \"1m\" }}");
            let rules = limit("1/1m", &count);
            let app = slow().layer(timeout()).layer(gate(&rules).layer());
            assert_eq!(status(&app, from(1, "/")).await, StatusCode::GATEWAY_TIMEOUT);
            assert_eq!(status(&app, from(1, "/")).await.as_u16(), inside, "{counted}, inside");
            let app = slow().layer(gate(&rules).layer()).layer(timeout());
            assert_eq!(status(&app, from(1, "/")).await, StatusCode::GATEWAY_TIMEOUT);
            assert_eq!(status(&app, from(1, "/")).await.as_u16(), outside, "{counted}, outside");
        }
    }
}

mod nested {
    use super::*;

    include!("placement/examples/nested.rs");

    #[tokio::test]
    async fn all_that_stands_above_the_layer_is_behind_it_and_nothing_else() {
        let app = app(&gate(&limit("3/1m", "throttle = {}")));
        for (path, expected) in [
            ("/api/orders/7", 200),
            ("/", 200),
            ("/nowhere", 404),
            ("/api/orders/7", 429),
            ("/nowhere", 429),
            ("/healthz", 200),
        ] {
            assert_eq!(status(&app, from(1, path)).await.as_u16(), expected, "{path}");
        }
    }

    #[tokio::test]
    async fn patterns_are_whole_paths_and_routes_whole_templates() {
        for matches in ["match = \"/api/orders/{id}\"", "when = { route = \"/api/orders/{id}\" }"] {
            let app = app(&gate(&limit("1/1m", &format!("{matches}\nthrottle = {{}}"))));
            assert_eq!(status(&app, from(1, "/api/orders/7")).await, StatusCode::OK, "{matches}");
            assert_eq!(status(&app, from(1, "/")).await, StatusCode::OK, "another path");
            assert_eq!(status(&app, from(1, "/api/orders/8")).await.as_u16(), 429, "{matches}");
        }
    }

    #[tokio::test]
    async fn a_route_layer_sees_no_path_that_has_no_route() {
        let gate = gate(&limit("1/1m", "throttle = {}"));
        let app = Router::new().route("/", get(|| async { "ok" })).route_layer(gate.layer());
        for _ in 0..3 {
            assert_eq!(status(&app, from(1, "/nowhere")).await, StatusCode::NOT_FOUND);
        }
        assert_eq!(status(&app, from(1, "/")).await, StatusCode::OK);
        assert_eq!(status(&app, from(1, "/")).await, StatusCode::TOO_MANY_REQUESTS);
    }

    #[tokio::test]
    async fn around_a_whole_router_the_route_is_the_rules_own_pattern_or_missing() {
        let by_route = |matches: &str| {
            let rules = format!(
                "[[rule]]\nname = \"route\"\n{matches}\nkey = [\"route\"]\nover = \"1/1m\"\nthrottle = {{}}\n"
            );
            let router = Router::new().route("/products/{id}", get(|| async { "a teapot" }));
            ServiceBuilder::new().layer(gate(&rules).layer()).service(router)
        };
        let matching = by_route("match = \"/products/{which}\"");
        assert_eq!(status(&matching, from(1, "/products/7")).await, StatusCode::OK);
        assert_eq!(status(&matching, from(2, "/products/8")).await.as_u16(), 429, "one pattern");
        let any = by_route("");
        for _ in 0..3 {
            assert_eq!(status(&any, from(1, "/products/7")).await, StatusCode::OK, "never counted");
        }
    }
}

#[cfg(unix)]
mod unix {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::UnixStream,
    };

    use super::*;

    include!("placement/examples/unix.rs");

    #[tokio::test]
    async fn behind_a_unix_socket_the_client_is_whom_the_proxy_names() {
        let client =
            "[client]\nsource = \"x-forwarded-for\"\ntrusted_proxies = [\"unix\"]\n".to_owned();
        let gate = gate(&(client + &limit("1/1m", "throttle = {}")));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.sock");
        let server = tokio::spawn(serve(UnixListener::bind(&path).unwrap(), gate));
        for (client, expected) in [(1, "200"), (2, "200"), (1, "429")] {
            let exchange = async {
                let mut stream = UnixStream::connect(&path).await.unwrap();
                let request = format!(
                    "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.{client}\r\nConnection: close\r\n\r\n"
                );
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                answer
            };
            let answer = in_time(exchange).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{client}: {answer}");
        }
        server.abort();
    }
}

mod connection {
    use super::*;

    include!("placement/examples/connection.rs");

    #[tokio::test]
    async fn the_proxy_headers_address_is_the_client_not_the_balancers() {
        let gate = gate(&limit("1/1m", "throttle = {}"));
        let app = Router::new().route("/", get(|| async { "ok" })).layer(gate.layer());
        for (source, expected) in [(1, 200), (2, 200), (1, 429)] {
            let service = of_connection(&app, [198, 51, 100, source].into());
            let answer = in_time(service.oneshot(from(1, "/"))).await.unwrap();
            assert_eq!(answer.status().as_u16(), expected, "of 198.51.100.{source}");
        }
    }
}

mod login {
    use super::*;

    include!("placement/examples/login.rs");

    const RULES: &str = "[[rule]]\nname = \"login-user\"\nmatch = []\nkey = [\"user\"]\nover = \"2/1m\"\nblock = { for = \"15m\" }\n";

    #[tokio::test]
    async fn a_name_in_the_body_is_counted_from_wherever_it_is_guessed() {
        let app = app(gate(RULES));
        let guess = async |client, user: &str, password: &str| {
            let mut request = from(client, "/login");
            *request.method_mut() = http::Method::POST;
            let form = "application/x-www-form-urlencoded".parse().unwrap();
            request.headers_mut().insert(header::CONTENT_TYPE, form);
            *request.body_mut() = Body::from(format!("user={user}&password={password}"));
            status(&app, request).await.as_u16()
        };
        assert_eq!(guess(1, "alice", "rabbit").await, 401);
        assert_eq!(guess(2, "alice", "hatter").await, 401);
        assert_eq!(guess(3, "alice", "wonderland").await, 403, "the third, from a third address");
        assert_eq!(guess(3, "bob", "wonderland").await, 200, "another name");
    }
}

mod shared {
    use super::*;

    include!("placement/examples/shared.rs");

    #[tokio::test]
    async fn a_client_has_one_quota_for_all_services_of_a_gate() {
        let [shop, api] = services(&gate(&limit("2/1m", "throttle = {}")));
        assert_eq!(status(&shop, from(1, "/products/7")).await, StatusCode::OK);
        assert_eq!(status(&api, from(1, "/api/products/7")).await, StatusCode::OK);
        for _ in 0..2 {
            assert_eq!(status(&shop, from(1, "/products/7")).await.as_u16(), 429);
            assert_eq!(status(&api, from(1, "/api/products/7")).await.as_u16(), 429);
        }
    }
}

mod several {
    use super::*;

    include!("placement/examples/several.rs");

    #[tokio::test]
    async fn each_gate_counts_for_itself_and_no_refusal_as_a_response() {
        let site = limit("1/1m", "count = { status = [429] }\nblock = { for = \"1m\" }");
        let app = app(&gate(&site), &gate(&limit("1/1m", "throttle = {}")));
        assert_eq!(status(&app, from(1, "/api/orders")).await, StatusCode::OK);
        for _ in 0..3 {
            assert_eq!(status(&app, from(1, "/api/orders")).await.as_u16(), 429, "by `api`");
        }
        assert_eq!(status(&app, from(1, "/")).await, StatusCode::OK, "`site` has counted none");
    }

    #[tokio::test]
    async fn what_the_outer_gate_refuses_the_inner_one_never_sees() {
        let outer = limit("2/1m", "throttle = {}\nmatch = \"/api/{*rest}\"");
        let app = app(&gate(&outer), &gate(&limit("3/1m", "throttle = {}")));
        let mut by = Vec::new();
        for _ in 0..6 {
            by.push(status(&app, from(1, "/api/orders")).await.as_u16());
        }
        assert_eq!(by, [200, 200, 429, 429, 429, 429]);
    }
}

#[tokio::test]
async fn a_stream_is_one_request_and_flows_at_once_through_the_whole_stack() {
    // C78, C80
    let (sender, body) = Channel::<Bytes, Infallible>::new(4);
    let body = std::sync::Arc::new(std::sync::Mutex::new(Some(body)));
    let events = get(move || async move {
        let body = Body::new(body.lock().unwrap().take().expect("asked once"));
        ([(header::CONTENT_TYPE, "text/event-stream")], body)
    });
    let count = "count = { status = [200], pending = 1 }\nblock = { for = \"1m\" }";
    let app = Router::new()
        .route("/events", events)
        .route("/", get(|| async { "ok" }))
        .layer(CompressionLayer::new())
        .layer(gate(&limit("2/1m", count)).layer())
        .layer(CorsLayer::permissive());
    let mut sender = sender;
    let mut request = from(1, "/events");
    request.headers_mut().insert("accept-encoding", "gzip".parse().unwrap());
    let mut body = in_time(app.clone().oneshot(request)).await.unwrap().into_body();
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        sender.send_data(Bytes::from(event)).await.unwrap();
        let frame = in_time(body.frame()).await.expect("it goes on").unwrap();
        assert_eq!(frame.into_data().unwrap(), event, "before the next is written");
    }
    assert_eq!(status(&app, from(1, "/")).await, StatusCode::OK, "nothing of it is pending");
    assert_eq!(status(&app, from(1, "/")).await, StatusCode::FORBIDDEN, "it counted as one");
}

#[tokio::test]
async fn an_upgrade_counts_as_one_request_and_its_status_is_known() {
    // C78
    let upgrade = || async {
        let mut headers = HeaderMap::new();
        headers.insert(header::UPGRADE, "websocket".parse().unwrap());
        (StatusCode::SWITCHING_PROTOCOLS, headers)
    };
    let gate = gate(&limit("1/1m", "count = { status = [101] }\nblock = { for = \"1m\" }"));
    let app = Router::new().route("/chat", get(upgrade)).layer(gate.layer());
    assert_eq!(status(&app, from(1, "/chat")).await, StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(status(&app, from(1, "/chat")).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn exempt_probes_are_answered_to_denied_clients_too() {
    let gate = gate(
        "[exempt]\nmatch = \"/healthz\"\n[[deny]]\nclients = [\"203.0.113.1\"]\n[[rule]]\nname = \"all\"\nkey = []\nalways = true\nblock = {}\n",
    );
    let app = Router::new()
        .route("/", get(|| async { "ok" }))
        .route("/healthz", get(|| async { "well" }))
        .layer(gate.layer());
    for _ in 0..3 {
        assert_eq!(status(&app, from(1, "/healthz")).await, StatusCode::OK);
    }
    assert_eq!(status(&app, from(1, "/")).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_request_that_is_sent_again_counts_again() {
    // What a layer between two of a gate's does with a request decides: a new one has no mark.
    let gate = gate(&limit("2/1m", "throttle = {}"));
    let inner = Router::new().route("/", get(|| async { "ok" })).layer(gate.layer());
    let forwarded = Calls::default();
    let calls = forwarded.clone();
    let proxy = tower::service_fn(move |_: Request<Body>| {
        calls.count();
        inner.clone().oneshot(from(1, "/"))
    });
    let app = ServiceBuilder::new().layer(gate.layer()).service(proxy);
    assert_eq!(status(&app, from(1, "/")).await, StatusCode::OK, "counted twice");
    assert_eq!(status(&app, from(1, "/")).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(forwarded.get(), 1, "by the outer layer");
}

#[tokio::test]
async fn a_peer_that_a_layer_inside_tells_comes_too_late() {
    let gate = gate(&limit("1/1m", "throttle = {}"));
    let app = Router::new()
        .route("/", get(|| async { "ok" }))
        .layer(gate.layer())
        .layer(Extension(PeerAddr(Peer::Unix)));
    let late = Router::new()
        .route("/", get(|| async { "ok" }))
        .layer(Extension(PeerAddr(Peer::Unix)))
        .layer(gate.layer());
    for _ in 0..3 {
        assert_eq!(status(&app, from(1, "/")).await, StatusCode::OK, "the client is unknown");
    }
    assert_eq!(status(&late, from(1, "/")).await, StatusCode::OK);
    assert_eq!(status(&late, from(1, "/")).await, StatusCode::TOO_MANY_REQUESTS, "by ConnectInfo");
}
