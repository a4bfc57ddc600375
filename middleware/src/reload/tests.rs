use std::{fs, sync::Arc, time::Duration};

use hotgate_rules::Peer;
use http::Request;
use quanta::Mock;
use tempfile::TempDir;

use super::*;
use crate::{Gate, PeerAddr, admission::Admission, logged::Logged, mark::Place, worker::Worker};

/// A gate with a rule file, whose thread is this test.
struct Fixture {
    folder: TempDir,
    gate: Gate,
    worker: Worker,
    clock: Arc<Mock>,
}

/// `over` by client under `name`, with `more` lines.
fn rule(name: &str, over: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\nkey = [\"client\"]\nover = \"{over}\"\nthrottle = {{}}\n")
}

fn file(rules: &str) -> String {
    format!("app = \"test\"\n{rules}")
}

impl Fixture {
    fn new(rules: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hotgate.toml");
        fs::write(&path, file(rules)).unwrap();
        let (clock, mock) = quanta::Clock::mock();
        let (gate, worker) = Gate::builder().file(path).peer(PeerAddr::of).pair(clock).unwrap();
        Fixture { folder, gate, worker, clock: mock }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("hotgate.toml")
    }

    /// Puts `text` in the file's place, and lets it stand.
    fn replace(&mut self, text: &str) {
        let other = self.folder.path().join("new");
        fs::write(&other, text).unwrap();
        fs::rename(other, self.path()).unwrap();
        self.ticks(10);
    }

    fn ticks(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.clock.increment(Duration::from_millis(100));
            self.worker.tick(self.gate.shared());
        }
    }

    fn limits(&self) -> Vec<Option<String>> {
        self.gate.snapshot().rules.into_iter().map(|rule| rule.over).collect()
    }

    /// What is wrong with the file, without its folder.
    fn problems(&self) -> Vec<String> {
        let failed = self.gate.snapshot().reload.failed;
        let folder = format!("{}/", self.folder.path().display());
        let problems = failed.map(|failed| failed.problems).unwrap_or_default();
        problems.into_iter().map(|problem| problem.replace(&folder, "")).collect()
    }

    fn counts(&self) -> [u64; 4] {
        self.gate.shared().reloads.counts().map(|(_, count)| count)
    }

    /// How many of `requests` pass.
    fn passing(&self, requests: usize) -> usize {
        let passes = || {
            let peer = PeerAddr(Peer::Ip([203, 0, 113, 9].into()));
            let request = Request::get("/").extension(peer).body(()).unwrap();
            matches!(
                self.gate.admit(Place::Outer, &mut request.into_parts().0),
                Admission::Admitted(_)
            )
        };
        (0..requests).filter(|_| passes()).count()
    }
}

fn limit(over: &str) -> Option<String> {
    Some(over.to_owned())
}

#[test]
fn a_limit_that_changes_is_judged_against_the_living_counts() {
    // C56
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    assert_eq!(gate.passing(50), 50);
    gate.replace(&file(&rule("api", "10/1h")));
    assert_eq!(gate.limits(), [limit("10/1h")]);
    assert_eq!(gate.passing(10), 0, "fifty stand in the window");
    assert_eq!(gate.counts(), [1, 0, 0, 0]);

    let mut gate = Fixture::new(&rule("api", "50/1h"));
    assert_eq!(gate.passing(30), 30);
    gate.replace(&file(&rule("api", "60/1h")));
    assert_eq!(gate.passing(50), 30, "thirty stand in the window");
}

#[test]
fn a_file_that_is_half_written_is_not_taken() {
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    let whole = file(&(rule("api", "20/1h") + &rule("other", "30/1h")));
    let half = whole.split("[[rule]]\nname = \"other\"").next().unwrap().to_owned();
    assert!(half.parse::<RuleSet>().is_ok(), "rules that could be taken for the whole");
    fs::write(gate.path(), &half).unwrap();
    gate.ticks(4);
    fs::write(gate.path(), &whole).unwrap();
    gate.ticks(4);
    assert_eq!(gate.limits(), [limit("100/1h")], "neither has stood still for long enough");
    gate.ticks(1);
    assert_eq!(gate.limits(), [limit("20/1h"), limit("30/1h")]);
    assert_eq!(gate.counts(), [1, 0, 0, 0], "the half was never in force");
}

#[test]
fn errors_are_told_once_and_leave_the_rules_in_force() {
    // C55, C58
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    let logged = Logged::default();
    let _guard = logged.listen();
    let version = gate.gate.version();
    gate.replace(&file(
        "[[allow]]\nclients = [\"10.0.0.0/8\", \"300.1.1.0/24\"]\nnot = \"known\"\n",
    ));
    gate.ticks(100);
    let problems = gate.problems();
    assert_eq!(problems.len(), 2, "all of them: {problems:?}");
    assert!(problems[0].starts_with("hotgate.toml:3:26: "), "{problems:?}");
    assert!(problems[1].starts_with("hotgate.toml:4:1: "), "{problems:?}");
    for problem in &problems {
        assert_eq!(logged.lines_with(problem).len(), 1, "said once: {problem}");
    }
    assert_eq!(logged.lines_with(&format!("version {version} stay in force")).len(), 1);
    assert_eq!((gate.limits(), gate.counts()), (vec![limit("100/1h")], [0, 0, 1, 0]));

    gate.replace("app = \n");
    assert_eq!(logged.lines_with("hotgate.toml:1:7: ").len(), 1, "another error is told");

    fs::remove_file(gate.path()).unwrap();
    gate.ticks(100);
    assert_eq!(logged.lines_with("cannot read the rule file").len(), 1);
    assert_eq!((gate.limits(), gate.counts()), (vec![limit("100/1h")], [0, 0, 2, 1]));

    gate.replace(&file(&rule("api", "9/1h")));
    assert_eq!(gate.limits(), [limit("9/1h")], "the fix is picked up");
    assert!(gate.problems().is_empty());
    let told = logged.lines_with("other rules are in force");
    assert_eq!(told.len(), 1);
    for part in [format!("from=\"{version}\""), format!("to=\"{}\"", gate.gate.version())] {
        assert!(told[0].contains(&part), "{part} in {}", told[0]);
    }
}

#[test]
fn the_same_rules_again_are_no_change() {
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    gate.replace("no rules\n");
    assert!(!gate.problems().is_empty());
    gate.replace(&file(&rule("api", "100/1h")));
    assert!(gate.problems().is_empty(), "what failed has been taken back");
    assert_eq!(gate.counts(), [0, 1, 1, 0]);
    fs::write(gate.path(), file(&rule("api", "100/1h"))).unwrap();
    gate.ticks(10);
    assert_eq!(gate.counts(), [0, 1, 1, 0], "written again with the same content");
}

#[test]
fn what_cannot_be_read_waits_for_nobody_and_leaves_the_rules_in_force() {
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    let path = gate.path();

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    gate.ticks(10);
    assert_eq!(
        gate.problems(),
        ["hotgate.toml: cannot read the rule file: expected a file, found a directory"]
    );

    fs::remove_dir(&path).unwrap();
    #[cfg(unix)]
    {
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        gate.ticks(10);
        assert_eq!(
            gate.problems(),
            ["hotgate.toml: cannot read the rule file: expected a file, found a pipe or a device"]
        );
        fs::remove_file(&path).unwrap();
    }

    gate.replace(&"#".repeat(RuleSet::FILE_BYTES_MAX + 1));
    assert!(gate.problems()[0].contains("at most 1048576 bytes"), "{:?}", gate.problems());

    fs::write(&path, b"app = \"test\"\n# \xff\n").unwrap();
    gate.ticks(10);
    assert_eq!(
        gate.problems(),
        ["hotgate.toml: cannot read the rule file: line 2 is not valid UTF-8"]
    );
    assert_eq!(gate.limits(), [limit("100/1h")]);
    gate.replace(&file(&rule("api", "9/1h")));
    assert_eq!(gate.limits(), [limit("9/1h")], "the fix is picked up");
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_leaves_the_rules_in_force() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    fs::set_permissions(gate.path(), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(gate.path()).is_ok() {
        println!("skipped: this user may read every file");
        return;
    }
    gate.ticks(10);
    assert!(gate.problems()[0].contains("denied"), "{:?}", gate.problems());
    assert_eq!(gate.limits(), [limit("100/1h")]);
}

#[test]
fn what_needs_a_restart_is_refused_with_that_sentence() {
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    for (text, what) in [
        (file(&rule("api", "9/1h")).replace("\"test\"", "\"shop\""), "app"),
        (file(&rule("api", "9/1h")) + "[memory]\nkeys = 5000\n", "[memory]"),
        (file(&rule("api", "9/1h")) + "[privacy]\nsecret_file = \"secret\"\n", "[privacy]"),
    ] {
        gate.replace(&text);
        let problems = gate.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(what) && problems[0].contains("restart"), "{problems:?}");
        assert_eq!(gate.limits(), [limit("100/1h")]);
    }
}

#[test]
fn a_change_that_the_file_system_does_not_show_is_found_by_the_content() {
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    gate.ticks(1);
    let before = fs::metadata(gate.path()).unwrap().modified().unwrap();
    fs::write(gate.path(), file(&rule("api", "900/1h"))).unwrap();
    fs::File::options().write(true).open(gate.path()).unwrap().set_modified(before).unwrap();
    // Nothing sets ctime back: as if it had no finer grain, the stamp is taken for the new one.
    let stamp = fs::metadata(gate.path());
    gate.worker.reload.as_mut().unwrap().watch.pretend_seen(&stamp.unwrap());
    gate.ticks(20);
    assert_eq!(gate.limits(), [limit("100/1h")], "the file seems unchanged");
    gate.ticks(20);
    assert_eq!(gate.limits(), [limit("900/1h")], "three seconds after it was read last");
}

#[test]
fn rules_that_the_service_cannot_meet_are_refused() {
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    gate.replace(&file(&rule("api", "9/1h").replace("\"client\"", "\"user\", \"x:tenant\"")));
    let problems = gate.problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("user") && problems[1].contains("x:tenant"), "{problems:?}");
    assert_eq!(gate.limits(), [limit("100/1h")]);
}

#[test]
fn rules_that_wait_for_another_file_are_taken_once_it_is_there() {
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    let logged = Logged::default();
    let _guard = logged.listen();
    gate.replace(&file(
        &(rule("api", "9/1h")
            + "respond = { content_type = \"text/html\", body_file = \"sorry.html\" }\n"),
    ));
    gate.ticks(100);
    assert_eq!(logged.lines_with("cannot read body_file").len(), 1, "told once");
    assert_eq!((gate.limits(), gate.counts()), (vec![limit("100/1h")], [0, 0, 1, 0]));
    fs::write(gate.folder.path().join("sorry.html"), "sorry").unwrap();
    gate.ticks(31);
    assert_eq!((gate.limits(), gate.counts()), (vec![limit("9/1h")], [1, 0, 1, 0]));
}

#[test]
fn commands_hold_over_every_version_of_the_file() {
    let mut gate = Fixture::new(&rule("api", "1/1h"));
    gate.gate.set_mode(Some("api"), hotgate_rules::Mode::Observe).unwrap();
    assert_eq!(gate.passing(5), 5);
    gate.replace(&file(&rule("api", "2/1h")));
    assert_eq!((gate.limits(), gate.passing(5)), (vec![limit("2/1h")], 5));
}

#[test]
fn warnings_of_the_new_file_are_told() {
    let mut gate = Fixture::new(&rule("api", "100/1h"));
    let logged = Logged::default();
    let _guard = logged.listen();
    let text = file(&rule("api", "9/1h")).replace("throttle = {}", "block = { for = \"60d\" }");
    let rules: RuleSet = text.parse().unwrap();
    let warning = rules.warnings()[0].to_string();
    gate.replace(&text);
    assert_eq!(logged.lines_with(&format!("hotgate.toml:{warning}")).len(), 1, "{warning}");
}

#[test]
fn rules_from_code_watch_no_file() {
    let rules = file(&rule("api", "9/1h")).parse().unwrap();
    let (_gate, worker) =
        Gate::builder().rules(rules).peer(PeerAddr::of).pair(quanta::Clock::new()).unwrap();
    assert!(worker.reload.is_none());
}
