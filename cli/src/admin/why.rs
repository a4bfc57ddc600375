//! `hotgate why`, for people.

use std::io::{self, Write};

use serde_json::Value;

use super::{
    shown::{date, flag, key, list, number, plural, span, text, text_if_any},
    status::{acts, write_lists},
    table::{Columns, sentence},
};

pub(super) fn write(why: &Value, width: Columns, out: &mut dyn Write) -> io::Result<()> {
    let mut is_first = true;
    if let Some(refusal) = why.pointer("/refusal").filter(|refusal| refusal.is_object()) {
        sentence("refused  ", &refused(refusal), width, out)?;
        is_first = false;
    }
    for rule in list(why, "/rules") {
        if !std::mem::take(&mut is_first) {
            writeln!(out)?;
        }
        write_rule(rule, width, out)?;
    }
    if !list(why, "/lists").is_empty() {
        if !is_first {
            writeln!(out)?;
        }
        write_lists(list(why, "/lists"), width, out)?;
    } else if list(why, "/rules").is_empty() && is_first {
        writeln!(out, "no rule and no list knows it")?;
    }
    Ok(())
}

fn refused(refusal: &Value) -> String {
    let cause = match &*text(refusal, "/cause") {
        "denied" => "its client was on a deny list",
        "quota" => "its quota was used up",
        "blocked" => "its key was blocked",
        "always" => "the rule refuses every request",
        "pending" => "too many of its key's requests were unanswered",
        "missing_key" => "it lacked a part of the rule's key",
        _ => "for another reason",
    };
    let rule = match text_if_any(refusal, "/rule") {
        Some(rule) => format!(" by rule {rule}"),
        None if text(refusal, "/cause") == "denied" => String::new(),
        None => " by a rule that has gone since".to_owned(),
    };
    let changed = flag(refusal, "/rules_changed");
    let changed = if changed { "; the rules have changed since" } else { "" };
    format!("at {} UTC{}: {cause}{changed}", date(refusal, "/at"), rule)
}

fn write_rule(rule: &Value, width: Columns, out: &mut dyn Write) -> io::Result<()> {
    let state = match &*text(rule, "/state") {
        "off" => "off",
        "exempt" => "exempt by an override",
        "blocked" => "blocked",
        "hot" => "hot",
        "full" => "at its limit",
        "counted" => "below its limit",
        _ => "nothing is known of it",
    };
    let mode = text(rule, "/mode");
    let mode = if mode == "enforce" { String::new() } else { format!(", mode {mode}") };
    let head = format!("{} ({}{mode}): {state}", text(rule, "/rule"), text(rule, "/action"));
    sentence("rule     ", &head, width, out)?;
    if !text(rule, "/key").is_empty() {
        sentence("key      ", &key(rule), width, out)?;
    }
    let full = rule.pointer("/full_seconds_left").and_then(Value::as_u64);
    let full = full.map(|left| format!("; room again in {}", span(left)));
    let count = format!(
        "{} of {} {} in any {}{}",
        number(rule, "/count"),
        number(rule, "/limit"),
        text(rule, "/counts"),
        text(rule, "/window"),
        full.unwrap_or_default()
    );
    sentence("count    ", &count, width, out)?;
    if let Some(verdict) = rule.pointer("/verdict").filter(|verdict| verdict.is_object()) {
        sentence("verdict  ", &verdict_text(verdict), width, out)?;
    }
    match text_if_any(rule, "/note") {
        Some(note) => sentence("note     ", &note, width, out),
        None => Ok(()),
    }
}

fn verdict_text(verdict: &Value) -> String {
    let by = if text(verdict, "/by") == "operator" { "an operator" } else { "the rule" };
    let tries = verdict["attempts"].as_u64();
    let tries = tries.map(|tries| format!(", {} in the last window", plural(tries, "attempt")));
    let repeat = number(verdict, "/repeat");
    let repeat = if repeat > 1 { format!(", block {repeat} in a row") } else { String::new() };
    format!(
        "by {by} since {} UTC, ends {} UTC (in {}){}{repeat}; {}",
        date(verdict, "/since"),
        date(verdict, "/until"),
        span(number(verdict, "/seconds_left")),
        tries.unwrap_or_default(),
        if acts(verdict) == "acts" { "in force" } else { "observed: nobody is refused" }
    )
}
