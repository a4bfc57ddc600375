//! One version of the rules, with all that requests need of it.

use hotgate_detector::Engine;
use hotgate_rules::{PartKind, RuleSet};

/// The rules in force. Nothing in it changes: other rules are another one of these.
pub(crate) struct Active {
    pub(crate) engine: Engine,
    /// Whether anything in the rules asks who the client is.
    pub(crate) asks_client: bool,
}

impl Active {
    pub(crate) fn new(engine: Engine) -> Self {
        let asks_client = what_asks_for_the_client(engine.rules()).is_some();
        Active { engine, asks_client }
    }
}

/// The first thing in the rules that needs the client's address.
pub(crate) fn what_asks_for_the_client(rules: &RuleSet) -> Option<String> {
    let rule = rules
        .rules()
        .iter()
        .find(|rule| rule.kinds().any(|kind| matches!(kind, PartKind::Client { .. })));
    rule.map(|rule| format!("rule {:?}", rule.name))
        .or_else(|| (!rules.lists().is_empty()).then(|| "[[allow]] or [[deny]]".to_owned()))
}
