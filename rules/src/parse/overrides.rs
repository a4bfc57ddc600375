//! `[[rule.override]]`: other terms for some keys.

use std::{cmp::Reverse, num::NonZeroU32};

use ipnet::IpNet;

use super::{
    net,
    reader::{Fields, Item, Names},
    report::{Read, Report, Reported},
    rule::MODES,
};
use crate::{
    KeySpec, Override, OverrideKey, OverridePart, PartKind, Rate, RequestPath, Spoken, Trigger,
    problem::Quoted,
};

const NAMES: Names = Names {
    table: "[[rule.override]]",
    known: &["key", "over", "exempt", "mode"],
    later: &[
        "when", "block", "throttle", "cache", "tag", "handler", "respond", "alone", "inflight",
    ],
};

/// Overrides a rule can have: each costs every request of the rule a look.
const OVERRIDES_MAX: usize = 256;

/// Sorted, most specific first, so that the first that covers a key is the one meant.
pub(super) fn read(
    item: Item<'_>,
    key: Read<&KeySpec>,
    trigger: Read<Trigger>,
    report: &mut Report<'_>,
) -> Read<Vec<Override>> {
    let tables = item.tables(&NAMES, report)?;
    if let Some(first_too_many) = tables.get(OVERRIDES_MAX) {
        let message = format_args!(
            "override: expected at most {OVERRIDES_MAX} in a rule, found {}",
            tables.len()
        );
        return Err(report.error(first_too_many.at, message));
    }
    let mut overrides: Vec<Override> = Vec::with_capacity(tables.len());
    let mut complete = true;
    for fields in &tables {
        match one(fields, key, trigger, report) {
            Ok(one) if overrides.iter().any(|other| other.key == one.key) => {
                report.error(fields.at, "[[rule.override]] with the key of an override before it");
                complete = false;
            }
            Ok(one) => overrides.push(one),
            Err(Reported) => complete = false,
        }
    }
    overrides.sort_by_key(|one| {
        let ranks = one.key.as_ref().map(|key| key.0.iter().map(rank).collect::<Vec<_>>());
        (ranks.is_none(), ranks)
    });
    if complete { Ok(overrides) } else { Err(Reported) }
}

/// Rising from the most specific to the least.
fn rank(part: &OverridePart) -> (u8, Reverse<usize>) {
    match part {
        OverridePart::Exact(_) => (0, Reverse(0)),
        OverridePart::Net(net) => (1, Reverse(usize::from(net.prefix_len()))),
        OverridePart::Prefix(prefix) => (2, Reverse(prefix.len())),
        OverridePart::Any => (3, Reverse(0)),
    }
}

fn one(
    fields: &Fields<'_>,
    key: Read<&KeySpec>,
    trigger: Read<Trigger>,
    report: &mut Report<'_>,
) -> Read<Override> {
    let limit = fields.read("over", report, |item, report| over(item, trigger, report));
    let exempt = fields.read("exempt", report, Item::only_true);
    let mode = fields.read("mode", report, |item, report| item.choice(&MODES, report));
    let key = if fields.places(&["when"]).is_empty() {
        fields
            .require("key", "[\"203.0.113.0/24\"]", report)
            .and_then(|item| parts(item, key?, report))
    } else {
        Err(Reported)
    };

    let terms = fields.places(&["over", "mode", "exempt"]);
    let later = fields.places(NAMES.later);
    if terms.is_empty() && later.is_empty() {
        report.missing(fields.at, "[[rule.override]] says nothing, expected over, exempt or mode");
    }
    let (limit, exempt, mode) = (limit?, exempt?.is_some(), mode?);
    if exempt && terms.len() > 1 {
        report.error(
            fields.at,
            "[[rule.override]] with exempt = true, expected neither over nor mode beside it",
        );
        return Err(Reported);
    }
    if terms.is_empty() || !later.is_empty() {
        return Err(Reported);
    }
    Ok(Override {
        key: Some(OverrideKey(key?)),
        when: Vec::new(),
        limit,
        exempt,
        mode,
        action: None,
    })
}

fn over(item: Item<'_>, trigger: Read<Trigger>, report: &mut Report<'_>) -> Read<NonZeroU32> {
    let rate: Rate = item.unit(report)?;
    match trigger? {
        Trigger::Always => Err(item.error(report, "has no meaning in a rule with always = true")),
        Trigger::Over(of_rule) if of_rule.window != rate.window => {
            let likely = format!("\"{}/{}\"", rate.limit, Spoken(of_rule.window));
            let expected = format_args!("the rule's window of {}", Spoken(of_rule.window));
            Err(item.likely(report, expected, likely))
        }
        Trigger::Over(_) => Ok(rate.limit),
    }
}

fn parts(item: Item<'_>, key: &KeySpec, report: &mut Report<'_>) -> Read<Vec<OverridePart>> {
    let items = item.list("[\"203.0.113.0/24\"]", report)?;
    if key.is_empty() {
        return Err(item.error(report, "a rule with key = [] has one budget, expected no override"));
    }
    if items.len() != key.parts().count() {
        let expected = format_args!(
            "expected one entry for each part of {}, found {}",
            Quoted(&key.to_string()),
            items.len()
        );
        return Err(item.error(report, expected));
    }
    let read: Vec<Read<OverridePart>> =
        items.into_iter().zip(key.parts()).map(|(item, kinds)| part(item, kinds, report)).collect();
    read.into_iter().collect()
}

/// In a part that falls back from or to `client`, what reads as a network is one.
fn part(item: Item<'_>, kinds: &[PartKind], report: &mut Report<'_>) -> Read<OverridePart> {
    let text = item.text("text", report)?;
    if text == "*" {
        return Ok(OverridePart::Any);
    }
    let client = kinds.iter().find_map(|kind| match kind {
        PartKind::Client { v4, v6, .. } => Some((*v4, *v6)),
        _ => None,
    });
    if let (Some(prefixes), Some(net)) = (client, net::parse(text)) {
        return network(item, net, prefixes, report).map(OverridePart::Net);
    }
    if client.is_some() && kinds.len() == 1 {
        return Err(
            item.expected(report, "an address, a network such as \"203.0.113.0/24\", or \"*\"")
        );
    }
    // As the key holds it: what is written in another way would cover nothing.
    let start = |text: &str| match kinds {
        [PartKind::Host] => text.to_ascii_lowercase(),
        [PartKind::Method] => text.to_ascii_uppercase(),
        [PartKind::Path] => RequestPath::new(text).normal().to_owned(),
        _ => text.to_owned(),
    };
    let value = |text: &str| match kinds {
        [PartKind::Path] => RequestPath::new(text).normal_trimmed().to_owned(),
        _ => start(text),
    };
    // A template holds a * of its own: /static/{*rest}.
    let is_template = kinds.contains(&PartKind::Route) && text.contains("{*");
    match text.strip_suffix('*') {
        Some(prefix) if !prefix.contains('*') => {
            Ok(OverridePart::Prefix(start(prefix).into_bytes().into()))
        }
        None if is_template || !text.contains('*') => {
            Ok(OverridePart::Exact(value(text).into_bytes().into()))
        }
        _ => Err(item.expected(report, "a value, or one * at its end")),
    }
}

/// A network that can hold the networks this key counts by.
fn network(item: Item<'_>, net: IpNet, (v4, v6): (u8, u8), report: &mut Report<'_>) -> Read<IpNet> {
    let counted = if net.addr().is_ipv4() { v4 } else { v6 };
    if net.prefix_len() <= counted {
        return net::without_host_bits(item, net, report);
    }
    let wider = IpNet::new(net.addr(), counted).map_or(net, |net| net.trunc());
    let expected = format_args!("a network of /{counted} or wider, as the key counts no narrower");
    Err(item.likely(report, expected, format_args!("\"{wider}\"")))
}
