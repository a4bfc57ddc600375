//! `[[rule.override]]`: other terms for some keys.

use std::{cmp::Reverse, num::NonZeroU32};

use super::{
    action::{self, Counted},
    key, reach,
    reader::{Fields, Item, Names},
    report::{Read, Report, Reported},
    value, when,
};
use crate::{
    Condition, KeySpec, Override, OverrideKey, OverridePart, Rate, Spoken, Trigger, mode::MODES,
    problem::Quoted,
};

const NAMES: Names = Names {
    table: "[[rule.override]]",
    known: &["key", "when", "over", "exempt", "mode", "block", "throttle", "tag", "handler"],
    later: &["cache", "alone", "inflight"],
};

/// The fields that change something.
const TERMS: &[&str] = &[
    "over", "mode", "exempt", "block", "throttle", "tag", "handler", "cache", "alone", "inflight",
];

/// Overrides a rule can have: each costs every request of the rule a look.
const OVERRIDES_MAX: usize = 256;

/// The rule that overrides belong to, as far as it could be read.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) key: Read<&'a KeySpec>,
    pub(super) trigger: Read<Trigger>,
    pub(super) action: Read<&'a action::Written>,
    pub(super) counted: Counted,
    pub(super) context: &'a key::Context<'a>,
    /// The rule's own.
    pub(super) when: &'a [Condition],
}

impl Of<'_> {
    /// Those by key first, most specific first, so that the first that covers a key is the one meant;
    /// then those by `when`, as they stand.
    pub(super) fn read(self, item: Item<'_>, report: &mut Report<'_>) -> Read<Vec<Override>> {
        let tables = item.tables(&NAMES, report)?;
        if let Some(first_too_many) = tables.get(OVERRIDES_MAX) {
            let message = format_args!(
                "override: expected at most {OVERRIDES_MAX} in a rule, found {}",
                tables.len()
            );
            return Err(report.error(first_too_many.at, message));
        }
        let mut overrides: Vec<(usize, Override)> = Vec::with_capacity(tables.len());
        let mut complete = true;
        for fields in &tables {
            let same = |one: &Override, other: &Override| {
                (&one.key, &one.when) == (&other.key, &other.when)
            };
            match one(fields, self, report) {
                Ok(one) if overrides.iter().any(|(_, other)| same(other, &one)) => {
                    let by = if one.key.is_some() { "key" } else { "when" };
                    let message =
                        format_args!("[[rule.override]] with the {by} of an override before it");
                    report.error(fields.at, message);
                    complete = false;
                }
                Ok(one) => overrides.push((fields.at, one)),
                Err(Reported) => complete = false,
            }
        }
        overrides.sort_by_key(|(_, one)| {
            let ranks = one.key.as_ref().map(|key| key.0.iter().map(rank).collect::<Vec<_>>());
            (ranks.is_none(), ranks)
        });
        warn_of_reach(&overrides, self.when, report);
        let overrides = overrides.into_iter().map(|(_, one)| one).collect();
        if complete { Ok(overrides) } else { Err(Reported) }
    }
}

/// Says which overrides can never apply; `when` is the rule's.
fn warn_of_reach(overrides: &[(usize, Override)], when: &[Condition], report: &mut Report<'_>) {
    for (index, (at, terms)) in overrides.iter().enumerate() {
        let before = overrides[..index].iter().find(|(_, other)| reach::is_before(other, terms));
        let all: Vec<&Condition> = when.iter().chain(&terms.when).collect();
        if let Some((line, other)) = before.map(|(at, other)| (report.line(*at), other)) {
            let why = if other.key.is_some() { "goes by key, which comes first, and" } else { "" };
            let message = format!(
                "[[rule.override]] never applies: the one on line {line} {why} is for all that this one is for"
            );
            report.warn(*at, message.replace("  ", " "));
        } else if !terms.when.is_empty() && reach::contradict(&all) {
            let message =
                "[[rule.override]] never applies: no request has all that it and the rule ask for";
            report.warn(*at, message);
        }
    }
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

fn one(fields: &Fields<'_>, rule: Of<'_>, report: &mut Report<'_>) -> Read<Override> {
    let limit = fields.read("over", report, |item, report| over(item, rule.trigger, report));
    let exempt = fields.read("exempt", report, Item::only_true);
    let mode = fields.read("mode", report, |item, report| item.choice(&MODES, report));
    let action = action::replaced(fields, rule.action, rule.counted, report);
    let whom = whom(fields, rule, report);

    let terms = fields.places(TERMS);
    if terms.is_empty() {
        return Err(report.missing(
            fields.at,
            "[[rule.override]] says nothing, expected over, exempt, mode or fields of the rule's action",
        ));
    }
    let (limit, exempt, mode, action) = (limit?, exempt?.is_some(), mode?, action?);
    if exempt && terms.len() > 1 {
        let message = "[[rule.override]] with exempt = true, expected nothing else to change";
        return Err(report.error(fields.at, message));
    }
    let (key, when) = whom?;
    Ok(Override { key, when, limit, exempt, mode, action })
}

/// Either a key or `when`.
fn whom(
    fields: &Fields<'_>,
    rule: Of<'_>,
    report: &mut Report<'_>,
) -> Read<(Option<OverrideKey>, Vec<Condition>)> {
    let when = fields.read("when", report, |item, report| when::read(item, rule.context, report));
    let key = fields.read("key", report, |item, report| parts(item, rule.key?, report));
    match fields.places(&["key", "when"])[..] {
        [] => {
            let example = "key = [\"203.0.113.0/24\"], or when = { \"x:plan\" = \"gold\" }";
            let message = format_args!("[[rule.override]] needs key, such as {example}");
            return Err(report.missing(fields.at, message));
        }
        [(first, _), (second, at)] => {
            let message = format_args!("{second} stands beside {first}, expected one of them");
            return Err(report.error(at, message));
        }
        _ => {}
    }
    Ok((key?.map(OverrideKey), when?.unwrap_or_default()))
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
    let read: Vec<Read<OverridePart>> = items
        .into_iter()
        .zip(key.parts())
        .map(|(item, kinds)| value::read(item, kinds, report))
        .collect();
    read.into_iter().collect()
}
