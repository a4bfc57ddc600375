//! The service: admission, then readiness, then the inner service.

use std::{
    mem,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::{Gate, ResponseBody, ResponseFuture, admission::Admission, mark::Place};

/// A service behind a gate: what a rule refuses or a handler answers is answered here and
/// never reaches `S`.
///
/// It is always ready. `S` is asked for readiness only when a request is admitted; so a refusal holds
/// nothing of it, and a refused client is answered even while `S` is saturated.
#[derive(Clone, Debug)]
pub struct GateService<S> {
    inner: S,
    gate: Gate,
    place: Place,
}

impl<S> GateService<S> {
    pub(crate) fn new(inner: S, gate: Gate, place: Place) -> Self {
        GateService { inner, gate, place }
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service, to change.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service, without its gate.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for GateService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    ResBody: Body<Data = Bytes>,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, ReqBody>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqBody>) -> ResponseFuture<S, ReqBody> {
        let (mut parts, body) = request.into_parts();
        let pending = match self.gate.admit(self.place, &mut parts) {
            Admission::Answered(response) => return ResponseFuture::answered(response),
            Admission::Admitted(pending) => pending,
        };
        let request = Request::from_parts(parts, body);
        // A waker that does nothing is enough: if the service is not ready it is polled again, at
        // once and with the task's own waker, where the future is.
        match self.inner.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => ResponseFuture::called(self.inner.call(request), pending),
            Poll::Ready(Err(error)) => ResponseFuture::failed(error, pending),
            Poll::Pending => {
                // The instance that was polled may hold a place in a queue: it goes along.
                let fresh = self.inner.clone();
                let polled = mem::replace(&mut self.inner, fresh);
                ResponseFuture::waiting(polled, request, pending)
            }
        }
    }
}
