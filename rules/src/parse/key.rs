//! `key`: the parts a rule counts by.

use http::HeaderName;

use super::{
    reader::{Item, alternatives},
    report::{Read, Report, Reported},
};
use crate::{
    KeySpec, PartKind, Pattern,
    problem::{Quoted, nearest},
};

/// Parts a key can have, facts a `when` can ask for, and kinds a part can have. More says nothing that could be counted apart,
/// and every one costs each request a look.
pub(super) const PARTS_MAX: usize = 8;

/// The parts, as a file writes them.
const PARTS: [&str; 13] = [
    "client",
    "user",
    "bearer",
    "header:NAME",
    "cookie:NAME",
    "query:NAME",
    "param:NAME",
    "path",
    "route",
    "method",
    "host",
    "agent",
    "x:NAME",
];

/// What other limiters call them.
const ALIASES: [(&str, &str); 33] = [
    ("ip", "client"),
    ("addr", "client"),
    ("address", "client"),
    ("client_ip", "client"),
    ("remote_addr", "client"),
    ("remote_ip", "client"),
    ("peer", "client"),
    ("username", "user"),
    ("user_id", "user"),
    ("account", "user"),
    ("principal", "user"),
    ("sub", "user"),
    ("token", "bearer"),
    ("authorization", "bearer"),
    ("jwt", "bearer"),
    ("header", "header:NAME"),
    ("api_key", "header:NAME"),
    ("cookie", "cookie:NAME"),
    ("session", "cookie:NAME"),
    ("query", "query:NAME"),
    ("param", "param:NAME"),
    ("id", "param:NAME"),
    ("uri", "path"),
    ("url", "path"),
    ("template", "route"),
    ("endpoint", "route"),
    ("verb", "method"),
    ("domain", "host"),
    ("ua", "agent"),
    ("user_agent", "agent"),
    ("tenant", "x:NAME"),
    ("plan", "x:NAME"),
    ("extractor", "x:NAME"),
];

/// What a key is read with.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// `match`; an error where it could not be read.
    pub(super) patterns: Read<Option<&'a [Pattern]>>,
    /// The prefix that IPv6 clients are counted by, `ipv6_prefix` of `[client]`.
    pub(super) ipv6_prefix: u8,
    /// Whether the rule has `missing_key`.
    pub(super) says_missing_key: bool,
}

pub(super) fn read(
    item: Item<'_>,
    context: &Context<'_>,
    report: &mut Report<'_>,
) -> Read<KeySpec> {
    let items = item.list("[\"client\"]", report)?;
    if items.len() > PARTS_MAX {
        return Err(item.error(
            report,
            format_args!("expected at most {PARTS_MAX} parts, found {}", items.len()),
        ));
    }
    let read: Vec<_> = items.iter().map(|item| part(*item, context, report)).collect();
    let mut parts: Vec<Box<[PartKind]>> = Vec::with_capacity(read.len());
    for (item, part) in items.iter().zip(read.into_iter().collect::<Read<Vec<_>>>()?) {
        if parts.contains(&part) {
            return Err(item.error(report, format_args!("{item} stands in the key already")));
        }
        parts.push(part);
    }
    Ok(KeySpec(parts.into()))
}

fn part(item: Item<'_>, context: &Context<'_>, report: &mut Report<'_>) -> Read<Box<[PartKind]>> {
    let text = item.text("a part of the key such as \"client\"", report)?;
    let kinds = kinds(text, context).map_err(|message| item.error(report, message))?;
    if !context.says_missing_key && kinds.iter().all(may_be_left_out) {
        // Silence would mean that a client switches the rule off by leaving the part out (C12).
        let example = Quoted(&format!("{text}|client")).to_string();
        let message = format_args!(
            "key: a request may lack {item}, expected missing_key = \"skip\", \"share\" or \"reject\" in the rule, or a fallback such as {example}"
        );
        report.missing(item.at, message);
        return Err(Reported);
    }
    Ok(kinds)
}

/// The kinds of a part, first one first.
pub(super) fn kinds(part: &str, context: &Context<'_>) -> Result<Box<[PartKind]>, String> {
    let written: Vec<&str> = part.split('|').collect();
    if written.len() > PARTS_MAX {
        return Err(format!(
            "expected at most {PARTS_MAX} kinds in a part, found {}",
            written.len()
        ));
    }
    let mut kinds: Vec<PartKind> = Vec::with_capacity(written.len());
    for text in written {
        let kind = kind(text, context)?;
        if kinds.iter().any(|other| stands_for(other, &kind)) {
            return Err(format!("{} can never be reached in {}", Quoted(text), Quoted(part)));
        }
        kinds.push(kind);
    }
    Ok(kinds.into())
}

/// Whether a request that lacks `first` lacks `second` too.
fn stands_for(first: &PartKind, second: &PartKind) -> bool {
    first == second || matches!((first, second), (PartKind::Client { .. }, PartKind::Client { .. }))
}

fn may_be_left_out(kind: &PartKind) -> bool {
    matches!(
        kind,
        PartKind::Bearer | PartKind::Header(_) | PartKind::Cookie(_) | PartKind::Query(_)
    )
}

fn kind(text: &str, context: &Context<'_>) -> Result<PartKind, String> {
    if let Some((kind, name)) = text.split_once(':') {
        return named(kind, name, text, context);
    }
    Ok(match text {
        "client" => client(None, context.ipv6_prefix),
        "bearer" => PartKind::Bearer,
        "path" => PartKind::Path,
        "route" => PartKind::Route,
        "method" => PartKind::Method,
        "host" => PartKind::Host,
        "agent" => PartKind::Agent,
        "user" => PartKind::User,
        _ => match text.split_once('/') {
            Some(("client", prefix)) => {
                let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
                let prefix =
                    prefix.parse().ok().filter(|prefix| digits && (8..=128).contains(prefix));
                let expected =
                    || format!("expected client/N with N from 8 to 128, found {}", Quoted(text));
                client(Some(prefix.ok_or_else(expected)?), context.ipv6_prefix)
            }
            _ => return Err(unknown(text)),
        },
    })
}

/// `client/8` to `client/31` can only mean IPv4; from 32 on it means IPv6, and IPv4 stays whole.
fn client(written: Option<u8>, ipv6_prefix: u8) -> PartKind {
    match written {
        None => PartKind::Client { written, v4: 32, v6: ipv6_prefix },
        Some(prefix) if prefix < 32 => PartKind::Client { written, v4: prefix, v6: ipv6_prefix },
        Some(prefix) => PartKind::Client { written, v4: 32, v6: prefix },
    }
}

fn named(kind: &str, name: &str, text: &str, context: &Context<'_>) -> Result<PartKind, String> {
    // A printed key is KIND:NAME=VALUE, parted by commas; a name must not look like the rest of it.
    let plain = !name.is_empty()
        && !name.contains(|char: char| {
            char.is_whitespace() || char.is_control() || ",=%&#<;\"".contains(char)
        });
    let expected = |what: &str| format!("expected {kind}:NAME with {what}, found {}", Quoted(text));
    match kind {
        "header" => {
            let name =
                HeaderName::try_from(name).map_err(|_| expected("the name of a header field"))?;
            Ok(PartKind::Header(name))
        }
        "cookie" if plain => Ok(PartKind::Cookie(name.into())),
        "cookie" => Err(expected("the name of a cookie")),
        "query" if plain => Ok(PartKind::Query(name.into())),
        "query" => Err(expected("the name of a query parameter")),
        "param" => param(name, context),
        "x" if plain => Ok(PartKind::Extra(name.into())),
        "x" => Err(expected("the name of an extractor")),
        _ => Err(unknown(text)),
    }
}

fn param(name: &str, context: &Context<'_>) -> Result<PartKind, String> {
    let captured = || Quoted(&format!("{{{name}}}")).to_string();
    match context.patterns {
        Err(Reported) => Ok(PartKind::Param(name.into())),
        Ok(None | Some([])) => {
            Err(format!("param:{name} needs a match whose patterns capture {}", captured()))
        }
        Ok(Some(patterns)) => {
            let lacking = patterns.iter().filter(|pattern| !pattern.has_param(name));
            let lacking: Vec<String> =
                lacking.map(|pattern| Quoted(pattern.path()).to_string()).collect();
            if lacking.is_empty() {
                return Ok(PartKind::Param(name.into()));
            }
            Err(format!(
                "param:{name} needs {} in every pattern of match, not found in {}",
                captured(),
                lacking.join(", ")
            ))
        }
    }
}

fn unknown(text: &str) -> String {
    let word = text
        .split_once([':', '/'])
        .map_or(text, |(word, _)| word)
        .trim()
        .to_ascii_lowercase()
        .replace('-', "_");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == word).map(|(_, part)| *part);
    let known = || PARTS.into_iter().find(|part| part.split(':').next() == Some(&word));
    let near =
        || nearest(&word, PARTS.into_iter().map(|part| part.split(':').next().unwrap_or(part)));
    let full = |word: &str| PARTS.into_iter().find(|part| part.split(':').next() == Some(word));
    match alias.or_else(known).or_else(|| near().and_then(full)) {
        Some(part) => format!("unknown part {}, did you mean {}?", Quoted(text), Quoted(part)),
        None => format!("unknown part {}, expected {}", Quoted(text), alternatives(&PARTS)),
    }
}
