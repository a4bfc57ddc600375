//! The rules as the rest of Hotgate takes them: validated, with every default filled in.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use std::path::Path;

use http::{HeaderName, HeaderValue, StatusCode};
use ipnet::IpNet;

use crate::{Facts, Key, KeySpec, Mode, PartKind, Pattern, Value};

/// One `[[rule]]`: which requests it watches, by which key it counts them, its limit and its action.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rule {
    /// Unique in its file.
    pub name: Arc<str>,
    /// `match`; `None` matches every request.
    pub patterns: Option<Vec<Pattern>>,
    /// `except`.
    pub except: Vec<Pattern>,
    /// `when`: further facts that must all hold.
    pub when: Vec<Condition>,
    /// `key`.
    pub key: KeySpec,
    /// `count`.
    pub count: Count,
    /// `over` or `always`.
    pub trigger: Trigger,
    /// `throttle`, `block`, `tag` or `handler`.
    pub action: Action,
    /// `respond`: an answer of the rule's own instead of the standard refusal.
    pub respond: Option<Respond>,
    /// `fields`: `RateLimit` fields on admitted answers too.
    pub fields: bool,
    /// `from` and `until`: outside that time the rule is off.
    pub period: Period,
    /// `mode`.
    pub mode: Mode,
    /// What an operator allows the rule and its overrides at most: see [`crate::Commands`].
    pub mode_max: Mode,
    /// `missing_key`.
    pub missing_key: MissingKey,
    /// `disclose`.
    pub disclose: Disclose,
    /// `show_key`: show `header:`, `query:`, `agent`, `user` and `x:` keys as they are, except secrets.
    pub show_key: bool,
    /// `[[rule.override]]`: those by `key` first, most specific first, then those by `when`, in the
    /// order of the file.
    pub overrides: Vec<Override>,
    /// `note`.
    pub note: Option<Box<str>>,
}

/// When the action applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// `over = "N/W"`: once the rule's count of a key has passed N in any W.
    Over(Rate),
    /// `always = true`: to every request that matches.
    Always,
}

/// `N/W`: N in any window of length W.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// N, from 1 to 10,000,000.
    pub limit: NonZeroU32,
    /// W, from 1 ms to 7 d.
    pub window: Duration,
}

/// What a rule counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// `count` left out: requests (which of them, the action says).
    Requests,
    /// `count = { status = […], pending = … }`: admitted requests whose response is one of these.
    Responses {
        /// The statuses that count.
        statuses: Vec<StatusClass>,
        /// How many requests of one key may be unresolved at once; beyond it 429. Left out: each
        /// key's own N.
        pending: Option<NonZeroU32>,
    },
}

/// One item of `count.status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusClass {
    /// One status code.
    Code(StatusCode),
    /// `"4xx"`: all codes with this hundreds digit.
    Hundred(u16),
    /// `"cancelled"`: the request was dropped before its response head.
    Cancelled,
    /// `"error"`: the inner service failed.
    Error,
}

/// What happens to a hot key's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `throttle = {}`: at most N admitted in any W; with a pace: once hot, no faster than that.
    Throttle(Option<Pace>),
    /// `block = { … }`.
    Block(Block),
    /// `tag = { header = "…" }`: passed on, marked by a request header field of this name.
    Tag(HeaderName),
    /// `handler = "…"`: answered by the function that is registered under this name.
    Handler(Arc<str>),
}

/// `throttle = { pace = "2/1s", burst = 10 }`: the steady rate of a hot key, as GCRA has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// N requests in every W, evenly spread.
    pub rate: Rate,
    /// How many may come at once; the rate's N where it is left out.
    pub burst: NonZeroU32,
}

impl Action {
    /// The action's name in the rule file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Action::Throttle(_) => "throttle",
            Action::Block(_) => "block",
            Action::Tag(_) => "tag",
            Action::Handler(_) => "handler",
        }
    }

    /// Whether it refuses requests.
    #[must_use]
    pub fn refuses(&self) -> bool {
        matches!(self, Action::Throttle(_) | Action::Block(_))
    }
}

/// One entry of `when`: a fact, and the values it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The kinds that can stand for the fact, first one first.
    pub(crate) kinds: Box<[PartKind]>,
    /// One of these must cover it.
    pub(crate) values: Vec<OverridePart>,
}

/// `respond = { … }`: what a refused client hears instead of the standard refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Respond {
    /// The status; left out: the standard one.
    pub status: Option<StatusCode>,
    /// `content_type`.
    pub content_type: Option<HeaderValue>,
    /// `body_file`, as it is written; left out: no body.
    pub body_file: Option<Box<Path>>,
    /// `headers`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// `from` and `until`, in seconds since the unix epoch: from the first on, before the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// `from`.
    pub from: Option<i64>,
    /// `until`.
    pub until: Option<i64>,
}

/// `block = { for = "15m", … }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// How long the first block of a key lasts; zero only beside `always`, where nothing lasts.
    pub lasts: Duration,
    /// The status of the refusals, 403 unless the rule says otherwise.
    pub status: StatusCode,
    /// Whether attempts during the block push its end out.
    pub extend: bool,
    /// By how much each repeat within `forget` multiplies the last length; 1 keeps it.
    pub grow: NonZeroU32,
    /// The longest a block may grow.
    pub max: Duration,
    /// How long after its end a block still counts as one to grow from.
    pub forget: Duration,
}

/// What a request whose key lacks a part means to a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// The rule does not apply.
    #[default]
    Skip,
    /// All such requests share one key, typed as missing.
    Share,
    /// Refused: 400 for parts the client supplies, 500 for ours.
    Reject,
}

/// What a refusal tells its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disclose {
    /// Rule, quota and wait.
    Full,
    /// None of them, except a wait where the status is 429.
    None,
}

/// One `[[rule.override]]`: other terms for some keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Override {
    /// Which keys; left out where `when` says which requests.
    pub key: Option<OverrideKey>,
    /// Which requests, whatever their key.
    pub when: Vec<Condition>,
    /// `over`: another N; the window stays the rule's.
    pub limit: Option<NonZeroU32>,
    /// `exempt = true`: the rule does not apply to these keys.
    pub exempt: bool,
    /// `mode`.
    pub mode: Option<Mode>,
    /// The rule's action with the fields that the override replaces.
    pub action: Option<Action>,
}

/// `key` of an override: one pattern for each part of the rule's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideKey(pub(crate) Vec<OverridePart>);

/// One entry of an override's `key`.
#[derive(Clone, PartialEq, Eq)]
pub enum OverridePart {
    /// Exactly this value.
    Exact(Box<[u8]>),
    /// `"prefix*"`: values that begin so.
    Prefix(Box<[u8]>),
    /// `"*"`: any value.
    Any,
    /// An address or CIDR, for `client` parts.
    Net(IpNet),
}

/// `[memory]`: the capacity of each rule's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Keys a rule's counting table is sized for.
    pub keys: NonZeroU32,
    /// Verdicts a rule can hold.
    pub verdicts: NonZeroU32,
}

impl Default for Memory {
    fn default() -> Self {
        let default = NonZeroU32::new(65_536).expect("not zero");
        Memory { keys: default, verdicts: default }
    }
}

/// As a sentence: `x:plan is free or tri*`. Values of secrets are not shown.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, kind) in self.kinds.iter().enumerate() {
            write!(f, "{}{kind}", if index > 0 { "|" } else { "" })?;
        }
        if self.values.contains(&OverridePart::Any) {
            return f.write_str(" is there");
        }
        if self.kinds.iter().any(|kind| kind.is_hashed(true)) {
            return f.write_str(" is a value that is not shown");
        }
        for (index, value) in self.values.iter().enumerate() {
            f.write_str(if index > 0 { " or " } else { " is " })?;
            match value {
                OverridePart::Exact(value) => f.write_str(&String::from_utf8_lossy(value))?,
                OverridePart::Prefix(start) => write!(f, "{}*", String::from_utf8_lossy(start))?,
                OverridePart::Any => f.write_str("*")?,
                OverridePart::Net(net) => net.fmt(f)?,
            }
        }
        Ok(())
    }
}

/// A value may be a secret, so only its length is shown.
impl fmt::Debug for OverridePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverridePart::Exact(value) => write!(f, "Exact({} bytes)", value.len()),
            OverridePart::Prefix(start) => write!(f, "Prefix({} bytes)", start.len()),
            OverridePart::Any => f.write_str("Any"),
            OverridePart::Net(net) => write!(f, "Net({net})"),
        }
    }
}

impl Rule {
    /// Whether the rule matches no request: `match = []`. It is for keys that only a handler of the
    /// service knows, which checks them itself.
    #[must_use]
    pub fn is_for_checks(&self) -> bool {
        self.patterns.as_ref().is_some_and(Vec::is_empty)
    }

    /// The first of the rule's overrides that is for a request with this key, and its position.
    #[must_use]
    pub fn override_for(&self, facts: &Facts<'_>, key: &Key<'_>) -> Option<(usize, &Override)> {
        let mut overrides = self.overrides.iter().enumerate();
        overrides.find(|(_, terms)| terms.covers(self, facts, key))
    }

    /// The first of the rule's overrides by key alone that is for this one, and its position: what can
    /// be known without a request.
    #[must_use]
    pub fn override_by_key(&self, key: &Key<'_>) -> Option<(usize, &Override)> {
        let mut overrides = self.overrides.iter().enumerate();
        overrides.find(|(_, terms)| terms.key.as_ref().is_some_and(|own| own.covers(key)))
    }

    /// Whether the rule acts on a key with these terms, in a file of this mode.
    #[must_use]
    pub fn mode_under(&self, file: Mode, terms: Option<&Override>) -> Mode {
        let own = terms.and_then(|terms| terms.mode).unwrap_or(self.mode);
        file.min(self.mode_max).min(own)
    }

    /// The rule's action on a key whose override stands at this place.
    #[must_use]
    pub fn action_under(&self, terms: Option<usize>) -> &Action {
        let terms = terms.and_then(|at| self.overrides.get(at));
        terms.and_then(|terms| terms.action.as_ref()).unwrap_or(&self.action)
    }

    /// The rule's action and those of its overrides.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        let overrides = self.overrides.iter().filter_map(|terms| terms.action.as_ref());
        std::iter::once(&self.action).chain(overrides)
    }

    /// Every kind of part that the rule asks a request for: in its key, its `when` and its overrides'.
    pub fn kinds(&self) -> impl Iterator<Item = &PartKind> {
        let overrides = self.overrides.iter().flat_map(|terms| &terms.when);
        let conditions = self.when.iter().chain(overrides);
        self.key.parts().flatten().chain(conditions.flat_map(|condition| &condition.kinds))
    }

    /// Whether the rule belongs to the door inside authentication, where a gate has one: it asks for
    /// `user` or `x:NAME`.
    #[must_use]
    pub fn needs_inner_door(&self) -> bool {
        self.kinds().any(|kind| matches!(kind, PartKind::User | PartKind::Extra(_)))
    }

    /// Whether all of `when` holds.
    #[must_use]
    pub fn holds(&self, facts: &Facts<'_>) -> bool {
        self.unmet(facts).is_none()
    }

    /// The first entry of `when` that does not hold.
    #[must_use]
    pub fn unmet(&self, facts: &Facts<'_>) -> Option<&Condition> {
        self.when.iter().find(|condition| !condition.holds(self, facts))
    }
}

impl Override {
    /// Whether these terms are for a request with this key.
    #[must_use]
    pub fn covers(&self, rule: &Rule, facts: &Facts<'_>, key: &Key<'_>) -> bool {
        self.key.as_ref().is_none_or(|own| own.covers(key))
            && self.when.iter().all(|condition| condition.holds(rule, facts))
    }
}

impl OverrideKey {
    /// Whether these patterns are for `key`.
    #[must_use]
    pub fn covers(&self, key: &Key<'_>) -> bool {
        let parts = key.parts();
        self.0.len() == parts.len()
            && self.0.iter().zip(parts).all(|(pattern, part)| pattern.covers(&part.value))
    }
}

impl Period {
    /// Whether a time, in nanoseconds since the unix epoch, is in it.
    #[must_use]
    pub fn covers(&self, unix_nanos: i128) -> bool {
        let nanos = |seconds: i64| i128::from(seconds) * 1_000_000_000;
        self.from.is_none_or(|from| nanos(from) <= unix_nanos)
            && self.until.is_none_or(|until| unix_nanos < nanos(until))
    }
}

impl Condition {
    /// The kinds that can stand for the fact, first one first.
    pub fn kinds(&self) -> impl Iterator<Item = &PartKind> {
        self.kinds.iter()
    }

    /// Whether the request has the fact, with one of these values. Of a list of values one is enough.
    #[must_use]
    pub fn holds(&self, rule: &Rule, facts: &Facts<'_>) -> bool {
        let value = self.kinds.iter().find_map(|kind| kind.value(rule, facts));
        value.is_some_and(|value| self.values.iter().any(|pattern| pattern.covers_any(&value)))
    }
}

impl OverridePart {
    fn covers(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (OverridePart::Any, _) => true,
            // The parser takes none that is narrower than what the key counts by.
            (OverridePart::Net(net), Value::Network(addr, _)) => net.contains(addr),
            (OverridePart::Exact(exact), Value::Bytes(bytes)) => **exact == **bytes,
            (OverridePart::Prefix(start), Value::Bytes(bytes)) => bytes.starts_with(start),
            _ => false,
        }
    }

    fn covers_any(&self, value: &Value<'_>) -> bool {
        match value {
            Value::List(values) => values.iter().any(|bytes| match self {
                OverridePart::Any => true,
                OverridePart::Exact(exact) => **exact == **bytes,
                OverridePart::Prefix(start) => bytes.starts_with(start),
                OverridePart::Net(_) => false,
            }),
            one => self.covers(one),
        }
    }
}
