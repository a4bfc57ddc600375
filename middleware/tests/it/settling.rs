//! Requests that end before their response head give back what they held.

use std::{
    future::{Future as _, Ready, pending, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use crate::support::{Answer, answer, gate, get, limit, status};

/// One request of a client may be unresolved; failed logins count.
fn one_pending() -> String {
    limit("5/1m", "count = { status = [401], pending = 1 }\nblock = { for = \"1m\" }")
}

#[tokio::test]
async fn a_future_that_is_never_polled_settles_when_it_is_dropped() {
    let service = service_fn(|_: Request<()>| ready(answer(StatusCode::OK)));
    let mut service = gate(&one_pending()).layer().layer(service);
    let future = service.call(get("/"));
    assert_eq!(status(&service, get("/")).await, StatusCode::TOO_MANY_REQUESTS, "one is pending");
    drop(future);
    assert_eq!(status(&service, get("/")).await, StatusCode::OK);
}

#[tokio::test]
async fn a_future_that_is_dropped_half_way_settles() {
    let service = service_fn(|request: Request<()>| async move {
        if request.uri().path() == "/slow" {
            return pending::<Answer>().await;
        }
        answer(StatusCode::OK)
    });
    let service = gate(&one_pending()).layer().layer(service);
    {
        let mut future = pin!(service.clone().oneshot(get("/slow")));
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(status(&service, get("/")).await, StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(status(&service, get("/")).await, StatusCode::OK);
}

#[tokio::test]
async fn a_handler_that_panics_settles() {
    let service = service_fn(|request: Request<()>| async move {
        assert_ne!(request.uri().path(), "/panic", "as asked");
        answer(StatusCode::OK)
    });
    let service = gate(&one_pending()).layer().layer(service);
    let task = tokio::spawn(service.clone().oneshot(get("/panic")));
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(status(&service, get("/")).await, StatusCode::OK);
}

/// A service that goes wrong before there is an inner future.
#[derive(Clone)]
struct Moody {
    kind: Mood,
    polls: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    PanicsWhenAsked,
    PanicsWhenCalled,
    NeverReady,
    FailsLate,
}

impl Service<Request<()>> for Moody {
    type Response = http::Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.polls += 1;
        match self.kind {
            Mood::PanicsWhenAsked => panic!("as asked"),
            Mood::NeverReady => Poll::Pending,
            Mood::FailsLate if self.polls > 1 => Poll::Ready(Err("late")),
            Mood::FailsLate => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Mood::PanicsWhenCalled => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        panic!("as asked")
    }
}

/// What the gate answers next once a request met such a service.
async fn after(kind: Mood, counts: &str) -> StatusCode {
    let gate = gate(&limit("1/1m", &format!("count = {counts}\nblock = {{ for = \"1m\" }}")));
    let mut moody = gate.layer().layer(Moody { kind, polls: 0 });
    let call = catch_unwind(AssertUnwindSafe(|| moody.call(get("/"))));
    assert_eq!(call.is_err(), matches!(kind, Mood::PanicsWhenAsked | Mood::PanicsWhenCalled));
    if let Ok(future) = call {
        let mut future = pin!(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => assert_eq!(result.unwrap_err(), "late"),
            Poll::Pending => assert!(kind == Mood::NeverReady),
        }
    }
    let good = service_fn(|_: Request<()>| ready(answer(StatusCode::OK)));
    status(&gate.layer().layer(good), get("/")).await
}

#[tokio::test]
async fn a_service_that_panics_or_fails_or_is_never_ready_settles_once() {
    let pending = "{ status = [401], pending = 1 }";
    for kind in [Mood::PanicsWhenAsked, Mood::PanicsWhenCalled, Mood::NeverReady, Mood::FailsLate] {
        assert_eq!(after(kind, pending).await, StatusCode::OK, "nothing is left pending");
        let (counted, other) =
            if kind == Mood::FailsLate { ("error", "cancelled") } else { ("cancelled", "error") };
        let one = |outcome| format!("{{ status = [\"{outcome}\"] }}");
        assert_eq!(after(kind, &one(counted)).await, StatusCode::FORBIDDEN, "is {counted}");
        assert_eq!(after(kind, &one(other)).await, StatusCode::OK, "is not {other}");
    }
}

#[tokio::test]
async fn a_request_cancelled_before_its_head_counts_where_the_rule_says_so() {
    let rules = limit("2/1m", "count = { status = [\"cancelled\"] }\nblock = { for = \"1m\" }");
    let service = service_fn(|_: Request<()>| ready(answer(StatusCode::OK)));
    let mut service = gate(&rules).layer().layer(service);
    for _ in 0..5 {
        assert_eq!(
            status(&service, get("/")).await,
            StatusCode::OK,
            "answered requests do not count"
        );
    }
    for _ in 0..2 {
        drop(service.call(get("/")));
    }
    assert_eq!(status(&service, get("/")).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn only_failed_logins_count_and_the_gates_own_answers_do_not() {
    // C46
    let rules = limit("3/1m", "count = { status = [401, 403] }\nblock = { for = \"1m\" }");
    let service = service_fn(|request: Request<()>| {
        let right = request.uri().path() == "/right";
        ready(answer(if right { StatusCode::OK } else { StatusCode::UNAUTHORIZED }))
    });
    let service = gate(&rules).layer().layer(service);
    for _ in 0..10 {
        assert_eq!(status(&service, get("/right")).await, StatusCode::OK);
    }
    for _ in 0..3 {
        assert_eq!(status(&service, get("/wrong")).await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(status(&service, get("/right")).await, StatusCode::FORBIDDEN);
}
