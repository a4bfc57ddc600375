//! A gate's answers, read for showing. What is missing in them is shown as nothing: the gate may be of
//! another version than this program.

use serde_json::Value;

/// A text without what a terminal would obey.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

/// The text at a place; empty for none.
pub(super) fn text(value: &Value, place: &str) -> String {
    value.pointer(place).and_then(Value::as_str).map(clean).unwrap_or_default()
}

/// The text at a place, if there is one.
pub(super) fn text_if_any(value: &Value, place: &str) -> Option<String> {
    value.pointer(place).and_then(Value::as_str).map(clean)
}

pub(super) fn number(value: &Value, place: &str) -> u64 {
    value.pointer(place).and_then(Value::as_u64).unwrap_or_default()
}

pub(super) fn flag(value: &Value, place: &str) -> bool {
    value.pointer(place).and_then(Value::as_bool).unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, place: &str) -> &'a [Value] {
    value.pointer(place).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A key; `key = []` is one key without a part.
pub(super) fn key(value: &Value) -> String {
    match text(value, "/key") {
        key if key.is_empty() => "(all)".to_owned(),
        key => key,
    }
}

/// `2026-12-01T09:30:00.250Z` as `2026-12-01 09:30:00`, which is UTC.
pub(super) fn date(value: &Value, place: &str) -> String {
    let text = text(value, place);
    match (text.get(..10), text.get(11..19)) {
        (Some(day), Some(time)) => format!("{day} {time}"),
        _ => text,
    }
}

/// Seconds as people say them: `45s`, `9m54s`, `2h05m`, `3d04h`.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

pub(super) fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        let cases = [(0, "0s"), (59, "59s"), (60, "1m00s"), (3_661, "1h01m"), (100_000, "1d03h")];
        for (seconds, expected) in cases {
            assert_eq!(span(seconds), expected);
        }
    }

    #[test]
    fn nothing_that_a_gate_says_moves_the_cursor() {
        let value = json!({ "note": "a\u{1b}[2Jb\r\nc" });
        assert_eq!(text(&value, "/note"), "a [2Jb  c");
        assert_eq!(text(&value, "/none"), "");
        assert_eq!(
            date(&json!({ "at": "2026-12-01T09:30:00.250Z" }), "/at"),
            "2026-12-01 09:30:00"
        );
        assert_eq!(date(&json!({ "at": "never" }), "/at"), "never");
    }
}
