//! Every command that asks a gate, over real HTTP: on a terminal of 80 columns, piped, and as JSON.

use std::{
    io::Write as _,
    net::SocketAddr,
    process::{Command, Output},
};

use axum::Router;
use hotgate::{Gate, Mode};
use hotgate_cli::Status;
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::{net::TcpListener, runtime::Runtime};

use crate::{Run, arg, file};

const TOKEN: &str = "a-token-of-the-tests-0123456789";

/// A name as long as one may be, and keys as long as they are shown.
const RULES: &str = r#"
app = "shop"
[[deny]]
clients = ["198.51.100.0/24"]
note = "a partner that scraped us for a week and never answered a mail, see the ticket"
[[rule]]
name = "api"
key = ["client"]
over = "20/1m"
throttle = {}
note = "the quota of the free plan, as the price list has it; the paid plans stand in overrides"
[[rule]]
name = "a-rule-whose-name-is-as-long-as-the-name-of-a-rule-may-ever-be-x"
key = ["header:x-key"]
missing_key = "skip"
show_key = true
over = "10/1m"
block = { for = "15m" }
"#;

const LONG_RULE: &str = "a-rule-whose-name-is-as-long-as-the-name-of-a-rule-may-ever-be-x";

/// A gate whose admin router is served, at `/ops`.
struct Server {
    gate: Gate,
    url: String,
    token: NamedTempFile,
    _runtime: Runtime,
}

impl Server {
    fn start() -> Self {
        let gate = Gate::builder().rules(RULES.parse().unwrap()).build().unwrap();
        let admin = gate.admin_router().token(TOKEN).build().unwrap();
        let app: Router = Router::new().nest("/ops", admin);
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/ops", listener.local_addr().unwrap());
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        runtime.spawn(async move { axum::serve(listener, service).await });
        Server { gate, url, token: file(TOKEN), _runtime: runtime }
    }

    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let remote = ["--url", &self.url, "--token-file", arg(self.token.path())];
        remote.into_iter().chain(args.iter().copied()).collect()
    }

    /// As `hotgate ARGS…` into a pipe.
    fn run(&self, args: &[&str]) -> Run {
        crate::hotgate(self.args(args))
    }

    /// As `hotgate ARGS…` on a terminal of 80 columns, by the program itself.
    fn terminal(&self, args: &[&str]) -> Output {
        let quoted: Vec<_> = self.args(args).iter().map(|arg| format!("'{arg}'")).collect();
        let line = format!(
            "stty cols 80 rows 24; '{}' {}",
            env!("CARGO_BIN_EXE_hotgate"),
            quoted.join(" ")
        );
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).stdin(std::process::Stdio::null());
        script.output().expect("script(1), of Debian's bsdutils")
    }

    /// Something for every table.
    fn fill(&self) {
        let hour = std::time::Duration::from_secs(3_600);
        let long = format!("header:x-key={}", "k".repeat(200));
        self.gate.block(LONG_RULE, &long, hour).unwrap();
        self.gate.block("api", "2001:db8:1234:5678::/64", hour).unwrap();
        self.gate
            .deny("2001:db8:aaaa:bbbb:cccc:dddd:eeee:0/112", hour, Some(&"word ".repeat(40)))
            .unwrap();
        self.gate.set_mode(Some("api"), Mode::Observe).unwrap();
        self.gate.set_mode(None, Mode::Observe).unwrap();
    }
}

/// Every command, one after another, with what its answer holds.
const COMMANDS: &[(&[&str], &[&str])] = &[
    (
        &["status"],
        &[
            "app      shop",
            "mode     observe: commanded observe at 20",
            "observe*",
            "deny     2001:db8:",
            "by command, until 20",
            "api",
        ],
    ),
    (&["hot"], &["client=2001:d", "hand", "observed"]),
    (
        &["why", "198.51.100.7"],
        &[
            "rule     api (throttle, mode observe): nothing is known of it",
            "count    0 of 20 admitted in any 1m",
            "198.51.100.0/24",
            "file",
        ],
    ),
    (&["mode", "enforce"], &["mode    enforce for all rules"]),
    (&["mode", "enforce", "api"], &["mode    enforce for rule api"]),
    (
        &["block", "api", "203.0.113.9", "--for", "10m"],
        &["blocked client=203.0.113.9 under api until 20", "UTC (10m00s)"],
    ),
    (
        &["why", "client=203.0.113.9"],
        &["api (throttle): blocked", "by an operator since 20", "in force"],
    ),
    (
        &["lift", "api", "203.0.113.9"],
        &["lifted  1 verdict of client=203.0.113.9 under api; its counts are cleared"],
    ),
    (
        &["lift", "--all-rules", "client=203.0.113.9"],
        &["lifted  0 verdicts of client=203.0.113.9 under api"],
    ),
    (&["lift", "api", "--all"], &["lifted  1 verdict of every key under api"]),
    (
        &["deny", "203.0.113.0/24", "--for", "1h", "--note", "scraper"],
        &["denied  203.0.113.0/24 until 20", "(1h00m)"],
    ),
    (
        &["allow", "198.51.100.0/24", "--for", "1h"],
        &["allowed 198.51.100.0/24 until 20", "but     outweighed by [[deny]] of 198.51.100.0/24"],
    ),
    (&["metrics"], &["# TYPE hotgate_requests_total counter"]),
];

#[test]
fn every_command_fits_a_terminal_of_80_columns() {
    let server = Server::start();
    server.fill();
    for (args, expected) in COMMANDS {
        let output = server.terminal(args);
        let text = String::from_utf8(output.stdout).unwrap().replace('\r', "");
        assert!(output.status.success(), "{args:?}: {text}");
        assert!(!text.contains('\u{1b}'), "{args:?}: no escapes");
        for part in *expected {
            // A sentence may be broken into lines.
            let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat(&text).contains(&flat(part)), "{args:?}: expected {part:?} in\n{text}");
        }
        if *args != ["metrics"] {
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= 80, "{args:?}: a line of {widest} columns in\n{text}");
        }
    }
}

#[test]
fn every_command_is_plain_and_whole_in_a_pipe() {
    let server = Server::start();
    server.fill();
    let keys = server.run(&["hot"]).out;
    assert!(keys.contains(&"k".repeat(200)) && keys.contains(LONG_RULE), "{keys}");
    for (args, expected) in COMMANDS {
        let run = server.run(args);
        assert_eq!(run.status, Status::Done, "{args:?}: {}", run.err);
        assert_eq!(run.err, "", "{args:?}");
        assert!(!run.out.contains(['\u{1b}', '…']), "{args:?}: {}", run.out);
        for part in *expected {
            assert!(run.out.contains(part), "{args:?}: expected {part:?} in\n{}", run.out);
        }
    }
}

#[test]
fn every_command_but_metrics_prints_one_json_object_where_it_shall() {
    let server = Server::start();
    for (args, _) in COMMANDS.iter().filter(|(args, _)| *args != ["metrics"]) {
        let run = server.run(&[args, &["--json"][..]].concat());
        assert!(matches!(run.json(), Value::Object(_)), "{args:?}");
    }
    let status = server.run(&["status", "--json"]).json();
    assert_eq!((&status["app"], &status["rules"][0]["name"]), (&"shop".into(), &"api".into()));
}

#[test]
fn commands_are_in_force_when_they_return() {
    let server = Server::start();
    server.run(&["mode", "off"]);
    assert_eq!(server.gate.snapshot().mode.mode, Mode::Off);
    server.run(&["block", "api", "203.0.113.9", "--for", "10m"]);
    assert!(server.gate.verdict("api", "203.0.113.9").unwrap().is_some());
    server.run(&["lift", "--all-rules", "203.0.113.9"]);
    assert!(server.gate.verdict("api", "203.0.113.9").unwrap().is_none());
    server.run(&["deny", "203.0.113.0/24", "--for", "1h"]);
    assert_eq!(server.gate.snapshot().lists.len(), 1);
}

#[test]
fn what_cannot_be_done_says_why_and_how_it_ended() {
    let server = Server::start();
    for (args, status, said) in [
        (
            &["why", "user=7"][..],
            Status::Failed,
            "no rule has such a key, expected the parts of one: client or header:x-key",
        ),
        (
            &["block", "nope", "203.0.113.9", "--for", "1m"],
            Status::Failed,
            "no rule is named \"nope\"",
        ),
        (&["block", "api", "user=7", "--for", "1m"], Status::Usage, "not a key of this rule"),
        (&["block", "api", "203.0.113.9", "--for", "10"], Status::Usage, "expected a duration"),
        (&["block", "api", "203.0.113.9"], Status::Usage, "--for"),
        (&["deny", "203.0.113.9/24", "--for", "1m"], Status::Usage, "no bits beyond the prefix"),
        (&["lift", "api"], Status::Usage, "expected a rule and a key"),
        (&["lift", "api", "203.0.113.9", "--all"], Status::Usage, "expected a rule and a key"),
        (&["mode", "on"], Status::Usage, "possible values: enforce, observe, off"),
        (&["hot", "nope"], Status::Failed, "no rule is named \"nope\""),
        (&["hot", "--limit", "10001"], Status::Usage, "at most 10000"),
    ] {
        let run = server.run(args);
        assert_eq!(run.status, status, "{args:?}: {}", run.err);
        assert!(run.err.contains(said) && run.out.is_empty(), "{args:?}: {}", run.err);
    }
}

#[test]
fn who_cannot_be_asked_is_told_apart() {
    let server = Server::start();
    let wrong = file("another-token-0123456789");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let root = server.url.trim_end_matches("/ops").to_owned();
    let (token, wrong) = (arg(server.token.path()), arg(wrong.path()));
    for (url, token, status, said) in [
        (&*nobody, token, Status::Failed, "nobody listens at http://127.0.0.1:"),
        (&*server.url, wrong, Status::Failed, "the token is not the one that"),
        (&*root, token, Status::Failed, "as nothing that a gate serves"),
        ("https://127.0.0.1:1", token, Status::Usage, "https is not spoken here"),
        ("127.0.0.1:1", token, Status::Usage, "expected http://"),
        (
            &*server.url,
            "/nowhere/token",
            Status::Usage,
            "cannot read the token from /nowhere/token",
        ),
    ] {
        let run = crate::hotgate(["--url", url, "--token-file", token, "status"]);
        assert_eq!(run.status, status, "{url}: {}", run.err);
        assert!(run.err.contains(said) && run.out.is_empty(), "{url}: {}", run.err);
        assert!(!run.err.contains(TOKEN), "a token is never shown");
    }
}

#[test]
fn url_and_token_come_from_the_environment_too() {
    let server = Server::start();
    let run = |name: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotgate"));
        command
            .args(["status", "--json"])
            .env_remove("HOTGATE_TOKEN")
            .env_remove("HOTGATE_TOKEN_FILE");
        // A proxy of the environment gets no token to see.
        command.env("http_proxy", "http://127.0.0.1:1").env("HTTP_PROXY", "http://127.0.0.1:1");
        command.env("HOTGATE_URL", format!("{}/", server.url)).env(name, value).output().unwrap()
    };
    for (name, value) in
        [("HOTGATE_TOKEN", TOKEN), ("HOTGATE_TOKEN_FILE", arg(server.token.path()))]
    {
        let output = run(name, value);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let output = run("HOTGATE_NOTHING", "");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("expected the admin router's token"));
}

#[test]
fn a_redirect_takes_the_token_nowhere() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let target = url.clone();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let answer =
            format!("HTTP/1.1 302 Found\r\nLocation: {target}/x\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    });
    let token = file(TOKEN);
    let run = crate::hotgate(["--url", &url, "--token-file", arg(token.path()), "status"]);
    assert_eq!(run.status, Status::Failed);
    assert!(run.err.contains("answers 302 as nothing that a gate serves"), "{}", run.err);
    assert!(server.join().unwrap().accept().is_err(), "nobody came a second time");
}

#[test]
fn a_command_that_asks_no_gate_takes_no_url() {
    let rules = file(RULES);
    let run = crate::hotgate(["check", "--url", "http://127.0.0.1:1", arg(rules.path())]);
    assert_eq!(run.status, Status::Usage);
    assert!(run.err.contains("asks no gate"), "{}", run.err);
    let run = crate::hotgate(["status"]);
    assert_eq!(run.status, Status::Usage, "{}", run.err);
    assert!(run.err.contains("expected --url or HOTGATE_URL"), "{}", run.err);
}
