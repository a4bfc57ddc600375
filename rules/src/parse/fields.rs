//! Names of header fields that a rule sets.

use http::{HeaderName, HeaderValue};

use super::{
    reader::{Entry, Item},
    report::{Read, Report},
};
use crate::problem::Quoted;

/// Fields that carry a message from hop to hop (RFC 9110, 7.6.1; RFC 9112, 6): who sets them breaks
/// the message.
const OF_THE_MESSAGE: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Request fields by which services and proxies understand a request. A tag's field is stripped from
/// every request, so it cannot be one of them.
const OF_REQUESTS: [&str; 22] = [
    "accept",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-language",
    "content-type",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "from",
    "origin",
    "pragma",
    "proxy-authorization",
    "range",
    "referer",
    "traceparent",
    "tracestate",
    "user-agent",
    "via",
    "x-real-ip",
    "x-request-id",
];

/// Families of such fields.
const REQUEST_PREFIXES: [&str; 5] = ["accept-", "access-control-", "if-", "sec-", "x-forwarded-"];

/// Fields that a refusal has of its own.
const OF_REFUSALS: [&str; 6] = [
    "cache-control",
    "content-type",
    "decision-id",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
];

/// A request field that a rule may take for its own.
pub(super) fn own_name(item: Item<'_>, report: &mut Report<'_>) -> Read<HeaderName> {
    const EXPECTED: &str = "a field name of your own such as \"x-hot\"";
    let name = item.text(EXPECTED, report)?;
    let name = HeaderName::try_from(name).map_err(|_| item.expected(report, EXPECTED))?;
    let text = name.as_str();
    let taken = OF_THE_MESSAGE.contains(&text)
        || OF_REQUESTS.contains(&text)
        || REQUEST_PREFIXES.iter().any(|prefix| text.starts_with(prefix));
    if taken {
        let message = format_args!(
            "{item} is needed as requests have it, and a tag's field is stripped from each of them; expected {EXPECTED}"
        );
        return Err(item.error(report, message));
    }
    Ok(name)
}

/// A field of an answer that a rule may set.
pub(super) fn of_answer(entry: &Entry<'_>, report: &mut Report<'_>) -> Read<HeaderName> {
    let Ok(name) = HeaderName::try_from(entry.name) else {
        let expected = "expected the name of a field such as \"x-degraded\"";
        return Err(report
            .error(entry.at, format_args!("headers: {expected}, found {}", Quoted(entry.name))));
    };
    let text = name.as_str();
    if OF_THE_MESSAGE.contains(&text) || OF_REFUSALS.contains(&text) {
        let instead = match text {
            "content-type" => "expected content_type in respond",
            "retry-after" | "ratelimit" | "ratelimit-policy" => {
                "expected disclose = \"full\" or \"none\" in the rule"
            }
            _ => "expected it left out",
        };
        let message = format_args!("headers: {} is Hotgate's to set, {instead}", Quoted(text));
        return Err(report.error(entry.at, message));
    }
    Ok(name)
}

/// The value of a field.
pub(super) fn value(item: Item<'_>, report: &mut Report<'_>) -> Read<HeaderValue> {
    const EXPECTED: &str = "text of visible ASCII";
    let text = item.text(EXPECTED, report)?;
    HeaderValue::from_str(text).map_err(|_| item.expected(report, EXPECTED))
}
