//! Bodies pass frame by frame, at once, with their trailers.

use std::{
    convert::Infallible,
    future::{Future as _, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full, channel::Channel};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::{gate, get, in_time, limit};

#[tokio::test]
async fn a_stream_passes_at_once_and_keeps_its_trailers() {
    // C80: an event must not wait for the next one; a counted response is judged by its head.
    let (mut sender, body) = Channel::<Bytes, Infallible>::new(4);
    let body = std::sync::Mutex::new(Some(body));
    let body = std::sync::Arc::new(body);
    let service = service_fn(move |_: Request<()>| {
        let body = body.lock().unwrap().take().unwrap();
        ready(Ok::<_, Infallible>(Response::new(body)))
    });
    let rules = limit("9/1m", "count = { status = [500] }\nblock = { for = \"1m\" }");
    let service = gate(&rules).layer().layer(service);
    let mut body = in_time(service.oneshot(get("/events"))).await.unwrap().into_body();

    sender.send_data(Bytes::from_static(b"data: 1\n\n")).await.unwrap();
    let first = in_time(body.frame()).await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "data: 1\n\n");
    assert!(!body.is_end_stream());
    let second = pin!(body.frame()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(second.is_pending(), "nothing is made up");

    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "7".parse().unwrap());
    sender.send_trailers(trailers.clone()).await.unwrap();
    drop(sender);
    assert_eq!(in_time(body.frame()).await.unwrap().unwrap().into_trailers().unwrap(), trailers);
    assert!(in_time(body.frame()).await.is_none());
}

/// A body that says how long it is, and that it ends.
struct Exact(Option<Bytes>);

impl Body for Exact {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[tokio::test]
async fn length_and_end_are_passed_on() {
    let service = service_fn(|_: Request<()>| {
        ready(Ok::<_, Infallible>(Response::new(Exact(Some(Bytes::from_static(b"four"))))))
    });
    let service = gate("").layer().layer(service);
    let mut body = in_time(service.oneshot(get("/"))).await.unwrap().into_body();
    assert_eq!(body.size_hint().exact(), Some(4));
    assert!(!body.is_end_stream());
    in_time(body.frame()).await.unwrap().unwrap();
    assert!(body.is_end_stream());
}

#[tokio::test]
async fn a_refusals_body_ends_once() {
    let service = service_fn(|_: Request<()>| {
        ready(Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok")))))
    });
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(service);
    in_time(service.clone().oneshot(get("/"))).await.unwrap();
    let mut body = in_time(service.oneshot(get("/"))).await.unwrap().into_body();
    let length = body.size_hint().exact().unwrap();
    let frame = in_time(body.frame()).await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap().len() as u64, length);
    assert!(body.is_end_stream());
    assert!(in_time(body.frame()).await.is_none());
}
