//! Whole rule files: what they are read as, what is wrong with them, what is odd.

mod actions;
mod errors;
mod facts;
mod random;
mod valid;
mod warnings;

use crate::{Rule, RuleSet};

/// A file of one rule: these lines from line 3 on, then whatever a rule needs and they lack.
fn rule(lines: &str) -> String {
    let own = lines.split("[[rule.override]]").next().unwrap_or_default();
    let has = |names: &[&str]| {
        let begins = |line: &str| {
            line.split([' ', '=', '.']).next().is_some_and(|name| names.contains(&name))
        };
        own.lines().any(begins)
    };
    let mut text = format!("app = \"shop\"\n[[rule]]\n{lines}\n");
    for (names, default) in [
        (&["name"][..], "name = \"r\"\n"),
        (&["key"], "key = [\"client\"]\n"),
        (&["over", "always", "inflight"], "over = \"10/1m\"\n"),
        (&["throttle", "block", "cache", "tag", "handler"], "throttle = {}\n"),
    ] {
        // Before the tables that belong to the rule.
        if !has(names) {
            let at = text.find("[[rule.override]]").unwrap_or(text.len());
            text.insert_str(at, default);
        }
    }
    text
}

/// All errors, one a line.
fn errors(text: &str) -> String {
    text.parse::<RuleSet>().map_or_else(|problems| problems.to_string(), |_| "no error".to_owned())
}

fn read(text: &str) -> RuleSet {
    text.parse().unwrap_or_else(|problems| panic!("{problems}\nin\n{text}"))
}

fn read_rule(lines: &str) -> Rule {
    read(&rule(lines)).rules()[0].clone()
}
