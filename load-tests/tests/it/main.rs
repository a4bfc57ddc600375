//! Logs of a few lines, played to a server that takes down what it hears; and the other commands.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod commands;
mod server;

use std::{future::pending, io::Write as _, time::Duration};

use clap::Parser;
use load_tests::play::{self, Ended};
use serde_json::Value;
use server::Server;

/// The arguments of `play`, as the command line takes them.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    play: play::Args,
}

/// A line of `client` at second `second`.
fn line(client: &str, second: u32, path: &str) -> String {
    format!(
        "{client} - - [18/May/2015:08:05:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 1 \"-\" \"Agent/1\"\n"
    )
}

/// Plays `log` to `url`; what it printed.
fn play(url: &str, log: &str, args: &[&str]) -> std::io::Result<(Ended, String)> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(log.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    let args = ["play", path, "--to", url].into_iter().chain(args.iter().copied());
    let mut out = Vec::new();
    let ended = play::run(&Cli::parse_from(args).play, pending(), &mut out)?;
    Ok((ended, String::from_utf8(out).unwrap()))
}

fn json(url: &str, log: &str, args: &[&str]) -> (Ended, Value) {
    let (ended, text) = play(url, log, &[&["--json"], args].concat()).unwrap();
    (ended, serde_json::from_str(&text).expect("a JSON document"))
}

#[test]
fn a_client_s_lines_of_one_second_come_in_the_order_of_the_log() {
    let server = Server::start(|_| None);
    let paths: Vec<_> = (0..50).map(|n| format!("/page/{n}")).collect();
    let log: String = paths.iter().map(|path| line("203.0.113.9", 7, path)).collect();
    let (_, report) = json(&server.url, &log, &[]);
    assert_eq!((&report["played"], &report["statuses"]["200"]), (&50.into(), &50.into()));
    let heard = server.heard();
    let order: Vec<_> = heard.iter().map(|head| head.split(' ').nth(1).unwrap()).collect();
    assert_eq!(order, paths, "one after the other");
    for field in ["x-forwarded-for: 203.0.113.9", "user-agent: Agent/1", "host: 127.0.0.1:"] {
        assert!(heard[0].contains(field), "{field} in {}", heard[0]);
    }
    assert!(!heard[0].contains("referer"), "the log has none: {}", heard[0]);
}

#[test]
fn the_times_of_the_log_rule_not_its_lines_order() {
    let server = Server::start(|_| None);
    let log = [line("203.0.113.9", 9, "/second"), line("203.0.113.8", 2, "/first")].concat();
    let (_, report) = json(&server.url, &log, &["--speed", "50"]);
    let heard = server.heard();
    assert!(heard[0].starts_with("GET /first ") && heard[1].starts_with("GET /second "));
    assert_eq!(report["from"], "2015-05-18T08:05:02Z");
    assert_eq!(report["to"], "2015-05-18T08:05:09Z");
}

/// The answer to the first line waits for the second line.
#[test]
fn a_line_is_sent_at_its_time_though_the_answer_before_is_out() {
    let server = Server::start(|head| head.contains("/held").then_some(Duration::from_secs(5)));
    let log = [line("203.0.113.9", 1, "/held"), line("203.0.113.9", 2, "/next")].concat();
    let (ended, report) = json(&server.url, &log, &["--speed", "20"]);
    assert_eq!(report["played"], 2);
    assert_eq!(server.most_under_way(), 2, "the second came while the first was held");
    assert_eq!(ended, Ended::NotValid, "the first was decided who knows when: {report}");
    assert_eq!(report["valid"], false);
}

#[test]
fn no_more_are_under_way_than_allowed_and_the_rest_is_late() {
    let server = Server::start(|head| head.contains("/slow").then_some(Duration::from_millis(100)));
    let log: String = (0..5).map(|n| line(&format!("203.0.113.{n}"), 1, "/slow")).collect();
    let (ended, report) = json(&server.url, &log, &["--in-flight", "1", "--speed", "10"]);
    assert_eq!(report["played"], 5, "none is left out");
    assert_eq!(server.most_under_way(), 1);
    assert_eq!(ended, Ended::NotValid);
    let lateness = &report["lateness"];
    assert!(lateness["sent"].as_u64().unwrap() >= 4, "{report}");
    // The third of five waits for two answers, the last for four.
    assert!(lateness["sent_p50_ms"].as_f64().unwrap() >= 200.0, "{report}");
    assert!(lateness["sent_most_ms"].as_f64().unwrap() >= 400.0, "{report}");
    assert!(lateness["answered_p50_ms"].as_f64() <= lateness["answered_most_ms"].as_f64());
}

#[test]
fn refusals_are_told_by_client_and_others_are_not() {
    let server = Server::start(|_| None);
    let log = [
        line("203.0.113.9", 1, "/429"),
        line("203.0.113.9", 3, "/429"),
        line("203.0.113.9", 2, "/200"),
        line("2001:db8::1", 2, "/404"),
        line("no-address", 2, "/429"),
        "what is this?\n".to_owned(),
    ]
    .concat();
    let (_, report) = json(&server.url, &log, &["--speed", "20"]);
    assert_eq!((&report["lines"], &report["played"]), (&6.into(), &4.into()));
    assert_eq!((&report["no_client"], &report["unparsed"]), (&1.into(), &1.into()));
    assert_eq!(report["refused"], 2);
    assert_eq!(report["refusing"], serde_json::json!([403, 429]));
    let clients = report["clients"].as_array().unwrap();
    assert_eq!(clients[0]["client"], "203.0.113.9");
    assert_eq!(clients[0]["statuses"]["429"], 2);
    assert_eq!(clients[0]["first"], "2015-05-18T08:05:01Z");
    assert_eq!(clients[0]["last"], "2015-05-18T08:05:03Z");
    assert_eq!((&clients[1]["refused"], &clients[1]["first"]), (&0.into(), &Value::Null));
}

#[test]
fn only_the_time_asked_for_is_played() {
    let server = Server::start(|_| None);
    let log: String = (1..=4).map(|n| line("203.0.113.9", n, &format!("/page/{n}"))).collect();
    let span = ["--from", "2015-05-18T08:05:02Z", "--until", "2015-05-18T10:05:04+02:00"];
    let (_, report) = json(&server.url, &log, &[&span[..], &["--speed", "100"]].concat());
    assert_eq!((&report["played"], &report["outside"]), (&2.into(), &2.into()));
    let heard = server.heard();
    assert!(
        heard[0].starts_with("GET /page/2 ") && heard[1].starts_with("GET /page/3 "),
        "{heard:?}"
    );
}

#[test]
fn the_report_for_people_is_80_columns_wide_whoever_was_refused() {
    let server = Server::start(|_| None);
    let wide = "2001:db8:1111:2222:3333:4444:5555:6666";
    let log = [line(wide, 1, "/429"), line("203.0.113.9", 1, "/403")].concat();
    let (_, text) = play(&server.url, &log, &[]).unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(text.contains("203.0.113.9 ") && text.contains("refused 2 of 2"), "{text}");
    let row = text.lines().find(|line| line.contains("203.0.113.9 ")).unwrap();
    assert!(row.contains("1 × 403"), "by which status it was refused: {row}");
    assert!(text.contains("half within"), "how late lines were: {text}");
    let (_, text) = play(&server.url, &log, &["--top", "1", "--refused", "429"]).unwrap();
    assert!(text.contains("refused 1 of 2") && !text.contains("203.0.113.9"), "{text}");
}

#[test]
fn where_nobody_listens_or_nothing_is_to_be_played_it_says_so() {
    let closed = Server::closed_url();
    let error = play(&closed, &line("203.0.113.9", 1, "/"), &[]).unwrap_err().to_string();
    assert!(error.contains(&format!("cannot connect to {closed}")), "{error}");
    let server = Server::start(|_| None);
    let (ended, text) = play(&server.url, "nothing\n", &[]).unwrap();
    assert_eq!(ended, Ended::NotValid);
    assert!(text.contains("NOT VALID: nothing was played"), "{text}");
}

#[test]
fn bad_usage_is_told_before_anything_is_read() {
    for bad in [["--speed", "0"], ["--speed", "x"], ["--in-flight", "0"], ["--refused", "1000"]] {
        let args = ["play", "log", "--to", "http://127.0.0.1:1"];
        assert!(Cli::try_parse_from(args.into_iter().chain(bad)).is_err(), "{bad:?}");
    }
    assert!(Cli::try_parse_from(["play", "log", "--to", "https://127.0.0.1"]).is_err());
}
