//! `from` and `until`: when something holds.

use jiff::Timestamp;
use toml::de::DeValue;

use super::{
    reader::{Fields, Item},
    report::{Read, Report},
};
use crate::Period;

pub(super) fn read(fields: &Fields<'_>, report: &mut Report<'_>) -> Read<Period> {
    let from = fields.read("from", report, unix_seconds);
    let until = fields.read("until", report, unix_seconds);
    let period = Period { from: from?, until: until? };
    if let (Some(from), Some(until), Some(item)) = (period.from, period.until, fields.get("until"))
        && until <= from
    {
        report.warn(
            item.at,
            format_args!("until: {item} is not after from, so the rule is never on"),
        );
    }
    Ok(period)
}

/// A date-time with an offset, as seconds since the unix epoch.
pub(super) fn unix_seconds(item: Item<'_>, report: &mut Report<'_>) -> Read<i64> {
    const EXPECTED: &str = "a date-time with an offset, such as 2027-01-01T00:00:00Z";
    let DeValue::Datetime(date) = item.value() else {
        return Err(item.expected(report, EXPECTED));
    };
    let time = if date.time.is_none() { "T00:00:00" } else { "" };
    let written = date.to_string();
    let offset = if date.offset.is_none() { "Z" } else { "" };
    if date.date.is_some() && (date.time.is_none() || date.offset.is_none()) {
        return Err(item.likely(report, EXPECTED, format_args!("{written}{time}{offset}")));
    }
    let timestamp: Option<Timestamp> = written.parse().ok();
    timestamp.map(Timestamp::as_second).ok_or_else(|| item.expected(report, EXPECTED))
}
