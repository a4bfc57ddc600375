//! The binary's commands, each at the smallest size at which it says something.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_load-tests")).args(arguments).output().unwrap()
}

#[test]
fn the_parts_of_http_run_at_size_one_and_say_what_is_missing() {
    let tools = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_load-tests"))
        .args(["http", "--clients=1", "--requests=1", "--rounds=1", "--seconds=1"])
        .env("PATH", tools.path())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("skipped: ").count(), 2, "neither valgrind nor wrk\n{told}");
    for variant in ["does nothing", "one rule", "three rules", "tower_governor", "blocked"] {
        assert!(told.contains(variant), "{variant}\n{told}");
    }
}

#[test]
fn a_small_flood_keeps_every_promise() {
    let output = run(&["flood", "--keys=100000", "--limit=100", "--memory=8192"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("promises  kept").count(), 2, "a throttle and a block\n{told}");
}

#[test]
fn a_flood_that_the_table_cannot_bear_is_told_and_fails() {
    let output = run(&["flood", "--keys=100000", "--limit=100", "--memory=8"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("BROKEN"), "{told}");
}
