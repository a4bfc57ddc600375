//! The Tower contract: readiness, permits, clones, errors.

use std::{
    convert::Infallible,
    fmt,
    future::{Future, Ready, pending, ready},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use hotgate::{Gate, GateLayer, GateService, ResponseFuture};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::sync::Notify;
use tower::{Layer as _, Service, ServiceBuilder, ServiceExt as _, service_fn};

use crate::support::{Answer, Calls, answer, gate, get, in_time, limit, request, status};

/// Panics when called before it said it was ready, and says so only after `delay` polls.
#[derive(Debug)]
struct Strict {
    delay: usize,
    polls: usize,
}

impl Strict {
    fn new(delay: usize) -> Self {
        Strict { delay, polls: 0 }
    }
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Strict::new(self.delay)
    }
}

impl Service<Request<()>> for Strict {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Answer>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.polls += 1;
        if self.polls > self.delay {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, _: Request<()>) -> Ready<Answer> {
        assert!(self.polls > self.delay, "called unready");
        self.polls = 0;
        ready(answer(StatusCode::OK))
    }
}

#[tokio::test]
async fn an_instance_is_never_called_unready() {
    for delay in 0..4 {
        let mut service = gate(&limit("3/1m", "throttle = {}")).layer().layer(Strict::new(delay));
        let mut statuses = Vec::new();
        for _ in 0..4 {
            let response = in_time(in_time(service.ready()).await.unwrap().call(get("/"))).await;
            statuses.push(response.unwrap().status().as_u16());
        }
        assert_eq!(statuses, [200, 200, 200, 429], "ready after {delay} polls");
    }
}

#[tokio::test]
async fn the_instance_that_was_polled_is_the_one_that_is_called() {
    let mut service = gate("").layer().layer(Strict::new(0));
    let _ = in_time(service.call(get("/"))).await;
    assert_eq!(service.get_ref().polls, 0, "a ready instance is called where it stands");
    let mut service = gate("").layer().layer(Strict::new(1));
    let _ = in_time(service.call(get("/"))).await;
    assert_eq!(service.get_ref().polls, 0, "an unready one leaves a fresh clone behind");
}

#[tokio::test]
async fn refused_requests_hold_no_permit() {
    let inner = ServiceBuilder::new()
        .concurrency_limit(1)
        .service(service_fn(|_: Request<()>| async { answer(StatusCode::OK) }));
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(inner);
    assert_eq!(status(&service, get("/")).await, StatusCode::OK);

    // Each stands for a keep-alive connection of its own, made ready, refused, and held open.
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut service = service.clone();
        let future = in_time(service.ready()).await.unwrap().call(get("/"));
        held.push((service, future));
    }
    let good = status(&service, request(http::Method::GET, "/", 2)).await;
    assert_eq!(good, StatusCode::OK, "none of the hundred holds the one permit");
    for (_, future) in held {
        assert_eq!(in_time(future).await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    }
}

#[tokio::test]
async fn a_refused_client_is_answered_while_the_service_is_saturated() {
    let release = Arc::new(Notify::new());
    let waits = Arc::clone(&release);
    let inner =
        ServiceBuilder::new().concurrency_limit(1).service(service_fn(move |_: Request<()>| {
            let waits = Arc::clone(&waits);
            async move {
                waits.notified().await;
                answer(StatusCode::OK)
            }
        }));
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(inner);
    let saturating = tokio::spawn(service.clone().oneshot(get("/")));
    tokio::task::yield_now().await;

    let waiting = tokio::spawn(service.clone().oneshot(request(http::Method::GET, "/", 2)));
    tokio::task::yield_now().await;

    let mut refused = pin!(service.clone().call(get("/")));
    let Poll::Ready(response) = refused.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("a refusal waits for nothing");
    };
    assert_eq!(response.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(!waiting.is_finished(), "an admitted request waits for its turn");

    release.notify_one();
    assert_eq!(in_time(saturating).await.unwrap().unwrap().status(), StatusCode::OK);
    // It is woken by its own task's waker, not by the one of the first poll, which does nothing.
    release.notify_one();
    assert_eq!(in_time(waiting).await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn clones_for_each_connection_share_one_count() {
    // C52
    let calls = Calls::default();
    let counted = calls.clone();
    let layer = gate(&limit("5/1m", "throttle = {}")).layer();
    for _ in 0..100 {
        let calls = counted.clone();
        let service = layer.clone().layer(service_fn(move |_: Request<()>| {
            calls.count();
            ready(answer(StatusCode::OK))
        }));
        for _ in 0..3 {
            status(&service.clone(), get("/")).await;
        }
    }
    assert_eq!(calls.get(), 5);
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Broken(u32);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken {}", self.0)
    }
}

/// Fails when asked for readiness.
#[derive(Clone)]
struct NeverReady;

impl Service<Request<()>> for NeverReady {
    type Response = Response<Full<Bytes>>;
    type Error = Broken;
    type Future = Ready<Result<Self::Response, Broken>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Err(Broken(7)))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        panic!("called unready")
    }
}

#[tokio::test]
async fn the_inner_error_passes_unchanged() {
    let rules = limit("2/1m", "count = { status = [\"error\"] }\nblock = { for = \"1m\" }");
    let failing = service_fn(|_: Request<()>| ready(Err::<Response<Full<Bytes>>, _>(Broken(3))));
    let service = gate(&rules).layer().layer(failing);
    for _ in 0..2 {
        assert_eq!(in_time(service.clone().oneshot(get("/"))).await.unwrap_err(), Broken(3));
    }
    assert_eq!(status(&service, get("/")).await, StatusCode::FORBIDDEN, "two errors were counted");

    let service = gate(&rules).layer().layer(NeverReady);
    for _ in 0..2 {
        assert_eq!(in_time(service.clone().oneshot(get("/"))).await.unwrap_err(), Broken(7));
    }
    assert_eq!(status(&service, get("/")).await, StatusCode::FORBIDDEN, "two errors were counted");
}

#[test]
fn a_gate_builds_outside_a_runtime_and_everything_is_send_and_sync() {
    fn is_send_and_sync<T: Send + Sync + Clone + 'static>(_: &T) {}
    fn is_send<T: Send + 'static>(_: &T) {}
    let gate: Gate = gate("");
    let layer: GateLayer = gate.layer();
    let mut service: GateService<Strict> = layer.layer(Strict::new(0));
    is_send_and_sync(&gate);
    is_send_and_sync(&layer);
    is_send_and_sync(&service);
    let future: ResponseFuture<Strict, ()> = service.call(get("/"));
    is_send(&future);
}

#[tokio::test]
async fn the_gate_asks_nothing_of_the_inner_future() {
    let never = service_fn(|_: Request<()>| pending::<Answer>());
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(never);
    let mut first = pin!(service.clone().oneshot(get("/")));
    assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(status(&service, get("/")).await, StatusCode::TOO_MANY_REQUESTS);
}
