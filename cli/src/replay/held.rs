//! What a log holds of what rules look at.

use hotgate_rules::{PartKind, Rule};
use http::header;

use super::scan::Scan;

/// The key parts of a rule that the logs do not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lacking {
    /// As the rule file writes them.
    pub(super) parts: Vec<String>,
    /// A part of the key has no kind left that is held: the rule cannot be replayed.
    pub(super) unusable: bool,
}

impl Lacking {
    pub(super) fn of(rule: &Rule, scan: &Scan) -> Self {
        let mut lacking = Lacking::default();
        for kinds in rule.key.parts() {
            let missing = || kinds.iter().filter(|kind| !is_held(kind, rule, scan));
            lacking.parts.extend(missing().map(PartKind::to_string));
            lacking.unusable |= missing().count() == kinds.len();
        }
        lacking
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
