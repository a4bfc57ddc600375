//! Whatever stands in a file, reading it ends in a rule set or in errors.

use proptest::prelude::*;

use super::errors;

/// A valid file with many of the fields, to be spoilt.
const VALID: &str = r#"app = "shop"
[client]
source = "forwarded"
trusted_proxies = ["10.0.0.0/8", "unix"]
[memory]
keys = 10
[exempt]
match = "/healthz"
[[allow]]
clients = ["2001:db8::/32"]
rules = ["r"]
until = 2027-01-01T00:00:00Z
[[rule]]
name = "r"
match = ["POST /a/{id}"]
key = ["client/24|bearer", "param:id"]
count = { status = [401, "5xx"], pending = 3 }
over = "10/1m"
block = { for = "15m", grow = 2, max = "1h" }
respond = { status = 503, content_type = "text/html", body_file = "b", headers = { x-a = "1" } }
[[rule.override]]
key = ["10.0.0.0/8", "a*"]
over = "20/1m"
block.for = "1h"
[[rule]]
name = "p"
when = { "x:plan" = ["free", "tri*"], client = "10.0.0.0/8", "user|host" = "*" }
key = ["user|x:tenant|client"]
over = "10/1m"
throttle = { pace = "2/1s", burst = 10 }
fields = true
from = 2026-01-01T00:00:00+01:00
until = 2027-01-01T00:00:00Z
override = [{ when = { method = "GET" }, throttle.burst = 3 }, { key = ["*"], exempt = true }]
[[rule]]
name = "t"
key = []
always = true
tag = { header = "x-hot" }
[[rule]]
name = "h"
key = ["route"]
over = "1/s"
handler = "maze"
"#;

/// Pieces that mean something in a rule file.
const PIECES: [&str; 44] = [
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "|",
    "/",
    ":",
    "*",
    "#",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "é",
    "\u{feff}",
    "0",
    "-1",
    "99999999999999999999",
    "1.5",
    "true",
    "::ffff:1.2.3.4/96",
    "1979-05-27",
    "client",
    "user",
    "x:plan",
    "when = { ",
    "throttle",
    "tag",
    "handler",
    "respond = { ",
    "override = [{ ",
    "10000000/1ms",
    "1/7d",
    "10000000",
    "2026-01-01T00:00:00Z",
    "header:x-hot",
    "[[rule.override]]\n",
];

/// Every problem stands inside the text.
fn check(text: &str) -> Result<(), TestCaseError> {
    if let Err(problems) = text.parse::<crate::RuleSet>() {
        prop_assert!(problems.iter().next().is_some(), "an error without a problem");
        let mut last = (0, 0);
        for problem in &problems {
            let place = (problem.line, problem.column);
            prop_assert!(place >= last, "{} stands after {:?}", problem, last);
            last = place;
            prop_assert!(problem.line <= text.split('\n').count(), "{}", problem);
            let line = text.split('\n').nth(problem.line - 1).unwrap_or_default();
            prop_assert!(
                (1..=line.chars().count() + 1).contains(&problem.column),
                "{} in {:?}",
                problem,
                line
            );
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn no_heap_of_pieces_panics(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        check(&pieces.concat())?;
    }

    #[test]
    fn no_spoilt_file_panics(
        spoils in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(&PIECES[..])), 1..4),
    ) {
        let mut text = VALID.to_owned();
        for (index, length, piece) in spoils {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let from = index.index(places.len());
            let to = (from + length).min(places.len() - 1);
            text.replace_range(places[from]..places[to], piece);
        }
        check(&text)?;
    }
}

#[test]
fn the_file_to_be_spoilt_is_valid() {
    assert_eq!(errors(VALID), "no error");
}
