//! What is allowed but likely not meant.

use http::Method;

use super::{Around, reader::Fields, report::Report};
use crate::{KeySpec, PartKind, Pattern, Rule, problem::Quoted};

/// Warnings about one rule.
pub(super) fn of_rule(rule: &Rule, fields: &Fields<'_>, around: &Around<'_>, report: &mut Report<'_>) {
    if let Some(by) = covered_by(rule.patterns.as_deref(), &rule.except, around.exempt) {
        let message = format_args!("[[rule]] {} can never match: {by} covers all it matches", Quoted(&rule.name));
        report.warn(fields.at, message);
    }
    let at = fields.get("key").map_or(fields.at, |item| item.at);
    if let Some(client) = around.client {
        of_key(&rule.key, at, client.ipv6_prefix, report);
    }
    let hashed = rule.key.parts().flatten().find(|kind| kind.is_hashed(rule.show_key));
    if let (Some(kind), false) = (hashed, around.has_secret) {
        let message = format_args!(
            "key: {kind} is shown under a random secret of this process, expected secret_file in [privacy] for hashes that stay the same"
        );
        report.warn(at, message);
    }
}

fn of_key(key: &KeySpec, at: usize, ipv6_prefix: u8, report: &mut Report<'_>) {
    for kinds in key.parts() {
        for kind in kinds {
            match kind {
                // C15: works as written, but the count is worth little.
                PartKind::Agent | PartKind::Query(_) | PartKind::Header(_) | PartKind::Cookie(_) => {
                    let message = format_args!("key: a client can vary {kind} at will and gets a fresh count each time");
                    report.warn(at, message);
                }
                // C20: an id in the path makes one key of each.
                PartKind::Path if !kinds.contains(&PartKind::Route) => {
                    let message = "key: a client can vary path at will and gets a fresh count each time, did you mean \"route\", the matched template?";
                    report.warn(at, message);
                }
                PartKind::Client { written: Some(prefix), v6, .. } if *v6 > ipv6_prefix => {
                    let message = format_args!(
                        "key: client/{prefix} is narrower than ipv6_prefix = {ipv6_prefix}: one IPv6 client can have as many keys as addresses"
                    );
                    report.warn(at, message);
                }
                _ => {}
            }
        }
    }
}

/// What leaves a rule nothing to match.
fn covered_by(patterns: Option<&[Pattern]>, except: &[Pattern], exempt: &[Pattern]) -> Option<&'static str> {
    let by = |wide: &[Pattern]| match patterns {
        Some(patterns) => patterns.iter().all(|pattern| wide.iter().any(|wide| covers(wide, pattern))),
        None => wide.iter().any(|wide| wide.method.is_none() && is_catch_all(wide.path.trim_start_matches('/'))),
    };
    match (by(except), by(exempt)) {
        (true, _) => Some("except"),
        (false, true) => Some("[exempt]"),
        // Some by the one, some by the other.
        (false, false) if by(&[except, exempt].concat()) => Some("except with [exempt]"),
        (false, false) => None,
    }
}

/// Whether every request that `narrow` matches is matched by `wide`.
fn covers(wide: &Pattern, narrow: &Pattern) -> bool {
    let method = match (&wide.method, &narrow.method) {
        (None, _) => true,
        (Some(wide), Some(narrow)) => wide == narrow || (wide == Method::GET && narrow == Method::HEAD),
        (Some(_), None) => false,
    };
    let mut narrow = segments(&narrow.path);
    for segment in segments(&wide.path) {
        if is_catch_all(segment) {
            return method;
        }
        match narrow.next() {
            Some(other) if segment == other && !is_param(segment) => {}
            // A name captures what any one segment is, not what a catch-all is.
            Some(other) if is_param(segment) && !is_catch_all(other) => {}
            _ => return false,
        }
    }
    method && narrow.next().is_none()
}

/// The segments, without one trailing slash.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.strip_suffix('/').unwrap_or(path).split('/')
}

fn is_param(segment: &str) -> bool {
    segment.starts_with('{') && !segment.starts_with("{{")
}

fn is_catch_all(segment: &str) -> bool {
    segment.starts_with("{*")
}
