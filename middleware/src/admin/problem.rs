//! Errors as problem documents (RFC 9457).

use std::error::Error;

use axum::response::{IntoResponse, Response};
use hotgate_detector::VerdictError;
use http::{StatusCode, header};
use serde::Serialize;

use crate::CommandError;

#[derive(Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    status: u16,
    detail: &'a str,
}

pub(super) fn answer(status: StatusCode, detail: &str) -> Response {
    let title = status.canonical_reason().unwrap_or("Error");
    let problem = Problem { kind: "about:blank", title, status: status.as_u16(), detail };
    let body = serde_json::to_vec(&problem).expect("strings and numbers can be written as JSON");
    (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response()
}

/// What was asked for cannot be done.
pub(super) struct Failed(pub(super) StatusCode, pub(super) String);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        answer(self.0, &self.1)
    }
}

impl From<CommandError> for Failed {
    fn from(error: CommandError) -> Self {
        let status = match &error {
            CommandError::UnknownRule { .. }
            | CommandError::NoSuchKey { .. }
            | CommandError::UnknownId => StatusCode::NOT_FOUND,
            CommandError::ListsFull
            | CommandError::NoPeer
            | CommandError::Verdict(VerdictError::Full(_) | VerdictError::Always(_)) => {
                StatusCode::CONFLICT
            }
            _ => StatusCode::BAD_REQUEST,
        };
        Failed(status, with_causes(&error))
    }
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
