//! Which rules a request meets, by which key, and why not the others.

use hotgate_rules::{
    Condition, Facts, Key, Matched, MissingKey, MissingPart, Mode, Override, PartKind, Pattern,
    Period, Rule, RuleSet, Standing, Trigger,
};
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
    unix_nanos: i128,
) -> Vec<Judged<'a>> {
    let matched = rules.matching(facts);
    let hit: Vec<usize> = matched.rules().collect();
    let each = rules.rules().iter().enumerate();
    each.map(|(index, rule)| {
        let kept_out = kept_out(rules.mode(), &matched, standing, index);
        let why_not = kept_out.map(str::to_owned);
        let why_not = why_not.or_else(|| (!hit.contains(&index)).then(|| mismatch(rule, facts)));
        let why_not = why_not.or_else(|| off_by_date(rule, unix_nanos));
        let why_not = why_not.or_else(|| rule.unmet(facts).map(unmet));
        let key = rule.key(facts);
        let terms = key.as_ref().ok().and_then(|key| rule.override_for(facts, key));
        let terms = terms.map(|(_, terms)| terms);
        let mode = rule.mode_under(rules.mode(), terms);
        let (applies, key, why) = match why_not {
            Some(why) => (false, None, Some(why)),
            None => by_key(rule, key, terms, mode),
        };
        let (name, sentence, mode) = (&*rule.name, sentence::of(rule), mode.name());
        Judged { name, sentence, mode, applies, key, why }
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
    if rule.is_for_checks() {
        return "match = []: only handlers ask it".to_owned();
    }
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

/// Why a rule is off at this time, if it is.
fn off_by_date(rule: &Rule, unix_nanos: i128) -> Option<String> {
    let from = Period { until: None, ..rule.period };
    match (rule.period.covers(unix_nanos), from.covers(unix_nanos)) {
        (true, _) => None,
        (false, false) => Some(format!("it is off until {}", sentence::rfc3339(rule.period.from?))),
        (false, true) => Some(format!("it is off since {}", sentence::rfc3339(rule.period.until?))),
    }
}

/// That a condition does not hold, and how to say what only the service knows.
fn unmet(condition: &Condition) -> String {
    let hint = condition.kinds().find_map(|kind| match kind {
        PartKind::User => Some("--user NAME".to_owned()),
        PartKind::Extra(name) => Some(format!("--x {name}=VALUE")),
        _ => None,
    });
    let hint = hint.map(|hint| format!("; {hint} says what the service would"));
    format!("it asks that {condition}{}", hint.unwrap_or_default())
}

/// For a rule that matches: whether it applies to the request's key, the key, and what is special.
fn by_key(
    rule: &Rule,
    key: Result<Key<'_>, MissingPart>,
    terms: Option<&Override>,
    mode: Mode,
) -> (bool, Option<String>, Option<String>) {
    let text = key.as_ref().ok().map(|key| key.text(&rule.show(&SECRET)));
    let whom = match terms {
        Some(Override { key: None, .. }) => "such requests",
        _ => "the key",
    };
    let lacks = || format!("the request lacks a part of the key {}", rule.key);
    match (key, terms) {
        (_, Some(Override { exempt: true, .. })) => {
            (false, text, Some(format!("an override exempts {whom}")))
        }
        (_, Some(Override { mode: Some(Mode::Off), .. })) => {
            (false, text, Some(format!("an override switches the rule off for {whom}")))
        }
        _ if mode == Mode::Off => (false, text, Some("mode = \"off\"".to_owned())),
        (Ok(_), terms) => (true, text, terms.map(|terms| other_terms(rule, terms))),
        (Err(missing), _) if rule.missing_key == MissingKey::Reject => {
            let status = if missing.by_client { 400 } else { 500 };
            (true, None, Some(format!("{}, which is refused with {status}", lacks())))
        }
        (Err(_), _) => (false, None, Some(format!("{}, and missing_key is \"skip\"", lacks()))),
    }
}

fn other_terms(rule: &Rule, terms: &Override) -> String {
    let limit = terms.limit.map(|limit| format!("limit {limit}"));
    let mode = terms.mode.map(|mode| format!("mode {mode}"));
    let action = terms.action.as_ref().map(|action| match rule.trigger {
        Trigger::Always => format!("its own {}", action.name()),
        Trigger::Over(_) => format!("hot requests {}", sentence::done(rule, action)),
    });
    let changed: Vec<String> = limit.into_iter().chain(mode).chain(action).collect();
    let changed = changed.join(", ");
    if terms.when.is_empty() {
        return format!("an override gives the key other terms: {changed}");
    }
    format!("an override as {}: {changed}", sentence::when(&terms.when))
}
