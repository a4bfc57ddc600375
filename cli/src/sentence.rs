//! A rule said as a sentence, with the rate it sustains.

use std::fmt::Write as _;

use hotgate_rules::{
    Action, Block, Condition, Count, MissingKey, Mode, Pace, Pattern, Period, Rate, Rule, Spoken,
    StatusClass, Trigger,
};
use jiff::Timestamp;

/// `NAME: …`, the sentence after the rule's name.
pub(crate) fn named(rule: &Rule) -> String {
    format!("{}: {}", rule.name, of(rule))
}

/// Such as `POST /login, by client: more than 10 responses with 401 or 403 in any 1m (sustained: 10
/// a minute) block for 15m with 403`.
pub(crate) fn of(rule: &Rule) -> String {
    let mut text = watched(rule);
    text.push_str(&limit(rule));
    if let Some(respond) = &rule.respond {
        text.push_str("; refusals are answered by its own");
        if let Some(body) = &respond.body_file {
            let _ = write!(text, " {}", body.display());
        }
    }
    if rule.fields {
        text.push_str("; admitted answers tell what is left");
    }
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
    if rule.needs_inner_door() {
        text.push_str("; at the inner door, if there is one");
    }
    text.push_str(&period(rule.period));
    match rule.mode {
        Mode::Enforce => {}
        Mode::Observe if rule.action.refuses() => text.push_str(" (observes: nobody is refused)"),
        Mode::Observe => text.push_str(" (observes: nothing is done)"),
        Mode::Off => text.push_str(" (off)"),
    }
    text
}

/// Which requests, and by which key: what stands before the limit.
fn watched(rule: &Rule) -> String {
    let mut text = match &rule.patterns {
        None => "every request".to_owned(),
        Some(patterns) if patterns.is_empty() => "what handlers check".to_owned(),
        Some(patterns) => list(patterns.iter().map(Pattern::to_string), "and"),
    };
    if !rule.except.is_empty() {
        let _ = write!(text, " except {}", list(rule.except.iter().map(Pattern::to_string), "and"));
    }
    if !rule.when.is_empty() {
        let _ = write!(text, " when {}", when(&rule.when));
    }
    if rule.key.is_empty() {
        text.push_str(", as one budget: ");
    } else {
        let _ = write!(text, ", by {}: ", rule.key);
    }
    text
}

/// `x:plan is free or trial and host is shop.example`.
pub(crate) fn when(conditions: &[Condition]) -> String {
    list(conditions.iter().map(Condition::to_string), "and")
}

/// `; from … until …`, or nothing.
fn period(period: Period) -> String {
    let mut text = String::new();
    for (word, seconds) in [("from", period.from), ("until", period.until)] {
        if let Some(seconds) = seconds {
            let separator = if text.is_empty() { ";" } else { "" };
            let _ = write!(text, "{separator} {word} {}", rfc3339(seconds));
        }
    }
    text
}

/// Seconds since the unix epoch, such as `2027-01-01T00:00:00Z`.
pub(crate) fn rfc3339(unix_seconds: i64) -> String {
    Timestamp::from_second(unix_seconds)
        .map_or_else(|_| format!("{unix_seconds} s"), |time| time.to_string())
}

/// What the whole file's mode means, where it is not in force.
pub(crate) fn file_mode(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Enforce => None,
        Mode::Observe => Some("mode = \"observe\": every rule counts, none refuses"),
        Mode::Off => Some("mode = \"off\": no rule is evaluated"),
    }
}

fn limit(rule: &Rule) -> String {
    let rate = match rule.trigger {
        Trigger::Always => return format!("every one {}", done_at_once(rule)),
        Trigger::Over(rate) => rate,
    };
    let (n, window, sustained) = (rate.limit, Spoken(rate.window), sustained(rate));
    let span = format!("in any {window} (sustained: {sustained})");
    let counted = match &rule.count {
        Count::Requests => format!("more than {n} {span}"),
        Count::Responses { statuses, .. } => {
            let statuses = list(statuses.iter().map(status_class), "or");
            format!("{n} responses with {statuses} {span}")
        }
    };
    match (&rule.action, &rule.count) {
        (Action::Throttle(None), Count::Requests) => {
            format!("at most {n} admitted {span}, the rest {}", status(rule, 429))
        }
        (Action::Throttle(None), Count::Responses { statuses, .. }) => {
            let statuses = list(statuses.iter().map(status_class), "or");
            let status = status(rule, 429);
            format!("while {n} responses with {statuses} stand {span}, {status}")
        }
        (action, _) => format!("{counted} {}", done(rule, action)),
    }
}

/// What an action does to a key that is hot.
pub(crate) fn done(rule: &Rule, action: &Action) -> String {
    match action {
        Action::Throttle(None) => format!("are refused with {}", status(rule, 429)),
        Action::Throttle(Some(pace)) => {
            let Pace { rate, burst } = pace;
            let (sustained, status) = (sustained(*rate), status(rule, 429));
            format!("slow the key to {sustained}, {burst} at once, the rest {status}")
        }
        Action::Block(block) => blocks(rule, block),
        Action::Tag(header) => format!("mark the key's requests with {header}"),
        Action::Handler(name) => format!("have the handler {name} answer"),
    }
}

/// What is done to every request, by `always`.
fn done_at_once(rule: &Rule) -> String {
    match &rule.action {
        Action::Throttle(_) => format!("is refused with {}", status(rule, 429)),
        Action::Block(block) => format!("is refused with {}", status(rule, block.status.as_u16())),
        Action::Tag(header) => format!("is marked with {header}"),
        Action::Handler(name) => format!("is answered by the handler {name}"),
    }
}

/// The status of the rule's refusals: its own answer's, or the standard one.
fn status(rule: &Rule, standard: u16) -> u16 {
    let own = rule.respond.as_ref().and_then(|respond| respond.status);
    own.map_or(standard, |status| status.as_u16())
}

fn blocks(rule: &Rule, block: &Block) -> String {
    let status = status(rule, block.status.as_u16());
    let mut text = format!("block for {} with {status}", Spoken(block.lasts));
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
