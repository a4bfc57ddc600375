//! The body of an answer: the inner service's, or ours.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of a response that passed a [`GateService`](crate::GateService): the inner service's,
    /// untouched frame by frame, or the few bytes of a refusal.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        source: Source<B>,
    }
}

pin_project! {
    #[project = SourceProj]
    #[derive(Debug)]
    enum Source<B> {
        Inner {
            #[pin]
            body: B,
        },
        Own {
            bytes: Bytes,
        },
    }
}

impl<B> ResponseBody<B> {
    pub(crate) fn inner(body: B) -> Self {
        ResponseBody { source: Source::Inner { body } }
    }

    pub(crate) fn own(bytes: Bytes) -> Self {
        ResponseBody { source: Source::Own { bytes } }
    }
}

/// An empty body; CORS layers answer preflights with one.
impl<B> Default for ResponseBody<B> {
    fn default() -> Self {
        ResponseBody::own(Bytes::new())
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body<Data = Bytes>,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().source.project() {
            SourceProj::Inner { body } => body.poll_frame(cx),
            SourceProj::Own { bytes } if bytes.is_empty() => Poll::Ready(None),
            SourceProj::Own { bytes } => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Inner { body } => body.is_end_stream(),
            Source::Own { bytes } => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Inner { body } => body.size_hint(),
            Source::Own { bytes } => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}
