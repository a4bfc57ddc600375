//! What only the program itself can show: pipes and exit codes.

use std::{
    io::{self, Write as _},
    process::{Command, Stdio},
};

use crate::{arg, file};

const RULES: &str =
    "app = \"t\"\n[[rule]]\nname = \"r\"\nkey = [\"client\"]\nover = \"2/10s\"\nthrottle = {}\n";
const LINE: &str = "203.0.113.9 - - [17/May/2015:10:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n";

fn hotgate() -> Command {
    Command::new(env!("CARGO_BIN_EXE_hotgate"))
}

/// A pipe can be read only once, a replay reads its logs three times.
#[test]
fn a_log_can_come_through_a_pipe() {
    let rules = file(RULES);
    for name in ["-", "/dev/stdin"] {
        let mut command = hotgate();
        command.args(["replay", "--json", "--rules", arg(rules.path()), name]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(LINE.repeat(5).as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["rules"][0]["keys"][0]["matched"], 5, "{name}");
        assert_eq!(json["rules"][0]["refused"], 3, "{name}");
    }
}

/// As in `hotgate replay … | head`.
#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let rules = file(RULES);
    let mut command = hotgate();
    command.args(["replay", "--rules", arg(rules.path()), "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program writes only after its input ends, when nobody reads any more.
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(LINE.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// As in `hotgate check … | head`, in a script that goes by the exit code.
#[test]
fn the_exit_code_is_the_same_when_nobody_reads() {
    let (rules, invalid, bad) = (file(RULES), file("app = 1\n"), file("garbage\n"));
    let table = [
        (vec!["check", arg(invalid.path())], 2),
        (vec!["check", "--json", arg(invalid.path())], 2),
        (vec!["check", "/nowhere/rules.toml"], 2),
        (vec!["replay", "--rules", arg(rules.path()), arg(bad.path())], 1),
        (vec!["check", arg(rules.path())], 0),
    ];
    for (args, expected) in table {
        let closed = || {
            let (reader, writer) = io::pipe().unwrap();
            drop(reader);
            writer
        };
        let status = hotgate().args(&args).stdout(closed()).stderr(closed()).status().unwrap();
        assert_eq!(status.code(), Some(expected), "{args:?}");
    }
}

#[test]
fn the_exit_code_says_how_it_ended() {
    let (rules, good, bad) = (file(RULES), file(LINE), file("garbage\n"));
    let table = [(arg(good.path()), 0), (arg(bad.path()), 1), ("/nowhere/access.log", 2)];
    for (log, expected) in table {
        let output =
            hotgate().args(["replay", "--rules", arg(rules.path()), log]).output().unwrap();
        assert_eq!(output.status.code(), Some(expected), "{log}");
    }
}
