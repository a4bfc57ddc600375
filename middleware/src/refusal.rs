//! The answers to requests that are refused: problem documents (RFC 9457).

use std::time::Duration;

use bytes::Bytes;
use hotgate_detector::{Cause, Refusal};
use hotgate_rules::Disclose;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use crate::{
    fields::{self, RATE_LIMIT, RATE_LIMIT_POLICY},
    respond::OwnAnswer,
};

/// Stands in the extensions of a response that the inner service did not give: rules further out do not
/// count it.
#[derive(Clone)]
pub(crate) struct Answered;

/// Registered by draft-ietf-httpapi-ratelimit-headers, 5.1.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
/// The same draft, 5.3.
const ABNORMAL_USAGE: &str =
    "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";
/// Nothing beyond what the status says (RFC 9457, 4.2.1).
const BLANK: &str = "about:blank";

/// The document, its members in the order they are written.
#[derive(serde::Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    status: u16,
    detail: String,
    instance: String,
    #[serde(rename = "violated-policies", skip_serializing_if = "Option::is_none")]
    violated_policies: Option<[&'a str; 1]>,
}

/// The answer to a request of `method` that is refused: the rule's own, or the standard one.
pub(crate) fn answer(
    refusal: &Refusal,
    own: Option<&OwnAnswer>,
    method: &Method,
) -> Response<Bytes> {
    let told = Told::of(refusal);
    let mut response = match own {
        Some(own) => own.answer(refusal),
        None => standard(refusal, &told),
    };
    tell(&told, response.headers_mut());
    frame(&mut response, method);
    response.extensions_mut().insert(Answered);
    response
}

/// A problem document.
fn standard(refusal: &Refusal, told: &Told<'_>) -> Response<Bytes> {
    let mut response = Response::new(document(refusal, told));
    *response.status_mut() = refusal.status;
    let problem = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, problem);
    response
}

/// When to come back, and under which quota.
fn tell(told: &Told<'_>, headers: &mut HeaderMap) {
    let Some(seconds) = told.seconds else { return };
    headers.insert(header::RETRY_AFTER, seconds.into());
    let Some(rule) = told.rule else { return };
    let policy =
        told.quota.and_then(|(limit, window)| fields::rate_limit_policy(rule, limit, window));
    let limit = fields::rate_limit(rule, 0, seconds);
    for (name, value) in [(RATE_LIMIT, limit), (RATE_LIMIT_POLICY, policy)] {
        let _ = value.map(|value| headers.append(name, value));
    }
}

/// What every refusal has, and no status or method forbids (RFC 9110, 8.6, 15.3.5, 15.3.6, 15.4.5).
fn frame(response: &mut Response<Bytes>, method: &Method) {
    let status = response.status();
    if [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED]
        .contains(&status)
    {
        *response.body_mut() = Bytes::new();
    }
    let length = response.body().len();
    if method == Method::HEAD {
        *response.body_mut() = Bytes::new();
    }
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    match status {
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => {
            drop(headers.remove(header::CONTENT_LENGTH))
        }
        _ => drop(headers.insert(header::CONTENT_LENGTH, length.into())),
    }
}

/// What the answer may tell of the refusal.
struct Told<'a> {
    rule: Option<&'a str>,
    quota: Option<(u32, Duration)>,
    seconds: Option<u64>,
}

impl<'a> Told<'a> {
    fn of(refusal: &'a Refusal) -> Self {
        let is_full = refusal.disclose == Disclose::Full;
        // A deny list and a missing key are no policy that waiting satisfies, nor is a rule that
        // refuses always; but a 429 says when to come back, whatever sent it (RFC 6585, 4).
        let waits = match refusal.cause {
            Cause::Denied | Cause::MissingKey { .. } => false,
            Cause::Always => refusal.status == StatusCode::TOO_MANY_REQUESTS,
            _ => is_full || refusal.status == StatusCode::TOO_MANY_REQUESTS,
        };
        let names = is_full && !matches!(refusal.cause, Cause::Denied | Cause::MissingKey { .. });
        Told {
            rule: refusal.rule.as_deref().filter(|_| names),
            quota: refusal.quota.filter(|_| names),
            seconds: waits.then(|| fields::seconds(refusal.wait)),
        }
    }
}

fn document(refusal: &Refusal, told: &Told<'_>) -> Bytes {
    let (kind, title) = match refusal.cause {
        Cause::Quota | Cause::Pending => (QUOTA_EXCEEDED, "Quota exceeded"),
        Cause::Always if refusal.action == "throttle" => (QUOTA_EXCEEDED, "Quota exceeded"),
        Cause::Blocked | Cause::Always => (ABNORMAL_USAGE, "Abnormal usage detected"),
        _ => (BLANK, refusal.status.canonical_reason().unwrap_or("Refused")),
    };
    let problem = Problem {
        kind,
        title,
        status: refusal.status.as_u16(),
        detail: detail(refusal, told),
        instance: format!("urn:uuid:{}", refusal.id()),
        violated_policies: told.rule.map(|rule| [rule]),
    };
    serde_json::to_vec(&problem).expect("strings and numbers can be written as JSON").into()
}

/// What happened and what to do, for whoever reads it; never the key.
fn detail(refusal: &Refusal, told: &Told<'_>) -> String {
    const MISTAKE: &str = "If this is a mistake, give the instance to whoever runs this service.";
    let again = match told.seconds {
        Some(seconds) => format!("Try again in {}.", in_words(Duration::from_secs(seconds))),
        None => MISTAKE.to_owned(),
    };
    match refusal.cause {
        Cause::Quota => match told.quota {
            Some((limit, window)) => format!("The quota of {limit} in {} is used up. {again}", in_words(window)),
            None => format!("Too many requests. {again}"),
        },
        Cause::Pending => format!("Earlier requests are not answered yet. {again}"),
        Cause::Blocked => format!("Requests are refused for a time because of unusual traffic. {again}"),
        Cause::Always => format!("Requests of this kind are not accepted. {again}"),
        Cause::Denied => format!("This client may not use this service. {MISTAKE}"),
        Cause::MissingKey { by_client: false } => {
            "The service does not know of the request what its rules ask for. Whoever runs it must correct its set-up.".to_owned()
        }
        Cause::MissingKey { by_client: true } => {
            "The request lacks a part that this service asks for, such as a header field. Send it again \
             with that part."
                .to_owned()
        }
        _ => format!("The request is refused. {again}"),
    }
}

/// A span as people say it, rounded up where it is long.
fn in_words(span: Duration) -> String {
    let seconds = span.as_secs();
    let (count, unit) = match seconds {
        _ if span.subsec_nanos() > 0 && seconds < 120 => return format!("{span:?}"),
        0..120 => (seconds, "second"),
        120..7_200 => (seconds.div_ceil(60), "minute"),
        _ => (seconds.div_ceil(3_600), "hour"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_as_people_say_them() {
        let cases = [
            (1_000, "1 second"),
            (1_500, "1.5s"),
            (250, "250ms"),
            (119_000, "119 seconds"),
            (120_000, "2 minutes"),
            (121_000, "3 minutes"),
            (900_000, "15 minutes"),
            (7_200_000, "2 hours"),
            (7_200_001, "2 hours"),
            (86_400_000, "24 hours"),
        ];
        for (millis, expected) in cases {
            assert_eq!(in_words(Duration::from_millis(millis)), expected, "{millis} ms");
        }
    }
}
