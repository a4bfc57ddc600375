//! Durations and rates as the rule file writes them.

use std::{fmt, num::NonZeroU32, ops::RangeInclusive, str::FromStr, time::Duration};

use crate::{Rate, problem::Quoted};

/// The units of a duration, largest first, in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The longest duration, in milliseconds: ten years, far beyond any use and far from any overflow.
const DURATION_MILLIS_MAX: u64 = 3_650 * 86_400_000;

/// The longest window of a rate, in milliseconds: seven days.
const WINDOW_MILLIS_MAX: u64 = 7 * 86_400_000;

/// The limits a rate may have.
pub(crate) const LIMITS: RangeInclusive<u32> = 1..=10_000_000;

/// A duration as the rule file writes it: `1500ms`, `90s`, `1m`, `2h`, `7d`.
///
/// Prints the largest unit that leaves a whole number, and rounds up to whole milliseconds. Reads
/// one whole number and its unit, from `1ms` to `3650d`.
///
/// ```
/// use std::time::Duration;
///
/// use hotgate_rules::Spoken;
///
/// assert_eq!(Spoken(Duration::from_secs(90)).to_string(), "90s");
/// assert_eq!("15m".parse(), Ok(Spoken(Duration::from_secs(900))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spoken(pub Duration);

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_nanos().div_ceil(1_000_000);
        if millis == 0 {
            return f.write_str("0s");
        }
        let fits = |(_, unit): &&(&str, u64)| millis.is_multiple_of(u128::from(*unit));
        let (name, unit) = UNITS.iter().find(fits).unwrap_or(&("ms", 1));
        write!(f, "{}{name}", millis / u128::from(*unit))
    }
}

impl FromStr for Spoken {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let millis = match millis(text) {
            Ok(millis) if millis <= DURATION_MILLIS_MAX => millis,
            Ok(_) | Err(Unread::OutOfRange) => {
                return Err(UnitError::new("a duration from 1ms to 3650d", text));
            }
            Err(Unread::Unclear(likely)) => {
                return Err(UnitError::new("a duration such as \"15m\"", text).hint(likely));
            }
        };
        Ok(Spoken(Duration::from_millis(millis)))
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    /// Reads `N/W`, such as `10/1m`; `20/s` is `20/1s`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let unclear = |likely| UnitError::new("a rate such as \"10/1m\"", text).hint(likely);
        let Some((limit, window)) = text.split_once('/') else {
            return Err(unclear(is_number(text).then(|| format!("{text}/1m"))));
        };
        if !is_number(limit) {
            let squeezed: String = text.split_whitespace().collect();
            let readable = squeezed != text && squeezed.parse::<Rate>().is_ok();
            return Err(unclear(readable.then_some(squeezed)));
        }
        let whole = if window.starts_with(|char: char| char.is_ascii_digit()) {
            window
        } else {
            &format!("1{window}")
        };
        let millis = match millis(whole) {
            Ok(millis) if millis <= WINDOW_MILLIS_MAX => millis,
            Ok(_) | Err(Unread::OutOfRange) => {
                return Err(UnitError::new("a window from 1ms to 7d", text));
            }
            Err(Unread::Unclear(likely)) => {
                return Err(unclear(likely.map(|window| format!("{limit}/{window}"))));
            }
        };
        let limit: Option<NonZeroU32> =
            limit.parse().ok().filter(|limit: &NonZeroU32| LIMITS.contains(&limit.get()));
        let limit = limit.ok_or_else(|| UnitError::limit(text))?;
        Ok(Rate { limit, window: Duration::from_millis(millis) })
    }
}

/// A rate as a sentence: `at most 20 in any 10s`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} in any {}", self.limit, Spoken(self.window))
    }
}

/// A duration or a rate that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found}{hint}")]
pub struct UnitError {
    expected: String,
    found: String,
    hint: String,
}

impl UnitError {
    fn new(expected: impl Into<String>, found: &str) -> Self {
        UnitError {
            expected: expected.into(),
            found: Quoted(found).to_string(),
            hint: String::new(),
        }
    }

    fn hint(mut self, likely: Option<String>) -> Self {
        self.hint =
            likely.map(|likely| format!(", did you mean {}?", Quoted(&likely))).unwrap_or_default();
        self
    }

    /// A limit of zero is said apart: some read it as "no limit", some as "nothing passes" (C28).
    fn limit(text: &str) -> Self {
        let mut error =
            UnitError::new(format!("a limit from {} to {}", LIMITS.start(), LIMITS.end()), text);
        if text.split('/').next().is_some_and(|limit| limit.bytes().all(|digit| digit == b'0')) {
            error.hint = "; to refuse every request write always = true and block = {}".to_owned();
        }
        error
    }

    /// The same error about what stands in the file, where that is no text.
    pub(crate) fn found(mut self, found: impl fmt::Display) -> Self {
        self.found = found.to_string();
        self
    }
}

/// Why a text is no duration.
enum Unread {
    OutOfRange,
    /// What was likely meant.
    Unclear(Option<String>),
}

/// A whole number and its unit, in milliseconds; never zero.
fn millis(text: &str) -> Result<u64, Unread> {
    let unit_at = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if number.is_empty() {
        return Err(Unread::Unclear(None));
    }
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(Unread::Unclear(likely_unit(unit).map(|likely| format!("{number}{likely}"))));
    };
    let millis = number.parse().ok().and_then(|number: u64| number.checked_mul(*factor));
    millis.filter(|millis| *millis > 0).ok_or(Unread::OutOfRange)
}

/// The unit that a misspelt one was meant to be: seconds where there is none, else by its long name.
fn likely_unit(unit: &str) -> Option<&'static str> {
    let unit = unit.trim().to_ascii_lowercase();
    match unit.as_str() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => Some("s"),
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => Some("ms"),
        "m" | "min" | "mins" | "minute" | "minutes" => Some("m"),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some("h"),
        "d" | "day" | "days" => Some("d"),
        _ => None,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_print_as_they_are_written() {
        for (millis, expected) in [
            (1, "1ms"),
            (1_500, "1500ms"),
            (1_000, "1s"),
            (60_000, "1m"),
            (90_000, "90s"),
            (3_600_000, "1h"),
            (129_600_000, "36h"),
            (604_800_000, "7d"),
            (0, "0s"),
        ] {
            assert_eq!(Spoken(Duration::from_millis(millis)).to_string(), expected);
        }
        assert_eq!(
            Spoken(Duration::from_nanos(1)).to_string(),
            "1ms",
            "a wait never reads as none"
        );
        assert_eq!(Spoken(Duration::MAX).to_string(), "18446744073709551616s", "rounded up");
    }

    #[test]
    fn a_rate_reads_as_a_sentence() {
        // C24, C27: what 20/10s means is said in words.
        for (text, expected) in [
            ("20/10s", "at most 20 in any 10s"),
            ("20/s", "at most 20 in any 1s"),
            ("6/60s", "at most 6 in any 1m"),
            ("7/1500ms", "at most 7 in any 1500ms"),
            ("1/7d", "at most 1 in any 7d"),
            ("10000000/ms", "at most 10000000 in any 1ms"),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), expected);
        }
    }

    #[test]
    fn a_duration_that_cannot_be_read_says_what_was_meant() {
        for (text, expected) in [
            ("15", r#"expected a duration such as "15m", found "15", did you mean "15s"?"#),
            ("15min", r#"expected a duration such as "15m", found "15min", did you mean "15m"?"#),
            (
                "2 Hours",
                r#"expected a duration such as "15m", found "2 Hours", did you mean "2h"?"#,
            ),
            ("1h30m", r#"expected a duration such as "15m", found "1h30m""#),
            ("1.5h", r#"expected a duration such as "15m", found "1.5h""#),
            ("-5m", r#"expected a duration such as "15m", found "-5m""#),
            ("", r#"expected a duration such as "15m", found """#),
            ("0s", r#"expected a duration from 1ms to 3650d, found "0s""#),
            ("3651d", r#"expected a duration from 1ms to 3650d, found "3651d""#),
            (
                "99999999999999999999d",
                r#"expected a duration from 1ms to 3650d, found "99999999999999999999d""#,
            ),
        ] {
            assert_eq!(text.parse::<Spoken>().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_rate_that_cannot_be_read_says_what_was_meant() {
        for (text, expected) in [
            ("10", r#"expected a rate such as "10/1m", found "10", did you mean "10/1m"?"#),
            ("10/60", r#"expected a rate such as "10/1m", found "10/60", did you mean "10/60s"?"#),
            ("10/min", r#"expected a rate such as "10/1m", found "10/min", did you mean "10/1m"?"#),
            (
                "10 / 1m",
                r#"expected a rate such as "10/1m", found "10 / 1m", did you mean "10/1m"?"#,
            ),
            ("+10/1m", r#"expected a rate such as "10/1m", found "+10/1m""#),
            ("10/week", r#"expected a rate such as "10/1m", found "10/week""#),
            ("/1m", r#"expected a rate such as "10/1m", found "/1m""#),
            ("1/2/3", r#"expected a rate such as "10/1m", found "1/2/3""#),
            ("10/0s", r#"expected a window from 1ms to 7d, found "10/0s""#),
            ("10/8d", r#"expected a window from 1ms to 7d, found "10/8d""#),
            ("10000001/1m", r#"expected a limit from 1 to 10000000, found "10000001/1m""#),
            ("99999999999/1m", r#"expected a limit from 1 to 10000000, found "99999999999/1m""#),
            (
                "0/1m",
                r#"expected a limit from 1 to 10000000, found "0/1m"; to refuse every request write always = true and block = {}"#,
            ),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap_err().to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn a_duration_is_read_back_as_it_was_printed(millis in 1..=DURATION_MILLIS_MAX, unit in 0..UNITS.len()) {
            let unit = UNITS[unit].1;
            let millis = millis.next_multiple_of(unit).min(DURATION_MILLIS_MAX);
            let duration = Spoken(Duration::from_millis(millis));
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn a_rate_is_read_back_as_it_was_printed(limit in LIMITS, millis in 1..=WINDOW_MILLIS_MAX, unit in 0..UNITS.len()) {
            let millis = millis.next_multiple_of(UNITS[unit].1).min(WINDOW_MILLIS_MAX);
            let rate = Rate { limit: NonZeroU32::new(limit).unwrap(), window: Duration::from_millis(millis) };
            let text = format!("{limit}/{}", Spoken(rate.window));
            prop_assert_eq!(text.parse(), Ok(rate));
        }

        #[test]
        fn no_text_panics(text in any::<String>(), near in "[0-9]{0,22}[/ ]?[0-9]{0,22} ?[a-zA-Zµ]{0,3}") {
            for text in [text, near] {
                let _ = (text.parse::<Rate>(), text.parse::<Spoken>());
            }
        }
    }
}
