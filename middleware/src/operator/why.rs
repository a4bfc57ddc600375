//! Why a key is treated as it is, and what a refusal was.

use hotgate_detector::{Cause, DecisionId, FoundRefusal};
use hotgate_rules::{Action, Count, Mode, Rule, RuleSet, Spoken, network};
use ipnet::IpNet;
use serde::Serialize;

use super::{
    CommandError, HotKey, ListEntry, Moment, command::key_text, list, moment::Clocks,
    serialize_mode,
};
use crate::Gate;

/// What the gate knows of a key, or of a refusal and its key.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Why {
    /// The refusal, where a decision id was asked for.
    pub refusal: Option<RefusalStatus>,
    /// What each rule that has such keys knows of it, in the order of the file.
    pub rules: Vec<KeyStatus>,
    /// The allow and deny lists, of the file and by command, that overlap with its client.
    pub lists: Vec<ListEntry>,
}

/// A refusal that was found by its decision id.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RefusalStatus {
    /// When.
    pub at: Moment,
    /// Why: `denied`, `quota`, `blocked`, `always`, `pending` or `missing_key`.
    pub cause: &'static str,
    /// The rule that answered; `None`: a deny list, or a rule that has gone since.
    pub rule: Option<String>,
    /// Whether other rules have come into force since, so that today's may say something else.
    pub rules_changed: bool,
}

/// What one rule knows of one key.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct KeyStatus {
    /// The rule.
    pub rule: String,
    /// Its action.
    pub action: &'static str,
    /// The key as the rule prints it; empty where only its hash is known.
    pub key: String,
    /// In one word, how it stands.
    pub state: KeyState,
    /// What is compared with the limit: `attempts`, `admitted` or `responses`.
    pub counts: &'static str,
    /// How many stand in the window; up to 2 % of the limit may be too many.
    pub count: u32,
    /// The key's limit, N.
    pub limit: u32,
    /// The window as the file writes it, such as `1m`.
    pub window: String,
    /// When a full window lets the key pass again.
    pub full_until: Option<Moment>,
    /// Seconds until then.
    pub full_seconds_left: Option<u64>,
    /// The verdict that stands.
    pub verdict: Option<HotKey>,
    /// Whether the rule is in force for the key.
    #[serde(serialize_with = "serialize_mode")]
    pub mode: Mode,
    /// Why the rule exists.
    pub note: Option<String>,
}

/// How a key stands under a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyState {
    /// The rule is off for it.
    Off,
    /// An override exempts it.
    Exempt,
    /// A block stands.
    Blocked,
    /// Another verdict stands.
    Hot,
    /// No verdict, but its window is full.
    Full,
    /// It has a count.
    Counted,
    /// Nothing is known of it.
    Quiet,
}

impl Gate {
    /// What the gate knows of a key, given in its printed form (a bare address stands for that of the
    /// client), or of the refusal with this decision id (with or without `urn:uuid:`) and its key.
    ///
    /// # Errors
    ///
    /// When no rule has such keys, or this process gave no refusal that id.
    pub fn why(&self, key_or_id: &str) -> Result<Why, CommandError> {
        match key_or_id.parse() {
            Ok(id) => self.why_refused(id),
            Err(_) => self.why_key(&key_text(key_or_id)),
        }
    }

    fn why_key(&self, key: &str) -> Result<Why, CommandError> {
        let shared = self.shared();
        let control = shared.control();
        let (active, clocks) = (shared.active.load(), shared.clocks());
        let (engine, rules) = (&active.engine, active.engine.rules());
        let states = engine.key_states(key, clocks.now);
        let client = client_of(key);
        if states.is_empty() && client.is_none() {
            return Err(CommandError::no_such_key(rules));
        }
        let lists = client.map(|client| {
            let mut lists = list::commanded(&control.record, Some(client), clocks);
            lists.extend(list::of_file(&control, client, clocks, engine.unix_nanos(clocks.now)));
            lists
        });
        let rules = states.into_iter().map(|state| key_status(state, rules, clocks)).collect();
        Ok(Why { refusal: None, rules, lists: lists.unwrap_or_default() })
    }

    fn why_refused(&self, id: DecisionId) -> Result<Why, CommandError> {
        let shared = self.shared();
        let since = shared.control().since;
        let (active, clocks) = (shared.active.load(), shared.clocks());
        let rules = active.engine.rules();
        let found = active.engine.refusal_of(id, clocks.now).ok_or(CommandError::UnknownId)?;
        let FoundRefusal { at, cause, index, rule: state, .. } = found;
        let rule = index.and_then(|index| rules.rules().get(index));
        let refusal = RefusalStatus {
            at: clocks.moment(at),
            cause: cause_name(cause),
            rule: rule.map(|rule| rule.name.to_string()),
            rules_changed: at < since,
        };
        // The key is known as long as a verdict names it, and then so is its client.
        let known = state.as_ref().map(|state| state.key.to_string()).filter(|key| !key.is_empty());
        let mut why = match known {
            Some(key) => self.why_key(&key)?,
            None => {
                let rules = state.into_iter().map(|state| key_status(state, rules, clocks));
                Why { refusal: None, rules: rules.collect(), lists: Vec::new() }
            }
        };
        why.refusal = Some(refusal);
        Ok(why)
    }
}

/// The client that a key names.
fn client_of(key: &str) -> Option<IpNet> {
    key.split(',').find_map(|part| network(part.strip_prefix("client=")?).ok())
}

fn key_status(state: hotgate_detector::KeyState, rules: &RuleSet, clocks: Clocks) -> KeyStatus {
    let rule = &rules.rules()[state.index];
    let full_until = state.full_until.filter(|until| *until > clocks.now);
    let verdict = state.verdict.as_ref();
    let blocks = verdict.is_some_and(|verdict| verdict.manual || verdict.action == "block");
    let word = match () {
        () if state.mode == Mode::Off => KeyState::Off,
        () if state.exempt => KeyState::Exempt,
        () if blocks => KeyState::Blocked,
        () if verdict.is_some() => KeyState::Hot,
        () if full_until.is_some() => KeyState::Full,
        () if state.count > 0 => KeyState::Counted,
        () => KeyState::Quiet,
    };
    KeyStatus {
        rule: state.rule.to_string(),
        action: rule.action.name(),
        key: state.key.to_string(),
        state: word,
        counts: counted(rule),
        count: state.count,
        limit: state.limit,
        window: Spoken(state.window).to_string(),
        full_until: full_until.map(|until| clocks.moment(until)),
        full_seconds_left: full_until.map(|until| clocks.seconds_left(until)),
        verdict: verdict.map(|verdict| HotKey::new(verdict, rules, clocks)),
        mode: state.mode,
        note: rule.note.as_deref().map(str::to_owned),
    }
}

/// Which of a key's three counts the rule compares with its limit.
fn counted(rule: &Rule) -> &'static str {
    match (&rule.count, &rule.action) {
        (Count::Responses { .. }, _) => "responses",
        (Count::Requests, Action::Throttle(None)) => "admitted",
        (Count::Requests, _) => "attempts",
    }
}

pub(crate) fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Denied => "denied",
        Cause::Quota => "quota",
        Cause::Blocked => "blocked",
        Cause::Always => "always",
        Cause::Pending => "pending",
        Cause::MissingKey { .. } => "missing_key",
        _ => "other",
    }
}
