//! What an admitted request takes from the allocator.

use std::{
    future::{Future as _, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use tower::{Service, ServiceBuilder, service_fn};

use crate::support::{Answer, User, answer, builder, get};

const RULES: &str = "[[rule]]\nname = \"client\"\nkey = [\"client\"]\nover = \"99/1m\"\nthrottle = {}\n\
    [[rule]]\nname = \"user\"\nkey = [\"user\"]\nover = \"99/1m\"\nthrottle = {}\n\
    [[rule]]\nname = \"header\"\nkey = [\"header:x-key\"]\nover = \"99/1m\"\nmissing_key = \"skip\"\nthrottle = {}\n\
    [[rule]]\nname = \"tag\"\nmatch = \"/elsewhere\"\nkey = []\nover = \"99/1m\"\ntag = { header = \"x-hot\" }\n";

/// Allocations of the third request of a client; the first ones warm what there is to warm up.
fn allocations<S>(mut service: S) -> u64
where
    S: Service<Request<()>, Response: Sized, Error: std::fmt::Debug>,
{
    let mut last = 0;
    for _ in 0..3 {
        let mut request = get("/api/orders");
        request.headers_mut().insert("x-key", HeaderValue::from_static("k"));
        request.extensions_mut().insert(User("alice"));
        let info = allocation_counter::measure(|| {
            let mut future = pin!(service.call(request));
            let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Ready(Ok(_))));
        });
        last = info.count_total;
    }
    last
}

fn quiet() -> impl Service<
    Request<()>,
    Response = Response<Full<Bytes>>,
    Error = std::convert::Infallible,
    Future = std::future::Ready<Answer>,
> + Clone {
    service_fn(|_: Request<()>| ready(answer(StatusCode::OK)))
}

#[test]
fn through_one_door_an_admitted_request_allocates_nothing() {
    let gate = builder(RULES).user(User::of).build().unwrap();
    assert_eq!(allocations(ServiceBuilder::new().layer(gate.layer()).service(quiet())), 0);
}

#[test]
fn a_second_door_allocates_at_most_the_box_of_its_mark() {
    // The first gates of a process need none at all.
    for _ in 0..6 {
        let gate = builder(RULES).user(User::of).build().unwrap();
        let doors = ServiceBuilder::new().layer(gate.layer()).layer(gate.inner_layer());
        let allocated = allocations(doors.service(quiet()));
        assert!(allocated <= 1, "{allocated} allocations");
    }
}
