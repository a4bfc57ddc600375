//! What is allowed but said to be odd.

use http::Method;
use proptest::prelude::*;

use super::rule;
use crate::{Pattern, RequestPath, RuleSet, parse::warnings::covers};

/// The warnings about a file, one a line.
fn warnings(text: &str) -> String {
    let set: RuleSet = text.parse().unwrap_or_else(|problems| panic!("{problems}\nin\n{text}"));
    set.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// What is odd about a rule of these lines, which stand from line 3 on; hashes are kept the same.
fn in_rule(lines: &str, expected: &str) {
    let text = format!("{}\n[privacy]\nsecret_file = \"s\"\n", rule(lines));
    assert_eq!(warnings(&text), expected, "in\n{text}");
}

#[test]
fn a_plain_rule_is_not_warned_of() {
    in_rule(
        "match = \"POST /login\"\nexcept = \"/login/{x}\"\nkey = [\"client/48\", \"route\", \"method\", \"host\"]",
        "",
    );
}

#[test]
fn a_key_that_a_client_varies_at_will_is_said() {
    // C15.
    in_rule(
        "key = [\"client\", \"agent\"]",
        "3:7: key: a client can vary agent at will and gets a fresh count each time",
    );
    in_rule(
        "key = [\"header:x-id|client\"]",
        "3:7: key: a client can vary header:x-id at will and gets a fresh count each time",
    );
    in_rule(
        "key = [\"bearer|client\"]",
        "3:7: key: a client can vary bearer at will and gets a fresh count each time",
    );
    in_rule(
        "key = [\"query:q\", \"cookie:c\"]\nmissing_key = \"share\"",
        "3:7: key: a client can vary query:q at will and gets a fresh count each time\n\
         3:7: key: a client can vary cookie:c at will and gets a fresh count each time",
    );
}

#[test]
fn a_rule_for_handlers_to_check_takes_what_handlers_can_give() {
    in_rule("match = []\nkey = [\"client\"]", "");
    in_rule(
        "match = []\nkey = [\"client\", \"host\"]\ncount = { status = [401] }",
        "4:7: key: match = [] leaves the rule to gate.check, which takes client, user and x:NAME only, not host\n\
         5:9: count: match = [] leaves the rule to gate.check, which knows no responses",
    );
}

#[test]
fn a_path_in_the_key_is_answered_with_the_route() {
    // C20.
    in_rule(
        "key = [\"client\", \"path\"]",
        "3:7: key: a client can vary path at will and gets a fresh count each time, did you mean \"route\", the matched template?",
    );
    in_rule("key = [\"route|path\"]", "");
}

#[test]
fn a_client_narrower_than_its_prefix_is_said() {
    // C10.
    in_rule(
        "key = [\"client/128\"]",
        "3:7: key: client/128 is narrower than ipv6_prefix = 64: one IPv6 client can have as many keys as addresses",
    );
    in_rule("key = [\"client/64\"]", "");
}

#[test]
fn hashes_without_a_secret_file_are_said() {
    let expected = "3:7: key: a client can vary bearer at will and gets a fresh count each time\n\
         3:7: key: bearer is shown under a random secret of this process, expected secret_file in [privacy] for hashes that stay the same";
    assert_eq!(
        warnings(&rule("key = [\"bearer\"]\nmissing_key = \"skip\"\nshow_key = true")),
        expected
    );
    assert_eq!(warnings(&rule("key = [\"client\"]")), "");
}

#[test]
fn a_rule_that_can_never_match_is_said() {
    let said =
        |by: &str| format!("2:1: [[rule]] \"r\" can never match: {by} covers all it matches");
    for (lines, by) in [
        ("match = \"POST /a\"\nexcept = \"POST /a\"", Some("except")),
        ("match = [\"POST /a\", \"/b/{id}\"]\nexcept = [\"/a/\", \"/b/{*rest}\"]", Some("except")),
        ("match = \"HEAD /a\"\nexcept = \"GET /a\"", Some("except")),
        ("match = \"/a/{id}/b\"\nexcept = \"/a/{name}/{x}\"", Some("except")),
        ("except = \"/{*rest}\"", Some("except")),
        ("match = \"/%61\"\nexcept = \"/a\"", None),
        ("match = \"/a\"\nexcept = \"POST /a\"", None),
        ("match = \"/a/{*rest}\"\nexcept = \"/a/{x}\"", None),
        ("match = \"/\"\nexcept = \"/{x}\"", None),
        ("match = [\"/a\", \"/b\"]\nexcept = \"/a\"", None),
        ("except = \"GET /{*rest}\"", None),
    ] {
        in_rule(lines, &by.map(said).unwrap_or_default());
    }
    let exempt = |lines: &str| format!("{}\n[exempt]\nmatch = \"/healthz\"\n", rule(lines));
    assert_eq!(warnings(&exempt("match = \"GET /healthz\"")), said("[exempt]"));
    assert_eq!(
        warnings(&exempt("match = [\"/a\", \"/healthz\"]\nexcept = \"/a\"")),
        said("except with [exempt]")
    );
}

#[test]
fn an_allowed_proxy_is_said() {
    let file = |allowed: &str| {
        format!(
            "app = \"a\"\n[client]\nsource = \"forwarded\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n[[allow]]\nclients = [\"{allowed}\"]\n"
        )
    };
    for (allowed, expected) in [
        ("10.1.0.0/16", true),
        ("0.0.0.0/0", true),
        ("10.0.0.1", true),
        ("11.0.0.0/8", false),
        ("::/0", false),
    ] {
        let said = format!(
            "6:12: clients: \"{allowed}\" covers the trusted proxy 10.0.0.0/8: whoever is seen with its address, for want of a better one, is allowed"
        );
        assert_eq!(warnings(&file(allowed)), if expected { said } else { String::new() });
    }
}

#[test]
fn a_source_that_is_nearly_a_known_one_is_said() {
    let text =
        "app = \"a\"\n[client]\nsource = \"x-forwarded-four\"\ntrusted_proxies = [\"::/0\"]\n";
    let expected = "3:10: source: \"x-forwarded-four\" is read as a field that holds one address, did you mean \"x-forwarded-for\"?\n\
                    4:20: trusted_proxies: \"::/0\" lets everybody choose the address they are counted by";
    assert_eq!(warnings(text), expected);
    let real = "app = \"a\"\n[client]\nsource = \"x-real-ip\"\ntrusted_proxies = [\"unix\"]\n";
    assert_eq!(warnings(real), "");
}

#[test]
fn absurd_blocks_are_said() {
    in_rule(
        "block = { for = \"31d\" }",
        "3:17: for: a block of \"31d\" is long, did you mean [[deny]]?",
    );
    in_rule("block = { for = \"30d\" }", "");
    in_rule(
        "block = { for = \"1d\", grow = 2, max = \"3650d\" }",
        "3:39: max: a block of \"3650d\" is long, did you mean [[deny]]?",
    );
    in_rule(
        "block = { for = \"15ms\" }",
        "3:17: for: a block of \"15ms\" is short, ms is milliseconds",
    );
    in_rule("block = { for = \"1s\" }", "");
    in_rule(
        "block = { for = \"1h\", max = \"2h\", forget = \"3h\" }",
        "3:23: max or forget in block does nothing without grow, expected grow of 2 or more",
    );
}

#[test]
fn a_rule_whose_facts_no_request_has_is_said() {
    let never =
        "2:1: [[rule]] \"r\" can never match: no request has all that match and when ask for";
    for (lines, is_never) in [
        ("match = \"POST /a\"\nwhen = { method = \"GET\" }", true),
        ("match = [\"POST /a\", \"GET /a\"]\nwhen = { method = [\"head\", \"PUT\"] }", false),
        ("match = [\"POST /a\", \"/a\"]\nwhen = { method = \"GET\" }", false),
        ("when = { \"header:X-A\" = \"1\", \"header:x-a\" = [\"2\", \"3*\"] }", true),
        ("when = { \"header:X-A\" = \"31\", \"header:x-a\" = [\"2\", \"3*\"] }", false),
        ("when = { client = \"10.0.0.0/8\", \"client/24\" = \"203.0.113.0/24\" }", true),
        ("when = { client = \"203.0.113.9\", \"client/24\" = \"203.0.113.0/24\" }", false),
        ("when = { host = \"a\", method = \"GET\" }", false),
    ] {
        in_rule(lines, if is_never { never } else { "" });
    }
    in_rule(
        "from = 2026-11-30T00:00:00Z\nuntil = 2026-11-30T01:00:00+01:00",
        "4:9: until: 2026-11-30T01:00:00+01:00 is not after from, so the rule is never on",
    );
}

#[test]
fn an_override_that_never_applies_is_said() {
    let last = |lines: &str, expected: &str| {
        in_rule(
            &format!("{lines}\n[[rule.override]]\nwhen = {{ host = \"abc\" }}\nmode = \"off\""),
            expected,
        );
    };
    let before = |when: &str| format!("[[rule.override]]\nwhen = {{ {when} }}\nover = \"20/1m\"");
    let covered =
        "10:1: [[rule.override]] never applies: the one on line 7 is for all that this one is for";
    last(&before("host = \"a*\""), covered);
    last(&before("host = [\"x\", \"ABC\"]"), covered);
    last(&before("host = \"ab\""), "");
    last(&before("host = \"*\", method = \"GET\""), "");
    last(
        "[[rule.override]]\nkey = [\"*\"]\nover = \"20/1m\"",
        "10:1: [[rule.override]] never applies: the one on line 7 goes by key, which comes first, and is for all that this one is for",
    );
    last("[[rule.override]]\nkey = [\"0.0.0.0/0\"]\nover = \"20/1m\"", "");
    last(
        "when = { host = [\"b\", \"c\"] }",
        "8:1: [[rule.override]] never applies: no request has all that it and the rule ask for",
    );
}

#[test]
fn a_field_that_tells_nothing_or_what_another_hides_is_said() {
    in_rule(
        "tag = { header = \"x-hot\" }\ndisclose = \"none\"\nfields = true",
        "4:12: disclose does nothing beside tag, which refuses nothing\n\
         5:10: fields tells clients of a quota that tag does not hold them to",
    );
    in_rule(
        "block = { for = \"1h\" }\nfields = true",
        "4:10: fields tells all clients the quota that disclose = \"none\" keeps from those it refuses",
    );
    in_rule("block = { for = \"1h\" }\ndisclose = \"full\"\nfields = true", "");
    in_rule(
        "respond = { body_file = \"sorry.html\" }",
        "3:25: body_file: clients guess what the body is, expected content_type beside it, such as \"text/html\"",
    );
}

#[test]
fn absurd_windows_and_paces_are_said() {
    in_rule(
        "over = \"10/15ms\"",
        "3:8: over: a window of \"10/15ms\" is short, ms is milliseconds",
    );
    in_rule("over = \"10/100ms\"", "");
    let faster =
        "4:12: throttle: a pace that is faster than over lets hot keys do more than others";
    in_rule("over = \"60/1m\"\nthrottle = { pace = \"61/1m\" }", faster);
    in_rule("over = \"60/1m\"\nthrottle = { pace = \"2/s\" }", faster);
    in_rule("over = \"60/1m\"\nthrottle = { pace = \"1/s\" }", "");
}

#[test]
fn a_field_that_tags_strip_is_not_looked_at() {
    let tags = |lines: &str| {
        format!(
            "{}[[rule]]\nname = \"hot\"\nkey = [\"client\"]\nover = \"10/1m\"\ntag = {{ header = \"x-hot\" }}\n",
            rule(lines)
        )
    };
    assert_eq!(
        warnings(&tags("when = { \"header:X-Hot\" = \"*\" }")),
        "2:1: [[rule]] \"r\" looks at header:x-hot, which is stripped from each request, as rule \"hot\" tags with it"
    );
    // The inner door sees what the outer one has set.
    assert_eq!(warnings(&tags("when = { \"header:X-Hot\" = \"*\", user = \"*\" }")), "");
    let client = "[client]\nsource = \"x-hot\"\ntrusted_proxies = [\"unix\"]\n";
    assert_eq!(
        crate::parse::tests::errors(&(tags("note = \"n\"") + client)),
        "12:7: tag: \"x-hot\" is the source of [client], and a tag's field is stripped from each request"
    );
}

fn path() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(&["", "a", "b", "%61", ".", "..", "{x}", "{y}"][..]);
    prop::collection::vec(segment, 0..4).prop_map(|segments| format!("/{}", segments.join("/")))
}

/// A path, some with a method before it and a catch-all behind it.
fn pattern() -> impl Strategy<Value = Option<Pattern>> {
    let method = prop::sample::select(&["", "GET ", "HEAD "][..]);
    let rest = prop::sample::select(&["", "/{*rest}"][..]);
    (method, path(), rest).prop_map(|(method, path, rest)| {
        let path = if rest.is_empty() { &path } else { path.trim_end_matches('/') };
        Pattern::read(&format!("{method}{path}{rest}")).ok()
    })
}

proptest! {
    #[test]
    fn a_covered_pattern_matches_nothing_beyond(wide in pattern(), narrow in pattern(), path in path(), head in any::<bool>()) {
        if let (Some(wide), Some(narrow)) = (wide, narrow)
            && covers(&wide, &narrow)
        {
            let method = if head { Method::HEAD } else { Method::GET };
            let path = RequestPath::new(&path);
            prop_assert!(!narrow.matches(Some(&method), &path) || wide.matches(Some(&method), &path));
        }
    }
}
