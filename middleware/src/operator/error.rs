//! What keeps a command from being done.

use std::time::Duration;

use hotgate_detector::VerdictError;
use hotgate_rules::{NetworkError, RuleSet, Spoken};

/// A command that was not done, or a question that has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// No such rule.
    #[error("no rule is named {name:?}, expected one of {}", known.join(", "))]
    UnknownRule {
        /// As it was given.
        name: String,
        /// The rules there are.
        known: Vec<String>,
    },
    /// The verdict could not be set or lifted.
    #[error(transparent)]
    Verdict(#[from] VerdictError),
    /// Not an address or network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Too short or too long.
    #[error("expected a time from 1ms to {}, not {}", Spoken(LASTS_MAX), Spoken(*.0))]
    Time(Duration),
    /// The note is too long.
    #[error("expected a note of at most {NOTE_BYTES_MAX} bytes, not {0}")]
    Note(usize),
    /// As many lists stand as may.
    #[error(
        "{LISTS_MAX} networks are denied or allowed by command already; the rule file takes any number"
    )]
    ListsFull,
    /// Lists are by client, and nothing tells the gate who that is.
    #[error(
        "the gate does not know its clients: expected the feature \"axum\" of hotgate, or .peer(f) on the builder"
    )]
    NoPeer,
    /// No rule has keys of these parts.
    #[error("no rule has such a key, expected the parts of one: {}", expected.join(" or "))]
    NoSuchKey {
        /// The parts of each rule's key.
        expected: Vec<String>,
    },
    /// Not the id of a refusal of this process.
    #[error(
        "this process gave no refusal that id: it may be of another instance, or from before a restart"
    )]
    UnknownId,
}

/// The longest time that a command may ask for: as long as the longest duration of a rule file.
pub(super) const LASTS_MAX: Duration = Duration::from_secs(3_650 * 86_400);

/// The longest note, in bytes: a sentence and a link.
pub(super) const NOTE_BYTES_MAX: usize = 512;

/// Networks that operators may deny or allow at a time, those that have ended left out. Each change
/// copies all of them; whoever has more to say has the rule file.
pub(super) const LISTS_MAX: usize = 1_024;

impl CommandError {
    pub(super) fn check_time(lasts: Duration) -> Result<(), CommandError> {
        let fits = (Duration::from_millis(1)..=LASTS_MAX).contains(&lasts);
        if fits { Ok(()) } else { Err(CommandError::Time(lasts)) }
    }

    pub(super) fn unknown_rule(name: &str, rules: &RuleSet) -> Self {
        let known = rules.rules().iter().map(|rule| rule.name.to_string()).collect();
        CommandError::UnknownRule { name: name.to_owned(), known }
    }

    /// An unknown rule is answered with those there are.
    pub(super) fn of_verdict(error: VerdictError, rules: &RuleSet) -> Self {
        match error {
            VerdictError::UnknownRule(name) => CommandError::unknown_rule(&name, rules),
            error => CommandError::Verdict(error),
        }
    }

    pub(super) fn no_such_key(rules: &RuleSet) -> Self {
        let mut expected = Vec::new();
        for key in rules.rules().iter().map(|rule| rule.key.to_string()) {
            if !expected.contains(&key) {
                expected.push(key);
            }
        }
        CommandError::NoSuchKey { expected }
    }
}
