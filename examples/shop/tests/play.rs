//! A real log, played to a running shop: what is refused is what replaying the log refuses.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::{
    fs,
    future::pending,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use clap::Parser;
use integration_tests::data_dir;
use load_tests::play;
use serde_json::Value;

/// As many log seconds in one, one try after the other, until the machine was fast enough for the run
/// to be valid. Half a log second is 100 ms, 250 ms and 500 ms.
const SPEEDS: [u64; 3] = [5, 2, 1];

/// The hour that is played.
const FROM: &str = "2015-05-18T08:00:00Z";
const UNTIL: &str = "2015-05-18T09:00:00Z";

/// The arguments of `play`, as the command line takes them.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    play: play::Args,
}

/// The shop's own binary.
struct Shop {
    process: Child,
    url: String,
}

impl Shop {
    fn open(rules: &Path) -> Shop {
        let mut process = Command::new(env!("CARGO_BIN_EXE_shop"))
            .args(["--listen", "127.0.0.1:0", "--rules"])
            .arg(rules)
            .env("RUST_LOG", "error")
            .env_remove("HOTGATE_MODE")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the shop runs");
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = said
            .find_map(|line| {
                let line = line.unwrap();
                let (_, after) = line.split_once("open at ")?;
                after.split_once(',').map(|(url, _)| url.to_owned())
            })
            .expect("the shop says where it listens");
        // Read on, so that the shop can write on.
        thread::spawn(move || said.for_each(drop));
        Shop { process, url }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn rules(folder: &Path, name: &str, over: &str, client: &str) -> PathBuf {
    let path = folder.join(name);
    let text = format!(
        "app = \"shop\"\n{client}\n[[rule]]\nname = \"r\"\nkey = [\"client\"]\nover = \"{over}\"\nthrottle = {{}}\n"
    );
    fs::write(&path, text).unwrap();
    path
}

/// Who was refused, how often, and when first and last.
type Refused = Vec<(String, u64, String, String)>;

fn refused(entries: &Value, name: &str) -> Refused {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let entries = entries.as_array().unwrap().iter();
    entries
        .filter(|entry| entry["refused"].as_u64().unwrap() > 0)
        .map(|entry| {
            let client = text(&entry[name]).trim_start_matches("client=").to_owned();
            let count = entry["refused"].as_u64().unwrap();
            (client, count, text(&entry["first"]), text(&entry["last"]))
        })
        .collect()
}

/// What a replay of the hour's lines refuses, with the window as it is.
fn replayed(folder: &Path, log: &Path, limit: u64, window: u64) -> Refused {
    let hour = folder.join("hour.log");
    let lines = fs::read_to_string(log).unwrap();
    let of_hour = lines.lines().filter(|line| line.contains("[18/May/2015:08:"));
    fs::write(&hour, of_hour.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let rules = rules(folder, &format!("{limit}-replayed.toml"), &format!("{limit}/{window}s"), "");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["hotgate", "replay", "--json", "--rules"].map(Into::into);
    let args = args.into_iter().chain([rules.into_os_string(), hour.into_os_string()]);
    hotgate_cli::run(args, &mut out, &mut err).unwrap();
    let report: Value = serde_json::from_slice(&out).expect("a JSON document");
    refused(&report["rules"][0]["keys"], "key")
}

/// What the shop refuses of the hour, with the window shortened by half a log second; `None` if the
/// machine was too slow to tell.
#[allow(clippy::print_stdout, reason = "a try that did not count says so")]
fn played(folder: &Path, log: &Path, limit: u64, window: u64, speed: u64) -> Option<Refused> {
    let over = format!("{limit}/{}ms", (window * 1000 - 500) / speed);
    let client = "[client]\nsource = \"x-forwarded-for\"\ntrusted_proxies = [\"127.0.0.0/8\"]";
    let shop = Shop::open(&rules(folder, &format!("{limit}-{speed}.toml"), &over, client));
    let speed = speed.to_string();
    let args = ["play", "--json", "--to", &shop.url, "--speed", &speed, "--from", FROM];
    let log = log.to_str().unwrap();
    let args = Cli::parse_from(args.into_iter().chain(["--until", UNTIL, log]));
    let mut out = Vec::new();
    let ended = play::run(&args.play, pending(), &mut out).expect("the shop listens");
    let report: Value = serde_json::from_slice(&out).expect("a JSON document");
    assert_eq!((&report["lines"], &report["outside"]), (&10_000.into(), &9_890.into()));
    assert_eq!(report["played"], 110, "{report}");
    if ended == play::Ended::NotValid {
        let (lateness, failure) = (&report["lateness"], &report["failure"]);
        println!("{limit}/{window}s at speed {speed} does not count: {lateness}, {failure}");
        return None;
    }
    Some(refused(&report["clients"], "client"))
}

#[test]
fn an_hour_played_at_speed_is_refused_as_in_a_replay() {
    let Some(data) = data_dir("elastic-apache") else { return };
    let log = data.join("apache_logs");
    let folder = tempfile::tempdir().unwrap();
    let check = |limit: u64, window: u64, count: u64| {
        let folder = folder.path().join(limit.to_string());
        fs::create_dir(&folder).unwrap();
        let expected = replayed(&folder, &log, limit, window);
        let of: Vec<_> = expected.iter().map(|(client, count, ..)| (&**client, *count)).collect();
        assert_eq!(of, [("75.97.9.59", count)], "the replay of {limit}/{window}s");
        let found = SPEEDS.iter().find_map(|speed| played(&folder, &log, limit, window, *speed));
        let found = found.expect("half a log second is enough at some speed");
        assert_eq!(found, expected, "played, {limit}/{window}s refuses what the replay refuses");
    };
    thread::scope(|scope| {
        scope.spawn(|| check(20, 10, 12));
        scope.spawn(|| check(60, 60, 48));
    });
}
