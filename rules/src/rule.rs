//! The rules as the rest of Hotgate takes them: validated, with every default filled in.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use http::StatusCode;
use ipnet::IpNet;

use crate::{Key, KeySpec, Pattern, Value};

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
    /// `key`.
    pub key: KeySpec,
    /// `count`.
    pub count: Count,
    /// `over` or `always`.
    pub trigger: Trigger,
    /// `throttle` or `block`.
    pub action: Action,
    /// `mode`.
    pub mode: Mode,
    /// `missing_key`.
    pub missing_key: MissingKey,
    /// `disclose`.
    pub disclose: Disclose,
    /// `show_key`: show `header:`, `cookie:` and `query:` keys as they are, except secrets.
    pub show_key: bool,
    /// `[[rule.override]]`, most specific first.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `throttle = {}`: at most N admitted in any W.
    Throttle,
    /// `block = { … }`.
    Block(Block),
}

impl Action {
    /// The action's name in the rule file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Action::Throttle => "throttle",
            Action::Block(_) => "block",
        }
    }
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

/// Whether a rule, or all rules, act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Not evaluated at all.
    Off,
    /// Counted, with the numbers that enforcing would give, but nobody is refused.
    Observe,
    /// In force.
    #[default]
    Enforce,
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
    /// Which keys.
    pub key: OverrideKey,
    /// `over`: another N; the window stays the rule's.
    pub limit: Option<NonZeroU32>,
    /// `exempt = true`: the rule does not apply to these keys.
    pub exempt: bool,
    /// `mode`.
    pub mode: Option<Mode>,
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
    /// The first of the rule's overrides that is for `key`, and its position: the most specific one.
    #[must_use]
    pub fn override_for(&self, key: &Key<'_>) -> Option<(usize, &Override)> {
        self.overrides.iter().enumerate().find(|(_, terms)| terms.covers(key))
    }

    /// Whether the rule acts on a key with these terms, in a file of this mode.
    #[must_use]
    pub fn mode_under(&self, file: Mode, terms: Option<&Override>) -> Mode {
        file.min(terms.and_then(|terms| terms.mode).unwrap_or(self.mode))
    }
}

impl Override {
    /// Whether these terms are for `key`.
    #[must_use]
    pub fn covers(&self, key: &Key<'_>) -> bool {
        let parts = key.parts();
        self.key.0.len() == parts.len()
            && self.key.0.iter().zip(parts).all(|(pattern, part)| pattern.covers(&part.value))
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
}
