//! `[[allow]]` and `[[deny]]`.

use ipnet::IpNet;

use super::{
    net, period,
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
    let until = fields.read("until", report, period::unix_seconds);
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
