//! `respond`: an answer of the rule's own instead of the standard refusal.

use http::{HeaderName, HeaderValue, StatusCode};

use super::{
    fields,
    reader::{Fields, Item, Names},
    report::{Read, Report, Reported},
};
use crate::Respond;

const RESPOND: Names = Names {
    table: "respond",
    known: &["status", "content_type", "body_file", "headers"],
    later: &[],
};

/// Fields an answer can have; each is written with every refusal.
const HEADERS_MAX: usize = 32;

/// Statuses whose answers have no body (RFC 9110, 6.4.1 and 15.3.6).
const BODILESS: [StatusCode; 3] =
    [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED];

pub(super) fn read(item: Item<'_>, report: &mut Report<'_>) -> Read<Respond> {
    let fields = item.table(&RESPOND, report)?;
    let status = fields.read("status", report, |item, report| item.status(200..=599, report));
    let content_type = fields.read("content_type", report, content_type);
    let body_file = fields.read("body_file", report, |item, report| item.path(report));
    let headers = fields.read("headers", report, headers);
    if item.is_empty_table() {
        let example = "such as { status = 503 }";
        return Err(item.error(report, format_args!("says nothing, expected fields {example}")));
    }
    let respond = Respond {
        status: status?,
        content_type: content_type?,
        body_file: body_file?,
        headers: headers?.unwrap_or_default(),
    };
    check_body(&fields, &respond, report)?;
    Ok(respond)
}

/// A type needs a body, and a body a status that has one.
fn check_body(fields: &Fields<'_>, respond: &Respond, report: &mut Report<'_>) -> Read<()> {
    let bodiless = respond.status.filter(|status| BODILESS.contains(status));
    match (fields.get("content_type"), fields.get("body_file"), bodiless) {
        (_, Some(item), Some(status)) => {
            let message = format_args!("an answer of status {} has no body", status.as_str());
            return Err(item.error(report, message));
        }
        (Some(item), None, _) => return Err(item.error(report, "needs body_file beside it")),
        (None, Some(item), None) => report.warn(
            item.at,
            "body_file: clients guess what the body is, expected content_type beside it, such as \"text/html\"",
        ),
        _ => {}
    }
    Ok(())
}

fn content_type(item: Item<'_>, report: &mut Report<'_>) -> Read<HeaderValue> {
    const EXPECTED: &str = "a media type such as \"text/html; charset=utf-8\"";
    let text = item.text(EXPECTED, report)?;
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let is_token = |part: &str| HeaderName::try_from(part).is_ok();
    let is_media_type =
        essence.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub));
    let value = HeaderValue::from_str(text).ok().filter(|_| is_media_type);
    value.ok_or_else(|| item.expected(report, EXPECTED))
}

fn headers(item: Item<'_>, report: &mut Report<'_>) -> Read<Vec<(HeaderName, HeaderValue)>> {
    let entries = item.entries("{ x-degraded = \"1\" }", HEADERS_MAX, report)?;
    let mut read: Vec<(HeaderName, HeaderValue)> = Vec::with_capacity(entries.len());
    let mut complete = true;
    for entry in entries {
        let name = fields::of_answer(&entry, report);
        let value = fields::value(entry.item, report);
        match (name, value) {
            // TOML tells names apart by case, HTTP does not.
            (Ok(name), Ok(_)) if read.iter().any(|(other, _)| *other == name) => {
                report.error(entry.at, format_args!("headers: {name} stands here already"));
                complete = false;
            }
            (Ok(name), Ok(value)) => read.push((name, value)),
            _ => complete = false,
        }
    }
    if complete { Ok(read) } else { Err(Reported) }
}
