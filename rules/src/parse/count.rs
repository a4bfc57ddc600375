//! `count`: what a rule counts, where that is not its requests.

use std::num::NonZeroU32;

use http::StatusCode;
use toml::de::DeValue;

use super::{
    reader::{Item, Names},
    report::{Read, Report, Reported},
};
use crate::{
    Count, StatusClass,
    problem::{Quoted, nearest},
    units::LIMITS,
};

const NAMES: Names =
    Names { table: "count", known: &["status", "pending"], later: &["distinct", "grpc_status"] };

/// The classes that are words.
const CLASSES: [(&str, StatusClass); 7] = [
    ("1xx", StatusClass::Hundred(1)),
    ("2xx", StatusClass::Hundred(2)),
    ("3xx", StatusClass::Hundred(3)),
    ("4xx", StatusClass::Hundred(4)),
    ("5xx", StatusClass::Hundred(5)),
    ("cancelled", StatusClass::Cancelled),
    ("error", StatusClass::Error),
];

pub(super) fn read(item: Item<'_>, report: &mut Report<'_>) -> Read<Count> {
    const EXAMPLE: &str = "[401, 403]";
    let fields = item.table(&NAMES, report)?;
    let pending = fields.read("pending", report, |item, report| item.integer(LIMITS, report));
    let Some(item) = fields.get("status") else {
        return Err(match fields.get("pending") {
            _ if !fields.places(NAMES.later).is_empty() => Reported,
            Some(pending) => pending
                .error(report, format_args!("needs status beside it, such as status = {EXAMPLE}")),
            None => fields.missing("status", EXAMPLE, report),
        });
    };
    let items = item.list(EXAMPLE, report)?;
    if items.is_empty() {
        return Err(item.expected(report, format_args!("at least one status, such as {EXAMPLE}")));
    }
    let statuses: Vec<Read<StatusClass>> =
        items.into_iter().map(|item| status(item, report)).collect();
    let statuses = statuses.into_iter().collect::<Read<_>>()?;
    Ok(Count::Responses { statuses, pending: pending?.and_then(NonZeroU32::new) })
}

fn status(item: Item<'_>, report: &mut Report<'_>) -> Read<StatusClass> {
    const EXPECTED: &str =
        "a status from 100 to 599, \"1xx\" to \"5xx\", \"cancelled\" or \"error\"";
    match item.value() {
        DeValue::Integer(digits) => {
            let code = u16::from_str_radix(digits.as_str(), digits.radix()).ok();
            let code = code
                .filter(|code| (100..=599).contains(code))
                .and_then(|code| StatusCode::from_u16(code).ok());
            code.map(StatusClass::Code).ok_or_else(|| item.expected(report, EXPECTED))
        }
        DeValue::String(text) => {
            if let Some((_, class)) = CLASSES.iter().find(|(name, _)| *name == text.as_ref()) {
                return Ok(*class);
            }
            if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(item.likely(report, EXPECTED, text));
            }
            Err(match nearest(&text.to_lowercase(), CLASSES.map(|(name, _)| name)) {
                Some(near) => item.likely(report, EXPECTED, Quoted(near)),
                None => item.expected(report, EXPECTED),
            })
        }
        _ => Err(item.expected(report, EXPECTED)),
    }
}
