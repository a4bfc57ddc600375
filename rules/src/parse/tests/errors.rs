//! Bad files, and exactly what is said of them.

use super::{errors, rule};

/// What is wrong with a rule of these lines, which stand from line 3 on.
fn in_rule(lines: &str, expected: &str) {
    assert_eq!(errors(&rule(lines)), expected, "in\n{}", rule(lines));
}

fn in_file(text: &str, expected: &str) {
    assert_eq!(errors(text), expected, "in\n{text}");
}

#[test]
fn an_unknown_field_is_an_error_that_names_the_nearest() {
    // C57.
    in_rule(
        r#"requestheader = "x""#,
        r#"3:1: unknown field "requestheader" in [[rule]], expected name, match, except, when, key, count, over, always, block, throttle, tag, handler, respond, mode, missing_key, disclose, fields, from, until, show_key, note or override"#,
    );
    in_rule(r#"ovr = "10/1m""#, r#"3:1: unknown field "ovr" in [[rule]], did you mean "over"?"#);
    in_rule(r#"Match = "/""#, r#"3:1: unknown field "Match" in [[rule]], did you mean "match"?"#);
    in_rule(
        r#""" = 1"#,
        r#"3:1: unknown field "" in [[rule]], expected name, match, except, when, key, count, over, always, block, throttle, tag, handler, respond, mode, missing_key, disclose, fields, from, until, show_key, note or override"#,
    );
    in_file(
        r#"app = "a"
[clients]
source = "peer"
"#,
        r#"2:2: unknown field "clients" in the file, did you mean "client"?"#,
    );
    in_file(
        r#"app = "a"
[[rules]]
"#,
        r#"2:3: unknown field "rules" in the file, did you mean "rule"?"#,
    );
    in_file(
        r#"app = "a"
[client]
sources = "peer"
"#,
        r#"3:1: unknown field "sources" in [client], did you mean "source"?"#,
    );
    in_file(
        r#"app = "a"
[memory]
keys_max = 1
"#,
        r#"3:1: unknown field "keys_max" in [memory], expected keys or verdicts"#,
    );
    in_file(
        r#"app = "a"
[[deny]]
clients = ["10.0.0.1"]
rules = ["r"]
"#,
        r#"4:1: unknown field "rules" in [[deny]], expected clients, until or note"#,
    );
    in_rule(
        "throttle = { rate = 1 }",
        r#"3:14: unknown field "rate" in throttle, expected pace or burst"#,
    );
    in_rule(
        r#"block = { for = "1m", until = "1h" }"#,
        r#"3:23: unknown field "until" in block, expected for, status, extend, grow, max or forget"#,
    );
    in_rule(
        "count = { statuses = [401] }",
        r#"3:9: count needs status, such as status = [401, 403]
3:11: unknown field "statuses" in count, did you mean "status"?"#,
    );
}

#[test]
fn what_a_file_and_a_rule_need_is_said_with_an_example() {
    in_file("", r#"1:1: the file needs app, such as app = "shop""#);
    in_file(
        r#"app = "a"
[[rule]]
"#,
        r#"2:1: [[rule]] needs name, such as name = "login"
2:1: [[rule]] needs key, such as key = ["client"]
2:1: [[rule]] needs over, such as over = "10/1m", or always = true
2:1: [[rule]] needs an action, such as throttle = {} or block = { for = "15m" }"#,
    );
    in_file(
        r#"app = "a"
[privacy]
[exempt]
"#,
        r#"2:1: [privacy] needs secret_file, such as secret_file = "/run/secrets/hotgate"
3:1: [exempt] needs match, such as match = ["/healthz"]"#,
    );
    in_file(
        r#"app = "a"
[[allow]]
"#,
        r#"2:1: [[allow]] needs clients, such as clients = ["198.51.100.0/24"]"#,
    );
    in_rule("block = {}", r#"3:9: block needs for, such as for = "15m""#);
    in_rule("count = {}", "3:9: count needs status, such as status = [401, 403]");
    in_file(
        r#"app = "a"
[client]
source = "x-real-ip"
"#,
        r#"2:1: [client] needs trusted_proxies, such as trusted_proxies = ["10.0.0.0/8"]"#,
    );
}

#[test]
fn a_value_of_another_type_says_what_was_expected() {
    in_file(
        r#"app = 3
mode = 1
client = "peer"
rule = 1
allow = { clients = [] }
"#,
        r#"1:7: app: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found 3
2:8: mode: expected "enforce", "observe" or "off", found 1
3:10: client: expected a table, found "peer"
4:8: rule: expected a list of tables, each under [[rule]], found 1
5:9: allow: expected a list of tables, each under [[allow]], found a table"#,
    );
    in_rule(
        r#"note = ["x"]
show_key = "yes"
mode = true
name = 1979-05-27"#,
        r#"3:8: note: expected text, found a list
4:12: show_key: expected true or false, found "yes"
5:8: mode: expected "enforce", "observe" or "off", found true
6:8: name: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found 1979-05-27"#,
    );
    in_rule("throttle = true", "3:12: throttle: expected a table, found true");
    in_rule(r#"throttle = "10/1m""#, r#"3:12: throttle: expected a table, found "10/1m""#);
    in_rule("block = 403", "3:9: block: expected a table, found 403");
    in_rule("count = [401]", "3:9: count: expected a table, found a list");
    in_rule(
        r#"match = 3
except = [["/"]]"#,
        r#"3:9: match: expected a pattern such as "POST /login", found 3
4:11: except: expected a pattern such as "POST /login", found a list"#,
    );
    in_rule(
        "key = [1.5, {}]",
        r#"3:8: key: expected a part of the key such as "client", found 1.5
3:13: key: expected a part of the key such as "client", found a table"#,
    );
    in_rule(
        r#"override = "x""#,
        r#"3:12: override: expected a list of tables, each under [[rule.override]], found "x""#,
    );
}

#[test]
fn names_are_small() {
    in_file(
        r#"app = "Shop One"
"#,
        r#"1:7: app: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found "Shop One", did you mean "shop-one"?"#,
    );
    in_rule(
        r#"name = "Login Stuffing""#,
        r#"3:8: name: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found "Login Stuffing", did you mean "login-stuffing"?"#,
    );
    in_rule(
        r#"name = "é""#,
        r#"3:8: name: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found "é""#,
    );
    in_rule(
        r#"name = """#,
        r#"3:8: name: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found """#,
    );
    in_rule(
        r#"name = "-a""#,
        r#"3:8: name: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found "-a""#,
    );
    in_rule(
        r#"name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#,
        r#"3:8: name: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…""#,
    );
}

#[test]
fn a_word_that_is_none_of_the_choices_names_the_nearest() {
    in_file(
        r#"app = "a"
mode = "observ"
"#,
        r#"2:8: mode: expected "enforce", "observe" or "off", found "observ", did you mean "observe"?"#,
    );
    in_rule(
        r#"mode = "Observe"
missing_key = "drop"
disclose = "ful""#,
        r#"3:8: mode: expected "enforce", "observe" or "off", found "Observe", did you mean "observe"?
4:15: missing_key: expected "skip", "share" or "reject", found "drop"
5:12: disclose: expected "full" or "none", found "ful", did you mean "full"?"#,
    );
}

#[test]
fn a_source_and_its_proxies_come_together() {
    // C57.
    in_file(
        r#"app = "a"
[client]
trusted_proxies = ["10.0.0.0/8"]
"#,
        r#"3:19: trusted_proxies: not used with source = "peer", expected the field that these proxies set, such as source = "x-forwarded-for""#,
    );
    in_file(
        r#"app = "a"
[client]
source = "peer"
trusted_proxies = ["unix"]
"#,
        r#"4:19: trusted_proxies: not used with source = "peer", expected the field that these proxies set, such as source = "x-forwarded-for""#,
    );
    in_file(
        r#"app = "a"
[client]
source = "forwarded"
trusted_proxies = []
"#,
        "4:19: trusted_proxies: expected at least one proxy that sets the source, found []",
    );
    in_file(
        r#"app = "a"
[client]
source = "x forwarded"
ipv6_prefix = 129
"#,
        r#"3:10: source: expected "peer", "x-forwarded-for", "forwarded" or the name of a field that holds one address, found "x forwarded"
4:15: ipv6_prefix: expected a whole number from 32 to 128, found 129"#,
    );
}

#[test]
fn one_bad_network_is_an_error_and_never_a_shorter_list() {
    // C58.
    in_file(
        r#"app = "a"
[client]
source = "forwarded"
trusted_proxies = ["10.0.0.0/8", "300.1.1.0/24", "10.0.0.1/8", "UNIX", 4]
ipv6_prefix = 31
"#,
        r#"4:34: trusted_proxies: expected an address or network such as "10.0.0.0/8", found "300.1.1.0/24"
4:50: trusted_proxies: expected no bits beyond the prefix of /8, found "10.0.0.1/8", did you mean "10.0.0.0/8"?
4:64: trusted_proxies: expected an address or network such as "10.0.0.0/8", found "UNIX"
4:72: trusted_proxies: expected an address or network such as "10.0.0.0/8", found 4
5:15: ipv6_prefix: expected a whole number from 32 to 128, found 31"#,
    );
    in_file(
        r#"app = "a"
[[allow]]
clients = ["10.0.0.0/33", "::ffff:10.0.0.1/104", "2001:db8::1/32"]
[[deny]]
clients = "10.0.0.1"
"#,
        r#"3:12: clients: expected an address or network such as "10.0.0.0/8", found "10.0.0.0/33"
3:27: clients: expected no bits beyond the prefix of /8, found "::ffff:10.0.0.1/104", did you mean "10.0.0.0/8"?
3:50: clients: expected no bits beyond the prefix of /32, found "2001:db8::1/32", did you mean "2001:db8::/32"?
5:11: clients: expected a list such as ["198.51.100.0/24"], found "10.0.0.1", did you mean ["10.0.0.1"]?"#,
    );
}

#[test]
fn a_list_says_until_when_and_for_which_rules() {
    in_file(
        r#"app = "a"
[[rule]]
name = "login"
key = []
over = "1/s"
throttle = {}
[[allow]]
clients = []
rules = ["lgin", 3, "other"]
until = 2027-01-01
[[allow]]
clients = ["10.0.0.1"]
rules = []
until = 2027-01-01T00:00:00
[[deny]]
clients = ["10.0.0.1"]
until = "2027-01-01T00:00:00Z"
note = 3
[[deny]]
clients = ["10.0.0.1"]
until = 07:32:00
"#,
        r#"8:11: clients: expected at least one address or network, found []
9:10: rules: expected the name of a rule, found "lgin", did you mean "login"?
9:18: rules: expected the name of a rule, found 3
9:21: rules: expected the name of a rule, found "other"
10:9: until: expected a date-time with an offset, such as 2027-01-01T00:00:00Z, found 2027-01-01, did you mean 2027-01-01T00:00:00Z?
13:9: rules: expected at least one rule, or the field left out for all rules, found []
14:9: until: expected a date-time with an offset, such as 2027-01-01T00:00:00Z, found 2027-01-01T00:00:00, did you mean 2027-01-01T00:00:00Z?
17:9: until: expected a date-time with an offset, such as 2027-01-01T00:00:00Z, found "2027-01-01T00:00:00Z"
18:8: note: expected text, found 3
21:9: until: expected a date-time with an offset, such as 2027-01-01T00:00:00Z, found 07:32:00"#,
    );
}

#[test]
fn a_table_has_room_for_one_key_at_least() {
    // C51.
    in_file(
        r#"app = "a"
[memory]
keys = 0
verdicts = 16777217
"#,
        r#"3:8: keys: expected a whole number from 1 to 16777216, found 0
4:12: verdicts: expected a whole number from 1 to 16777216, found 16777217"#,
    );
    in_file(
        r#"app = "a"
[memory]
keys = -1
verdicts = "64KiB"
"#,
        r#"3:8: keys: expected a whole number from 1 to 16777216, found -1
4:12: verdicts: expected a whole number from 1 to 16777216, found "64KiB""#,
    );
}

#[test]
fn a_bare_number_is_answered_with_a_unit() {
    in_rule(
        r#"over = 10
block = { for = 15, max = 0x20, forget = 1.5 }"#,
        r#"3:8: over: expected a rate such as "10/1m", found 10, did you mean "10/1m"?
4:17: for: expected a duration such as "15m", found 15, did you mean "15s"?
4:27: max: expected a duration such as "15m", found 0x20
4:42: forget: expected a duration such as "15m", found 1.5"#,
    );
    in_rule(
        r#"over = "10/60"
block = { for = "15", max = "2 hours", forget = "0s" }"#,
        r#"3:8: over: expected a rate such as "10/1m", found "10/60", did you mean "10/60s"?
4:17: for: expected a duration such as "15m", found "15", did you mean "15s"?
4:29: max: expected a duration such as "15m", found "2 hours", did you mean "2h"?
4:49: forget: expected a duration from 1ms to 3650d, found "0s""#,
    );
    in_rule("over = true", r#"3:8: over: expected a rate such as "10/1m", found true"#);
}

#[test]
fn a_limit_of_zero_is_an_error_that_says_what_to_write() {
    // C28.
    in_rule(
        r#"over = "0/1m""#,
        r#"3:8: over: expected a limit from 1 to 10000000, found "0/1m"; to refuse every request write always = true and block = {}"#,
    );
    in_rule(
        r#"over = "10000001/1m""#,
        r#"3:8: over: expected a limit from 1 to 10000000, found "10000001/1m""#,
    );
    in_rule(r#"over = "1/8d""#, r#"3:8: over: expected a window from 1ms to 7d, found "1/8d""#);
}

#[test]
fn a_rule_has_one_trigger() {
    in_rule(
        r#"over = "1/1m"
always = true"#,
        "4:1: always stands beside over, expected one of them",
    );
    in_rule("always = false", "3:10: always: expected true, or the field left out, found false");
}

#[test]
fn always_counts_nothing_and_lasts_no_time() {
    in_rule(
        r#"always = true
count = { status = [401] }
block = { for = "1m", extend = false, grow = 2, max = "1h", forget = "1h", status = 404 }"#,
        r#"4:9: count: has no meaning beside always = true, which counts nothing
5:11: for in block has no meaning beside always = true, which blocks each request anew
5:23: extend in block has no meaning beside always = true, which blocks each request anew
5:39: grow in block has no meaning beside always = true, which blocks each request anew
5:49: max in block has no meaning beside always = true, which blocks each request anew
5:61: forget in block has no meaning beside always = true, which blocks each request anew"#,
    );
}

#[test]
fn a_rule_has_one_action() {
    in_rule(
        r#"throttle = {}
block = { for = "1h" }"#,
        "4:1: block stands beside throttle, expected one action in a rule",
    );
    in_rule(
        r#"cache = { ttl = "2s" }
throttle = {}"#,
        r#"3:1: "cache" in [[rule]] is not available yet
4:1: throttle stands beside cache, expected one action in a rule"#,
    );
}

#[test]
fn the_terms_of_a_block_are_checked() {
    in_rule(
        r#"block = { for = "1h", max = "1m" }"#,
        r#"3:29: max: expected at least the 1h of for, found "1m""#,
    );
    in_rule(
        r#"block = { for = "1h", status = 200, grow = 0, extend = 1 }"#,
        r#"3:32: status: expected a whole number from 400 to 599, found 200
3:44: grow: expected a whole number from 1 to 100, found 0
3:56: extend: expected true or false, found 1"#,
    );
    in_rule(
        r#"block = { for = "1h", status = 600, grow = 101 }"#,
        r#"3:32: status: expected a whole number from 400 to 599, found 600
3:44: grow: expected a whole number from 1 to 100, found 101"#,
    );
}

#[test]
fn what_counts_is_checked() {
    in_rule(
        "count = { pending = 10 }",
        "3:21: pending: needs status beside it, such as status = [401, 403]",
    );
    in_rule(
        "count = { status = 401 }",
        "3:20: status: expected a list such as [401, 403], found 401, did you mean [401]?",
    );
    in_rule(
        "count = { status = [] }",
        "3:20: status: expected at least one status, such as [401, 403], found []",
    );
    in_rule(
        r#"count = { status = ["401", "4XX", "canceled", 99, 600, "timeout", 4.5], pending = 0 }"#,
        r#"3:21: status: expected a status from 100 to 599, "1xx" to "5xx", "cancelled" or "error", found "401", did you mean 401?
3:28: status: expected a status from 100 to 599, "1xx" to "5xx", "cancelled" or "error", found "4XX", did you mean "4xx"?
3:35: status: expected a status from 100 to 599, "1xx" to "5xx", "cancelled" or "error", found "canceled", did you mean "cancelled"?
3:47: status: expected a status from 100 to 599, "1xx" to "5xx", "cancelled" or "error", found 99
3:51: status: expected a status from 100 to 599, "1xx" to "5xx", "cancelled" or "error", found 600
3:56: status: expected a status from 100 to 599, "1xx" to "5xx", "cancelled" or "error", found "timeout"
3:67: status: expected a status from 100 to 599, "1xx" to "5xx", "cancelled" or "error", found 4.5
3:83: pending: expected a whole number from 1 to 10000000, found 0"#,
    );
}

#[test]
fn a_key_is_a_list_of_known_parts() {
    in_rule(
        r#"key = "client""#,
        r#"3:7: key: expected a list such as ["client"], found "client", did you mean ["client"]?"#,
    );
    in_rule(
        r#"key = ["ip", "ua", "header", "cleint", "heder:x", "x-real-ip", "Client", "User-Agent"]"#,
        r#"3:8: key: unknown part "ip", did you mean "client"?
3:14: key: unknown part "ua", did you mean "agent"?
3:20: key: unknown part "header", did you mean "header:NAME"?
3:30: key: unknown part "cleint", did you mean "client"?
3:40: key: unknown part "heder:x", did you mean "header:NAME"?
3:51: key: unknown part "x-real-ip", expected client, user, bearer, header:NAME, cookie:NAME, query:NAME, param:NAME, path, route, method, host, agent or x:NAME
3:64: key: unknown part "Client", did you mean "client"?
3:74: key: unknown part "User-Agent", did you mean "agent"?"#,
    );
    in_rule(
        r#"key = ["nonsense"]"#,
        r#"3:8: key: unknown part "nonsense", expected client, user, bearer, header:NAME, cookie:NAME, query:NAME, param:NAME, path, route, method, host, agent or x:NAME"#,
    );
    in_rule(
        r#"key = ["client/7", "client/129", "client/+9", "client/", "client/64/8"]"#,
        r#"3:8: key: expected client/N with N from 8 to 128, found "client/7"
3:20: key: expected client/N with N from 8 to 128, found "client/129"
3:34: key: expected client/N with N from 8 to 128, found "client/+9"
3:47: key: expected client/N with N from 8 to 128, found "client/"
3:58: key: expected client/N with N from 8 to 128, found "client/64/8""#,
    );
    in_rule(
        r#"key = ["header:", "header:a b", "cookie:a=b", "query:a b", "query:"]
missing_key = "skip""#,
        r#"3:8: key: expected header:NAME with the name of a header field, found "header:"
3:19: key: expected header:NAME with the name of a header field, found "header:a b"
3:33: key: expected cookie:NAME with the name of a cookie, found "cookie:a=b"
3:47: key: expected query:NAME with the name of a query parameter, found "query:a b"
3:60: key: expected query:NAME with the name of a query parameter, found "query:""#,
    );
    in_rule(
        r#"key = ["client|"]"#,
        r#"3:8: key: unknown part "", expected client, user, bearer, header:NAME, cookie:NAME, query:NAME, param:NAME, path, route, method, host, agent or x:NAME"#,
    );
    in_rule(
        r#"key = [""]"#,
        r#"3:8: key: unknown part "", expected client, user, bearer, header:NAME, cookie:NAME, query:NAME, param:NAME, path, route, method, host, agent or x:NAME"#,
    );
}

#[test]
fn a_key_says_nothing_twice() {
    in_rule(r#"key = ["client", "client"]"#, r#"3:18: key: "client" stands in the key already"#);
    in_rule(
        r#"key = ["client|client/24"]"#,
        r#"3:8: key: "client/24" can never be reached in "client|client/24""#,
    );
    in_rule(r#"key = ["path|path"]"#, r#"3:8: key: "path" can never be reached in "path|path""#);
    in_rule(
        r#"key = ["a","b","c","d","e","f","g","h","i"]"#,
        "3:7: key: expected at most 8 parts, found 9",
    );
    in_rule(
        r#"key = ["a|b|c|d|e|f|g|h|i"]"#,
        "3:8: key: expected at most 8 kinds in a part, found 9",
    );
}

#[test]
fn what_a_client_can_leave_out_needs_missing_key() {
    // C12.
    in_rule(
        r#"key = ["header:x-api-key"]"#,
        r#"3:8: key: a request may lack "header:x-api-key", expected missing_key = "skip", "share" or "reject" in the rule, or a fallback such as "header:x-api-key|client""#,
    );
    in_rule(
        r#"key = ["client", "cookie:sid|query:sid"]"#,
        r#"3:18: key: a request may lack "cookie:sid|query:sid", expected missing_key = "skip", "share" or "reject" in the rule, or a fallback such as "cookie:sid|query:sid|client""#,
    );
    in_rule(
        r#"key = ["bearer"]"#,
        r#"3:8: key: a request may lack "bearer", expected missing_key = "skip", "share" or "reject" in the rule, or a fallback such as "bearer|client""#,
    );
}

#[test]
fn a_param_is_captured_by_every_pattern() {
    in_rule(
        r#"match = ["/products/{id}", "GET /items/{item}", "/users"]
key = ["param:id"]"#,
        r#"4:8: key: param:id needs "{id}" in every pattern of match, not found in "/items/{item}", "/users""#,
    );
    in_rule(
        r#"key = ["param:id"]"#,
        r#"3:8: key: param:id needs a match whose patterns capture "{id}""#,
    );
}

#[test]
fn patterns_are_checked_where_they_stand() {
    in_rule(
        "except = []",
        "3:10: except: expected at least one pattern, or the field left out, found []",
    );
    in_rule(
        "match = []\nkey = [\"param:id\"]",
        r#"4:8: key: param:id needs a match whose patterns capture "{id}""#,
    );
    in_rule(
        r#"match = ["login", "/a/*"]
except = "GET""#,
        r#"3:10: match: expected a path that begins with a slash: "/login"
3:19: match: expected {*rest} for all that follows, or {name} for one segment, not "*"
4:10: except: expected a path that begins with a slash: "/GET""#,
    );
    in_file(
        r#"app = "a"
[exempt]
match = ["/static/*", 3]
"#,
        r#"3:10: match: expected {*rest} for all that follows, or {name} for one segment, not "*"
3:23: match: expected a pattern such as "POST /login", found 3"#,
    );
}

#[test]
fn an_override_has_one_entry_for_each_part() {
    in_rule(
        r#"[[rule.override]]
key = ["a", "b"]
over = "20/1m""#,
        r#"8:7: key: expected one entry for each part of "client", found 2"#,
    );
    in_rule(
        r#"[[rule.override]]
over = "20/1m""#,
        r#"7:1: [[rule.override]] needs key, such as key = ["203.0.113.0/24"], or when = { "x:plan" = "gold" }"#,
    );
    in_rule(
        r#"[[rule.override]]
key = "203.0.113.9"
over = "20/1m""#,
        r#"8:7: key: expected a list such as ["203.0.113.0/24"], found "203.0.113.9", did you mean ["203.0.113.9"]?"#,
    );
    in_rule(
        r#"key = []
[[rule.override]]
key = []
mode = "off""#,
        "8:7: key: a rule with key = [] has one budget, expected no override",
    );
}

#[test]
fn an_override_of_a_client_can_match_what_the_key_counts() {
    in_rule(
        r#"[[rule.override]]
key = ["2001:db8::1"]
mode = "off""#,
        r#"8:8: key: expected a network of /64 or wider, as the key counts no narrower, found "2001:db8::1", did you mean "2001:db8::/64"?"#,
    );
    in_rule(
        r#"key = ["client/24"]
[[rule.override]]
key = ["203.0.113.9"]
mode = "off""#,
        r#"8:8: key: expected a network of /24 or wider, as the key counts no narrower, found "203.0.113.9", did you mean "203.0.113.0/24"?"#,
    );
    in_rule(
        r#"[[rule.override]]
key = ["203.0.113.9/24"]
mode = "off""#,
        r#"8:8: key: expected no bits beyond the prefix of /24, found "203.0.113.9/24", did you mean "203.0.113.0/24"?"#,
    );
    in_rule(
        r#"[[rule.override]]
key = ["203.0.113.*"]
mode = "off""#,
        r#"8:8: key: expected an address, a network such as "203.0.113.0/24", or "*", found "203.0.113.*""#,
    );
    in_rule(
        r#"key = ["path"]
[[rule.override]]
key = ["/a*b"]
mode = "off""#,
        r#"8:8: key: expected a value, or one * at its end, found "/a*b""#,
    );
}

#[test]
fn an_override_says_something_and_once() {
    in_rule(
        r#"[[rule.override]]
key = ["203.0.113.9"]"#,
        "7:1: [[rule.override]] says nothing, expected over, exempt, mode or fields of the rule's action",
    );
    in_rule(
        r#"[[rule.override]]
key = ["203.0.113.9"]
exempt = false"#,
        "9:10: exempt: expected true, or the field left out, found false",
    );
    in_rule(
        r#"[[rule.override]]
key = ["203.0.113.9"]
exempt = true
over = "20/1m""#,
        "7:1: [[rule.override]] with exempt = true, expected nothing else to change",
    );
    in_rule(
        r#"[[rule.override]]
key = ["203.0.113.9"]
mode = "off"
[[rule.override]]
key = ["::ffff:203.0.113.9/128"]
mode = "observe""#,
        "10:1: [[rule.override]] with the key of an override before it",
    );
}

#[test]
fn an_override_keeps_the_window_of_its_rule() {
    in_rule(
        r#"[[rule.override]]
key = ["203.0.113.9"]
over = "30/1h""#,
        r#"9:8: over: expected the rule's window of 1m, found "30/1h", did you mean "30/1m"?"#,
    );
    in_rule(
        r#"[[rule.override]]
key = ["203.0.113.9"]
over = "30/60s"
[[rule.override]]
key = ["203.0.113.8"]
over = "0/1m""#,
        r#"12:8: over: expected a limit from 1 to 10000000, found "0/1m"; to refuse every request write always = true and block = {}"#,
    );
    in_rule(
        r#"always = true
[[rule.override]]
key = ["203.0.113.9"]
over = "1/1m""#,
        "9:8: over: has no meaning in a rule with always = true",
    );
}

#[test]
fn the_name_of_a_rule_is_its_own() {
    in_file(
        r#"app = "a"
[[rule]]
name = "r"
key = []
over = "1/s"
throttle = {}
[[rule]]
name = "r"
key = []
over = "1/s"
throttle = {}
"#,
        r#"8:8: name: "r" is the name of the rule on line 2 already"#,
    );
}

#[test]
fn errors_of_syntax_and_of_meaning_come_together_and_none_follows_from_another() {
    in_file(
        r#"app = "a
b == 3
[[rule]
name = x
over = 10/1m
[[rule]]
name = "Bad Name"
key = "client"
over = "1/1m"
throttle = {}
"#,
        r#"1:9: invalid basic string, expected `"`
2:4: extra `=`, expected nothing
2:6: unexpected key or value, expected newline, `#`
3:8: unclosed array table, expected `]`
7:8: name: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found "Bad Name", did you mean "bad-name"?
8:7: key: expected a list such as ["client"], found "client", did you mean ["client"]?"#,
    );
    in_file(
        r#"app = "a"
mode = 
"#,
        "2:8: string values must be quoted, expected literal string",
    );
    in_file(
        r#"app = "a"
[memory]
[memory]
keys = 0
"#,
        r#"3:2: duplicate key
4:8: keys: expected a whole number from 1 to 16777216, found 0"#,
    );
    in_file(
        r#"app = "a"
[[rule]]
note = "open"#,
        r#"3:13: invalid basic string, expected `"`"#,
    );
}

#[test]
fn columns_are_counted_in_characters() {
    in_file(
        "\u{feff}app = 3\n",
        "1:7: app: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found 3",
    );
    in_rule(
        r#""grüße" = 1
note = "→", mode = 3"#,
        r#"3:1: unknown field "grüße" in [[rule]], expected name, match, except, when, key, count, over, always, block, throttle, tag, handler, respond, mode, missing_key, disclose, fields, from, until, show_key, note or override
4:11: unexpected key or value, expected newline, `#`"#,
    );
    in_rule(
        r#"block = { "ä" = "→", status = 1, for = 1 }"#,
        r#"3:11: unknown field "ä" in block, expected for, status, extend, grow, max or forget
3:31: status: expected a whole number from 400 to 599, found 1
3:40: for: expected a duration such as "15m", found 1, did you mean "1s"?"#,
    );
}

#[test]
fn a_file_has_room_for_256_rules_and_a_rule_for_256_overrides() {
    let rules = |count: usize| {
        let rule = |index| {
            format!("[[rule]]\nname = \"r{index}\"\nkey = []\nover = \"1/s\"\nthrottle = {{}}\n")
        };
        format!("app = \"a\"\n{}", (0..count).map(rule).collect::<String>())
    };
    assert_eq!(errors(&rules(256)), "no error");
    assert_eq!(errors(&rules(257)), "1282:1: rule: expected at most 256 in a file, found 257");

    let overrides = |count: usize| {
        let one = |index| {
            format!(
                "[[rule.override]]\nkey = [\"10.0.{}.{}\"]\nmode = \"off\"\n",
                index / 256,
                index % 256
            )
        };
        rule(&(0..count).map(one).collect::<String>())
    };
    assert_eq!(errors(&overrides(256)), "no error");
    assert_eq!(
        errors(&overrides(257)),
        "775:1: override: expected at most 256 in a rule, found 257"
    );
}

#[test]
fn a_file_over_a_mebibyte_is_an_error() {
    let file =
        |length: usize| format!("app = \"a\"\n#{}", "x".repeat(length - "app = \"a\"\n#".len()));
    assert_eq!(errors(&file(1_048_576)), "no error");
    assert_eq!(
        errors(&file(1_048_577)),
        "1:1: expected a rule file of at most 1048576 bytes, found 1048577"
    );
}

#[test]
fn what_the_grammar_names_is_read_or_not_available_yet_but_never_unknown() {
    let later = [
        ("file", "[fleet]\nnats = \"nats://n\""),
        ("rule", "cache = { ttl = \"2s\" }"),
        ("rule", "alone = \"5/1m\""),
        ("rule", "group = \"g\""),
        ("rule", "space = \"sku\""),
        ("rule", "inflight = 20"),
        ("rule", "cost = 2"),
        ("rule", "levels = []"),
        ("rule", "hot = {}"),
        ("rule", "step = []"),
        ("rule", "challenge = {}"),
        ("rule", "feeds = []"),
        ("rule", "count = { distinct = \"path\" }"),
        ("rule", "count = { grpc_status = [16] }"),
        ("rule", "[[rule.override]]\nkey = [\"10.0.0.1\"]\ncache.ttl = \"1s\""),
        ("rule", "[[rule.override]]\nkey = [\"10.0.0.1\"]\nalone = \"1/1m\""),
        ("rule", "[[rule.override]]\nkey = [\"10.0.0.1\"]\ninflight = 2"),
    ];
    for (place, lines) in later {
        let text = if place == "file" { format!("app = \"a\"\n{lines}\n") } else { rule(lines) };
        let said = errors(&text);
        assert!(
            said.ends_with("is not available yet") && said.lines().count() == 1,
            "{lines}: {said}"
        );
    }
    for lines in [
        "name = \"n\"",
        "match = \"/\"",
        "except = [\"/a\"]",
        "key = []",
        "count = { status = [401], pending = 10 }",
        "over = \"10/1m\"",
        "always = true",
        "block = { for = \"15m\", status = 403, extend = false, grow = 2, max = \"24h\", forget = \"24h\" }",
        "throttle = {}",
        "when = { \"x:plan\" = [\"free\"] }",
        "throttle = { pace = \"2/1s\", burst = 10 }",
        "tag = { header = \"x-hot\" }",
        "handler = \"maze\"",
        "respond = { status = 503 }",
        "fields = false",
        "from = 2027-01-01T00:00:00Z",
        "until = 2027-01-01T00:00:00Z",
        "key = [\"user\"]",
        "key = [\"user|client\", \"x:tenant\"]",
        "mode = \"off\"",
        "missing_key = \"skip\"",
        "disclose = \"full\"",
        "show_key = false",
        "note = \"why\"",
        "override = [{ key = [\"10.0.0.1\"], over = \"20/1m\", mode = \"observe\" }]",
        "[[rule.override]]\nkey = [\"*\"]\nexempt = true",
        "[[rule.override]]\nwhen = { \"x:plan\" = \"gold\" }\nover = \"20/1m\"",
        "block = { for = \"1m\" }\n[[rule.override]]\nkey = [\"10.0.0.1\"]\nblock.for = \"1h\"",
        "throttle = { pace = \"1/s\" }\n[[rule.override]]\nkey = [\"10.0.0.1\"]\nthrottle.pace = \"2/s\"",
    ] {
        assert_eq!(errors(&rule(lines)), "no error", "{lines}");
    }
}
