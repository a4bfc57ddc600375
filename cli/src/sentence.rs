//! A rule said as a sentence, with the rate it sustains.

use std::fmt::Write as _;

use hotgate_rules::{
    Action, Block, Count, MissingKey, Mode, Pattern, Rate, Rule, Spoken, StatusClass, Trigger,
};

/// `NAME: …`, the sentence after the rule's name.
pub(crate) fn named(rule: &Rule) -> String {
    format!("{}: {}", rule.name, of(rule))
}

/// Such as `POST /login, by client: more than 10 responses with 401 or 403 in any 1m (sustained: 10
/// a minute) block for 15m with 403`.
pub(crate) fn of(rule: &Rule) -> String {
    let mut text = match &rule.patterns {
        None => "every request".to_owned(),
        Some(patterns) if patterns.is_empty() => "what handlers check".to_owned(),
        Some(patterns) => list(patterns.iter().map(Pattern::to_string), "and"),
    };
    if !rule.except.is_empty() {
        let _ = write!(text, " except {}", list(rule.except.iter().map(Pattern::to_string), "and"));
    }
    if rule.key.is_empty() {
        text.push_str(", as one budget: ");
    } else {
        let _ = write!(text, ", by {}: ", rule.key);
    }
    text.push_str(&limit(rule));
    match rule.missing_key {
        MissingKey::Skip => {}
        MissingKey::Share => text.push_str("; requests without the key share one"),
        MissingKey::Reject => text.push_str("; requests without the key are refused"),
    }
    match rule.overrides.len() {
        0 => {}
        1 => text.push_str("; 1 override"),
        many => drop(write!(text, "; {many} overrides")),
    }
    match rule.mode {
        Mode::Enforce => {}
        Mode::Observe => text.push_str(" (observes: nobody is refused)"),
        Mode::Off => text.push_str(" (off)"),
    }
    text
}

/// What the whole file's mode means, where it is not in force.
pub(crate) fn file_mode(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Enforce => None,
        Mode::Observe => Some("mode = \"observe\": every rule counts, none refuses"),
        Mode::Off => Some("mode = \"off\": no rule is evaluated"),
    }
}

/// The mode as a rule file writes it.
pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
        Mode::Off => "off",
    }
}

fn limit(rule: &Rule) -> String {
    let rate = match rule.trigger {
        Trigger::Always => return format!("every one is refused with {}", status(&rule.action)),
        Trigger::Over(rate) => rate,
    };
    let (n, window, sustained) = (rate.limit, Spoken(rate.window), sustained(rate));
    let span = format!("in any {window} (sustained: {sustained})");
    match (&rule.count, &rule.action) {
        (Count::Requests, Action::Throttle(_)) => {
            format!("at most {n} admitted {span}, the rest 429")
        }
        (Count::Requests, Action::Block(block)) => {
            format!("more than {n} {span} {}", blocks(block))
        }
        (Count::Responses { statuses, .. }, Action::Throttle(_)) => {
            let statuses = list(statuses.iter().map(status_class), "or");
            format!("while {n} responses with {statuses} stand {span}, 429")
        }
        (Count::Responses { statuses, .. }, Action::Block(block)) => {
            let statuses = list(statuses.iter().map(status_class), "or");
            format!("{n} responses with {statuses} {span} {}", blocks(block))
        }
        (_, Action::Tag(_) | Action::Handler(_)) => format!("more than {n} {span} are hot"),
    }
}

fn status(action: &Action) -> u16 {
    match action {
        Action::Throttle(_) => 429,
        Action::Block(block) => block.status.as_u16(),
        Action::Tag(_) | Action::Handler(_) => 200,
    }
}

fn blocks(block: &Block) -> String {
    let mut text = format!("block for {} with {}", Spoken(block.lasts), block.status.as_u16());
    if block.grow.get() > 1 {
        let _ = write!(
            text,
            ", {} times longer at each repeat, up to {}",
            block.grow,
            Spoken(block.max)
        );
    }
    if block.extend {
        text.push_str(", extended by every attempt");
    }
    text
}

fn status_class(class: &StatusClass) -> String {
    match class {
        StatusClass::Code(code) => code.as_str().to_owned(),
        StatusClass::Hundred(digit) => format!("{digit}xx"),
        StatusClass::Cancelled => "cancelled".to_owned(),
        StatusClass::Error => "error".to_owned(),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: impl Iterator<Item = String>, last: &str) -> String {
    let items: Vec<String> = items.collect();
    match items.split_last() {
        Some((end, start)) if !start.is_empty() => format!("{} {last} {end}", start.join(", ")),
        _ => items.concat(),
    }
}

/// What rates are said in, longest first, in nanoseconds.
const UNITS: [(&str, u128); 4] = [
    ("a day", 86_400_000_000_000),
    ("an hour", 3_600_000_000_000),
    ("a minute", 60_000_000_000),
    ("a second", 1_000_000_000),
];

/// The rate that a client may keep up for ever, in the smallest unit that holds at least one, so
/// that "4,000 in 4,000 h" is not read as 4,000 a second: `2 a second`, `15 a minute`, `0.5 a day`.
pub(crate) fn sustained(rate: Rate) -> String {
    let in_unit = |unit: u128| {
        // Thousandths, rounded down: the rate is never said to be more than it is.
        u128::from(rate.limit.get()) * unit * 1000 / rate.window.as_nanos().max(1)
    };
    let (name, unit) =
        UNITS.iter().rev().find(|(_, unit)| in_unit(*unit) >= 1000).unwrap_or(&UNITS[0]);
    let thousandths = in_unit(*unit);
    let number = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    format!("{} {name}", number.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, time::Duration};

    use super::*;

    fn rate(limit: u32, window: Duration) -> Rate {
        Rate { limit: NonZeroU32::new(limit).unwrap(), window }
    }

    /// C24: nobody should find out after months that "4000" meant one in 66 minutes.
    #[test]
    fn the_sustained_rate_is_said_in_the_smallest_unit_that_holds_one() {
        let seconds = Duration::from_secs;
        let table = [
            (rate(20, seconds(10)), "2 a second"),
            (rate(1, seconds(4)), "15 a minute"),
            (rate(10, seconds(60)), "10 a minute"),
            (rate(1, seconds(4000)), "21.6 a day"),
            (rate(1, seconds(3600)), "1 an hour"),
            (rate(100, seconds(3)), "33.333 a second"),
            (rate(1, seconds(7 * 86_400)), "0.142 a day"),
            (rate(10_000_000, Duration::from_millis(1)), "10000000000 a second"),
        ];
        for (rate, expected) in table {
            assert_eq!(sustained(rate), expected, "{rate:?}");
        }
    }
}
