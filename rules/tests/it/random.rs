//! The checks, on texts of pieces that mean something and on any others.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    path::Path,
};

use proptest::prelude::*;

use crate::checks;

/// What stands in headers, targets, patterns and keys.
const PIECES: [&str; 66] = [
    "x-forwarded-for",
    "forwarded",
    "cf-connecting-ip",
    "peer",
    "unix",
    "client",
    "client/24",
    "bearer",
    "header:x-api-key",
    "cookie:id",
    "query:q",
    "param:id",
    "path",
    "route",
    "method",
    "host",
    "agent",
    "user",
    "x:plan",
    "|",
    "203.0.113.9",
    "10.0.0.1",
    "10.0.0.0/8",
    "2001:db8::9",
    "::ffff:10.0.0.2",
    "[2001:db8::9]",
    ":443",
    "%eth0",
    "for=",
    "For=\"",
    "by=",
    ";",
    "\"",
    "\\",
    "unknown",
    "_hidden",
    "/",
    "//",
    "/a",
    "/{id}",
    "/{*rest}",
    "/*",
    "{{",
    "}}",
    "GET ",
    "POST ",
    ".",
    "..",
    "%2e",
    "%2F",
    "%61",
    "%",
    "%zz",
    "é",
    "?q=1&q=2",
    "q=",
    "&",
    "+",
    "=",
    ",",
    "#",
    "<missing>",
    "authorization: ",
    "Bearer ",
    "cookie: id=7; ",
    "x-said: ",
];

/// Keeps a text as a seed for a fuzz target, where `HOTGATE_SEEDS` says that and where to.
fn seed(target: &str, text: &str) {
    if let Some(folder) = std::env::var_os("HOTGATE_SEEDS") {
        let name = BuildHasherDefault::<DefaultHasher>::default().hash_one(text);
        let file = Path::new(&folder).join(target).join(format!("{name:016x}"));
        std::fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        12 => prop::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => "\\PC{0,3}",
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn text(first: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (first, prop::collection::vec(pieces(), 0..7)).prop_map(|(first, mut lines)| {
        lines.insert(0, first);
        lines.join("\n")
    })
}

/// A source, a peer and proxies, as they mostly are.
fn connection() -> impl Strategy<Value = String> {
    let source =
        prop::sample::select(&["x-forwarded-for", "forwarded", "cf-connecting-ip", "peer"][..]);
    let peer =
        prop::sample::select(&["10.0.0.1", "unix", "203.0.113.7", "::ffff:10.0.0.2", "none"][..]);
    let trusted =
        prop::sample::select(&["10.0.0.0/8", "10.0.0.0/8, unix, 2001:db8::/32", "0.0.0.0/0"][..]);
    (source, peer, trusted)
        .prop_map(|(source, peer, trusted)| format!("{source}\n{peer}\n{trusted}"))
}

fn path() -> impl Strategy<Value = String> {
    "/(\\PC|[ab./%]|%[0-9a-fA-F]{2}|\\{id\\}){0,20}"
}

/// Keys that a rule can have.
fn parts() -> impl Strategy<Value = String> {
    let kinds = vec![
        "client",
        "client/24",
        "bearer",
        "header:x-api-key",
        "cookie:id",
        "query:q",
        "param:id",
        "path",
        "route",
        "method",
        "host",
        "agent",
        "user",
        "x:plan",
        "user|client",
        "query:q|path",
    ];
    prop::collection::vec(prop::sample::select(kinds), 0..4).prop_map(|kinds| kinds.join(","))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2_000)))]

    #[test]
    fn a_client_is_the_peer_or_a_hop_and_nothing_further_left_counts(
        text in prop_oneof![4 => text(connection()), 1 => text(pieces())],
    ) {
        seed("client", &text);
        checks::client(text.as_bytes());
    }

    #[test]
    fn all_patterns_together_match_as_each_alone(text in text(prop_oneof![path(), pieces()])) {
        seed("paths", &text);
        checks::paths(&text);
    }

    #[test]
    fn a_printed_key_is_read_back(
        text in prop_oneof![4 => text((parts(), path(), pieces()).prop_map(|(parts, path, query)| {
            format!("{parts}\n{path}?{query}")
        })), 1 => text(pieces())],
    ) {
        seed("keys", &text);
        checks::keys(text.as_bytes());
    }

    #[test]
    fn a_rule_file_is_read_in_one_way(
        parts in parts(), pattern in path(), more in pieces(), at in any::<prop::sample::Index>(),
    ) {
        let file = format!(
            "app = \"a\"\n[[rule]]\nname = \"r\"\nmatch = '{pattern}'\nkey = [{}]\nmissing_key = \"skip\"\n\
             over = \"5/1s\"\nthrottle = {{ pace = \"1/1s\" }}\nwhen = {{ path = \"/a*\" }}\n",
            parts.split(',').map(|part| format!("{part:?}")).collect::<Vec<_>>().join(",")
        );
        seed("rule_file", &file);
        checks::rule_file(&file);
        let at = at.index(file.chars().count());
        let at = file.char_indices().nth(at).map_or(0, |(at, _)| at);
        checks::rule_file(&format!("{}{more}{}", &file[..at], &file[at..]));
    }
}
