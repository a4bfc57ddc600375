//! The future of a response.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{ResponseBody, admission::Pending};

pin_project! {
    /// The future of a [`GateService`](crate::GateService)'s response.
    ///
    /// The bound names the inner service's future and error, which it holds without a box.
    pub struct ResponseFuture<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        #[pin]
        state: State<S, ReqBody>,
        // What the gate holds open until the response head; dropped, it says "cancelled".
        pending: Option<Pending>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        Answered {
            response: Option<Response<Bytes>>,
        },
        Failed {
            error: Option<S::Error>,
        },
        Waiting {
            service: S,
            request: Option<Request<ReqBody>>,
        },
        Called {
            #[pin]
            future: S::Future,
        },
    }
}

/// Why a part that is taken once is there to be taken.
const POLLED_ONCE: &str = "a future is not polled after it is ready";

impl<S, ReqBody> ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    pub(crate) fn answered(response: Response<Bytes>) -> Self {
        ResponseFuture { state: State::Answered { response: Some(response) }, pending: None }
    }

    pub(crate) fn failed(error: S::Error, pending: Option<Pending>) -> Self {
        ResponseFuture { state: State::Failed { error: Some(error) }, pending }
    }

    pub(crate) fn waiting(service: S, request: Request<ReqBody>, pending: Option<Pending>) -> Self {
        ResponseFuture { state: State::Waiting { service, request: Some(request) }, pending }
    }

    pub(crate) fn called(future: S::Future, pending: Option<Pending>) -> Self {
        ResponseFuture { state: State::Called { future }, pending }
    }
}

impl<S, ReqBody, ResBody> Future for ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    type Output = Result<Response<ResponseBody<ResBody>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let mut result = loop {
            match this.state.as_mut().project() {
                StateProj::Answered { response } => {
                    let response = response.take().expect(POLLED_ONCE);
                    return Poll::Ready(Ok(response.map(ResponseBody::own)));
                }
                StateProj::Failed { error } => break Err(error.take().expect(POLLED_ONCE)),
                StateProj::Waiting { service, request } => match ready!(service.poll_ready(cx)) {
                    Ok(()) => {
                        let future = service.call(request.take().expect(POLLED_ONCE));
                        this.state.set(State::Called { future });
                    }
                    Err(error) => break Err(error),
                },
                StateProj::Called { future } => break ready!(future.poll(cx)),
            }
        };
        if let Some(pending) = this.pending.take() {
            pending.conclude(&mut result);
        }
        Poll::Ready(result.map(|response| response.map(ResponseBody::inner)))
    }
}

impl<S, ReqBody> fmt::Debug for ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Answered { .. } => "answered",
            State::Failed { .. } => "failed",
            State::Waiting { .. } => "waiting",
            State::Called { .. } => "called",
        };
        f.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}
