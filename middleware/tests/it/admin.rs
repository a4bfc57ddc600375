//! The admin router: over real HTTP, and for requests that no real connection brings here.

use std::{fs, net::SocketAddr, time::Duration};

use axum::{Router, extract::ConnectInfo, routing::get};
use hotgate::{Gate, Mode};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tower::ServiceExt as _;

use crate::support::{Logged, in_time};

const TOKEN: &str = "a-token-of-the-tests-0123456789";

const RULES: &str = r#"
app = "shop"
[[rule]]
name = "api"
match = "/api"
key = ["client"]
over = "2/1m"
throttle = {}
note = "the plan's quota"
[[rule]]
name = "login"
match = "POST /login"
key = ["client"]
over = "2/1m"
block = { for = "15m" }
"#;

const MINUTE: Duration = Duration::from_secs(60);

fn gate() -> Gate {
    Gate::builder().rules(RULES.parse().unwrap()).build().unwrap()
}

fn admin(gate: &Gate) -> Router {
    gate.admin_router().token(TOKEN).build().unwrap()
}

/// A server with the gate's layer, and the router outside of it at `/ops`.
struct Server {
    gate: Gate,
    address: SocketAddr,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Server {
    async fn start() -> Self {
        let gate = gate();
        let app = Router::new()
            .route("/api", get(|| async { "ok" }))
            .layer(gate.layer())
            .nest("/ops", admin(&gate));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Server { gate, address }
    }

    async fn send(&self, request: &str, fields: &str, body: &str) -> Answer {
        let request = format!(
            "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let exchange = async {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = in_time(exchange).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// With the token.
    async fn ask(&self, request: &str, body: Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(request, &format!("Authorization: Bearer {TOKEN}\r\n"), &body).await
    }

    async fn api(&self) -> u16 {
        self.send("GET /api", "", "").await.status
    }
}

#[tokio::test]
async fn every_question_and_command_is_answered_over_http() {
    let server = Server::start().await;
    assert_eq!([server.api().await, server.api().await, server.api().await], [200, 200, 429]);

    let status = server.ask("GET /ops/status", Value::Null).await;
    assert!(status.head.contains("cache-control: no-store"), "{}", status.head);
    assert!(status.head.contains("hotgate-admin: 1"), "{}", status.head);
    let status = status.json();
    assert_eq!(status["app"], "shop");
    assert_eq!(status["rules"][0]["requests"]["refused"], 1);
    assert_eq!(status["version"], server.gate.version());

    let hot = server.ask("GET /ops/hot?limit=5&rule=api", Value::Null).await.json();
    assert_eq!((&hot["standing"], &hot["keys"][0]["key"]), (&json!(1), &json!("client=127.0.0.1")));

    let why = server.ask("POST /ops/why", json!({ "key": "127.0.0.1" })).await.json();
    assert_eq!((&why["rules"][0]["state"], &why["rules"][0]["count"]), (&json!("hot"), &json!(2)));

    let key = json!({ "rule": "api", "key": "client=127.0.0.1" });
    let lifted = server.ask("POST /ops/lift", key).await.json();
    assert_eq!((&lifted["lifted"], server.api().await), (&json!(1), 200), "{lifted}");

    let block = json!({ "rule": "api", "key": "127.0.0.1", "for": "10m" });
    let blocked = server.ask("POST /ops/block", block).await.json();
    assert_eq!((&blocked["seconds_left"], server.api().await), (&json!(600), 403));
    let every = json!({ "key": "127.0.0.1", "all_rules": true });
    assert_eq!(server.ask("POST /ops/lift", every).await.json()["rules"], json!(["api", "login"]));

    let deny = json!({ "clients": "127.0.0.0/8", "for": "1h", "note": "a test" });
    let denied = server.ask("POST /ops/deny", deny).await.json();
    assert_eq!((&denied["list"], server.api().await), (&json!("deny"), 403));
    let allow = json!({ "clients": "127.0.0.1", "for": "1h" });
    assert_eq!(server.ask("POST /ops/allow", allow).await.json()["clients"], "127.0.0.1/32");
    let passed = [server.api().await, server.api().await, server.api().await];
    assert_eq!(passed, [200; 3], "allowed past every rule, and the operator was never shut out");

    let mode = server.ask("POST /ops/mode", json!({ "mode": "off", "rule": "api" })).await.json();
    assert_eq!(mode["mode"], "off");
    let all = json!({ "rule": "api", "all_keys": true });
    assert_eq!(server.ask("POST /ops/lift", all).await.status, 200);
}

#[tokio::test]
async fn the_kill_switch_is_in_force_when_the_command_is_answered() {
    let server = Server::start().await;
    assert_eq!([server.api().await, server.api().await, server.api().await], [200, 200, 429]);
    server.ask("POST /ops/mode", json!({ "mode": "observe" })).await;
    assert_eq!(server.api().await, 200);
    server.ask("POST /ops/mode", json!({ "mode": "enforce" })).await;
    assert_eq!(server.api().await, 429);
}

#[tokio::test]
async fn the_metrics_are_the_gates_own_whatever_recorder_there_is() {
    let server = Server::start().await;
    assert_eq!([server.api().await, server.api().await, server.api().await], [200, 200, 429]);
    for _ in 0..2 {
        let metrics = server.ask("GET /ops/metrics", Value::Null).await;
        assert!(
            metrics.head.contains("content-type: text/plain; version=0.0.4"),
            "{}",
            metrics.head
        );
        let line = r#"hotgate_requests_total{rule="api",action="throttle",outcome="refused"} 1"#;
        assert!(metrics.body.lines().any(|is| is == line), "{}", metrics.body);
        assert!(metrics.body.contains("# TYPE hotgate_verdicts gauge"), "{}", metrics.body);
        assert!(!metrics.body.contains("127.0.0.1"), "a key is never a label");
    }
}

#[tokio::test]
async fn the_table_of_metrics_is_what_a_scrape_reads() {
    let server = Server::start().await;
    let scraped = server.ask("GET /ops/metrics", Value::Null).await.body;
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
    let document = fs::read_to_string(document).unwrap();
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `hotgate_"));
    let mut documented: Vec<String> = rows
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            format!("# TYPE hotgate_{} {}", cells[0].trim_end_matches('`'), cells[1])
        })
        .collect();
    let types = scraped.lines().filter(|line| line.starts_with("# TYPE"));
    let mut exported: Vec<String> = types.map(str::to_owned).collect();
    documented.sort();
    exported.sort();
    assert_eq!(documented, exported, "docs/metrics.md against GET /metrics");
    assert!(exported.len() >= 15, "{scraped}");
}

#[tokio::test]
async fn what_cannot_be_done_is_a_problem_that_says_what_was_expected() {
    let server = Server::start().await;
    for (request, body, status, detail) in [
        ("GET /ops/nothing", Value::Null, 404, "expected status, hot, why"),
        ("GET /ops", Value::Null, 404, "expected status, hot, why"),
        ("POST /ops/status", Value::Null, 405, "expected GET for status"),
        ("GET /ops/lift", Value::Null, 405, "expected GET for status"),
        ("GET /ops/hot?limit=10001", Value::Null, 400, "at most 10000, not 10001"),
        ("GET /ops/hot?limt=1", Value::Null, 400, "unknown field `limt`"),
        (
            "GET /ops/hot?rule=nope",
            Value::Null,
            404,
            "no rule is named \"nope\", expected one of api, login",
        ),
        ("POST /ops/why", json!({ "key": "user=7" }), 404, "no rule has such a key"),
        ("POST /ops/why", Value::Null, 400, "expected a JSON object"),
        ("POST /ops/mode", json!({ "mode": "on" }), 400, "unknown variant `on`"),
        ("POST /ops/mode", json!({ "mode": "off", "rul": "api" }), 400, "unknown field `rul`"),
        (
            "POST /ops/block",
            json!({ "rule": "api", "key": "user=7", "for": "1m" }),
            400,
            "not a key of this rule: expected a key of the parts client",
        ),
        (
            "POST /ops/block",
            json!({ "rule": "api", "key": "127.0.0.1", "for": 10 }),
            400,
            "expected a string",
        ),
        (
            "POST /ops/block",
            json!({ "rule": "api", "key": "127.0.0.1", "for": "10" }),
            400,
            "expected a duration",
        ),
        (
            "POST /ops/deny",
            json!({ "clients": "shop", "for": "1h" }),
            400,
            "expected an address or network",
        ),
        ("POST /ops/lift", json!({ "rule": "api" }), 400, "expected rule and key, or"),
        ("POST /ops/lift", json!({ "key": "127.0.0.1" }), 400, "expected rule and key, or"),
        (
            "POST /ops/lift",
            json!({ "rule": "api", "key": "127.0.0.1", "all_keys": true }),
            400,
            "expected rule and key, or",
        ),
        (
            "POST /ops/deny",
            json!({ "clients": "10.0.0.0/8", "for": "1h", "note": "x".repeat(17_000) }),
            413,
            "limit",
        ),
    ] {
        let answer = server.ask(request, body.clone()).await;
        let shown = format!("{request} {body:.80} {}", answer.body);
        assert_eq!(answer.status, status, "{shown}");
        assert!(answer.head.contains("content-type: application/problem+json"), "{shown}");
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{shown}");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{shown}");
    }
}

/// All requests that the router knows, each of which would change or tell something.
fn requests() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("GET", "/status", Value::Null),
        ("GET", "/hot", Value::Null),
        ("GET", "/metrics", Value::Null),
        ("GET", "/nothing", Value::Null),
        ("DELETE", "/status", Value::Null),
        ("POST", "/why", json!({ "key": "203.0.113.9" })),
        ("POST", "/mode", json!({ "mode": "off" })),
        ("POST", "/deny", json!({ "clients": "203.0.113.0/24", "for": "1h" })),
        ("POST", "/allow", json!({ "clients": "203.0.113.0/24", "for": "1h" })),
        ("POST", "/block", json!({ "rule": "api", "key": "203.0.113.8", "for": "1h" })),
        ("POST", "/lift", json!({ "rule": "api", "key": "203.0.113.9" })),
        ("POST", "/lift", json!({ "rule": "api", "all_keys": true })),
    ]
}

/// What could be seen to have changed.
fn state(gate: &Gate) -> Value {
    let mut state = serde_json::to_value(gate.snapshot()).unwrap();
    // They go by the clock as it is read.
    for moment in ["since", "started"] {
        state[moment] = Value::Null;
    }
    let verdict = gate.verdict("api", "203.0.113.9").unwrap().map(|verdict| verdict.key);
    json!([state, verdict, gate.hot(None, 10).unwrap().standing])
}

#[tokio::test]
async fn from_elsewhere_or_without_the_token_nothing_is_seen_and_nothing_changes() {
    let local = Some("127.0.0.1:5");
    let good = ("authorization", format!("Bearer {TOKEN}"));
    let with = |name: &'static str, value: &str| vec![good.clone(), (name, value.to_owned())];
    let cases = [
        // Who it is, what it brings, and the answer: 404 as if nothing were here, or 401.
        (Some("203.0.113.9:5"), vec![good.clone()], StatusCode::NOT_FOUND),
        (Some("10.0.0.1:5"), vec![good.clone()], StatusCode::NOT_FOUND),
        (Some("[::ffff:203.0.113.9]:5"), vec![good.clone()], StatusCode::NOT_FOUND),
        (None, vec![good.clone()], StatusCode::NOT_FOUND),
        (local, with("x-forwarded-for", "127.0.0.1"), StatusCode::NOT_FOUND),
        (local, with("x-forwarded-proto", "https"), StatusCode::NOT_FOUND),
        (local, with("forwarded", "for=127.0.0.1"), StatusCode::NOT_FOUND),
        (local, with("x-real-ip", "127.0.0.1"), StatusCode::NOT_FOUND),
        (local, with("via", "1.1 proxy"), StatusCode::NOT_FOUND),
        (local, vec![], StatusCode::UNAUTHORIZED),
        (
            local,
            vec![("authorization", "Bearer wrong-token-0123456789".to_owned())],
            StatusCode::UNAUTHORIZED,
        ),
        (local, vec![("authorization", format!("Basic {TOKEN}"))], StatusCode::UNAUTHORIZED),
        (local, vec![("cookie", format!("token={TOKEN}"))], StatusCode::UNAUTHORIZED),
        (Some("203.0.113.9:5"), vec![], StatusCode::NOT_FOUND),
    ];
    let gate = gate();
    gate.block("api", "203.0.113.9", MINUTE).unwrap();
    let before = state(&gate);
    let router = admin(&gate);
    for (peer, fields, status) in cases {
        for (method, path, body) in requests() {
            let mut request = Request::builder().method(method).uri(path);
            if let Some(peer) = peer {
                request = request.extension(ConnectInfo(peer.parse::<SocketAddr>().unwrap()));
            }
            for (name, value) in &fields {
                request = request.header(*name, value);
            }
            let request = request.body(axum::body::Body::from(body.to_string())).unwrap();
            let answer = in_time(router.clone().oneshot(request)).await.unwrap();
            let shown = format!("{method} {path} of {peer:?} with {fields:?}");
            assert_eq!(answer.status(), status, "{shown}");
            let told = answer.headers().contains_key("hotgate-admin");
            assert_eq!(told, status == StatusCode::UNAUTHORIZED, "{shown}");
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert!(!body.contains("shop") && !body.contains("203.0.113"), "{shown}: {body}");
            if status == StatusCode::NOT_FOUND {
                assert_eq!(body, "", "as where nothing is: {shown}");
            }
            assert_eq!(state(&gate), before, "{shown}");
        }
    }
}

#[tokio::test]
async fn from_anywhere_the_token_alone_lets_in() {
    let gate = gate();
    let router: Router = gate.admin_router().token(TOKEN).from_anywhere().build().unwrap();
    for (token, status) in
        [(TOKEN, StatusCode::OK), ("wrong-token-0123456789", StatusCode::UNAUTHORIZED)]
    {
        let request = Request::get("/status")
            .header("x-forwarded-for", "198.51.100.1")
            .header("authorization", format!("Bearer {token}"))
            .extension(ConnectInfo("203.0.113.9:5".parse::<SocketAddr>().unwrap()));
        let request = request.body(axum::body::Body::empty()).unwrap();
        assert_eq!(router.clone().oneshot(request).await.unwrap().status(), status);
    }
}

#[tokio::test]
async fn commands_are_logged_with_their_peer_and_refusals_with_what_to_do() {
    let (gate, logged) = (gate(), Logged::start());
    let router = admin(&gate);
    let request = |peer: Option<&str>| {
        let mut request = Request::post("/deny").header("authorization", format!("Bearer {TOKEN}"));
        if let Some(peer) = peer {
            request = request.extension(ConnectInfo(peer.parse::<SocketAddr>().unwrap()));
        }
        let body = json!({ "clients": "203.0.113.0/24", "for": "1h", "note": "scraper" });
        request.body(axum::body::Body::from(body.to_string())).unwrap()
    };
    router.clone().oneshot(request(Some("127.0.0.1:5"))).await.unwrap();
    let lines = logged.lines_with("denied by command");
    assert_eq!(lines.len(), 1, "{lines:?}");
    for field in ["who=\"admin\"", "peer=\"127.0.0.1\"", "203.0.113.0/24", "until=20", "scraper"] {
        assert!(lines[0].contains(field), "{field} in {}", lines[0]);
    }
    for _ in 0..100 {
        router.clone().oneshot(request(None)).await.unwrap();
    }
    let lines = logged.lines_with("the admin router refused");
    assert!((1..=10).contains(&lines.len()), "a flood is no flood of lines: {}", lines.len());
    assert!(lines[0].contains("into_make_service_with_connect_info"), "{}", lines[0]);
}

#[test]
fn there_is_no_router_without_a_token_that_can_keep_a_secret() {
    let error =
        |token: &str| gate().admin_router().token(token).build::<()>().unwrap_err().to_string();
    assert!(error("short").contains("has 5 bytes, expected at least 16"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let build = || gate().admin_router().token_file(&file).build::<()>();
    assert!(build().unwrap_err().to_string().starts_with("cannot read the admin token from"));
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    assert!(build().is_ok());
    let shown = format!("{:?}", gate().admin_router().token(TOKEN));
    assert!(!shown.contains(TOKEN), "{shown}");
}

#[test]
fn a_router_serves_outside_of_any_runtime() {
    let gate = gate();
    let request = Request::get("/status")
        .header("authorization", format!("Bearer {TOKEN}"))
        .extension(ConnectInfo("127.0.0.1:5".parse::<SocketAddr>().unwrap()));
    let request = request.body(axum::body::Body::empty()).unwrap();
    let mut future = std::pin::pin!(admin(&gate).oneshot(request));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let answer = future.as_mut().poll(&mut cx);
    assert!(matches!(answer, std::task::Poll::Ready(Ok(answer)) if answer.status() == 200));
    assert_eq!(gate.snapshot().mode.mode, Mode::Enforce);
}
