//! Conditions and overrides that can never apply.

use http::Method;

use crate::{Condition, Override, OverridePart, PartKind, Pattern, pattern::covers_method};

/// Pairs of values that are compared for a warning; beyond it there is none, so that a long file
/// stays quick to read.
const PAIRS_MAX: usize = 4096;

/// Whether no request can have all of these facts: two of them about the same kind have no value in
/// common.
pub(super) fn contradict(conditions: &[&Condition]) -> bool {
    conditions.iter().enumerate().any(|(at, one)| {
        conditions[..at].iter().any(|other| {
            is_same_fact(one, other)
                && pairs(one, other).is_some_and(|mut pairs| pairs.all(|(a, b)| are_apart(a, b)))
        })
    })
}

/// Whether `when` asks for methods that none of the patterns has.
pub(super) fn asks_for_other_methods(when: &[Condition], patterns: &[Pattern]) -> bool {
    let asked = when.iter().filter(|condition| matches!(*condition.kinds, [PartKind::Method]));
    asked.into_iter().any(|condition| {
        condition.values.iter().all(|value| {
            let OverridePart::Exact(name) = value else { return false };
            let method = Method::from_bytes(name).ok();
            let fits = |pattern: &Pattern| {
                let own = pattern.method.as_ref();
                own.is_none_or(|own| covers_method(own, method.as_ref()))
            };
            !patterns.iter().any(fits)
        })
    })
}

/// Whether every request that `later` is for has an override before it already.
pub(super) fn is_before(earlier: &Override, later: &Override) -> bool {
    if let Some(key) = &earlier.key {
        return key.0.iter().all(|part| *part == OverridePart::Any) && later.key.is_none();
    }
    later.key.is_none()
        && earlier.when.iter().all(|wide| {
            later.when.iter().any(|narrow| {
                let each = |value: &OverridePart| wide.values.iter().any(|wide| holds(wide, value));
                wide.kinds == narrow.kinds
                    && pairs(wide, narrow).is_some()
                    && narrow.values.iter().all(each)
            })
        })
}

/// Whether the two look at one value of one kind. A query has several at once.
fn is_same_fact(one: &Condition, other: &Condition) -> bool {
    match (&*one.kinds, &*other.kinds) {
        ([PartKind::Query(_)], _) => false,
        ([PartKind::Client { .. }], [PartKind::Client { .. }]) => true,
        ([one], [other]) => one == other,
        _ => false,
    }
}

fn pairs<'c>(
    one: &'c Condition,
    other: &'c Condition,
) -> Option<impl Iterator<Item = (&'c OverridePart, &'c OverridePart)>> {
    let few = one.values.len() * other.values.len() <= PAIRS_MAX;
    few.then(|| one.values.iter().flat_map(|a| other.values.iter().map(move |b| (a, b))))
}

/// Whether no value is both.
fn are_apart(one: &OverridePart, other: &OverridePart) -> bool {
    !holds(one, other) && !holds(other, one)
}

/// Whether every value that is `narrow` is `wide` too. Of two that are neither, no value is both.
fn holds(wide: &OverridePart, narrow: &OverridePart) -> bool {
    match (wide, narrow) {
        (OverridePart::Any, _) => true,
        (OverridePart::Exact(wide), OverridePart::Exact(narrow)) => wide == narrow,
        (
            OverridePart::Prefix(wide),
            OverridePart::Exact(narrow) | OverridePart::Prefix(narrow),
        ) => narrow.starts_with(wide),
        (OverridePart::Net(wide), OverridePart::Net(narrow)) => wide.contains(narrow),
        _ => false,
    }
}
