//! A rule's own answer to those it refuses: `respond`.

use bytes::Bytes;
use hotgate_detector::Refusal;
use hotgate_rules::Respond;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::needs::Bodies;

/// The field that tells the decision id where the body is not ours to tell it in.
pub(crate) const DECISION_ID: HeaderName = HeaderName::from_static("decision-id");

/// `respond`, its body read.
#[derive(Debug)]
pub(crate) struct OwnAnswer {
    pub(crate) status: Option<StatusCode>,
    headers: HeaderMap,
    body: Bytes,
}

impl OwnAnswer {
    pub(crate) fn new(respond: &Respond, bodies: &Bodies) -> Self {
        let body = respond.body_file.as_deref().map(|path| bodies.get(path)).unwrap_or_default();
        let mut headers = HeaderMap::new();
        for (name, value) in &respond.headers {
            headers.append(name, value.clone());
        }
        headers.extend(respond.content_type.clone().map(|value| (header::CONTENT_TYPE, value)));
        OwnAnswer { status: respond.status, headers, body }
    }

    /// The answer, but for what all refusals have.
    pub(crate) fn answer(&self, refusal: &Refusal) -> Response<Bytes> {
        let mut response = Response::new(self.body.clone());
        *response.status_mut() = refusal.status;
        *response.headers_mut() = self.headers.clone();
        if let Ok(id) = HeaderValue::try_from(format!("urn:uuid:{}", refusal.id())) {
            response.headers_mut().insert(DECISION_ID, id);
        }
        response
    }
}
