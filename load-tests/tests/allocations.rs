//! What an admitted request takes from the allocator, over real connections, beside the same server
//! without a gate. A binary of its own: the allocator that counts is the whole binary's.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::{borrow::Cow, convert::Infallible, net::SocketAddr, pin::pin, sync::LazyLock};

use axum::{
    Router,
    body::Body,
    extract::ConnectInfo,
    response::IntoResponse,
    routing::{Route, get},
};
use bytes::Bytes;
use hotgate::Gate;
use http::{Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt as _, Either, Empty};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
    server::conn as server,
};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime,
    task::{LocalSet, spawn_local},
};
use tower::{
    Layer, Service,
    layer::util::Identity,
    util::{MapRequest, MapRequestLayer, MapResponseLayer},
};

/// A client, a user and a header, each far from its limit.
const RULES: &str = r#"
app = "test"
[[rule]]
name = "client"
key = ["client"]
over = "1000000/1h"
throttle = {}
[[rule]]
name = "user"
key = ["user"]
over = "1000000/1h"
throttle = {}
[[rule]]
name = "header"
key = ["header:x-api-key"]
over = "1000000/1h"
missing_key = "skip"
throttle = {}
"#;

/// Requests between two looks at the allocator's count.
const BATCH: u64 = 128;

/// Batches before the first that counts: buffers have grown by then, and tables hold the keys.
const WARM_UP_BATCHES: usize = 4;

/// Batches that count. What a buffer takes once in a while falls into some of them only.
const BATCHES: usize = 16;

#[derive(Clone, Copy, Debug)]
enum Protocol {
    Http1,
    Http2,
}

const PROTOCOLS: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

/// Who a request is of, as authentication leaves it.
#[derive(Clone)]
struct User(&'static str);

/// The first gates of a process. Their marks have no size and need no box.
static FIRST: LazyLock<[Gate; 4]> = LazyLock::new(|| std::array::from_fn(|_| build()));

/// A gate as every further one is.
fn gate() -> Gate {
    LazyLock::force(&FIRST);
    build()
}

fn build() -> Gate {
    let rules = RULES.parse().unwrap_or_else(|problems| panic!("{problems}"));
    Gate::builder().rules(rules).user(user).build().unwrap()
}

fn user(parts: &Parts) -> Option<Cow<'_, str>> {
    parts.extensions.get::<User>().map(|user| user.0.into())
}

type Authenticate = fn(Request<Incoming>) -> Request<Incoming>;

fn authenticate(mut request: Request<Incoming>) -> Request<Incoming> {
    request.extensions_mut().insert(User("alice"));
    request
}

fn router() -> Router {
    Router::new().route("/orders/{id}", get(|| async { "an order" }))
}

/// The fewest allocations of a batch of requests to `service`, client and server together.
fn allocations<S, B>(protocol: Protocol, service: S) -> u64
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: 'static>
        + Clone
        + 'static,
    B: http_body::Body<Data = Bytes, Error: std::error::Error + Send + Sync> + 'static,
{
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tasks = LocalSet::new();
    let mut client = tasks.block_on(&runtime, connect(protocol, service));
    let mut batch = || {
        let send = async {
            for _ in 0..BATCH {
                client.send().await;
            }
        };
        allocation_counter::measure(|| tasks.block_on(&runtime, send)).count_total
    };
    for _ in 0..WARM_UP_BATCHES {
        batch();
    }
    (0..BATCHES).map(|_| batch()).min().unwrap()
}

/// One connection to a server of `service` on the loopback.
async fn connect<S, B>(protocol: Protocol, service: S) -> Client
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: 'static>
        + Clone
        + 'static,
    B: http_body::Body<Data = Bytes, Error: std::error::Error + Send + Sync> + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (theirs, peer) = listener.accept().await.unwrap();
    let service = MapRequest::new(service, move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo::<SocketAddr>(peer));
        request
    });
    let service = TowerToHyperService::new(service);
    let (ours, theirs) = (TokioIo::new(ours), TokioIo::new(theirs));
    match protocol {
        Protocol::Http1 => {
            spawn_local(server::http1::Builder::new().serve_connection(theirs, service));
            let (client, connection) = http1::handshake(ours).await.unwrap();
            spawn_local(connection);
            Client::Http1(client)
        }
        Protocol::Http2 => {
            spawn_local(server::http2::Builder::new(Local).serve_connection(theirs, service));
            let (client, connection) = http2::handshake(Local, ours).await.unwrap();
            spawn_local(connection);
            Client::Http2(client)
        }
    }
}

enum Client {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

impl Client {
    /// Sends a request and reads the whole answer.
    async fn send(&mut self) {
        let request = Request::get("http://shop.test/orders/7").header("x-api-key", "k1");
        let request = request.body(Empty::new()).unwrap();
        let response = match self {
            Client::Http1(client) => client.send_request(request).await,
            Client::Http2(client) => client.send_request(request).await,
        };
        let (head, mut body) = response.unwrap().into_parts();
        assert_eq!(head.status, StatusCode::OK, "far from every limit");
        while let Some(frame) = pin!(&mut body).frame().await {
            frame.unwrap();
        }
    }
}

/// Runs a connection's tasks on the thread whose allocations are counted.
#[derive(Clone)]
struct Local;

impl<F: Future + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, task: F) {
        spawn_local(async { drop(task.await) });
    }
}

/// `router` behind an authentication that says who the user is.
fn authenticated<L: Layer<Router>>(layer: L) -> MapRequest<L::Service, Authenticate> {
    MapRequest::new(layer.layer(router().with_state(())), authenticate as Authenticate)
}

/// The same with the layer inside the router.
fn routed<L>(layer: L) -> MapRequest<Router, Authenticate>
where
    L: Layer<Route> + Clone + Send + Sync + 'static,
    L::Service: Service<axum::extract::Request, Response: IntoResponse, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    MapRequest::new(router().layer(layer).with_state(()), authenticate as Authenticate)
}

#[test]
fn through_one_door_an_admitted_request_allocates_nothing() {
    for protocol in PROTOCOLS {
        let plain = allocations(protocol, authenticated(Identity::new()));
        let ours = allocations(protocol, authenticated(gate().layer()));
        assert_eq!(ours, plain, "{protocol:?}: {BATCH} requests behind a gate and without one");
    }
}

#[test]
fn a_second_door_allocates_at_most_the_box_of_its_mark() {
    let doors = |gate: &Gate| {
        let inner = authenticated(gate.inner_layer());
        gate.layer().layer(inner)
    };
    for protocol in PROTOCOLS {
        let plain = allocations(protocol, authenticated(Identity::new()));
        let first = allocations(protocol, doors(&FIRST[0]));
        assert_eq!(first, plain, "{protocol:?}: {BATCH} requests behind a process's first gate");
        let further = allocations(protocol, doors(&gate()));
        assert!(
            further <= plain + BATCH,
            "{protocol:?}: {BATCH} requests made {further} allocations, and {plain} with no gate"
        );
    }
}

/// `Router::layer` puts a layer before every route and before the fallback, so that the gate has several
/// doors, and Axum boxes the bodies of any layer that has its own.
#[test]
fn inside_a_router_a_gate_allocates_no_more_than_a_layer_with_bodies_of_its_own() {
    let own_bodies = MapResponseLayer::new(|response: Response<Body>| {
        response.map(Either::<Body, Empty<Bytes>>::Left)
    });
    for protocol in PROTOCOLS {
        let plain = allocations(protocol, routed(own_bodies.clone()));
        let first = allocations(protocol, routed(FIRST[1].layer()));
        assert_eq!(first, plain, "{protocol:?}: {BATCH} requests behind a process's first gate");
        let further = allocations(protocol, routed(gate().layer()));
        assert!(
            further <= plain + BATCH,
            "{protocol:?}: {BATCH} requests made {further} allocations, and {plain} with no gate"
        );
    }
}

#[test]
fn an_allocation_for_every_request_would_be_seen() {
    let boxing = MapRequestLayer::new(|request: Request<Incoming>| {
        std::hint::black_box(Box::new(1_u64));
        request
    });
    for protocol in PROTOCOLS {
        let plain = allocations(protocol, authenticated(Identity::new()));
        let boxed = allocations(protocol, authenticated(boxing.clone()));
        assert_eq!(boxed, plain + BATCH, "{protocol:?}");
    }
}
