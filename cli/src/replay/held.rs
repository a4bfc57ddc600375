//! What a log holds of what rules look at.

use hotgate_rules::{PartKind, Rule};
use http::header;

use super::scan::Scan;

/// What a rule looks at and the logs do not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lacking {
    /// Parts of the key and of `when`, as the rule file writes them.
    pub(super) parts: Vec<String>,
    /// A part has no kind left that is held: the rule cannot be replayed.
    pub(super) unusable: bool,
    /// What only overrides ask for.
    pub(super) of_overrides: Vec<String>,
}

impl Lacking {
    pub(super) fn of(rule: &Rule, scan: &Scan) -> Self {
        let mut lacking = Lacking::default();
        let key = rule.key.parts().map(|kinds| kinds.iter().collect());
        let when = rule.when.iter().map(|condition| condition.kinds().collect());
        for kinds in key.chain(when) {
            let kinds: Vec<&PartKind> = kinds;
            let missing: Vec<String> = not_held(&kinds, rule, scan).collect();
            lacking.unusable |= missing.len() == kinds.len();
            add(&mut lacking.parts, missing);
        }
        for condition in rule.overrides.iter().flat_map(|terms| &terms.when) {
            let kinds: Vec<&PartKind> = condition.kinds().collect();
            add(&mut lacking.of_overrides, not_held(&kinds, rule, scan));
        }
        lacking
    }
}

fn not_held(kinds: &[&PartKind], rule: &Rule, scan: &Scan) -> impl Iterator<Item = String> {
    kinds.iter().filter(|kind| !is_held(kind, rule, scan)).map(ToString::to_string)
}

/// Adds those that are not there already.
fn add(parts: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for part in more {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
}

fn is_held(kind: &PartKind, rule: &Rule, scan: &Scan) -> bool {
    match kind {
        PartKind::Client { .. } => scan.no_client < scan.parsed,
        PartKind::Agent => scan.combined > 0,
        PartKind::Header(name) => {
            scan.combined > 0 && [header::USER_AGENT, header::REFERER].contains(name)
        }
        PartKind::Query(_) | PartKind::Param(_) | PartKind::Path | PartKind::Method => true,
        // Without a router, a rule's own pattern stands for the route.
        PartKind::Route => rule.patterns.is_some(),
        // `bearer`, `cookie:`, `host`, and whatever comes later until it is read from logs.
        _ => false,
    }
}
