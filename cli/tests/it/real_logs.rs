//! Public logs of real servers, with the numbers that were counted on them before there was an
//! engine, and with the oracle's.

use std::path::{Path, PathBuf};

use hotgate_cli::Status;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    arg, file, hotgate,
    oracle::{Oracle, Refused},
};

/// A log of the data folder; `None`, said aloud, where there is none.
#[allow(clippy::print_stdout, reason = "a test that was skipped says so")]
fn data(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("HOTGATE_DATA").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let path = folder.unwrap_or_else(beside).join(name);
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

fn replay(log: &Path, terms: &str) -> Value {
    let rules = file(format!("app = \"t\"\n[[rule]]\nname = \"r\"\nkey = [\"client\"]\n{terms}\n"));
    let run = hotgate(["replay", "--json", "--rules", arg(rules.path()), arg(log)]);
    assert_eq!(run.status, Status::Done, "{}", run.err);
    run.json()
}

struct Case {
    /// The limit, and the window in seconds, said as `over` says it.
    limit: usize,
    window: u64,
    over: &'static str,
    rest: &'static str,
    oracle: Oracle,
    /// How many clients are refused, and how many requests.
    clients: usize,
    refused: u64,
    /// Some of the clients: key, refused, first.
    some: &'static [(&'static str, u64, Option<&'static str>)],
}

fn throttle(limit: usize, window: u64, over: &'static str, clients: usize, refused: u64) -> Case {
    let oracle = Oracle::Throttle;
    Case { limit, window, over, rest: "throttle = {}", oracle, clients, refused, some: &[] }
}

fn check(log: &Path, case: &Case) {
    let Case { limit, window, over, rest, oracle, clients, refused, some } = case;
    let expected = oracle.refused(log, *limit, *window);
    let total: u64 = expected.values().map(|refused| refused.count).sum();
    assert_eq!((expected.len(), total), (*clients, *refused), "the oracle at {over}, {rest}");

    let report = replay(log, &format!("over = \"{over}\"\n{rest}"));
    let rule = &report["rules"][0];
    assert_eq!(rule["refused"].as_u64(), Some(*refused), "{over}, {rest}");
    let keys = rule["keys"].as_array().unwrap();
    assert_eq!(keys.len(), *clients, "{over}, {rest}");
    for key in keys {
        let client = key["key"].as_str().unwrap().strip_prefix("client=").unwrap();
        let first: Timestamp = key["first"].as_str().unwrap().parse().unwrap();
        let count = key["refused"].as_u64().unwrap();
        let found = Refused { count, first: first.as_second().try_into().unwrap() };
        assert_eq!(found, expected[&client.parse().unwrap()], "{client} at {over}, {rest}");
        assert!(key["matched"].as_u64().unwrap() > count, "what is refused was matched");
    }
    let order: Vec<_> = keys.iter().map(|key| key["refused"].as_u64().unwrap()).collect();
    assert!(order.is_sorted_by(|a, b| a >= b), "most refused first: {order:?}");
    for (index, (key, refused, first)) in some.iter().enumerate() {
        assert_eq!(keys[index]["key"], *key);
        assert_eq!(keys[index]["refused"], *refused);
        if let Some(first) = first {
            assert_eq!(keys[index]["first"], *first);
        }
    }
}

/// C104: half of its lines step back in time.
#[test]
fn the_apache_log_of_ten_thousand_lines() {
    let Some(log) = data("elastic-apache/apache_logs") else { return };
    let report = replay(&log, "over = \"20/10s\"\nthrottle = {}");
    for (member, expected) in
        [("lines", 10_000), ("parsed", 10_000), ("unparsed", 0), ("reordered", 4915), ("denied", 0)]
    {
        assert_eq!(report[member], expected, "{member}");
    }
    assert_eq!(report["from"], "2015-05-17T10:05:00Z");
    assert_eq!(report["to"], "2015-05-20T21:05:59Z");
    assert_eq!(report["rules"][0]["matched"], 10_000);

    let scanner = "client=75.97.9.59";
    let cases = [
        Case {
            some: &[("client=75.97.9.59", 12, Some("2015-05-18T08:05:10Z"))],
            ..throttle(20, 10, "20/10s", 1, 12)
        },
        Case {
            some: &[("client=75.97.9.59", 72, None), ("client=130.237.218.86", 15, None)],
            ..throttle(60, 60, "60/60s", 2, 87)
        },
        Case {
            rest: "block = { for = \"10m\" }",
            oracle: Oracle::Block(600),
            some: &[("client=75.97.9.59", 85, Some("2015-05-18T08:05:10Z"))],
            ..throttle(20, 10, "20/10s", 1, 85)
        },
        Case {
            rest: "count = { status = [\"4xx\"] }\nthrottle = {}",
            oracle: Oracle::ThrottleClientErrors,
            some: &[("client=144.76.95.39", 10, Some("2015-05-20T09:05:37Z"))],
            ..throttle(10, 60, "10/1m", 1, 10)
        },
    ];
    cases.iter().for_each(|case| check(&log, case));
    let rule = &report["rules"][0]["keys"][0];
    assert_eq!((rule["key"].as_str(), rule["matched"].as_u64()), (Some(scanner), Some(273)));
}

#[test]
fn the_log_of_attackers_that_no_short_window_catches() {
    let Some(log) = data("basjes-hackers/hackers-access.log") else { return };
    let report = replay(&log, "over = \"20/10s\"\nthrottle = {}");
    assert_eq!(report["lines"], 3456);
    assert_eq!(report["parsed"], 3456);
    let cases = [
        throttle(20, 10, "20/10s", 0, 0),
        throttle(60, 60, "60/60s", 0, 0),
        throttle(10, 3600, "10/1h", 13, 110),
        throttle(20, 86_400, "20/24h", 6, 174),
    ];
    cases.iter().for_each(|case| check(&log, case));
}

/// C48: the login page answers a failed login with 200, through syslog.
#[test]
fn failed_logins_that_answer_200_are_counted() {
    let Some(log) = data("crowdsec-hub/http-bf-wordpress-bf.log") else { return };
    let terms = "match = \"POST /wp-login.php\"\ncount = { status = [200] }\nover = \"5/1m\"\nblock = { for = \"10m\" }";
    let report = replay(&log, terms);
    assert_eq!((report["parsed"].as_u64(), report["no_client"].as_u64()), (Some(9), Some(0)));
    let rule = &report["rules"][0];
    assert_eq!(rule["keys"][0]["key"], "client=81.150.104.130");
    assert_eq!((rule["matched"].as_u64(), rule["refused"].as_u64()), (Some(9), Some(4)), "{rule}");
}

/// C99: what is no request is one all the same to its client.
#[test]
fn malformed_requests_count_for_their_client() {
    let Some(log) = data("crowdsec-hub/nginx-http-malformed.log") else { return };
    let report = replay(&log, "over = \"3/1m\"\ncount = { status = [400] }\nthrottle = {}");
    assert_eq!(report["unparsed"], 0, "{}", report["bad_lines"]);
    let lines = report["lines"].as_u64().unwrap();
    assert_eq!(report["rules"][0]["matched"].as_u64(), Some(lines));
    assert_eq!(report["rules"][0]["refused"].as_u64(), Some(lines - 3));
}

/// C106: two lines of the first are of an error log.
#[test]
fn small_apache_logs_parse_but_for_lines_of_another_log() {
    let table = [
        ("apache2-logs.log", 2),
        ("apache2-http-sensitive-files.log", 0),
        ("nginx-http-xss-probing.log", 0),
    ];
    for (name, unparsed) in table {
        let Some(log) = data(&format!("crowdsec-hub/{name}")) else { return };
        let report = replay(&log, "over = \"3/1m\"\nthrottle = {}");
        assert_eq!(report["unparsed"], unparsed, "{name}: {}", report["bad_lines"]);
    }
}
