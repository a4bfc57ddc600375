use hotgate_cli::Status;

use crate::{arg, file, hotgate};

const GOOD: &str = r#"
app = "shop"

[[rule]]
name = "login-stuffing"
match = ["POST /login", "/auth.Auth/Login"]
except = ["/login/help"]
key = ["client"]
count = { status = [401, "5xx"] }
over = "10/1m"
block = { for = "15m" }

[[rule]]
name = "slow"
key = ["client", "param:id"]
match = "/x/{id}"
over = "40/40h"
throttle = {}
mode = "observe"

[[rule]]
name = "everything"
key = []
over = "5/4s"
throttle = {}

[[rule]]
name = "trap"
match = "/.env"
key = ["client"]
always = true
block = {}

[[rule]]
name = "checked"
match = []
key = ["client"]
over = "5/1m"
throttle = {}
"#;

#[test]
fn a_valid_file_is_said_rule_by_rule_with_its_sustained_rates() {
    let rules = file(GOOD);
    let run = hotgate(["check", arg(rules.path())]);
    assert_eq!(run.status, Status::Done, "{}", run.err);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(
        lines,
        [
            "login-stuffing: POST /login and /auth.Auth/Login except /login/help, by client: \
             10 responses with 401 or 5xx in any 1m (sustained: 10 a minute) block for 15m with 403",
            // C24: who meant 40 a second sees it here.
            "slow: /x/{id}, by client,param:id: at most 40 admitted in any 40h \
             (sustained: 1 an hour), the rest 429 (observes: nobody is refused)",
            "everything: every request, as one budget: at most 5 admitted in any 4s \
             (sustained: 1.25 a second), the rest 429",
            "trap: /.env, by client: every one is refused with 403",
            "checked: what handlers check, by client: at most 5 admitted in any 1m \
             (sustained: 5 a minute), the rest 429",
        ]
    );
}

const MORE: &str = r#"
app = "shop"

[[rule]]
name = "free"
when = { "x:plan" = ["free", "tri*"], host = "shop.example" }
key = ["user|client"]
over = "100/1m"
throttle = { pace = "1/2s", burst = 5 }
respond = { status = 503, content_type = "text/html", body_file = "busy.html" }
fields = true
from = 2026-11-27T00:00:00+01:00
until = 2026-11-30T00:00:00Z

[[rule]]
name = "readers"
key = ["client"]
count = { status = [404] }
over = "20/1m"
tag = { header = "X-Reader" }
mode = "observe"

[[rule]]
name = "maze"
match = "/wp-admin/{*rest}"
when = { bearer = "s3cret" }
key = []
always = true
handler = "maze"
"#;

#[test]
fn facts_paces_tags_handlers_answers_and_dates_are_said() {
    let rules = file(MORE);
    let run = hotgate(["check", arg(rules.path())]);
    assert_eq!(run.status, Status::Done, "{}", run.err);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(
        lines,
        [
            "free: every request when x:plan is free or tri* and host is shop.example, by \
             user|client: more than 100 in any 1m (sustained: 1.666 a second) slow the key to 30 a \
             minute, 5 at once, the rest 503; refusals are answered by its own busy.html; admitted \
             answers tell what is left; at the inner door, if there is one; from \
             2026-11-26T23:00:00Z until 2026-11-30T00:00:00Z",
            "readers: every request, by client: 20 responses with 404 in any 1m (sustained: 20 a \
             minute) mark the key's requests with x-reader (observes: nothing is done)",
            "maze: /wp-admin/{*rest} when bearer is a value that is not shown, as one budget: \
             every one is answered by the handler maze",
            "the service registers .user(f), .extractor(\"plan\", f), .handler(\"maze\", f)",
        ]
    );
    let json = hotgate(["check", "--json", arg(rules.path())]).json();
    assert_eq!(json["registered"][0], ".user(f)");
}

#[test]
fn a_file_without_rules_says_so() {
    let rules = file("app = \"shop\"");
    let run = hotgate(["check", arg(rules.path())]);
    assert_eq!((run.status, &*run.out, &*run.err), (Status::Done, "no rules\n", ""));
}

#[test]
fn every_error_is_said_with_its_place_and_the_exit_status_is_2() {
    let rules = file("app = \"Shop!\"\n[[rule]]\nname = \"a\"\nkey = [\"clint\"]\nover = \"10\"\n");
    let run = hotgate(["check", arg(rules.path())]);
    assert_eq!(run.status, Status::Usage);
    assert!(run.out.is_empty(), "{}", run.out);
    let lines: Vec<&str> = run.err.lines().collect();
    assert!(lines.len() >= 3, "all errors at once: {lines:?}");
    for line in lines {
        let place = line.strip_prefix(&format!("{}:", arg(rules.path()))).expect(line);
        let numbers: Vec<_> = place.splitn(3, ':').take(2).map(str::parse::<usize>).collect();
        assert!(numbers.iter().all(Result::is_ok), "file:line:column: {line}");
    }
}

#[test]
fn warnings_are_said_and_leave_the_file_valid() {
    let text =
        "app = \"a\"\n[[rule]]\nname = \"a\"\nkey = [\"path\"]\nover = \"1/1s\"\nthrottle = {}\n";
    let rules = file(text);
    let run = hotgate(["check", arg(rules.path())]);
    assert_eq!(run.status, Status::Done);
    let expected = format!("{}:4:7: warning: ", arg(rules.path()));
    assert!(run.err.starts_with(&expected), "{}", run.err);
    assert!(run.out.starts_with("a: every request, by path: "), "{}", run.out);

    let json = hotgate(["check", "--json", arg(rules.path())]).json();
    assert_eq!(json["valid"], true);
    assert_eq!(json["warnings"][0]["line"], 4);
    assert_eq!(json["warnings"][0]["column"], 7);
    assert_eq!(json["rules"][0]["name"], "a");
    assert_eq!(json["rules"][0]["action"], "throttle");
}

#[test]
fn json_holds_the_errors() {
    let rules = file("app = 1\n");
    let run = hotgate(["check", "--json", arg(rules.path())]);
    assert_eq!(run.status, Status::Usage);
    let json = run.json();
    assert_eq!(json["valid"], false);
    assert_eq!(json["errors"][0]["line"], 1, "{json}");
}

#[test]
fn a_file_that_cannot_be_read_is_bad_usage_and_named() {
    let run = hotgate(["check", "/nowhere/rules.toml"]);
    assert_eq!(run.status, Status::Usage);
    assert!(run.err.starts_with("/nowhere/rules.toml: "), "{}", run.err);

    let binary = file(b"app = \"a\"\nnote = \"\xff\"\n");
    let run = hotgate(["check", arg(binary.path())]);
    assert_eq!(run.status, Status::Usage);
    assert!(run.err.contains("line 2 is not valid UTF-8"), "{}", run.err);

    let run = hotgate(["check", "/dev/zero"]);
    assert_eq!(run.status, Status::Usage);
    assert_eq!(run.err, "/dev/zero: expected a rule file of at most 1048576 bytes\n");
}
