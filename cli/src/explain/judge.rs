//! Which rules a request meets, by which key, and why not the others.

use hotgate_rules::{Facts, Matched, MissingKey, Mode, Override, Pattern, Rule, RuleSet, Standing};
use serde::Serialize;

use crate::sentence;

/// The secret of the hashes that stand for hidden keys: they are not to be compared with others.
const SECRET: [u8; 16] = *b"hotgate explain1";

/// What one rule makes of the request.
#[derive(Debug, Serialize)]
pub(super) struct Judged<'a> {
    pub(super) name: &'a str,
    pub(super) sentence: String,
    pub(super) mode: &'static str,
    /// Whether the rule is evaluated for the request.
    pub(super) applies: bool,
    /// The key as it is printed.
    pub(super) key: Option<String>,
    /// Why it does not apply, or on which other terms it does.
    pub(super) why: Option<String>,
}

/// Judges every rule for a client that stands so on the lists, in the order of the file.
pub(super) fn all<'a>(
    rules: &'a RuleSet,
    facts: &Facts<'_>,
    standing: Standing,
) -> Vec<Judged<'a>> {
    let matched = rules.matching(facts);
    let hit: Vec<usize> = matched.rules().collect();
    let each = rules.rules().iter().enumerate();
    each.map(|(index, rule)| {
        let kept_out = kept_out(rules.mode(), &matched, standing, index);
        let why_not = kept_out.map(str::to_owned).or_else(|| match rule.mode {
            Mode::Off => Some("mode = \"off\"".to_owned()),
            _ if !hit.contains(&index) => Some(mismatch(rule, facts)),
            _ => None,
        });
        let (applies, key, why) = match why_not {
            Some(why) => (false, None, Some(why)),
            None => by_key(rule, facts),
        };
        let mode = sentence::mode_name(rule.mode.min(rules.mode()));
        Judged { name: &rule.name, sentence: sentence::of(rule), mode, applies, key, why }
    })
    .collect()
}

/// What keeps the rule from the request whatever its `match` says.
fn kept_out(
    mode: Mode,
    matched: &Matched,
    standing: Standing,
    index: usize,
) -> Option<&'static str> {
    if mode == Mode::Off {
        return Some("the file's mode is off");
    }
    if matched.is_exempt() {
        return Some("[exempt] matches");
    }
    match standing {
        // Nobody is refused in a file that observes: the request goes on to the rules.
        Standing::Denied if mode == Mode::Observe => None,
        Standing::Denied => Some("[[deny]] refuses the client before all rules"),
        Standing::Allowed => Some("[[allow]] lets the client past every rule"),
        Standing::AllowedPast(bits) if bits[index / 64] >> (index % 64) & 1 == 1 => {
            Some("[[allow]] lets the client past this rule")
        }
        Standing::AllowedPast(_) | Standing::Unlisted => None,
    }
}

/// Why a rule that does not match does not.
fn mismatch(rule: &Rule, facts: &Facts<'_>) -> String {
    let hits = |pattern: &&Pattern| pattern.matches(facts.method, &facts.path);
    let patterns = rule.patterns.as_deref().unwrap_or_default();
    if rule.patterns.is_none() || patterns.iter().any(|pattern| hits(&pattern)) {
        return match rule.except.iter().find(hits) {
            Some(except) => format!("except = {:?} matches", except.to_string()),
            None => "except matches".to_owned(),
        };
    }
    let path_hits = |pattern: &&Pattern| pattern.matches(pattern.method(), &facts.path);
    match patterns.iter().find(path_hits) {
        Some(pattern) => format!("the path matches {:?}, the method does not", pattern.to_string()),
        None => "no pattern of match has this path".to_owned(),
    }
}

/// For a rule that matches: whether it applies to the request's key, the key, and what is special.
fn by_key(rule: &Rule, facts: &Facts<'_>) -> (bool, Option<String>, Option<String>) {
    let key = match rule.key(facts) {
        Ok(key) => key,
        Err(missing) => {
            let lacks = format!("the request lacks a part of the key {}", rule.key);
            let status = if missing.by_client { 400 } else { 500 };
            return match rule.missing_key {
                MissingKey::Reject => {
                    (true, None, Some(format!("{lacks}, which is refused with {status}")))
                }
                _ => (false, None, Some(format!("{lacks}, and missing_key is \"skip\""))),
            };
        }
    };
    let text = Some(key.text(&rule.show(&SECRET)));
    match rule.overrides.iter().find(|terms| terms.covers(&key)) {
        Some(Override { exempt: true, .. }) => {
            (false, text, Some("an override exempts the key".to_owned()))
        }
        Some(Override { mode: Some(Mode::Off), .. }) => {
            (false, text, Some("an override switches the rule off for the key".to_owned()))
        }
        Some(terms) => (true, text, Some(other_terms(terms))),
        None => (true, text, None),
    }
}

fn other_terms(terms: &Override) -> String {
    let limit = terms.limit.map(|limit| format!("limit {limit}"));
    let mode = terms.mode.map(|mode| format!("mode {}", sentence::mode_name(mode)));
    let terms: Vec<String> = limit.into_iter().chain(mode).collect();
    format!("an override gives the key other terms: {}", terms.join(", "))
}
