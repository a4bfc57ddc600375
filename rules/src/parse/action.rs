//! A rule's one action, and what its overrides replace of it.

use std::sync::Arc;

use http::HeaderName;

use super::{
    block, fields, pace,
    reader::{Fields, Item, Names},
    report::{Read, Report, Reported},
    rule,
};
use crate::Action;

/// The actions of the grammar; all but `cache` are in [`rule::NAMES`] as known.
pub(super) const ACTIONS: &[&str] = &["block", "throttle", "cache", "tag", "handler"];

const TAG: Names = Names { table: "tag", known: &["header"], later: &[] };

/// What a rule counts, as far as it bears on what its action may say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// Nothing: it acts on every request.
    pub(super) always: bool,
    /// Responses.
    pub(super) responses: bool,
}

impl Counted {
    fn unpaced(self) -> Option<&'static str> {
        match self {
            Counted { always: true, .. } => Some("always = true, which refuses every request"),
            Counted { responses: true, .. } => {
                Some("count, which refuses every request while N responses stand")
            }
            _ => None,
        }
    }
}

/// An action as it is written, so that an override can replace some of its fields.
#[derive(Clone, Debug)]
pub(super) enum Written {
    Throttle(pace::Written),
    Block(block::Written),
    Tag(HeaderName),
    Handler(Arc<str>),
}

impl Written {
    pub(super) fn action(&self) -> Action {
        match self {
            Written::Throttle(written) => Action::Throttle(written.pace()),
            Written::Block(written) => Action::Block(written.block()),
            Written::Tag(header) => Action::Tag(header.clone()),
            Written::Handler(name) => Action::Handler(Arc::clone(name)),
        }
    }

    pub(super) fn says_status(&self) -> bool {
        matches!(self, Written::Block(written) if written.says_status())
    }
}

/// The rule's one action.
pub(super) fn read(rule: &Fields<'_>, counted: Counted, report: &mut Report<'_>) -> Read<Written> {
    let places = rule.places(ACTIONS);
    if let Some((second, at)) = places.get(1) {
        report.error(
            *at,
            format_args!("{second} stands beside {}, expected one action in a rule", places[0].0),
        );
    }
    let read: Vec<Read<Written>> = places
        .iter()
        .filter_map(|(name, _)| rule.get_known(name))
        .map(|item| one(item, counted, None, report))
        .collect();
    match (places.len(), read.into_iter().next()) {
        (1, Some(written)) => written,
        (0, _) => {
            let example = "such as throttle = {} or block = { for = \"15m\" }";
            Err(report.missing(rule.at, format_args!("[[rule]] needs an action, {example}")))
        }
        _ => Err(Reported),
    }
}

/// What an override replaces of its rule's action.
pub(super) fn replaced(
    terms: &Fields<'_>,
    rule: Read<&Written>,
    counted: Counted,
    report: &mut Report<'_>,
) -> Read<Option<Action>> {
    let mut replaced = Ok(None);
    for (name, _) in terms.places(ACTIONS) {
        // What is not available yet is reported already.
        let written = match terms.get_known(name) {
            Some(item) => replacement(item, rule?, counted, report),
            None => Err(Reported),
        };
        replaced = replaced.and(written.map(|written| Some(written.action())));
    }
    replaced
}

fn replacement(
    item: Item<'_>,
    rule: &Written,
    counted: Counted,
    report: &mut Report<'_>,
) -> Read<Written> {
    let action = rule.action().name();
    if action != item.name {
        let message = format_args!("the rule's action is {action}, expected fields of it");
        return Err(item.error(report, message));
    }
    if item.is_empty_table() {
        return Err(item.error(report, "replaces nothing, expected fields of the rule's action"));
    }
    one(item, counted, Some(rule), report)
}

fn one(
    item: Item<'_>,
    counted: Counted,
    rule: Option<&Written>,
    report: &mut Report<'_>,
) -> Read<Written> {
    match item.name {
        "throttle" => {
            let rule = rule.map(|rule| match rule {
                Written::Throttle(written) => *written,
                _ => pace::Written::default(),
            });
            pace::read(item, counted.unpaced(), rule, report).map(Written::Throttle)
        }
        "block" => {
            let rule = rule.map(|rule| match rule {
                Written::Block(written) => *written,
                _ => block::Written::default(),
            });
            block::read(item, counted.always, rule, report).map(Written::Block)
        }
        "tag" => tag(item, report).map(Written::Tag),
        _ => rule::name::<Arc<str>>(item, report).map(Written::Handler),
    }
}

fn tag(item: Item<'_>, report: &mut Report<'_>) -> Read<HeaderName> {
    let fields = item.table(&TAG, report)?;
    let item = fields.require("header", "\"x-hot\"", report)?;
    fields::own_name(item, report)
}
