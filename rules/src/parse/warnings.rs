//! What is allowed but likely not meant.

use std::time::Duration;

use super::{Around, reach, reader::Fields, report::Report};
use crate::{
    Action, Count, Disclose, KeySpec, PartKind, Pattern, Rate, Rule, Trigger,
    pattern::{Segment, covers_method},
    problem::Quoted,
};

/// A window shorter than this is hardly meant: `ms` was likely written for `m`.
const WINDOW_SENSIBLE_MIN: Duration = Duration::from_millis(100);

/// Warnings about one rule.
pub(super) fn of_rule(
    rule: &Rule,
    fields: &Fields<'_>,
    around: &Around<'_>,
    report: &mut Report<'_>,
) {
    if rule.is_for_checks() {
        of_checks(rule, fields, report);
    } else if let Some(by) = covered_by(rule.patterns.as_deref(), &rule.except, around.exempt) {
        let message = format_args!(
            "[[rule]] {} can never match: {by} covers all it matches",
            Quoted(&rule.name)
        );
        report.warn(fields.at, message);
    } else if never_holds(rule) {
        let message = format_args!(
            "[[rule]] {} can never match: no request has all that match and when ask for",
            Quoted(&rule.name)
        );
        report.warn(fields.at, message);
    }
    of_window(rule, fields, report);
    of_telling(rule, fields, report);
    let at = fields.get("key").map_or(fields.at, |item| item.at);
    if let Some(client) = around.client {
        of_key(&rule.key, at, client.ipv6_prefix, report);
    }
    let hashed = rule.key.parts().flatten().find(|kind| kind.is_hashed(rule.show_key));
    if let (Some(kind), false) = (hashed, around.has_secret) {
        let message = format_args!(
            "key: {kind} is shown under a random secret of this process, expected secret_file in [privacy] for hashes that stay the same"
        );
        report.warn(at, message);
    }
}

fn never_holds(rule: &Rule) -> bool {
    let when: Vec<_> = rule.when.iter().collect();
    let patterns = rule.patterns.as_deref();
    reach::contradict(&when)
        || patterns.is_some_and(|patterns| reach::asks_for_other_methods(&rule.when, patterns))
}

fn of_window(rule: &Rule, fields: &Fields<'_>, report: &mut Report<'_>) {
    let (Trigger::Over(over), Some(item)) = (rule.trigger, fields.get("over")) else { return };
    if over.window < WINDOW_SENSIBLE_MIN {
        let message = format_args!("over: a window of {item} is short, ms is milliseconds");
        report.warn(item.at, message);
    }
    let (Action::Throttle(Some(pace)), Some(item)) = (&rule.action, fields.get("throttle")) else {
        return;
    };
    // N/W against N/W, without a fraction.
    let speed = |one: Rate, other: Rate| u128::from(one.limit.get()) * other.window.as_nanos();
    if speed(pace.rate, over) > speed(over, pace.rate) {
        let message = "throttle: a pace that is faster than over lets hot keys do more than others";
        report.warn(item.at, message);
    }
}

/// Fields about what clients are told that tell nothing, or what another one hides.
fn of_telling(rule: &Rule, fields: &Fields<'_>, report: &mut Report<'_>) {
    let action = rule.action.name();
    if let (false, Some(item)) = (rule.action.refuses(), fields.get("disclose")) {
        let message = format_args!("disclose does nothing beside {action}, which refuses nothing");
        report.warn(item.at, message);
    }
    let Some(item) = fields.get("fields").filter(|_| rule.fields) else { return };
    if !rule.action.refuses() {
        let message =
            format_args!("fields tells clients of a quota that {action} does not hold them to");
        report.warn(item.at, message);
    } else if rule.disclose == Disclose::None {
        let message = "fields tells all clients the quota that disclose = \"none\" keeps from those it refuses";
        report.warn(item.at, message);
    }
}

fn of_key(key: &KeySpec, at: usize, ipv6_prefix: u8, report: &mut Report<'_>) {
    for kinds in key.parts() {
        for kind in kinds {
            match kind {
                // C15: works as written, but the count is worth little.
                PartKind::Agent
                | PartKind::Bearer
                | PartKind::Query(_)
                | PartKind::Header(_)
                | PartKind::Cookie(_) => {
                    let message = format_args!(
                        "key: a client can vary {kind} at will and gets a fresh count each time"
                    );
                    report.warn(at, message);
                }
                // C20: an id in the path makes one key of each.
                PartKind::Path if !kinds.contains(&PartKind::Route) => {
                    let message = "key: a client can vary path at will and gets a fresh count each time, did you mean \"route\", the matched template?";
                    report.warn(at, message);
                }
                PartKind::Client { written: Some(prefix), v6, .. } if *v6 > ipv6_prefix => {
                    let message = format_args!(
                        "key: client/{prefix} is narrower than ipv6_prefix = {ipv6_prefix}: one IPv6 client can have as many keys as addresses"
                    );
                    report.warn(at, message);
                }
                _ => {}
            }
        }
    }
}

/// What a handler that asks the rule cannot give it.
fn of_checks(rule: &Rule, fields: &Fields<'_>, report: &mut Report<'_>) {
    let given = |kind: &PartKind| {
        matches!(kind, PartKind::User | PartKind::Extra(_) | PartKind::Client { .. })
    };
    for kinds in rule.key.parts().filter(|kinds| !kinds.iter().any(given)) {
        let kind = kinds.first().map(ToString::to_string).unwrap_or_default();
        let message = format_args!(
            "key: match = [] leaves the rule to gate.check, which takes client, user and x:NAME only, not {kind}"
        );
        report.warn(fields.get("key").map_or(fields.at, |item| item.at), message);
    }
    if let (Count::Responses { .. }, Some(item)) = (&rule.count, fields.get("count")) {
        let message = "count: match = [] leaves the rule to gate.check, which knows no responses";
        report.warn(item.at, message);
    }
}

/// What leaves a rule nothing to match.
fn covered_by(
    patterns: Option<&[Pattern]>,
    except: &[Pattern],
    exempt: &[Pattern],
) -> Option<&'static str> {
    let by = |wide: &[Pattern]| match patterns {
        Some(patterns) => {
            patterns.iter().all(|pattern| wide.iter().any(|wide| covers(wide, pattern)))
        }
        None => wide.iter().any(is_everything),
    };
    match (by(except), by(exempt)) {
        (true, _) => Some("except"),
        (false, true) => Some("[exempt]"),
        // Some by the one, some by the other.
        (false, false) if by(&[except, exempt].concat()) => Some("except with [exempt]"),
        (false, false) => None,
    }
}

/// Whether every request that `narrow` matches is matched by `wide`.
pub(super) fn covers(wide: &Pattern, narrow: &Pattern) -> bool {
    let method = match (&wide.method, &narrow.method) {
        (None, _) => true,
        (Some(wide), narrow) => covers_method(wide, narrow.as_ref()),
    };
    method
        && narrow.spellings().all(|narrow| wide.spellings().any(|wide| covers_path(wide, narrow)))
}

fn covers_path(wide: &[Segment], narrow: &[Segment]) -> bool {
    let mut narrow = narrow.iter();
    for wide in wide {
        match (wide, narrow.next()) {
            (Segment::Rest(_), _) => return true,
            (Segment::Param(_), Some(Segment::Param(_) | Segment::Literal(_))) => {}
            (Segment::Literal(wide), Some(Segment::Literal(narrow))) if wide == narrow => {}
            _ => return false,
        }
    }
    narrow.next().is_none()
}

fn is_everything(pattern: &Pattern) -> bool {
    pattern.method.is_none()
        && pattern.spellings().any(|segments| matches!(segments, [Segment::Rest(_)]))
}
