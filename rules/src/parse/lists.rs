//! `[[allow]]` and `[[deny]]`.

use ipnet::IpNet;
use jiff::Timestamp;
use toml::de::DeValue;

use super::{
    net,
    reader::{Fields, Item, Names},
    report::{Read, Report, Reported},
};
use crate::{
    ClientConfig,
    lists::ListEntry,
    matcher::RULES_MAX,
    problem::{Quoted, nearest},
};

pub(super) const ALLOW: Names =
    Names { table: "[[allow]]", known: &["clients", "rules", "until", "note"], later: &[] };
pub(super) const DENY: Names =
    Names { table: "[[deny]]", known: &["clients", "until", "note"], later: &[] };

/// `rules` are the names of all rules, in order.
pub(super) fn allow(
    fields: &Fields<'_>,
    rules: &[&str],
    client: Option<&ClientConfig>,
    report: &mut Report<'_>,
) -> Read<ListEntry> {
    let allowed = fields.read("rules", report, |item, report| positions(item, rules, report));
    let entry = entry(fields, report, |item, net, report| {
        let proxies = client.map_or(&[][..], |client| &client.trusted);
        let inside = |proxy: &&IpNet| net.contains(*proxy) || proxy.contains(net);
        if let Some(proxy) = proxies.iter().find(inside) {
            let message = format_args!(
                "clients: {item} covers the trusted proxy {proxy}: whoever is seen with its address, for want of a better one, is allowed"
            );
            report.warn(item.at, message);
        }
    });
    Ok(ListEntry { allow: Some(allowed?), ..entry? })
}

pub(super) fn deny(fields: &Fields<'_>, report: &mut Report<'_>) -> Read<ListEntry> {
    entry(fields, report, |_, _, _| {})
}

fn entry(
    fields: &Fields<'_>,
    report: &mut Report<'_>,
    mut check: impl FnMut(&Item<'_>, &IpNet, &mut Report<'_>),
) -> Read<ListEntry> {
    const EXAMPLE: &str = "[\"198.51.100.0/24\"]";
    let until = fields.read("until", report, unix_seconds);
    let note = fields.read("note", report, Item::note);
    let item = fields.require("clients", EXAMPLE, report)?;
    let items = item.list(EXAMPLE, report)?;
    if items.is_empty() {
        return Err(item.expected(report, "at least one address or network"));
    }
    let mut client = |item| {
        let net = net::network(item, report)?;
        check(&item, &net, report);
        Ok(net)
    };
    let clients: Vec<Read<IpNet>> = items.into_iter().map(&mut client).collect();
    let (until, note) = (until?, note?.map(Into::into));
    // One bad network makes the whole list an error, never a shorter list (C58).
    let clients = clients.into_iter().collect::<Read<_>>()?;
    Ok(ListEntry { clients, allow: None, until, note })
}

/// The positions of the named rules, as bits.
fn positions(
    item: Item<'_>,
    rules: &[&str],
    report: &mut Report<'_>,
) -> Read<[u64; RULES_MAX / 64]> {
    let items = item.list("[\"login\"]", report)?;
    if items.is_empty() {
        return Err(item.expected(report, "at least one rule, or the field left out for all rules"));
    }
    if items.len() > RULES_MAX {
        return Err(
            item.error(report, format_args!("expected at most {RULES_MAX}, found {}", items.len()))
        );
    }
    let mut bits = [0; RULES_MAX / 64];
    let mut read = Ok(());
    for item in items {
        let Ok(name) = item.text("the name of a rule", report) else {
            read = Err(Reported);
            continue;
        };
        match rules.iter().position(|rule| *rule == name) {
            Some(index) if index < RULES_MAX => bits[index / 64] |= 1_u64 << (index % 64),
            _ => {
                read = Err(match nearest(name, rules.iter().copied()) {
                    Some(near) => item.likely(report, "the name of a rule", Quoted(near)),
                    None => item.expected(report, "the name of a rule"),
                });
            }
        }
    }
    read.map(|()| bits)
}

/// A date-time with an offset, as seconds since the unix epoch.
fn unix_seconds(item: Item<'_>, report: &mut Report<'_>) -> Read<i64> {
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
