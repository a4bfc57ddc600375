//! What rules need that is not in their text.

use hotgate_rules::RuleSet;

use crate::{active::what_asks_for_the_client, error::no_peer, hooks::Hooks, peer::KNOWS_PEERS};

/// Why these rules cannot come into force in this service, one sentence each. `old` are the rules that
/// are in force, if any are.
pub(crate) fn unmet(rules: &RuleSet, old: Option<&RuleSet>, hooks: &Hooks) -> Vec<String> {
    let mut unmet = old.map(|old| needs_restart(rules, old)).unwrap_or_default();
    let knows_peers = KNOWS_PEERS || hooks.peer.is_some();
    if let Some(what) = what_asks_for_the_client(rules).filter(|_| !knows_peers) {
        unmet.push(no_peer(&what));
    }
    unmet
}

fn needs_restart(rules: &RuleSet, old: &RuleSet) -> Vec<String> {
    let changed = [
        ("app", rules.app() != old.app()),
        ("[memory]", rules.memory() != old.memory()),
        ("[privacy]", rules.secret_file() != old.secret_file()),
    ];
    let changed = changed.into_iter().filter(|(_, changed)| *changed);
    changed.map(|(what, _)| format!("a change of {what} needs a restart")).collect()
}
