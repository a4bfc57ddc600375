//! Whether rules act: the kill switch of a file, and the mode of one rule.

use std::{fmt, str::FromStr};

use crate::problem::{Quoted, nearest};

/// Whether a rule, or all rules, act.
///
/// Reads and prints as the rule file writes it: `enforce`, `observe`, `off`.
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

/// The modes by their names.
pub(crate) const MODES: [(&str, Mode); 3] =
    [("enforce", Mode::Enforce), ("observe", Mode::Observe), ("off", Mode::Off)];

impl Mode {
    /// The mode's name in the rule file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Enforce => "enforce",
            Mode::Observe => "observe",
            Mode::Off => "off",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = ModeError;

    /// Exactly one of the three words: what is nearly one is an error that names it.
    fn from_str(text: &str) -> Result<Self, ModeError> {
        let known = MODES.into_iter().find(|(name, _)| *name == text);
        known.map(|(_, mode)| mode).ok_or_else(|| {
            let near = nearest(&text.trim().to_lowercase(), MODES.map(|(name, _)| name));
            let hint = near.map(|near| format!(", did you mean {}?", Quoted(near)));
            ModeError { found: Quoted(text).to_string(), hint: hint.unwrap_or_default() }
        })
    }
}

/// A text that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected \"enforce\", \"observe\" or \"off\", found {found}{hint}")]
pub struct ModeError {
    found: String,
    hint: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_as_it_is_printed() {
        for (name, mode) in MODES {
            assert_eq!((mode.to_string().as_str(), name.parse()), (name, Ok(mode)));
        }
    }

    #[test]
    fn what_is_no_mode_is_an_error_that_names_the_nearest() {
        for (text, hint) in [
            ("Observe", ", did you mean \"observe\"?"),
            ("enforced", ", did you mean \"enforce\"?"),
            ("of", ", did you mean \"off\"?"),
            ("", ""),
            ("disabled", ""),
        ] {
            let said = text.parse::<Mode>().unwrap_err().to_string();
            let expected = "expected \"enforce\", \"observe\" or \"off\", found";
            assert_eq!(said, format!("{expected} \"{text}\"{hint}"));
        }
    }
}
