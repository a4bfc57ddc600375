#![no_main]

#[path = "../../rules/tests/it/checks.rs"]
#[allow(dead_code, reason = "one check for each target")]
mod checks;

use std::ffi::{OsStr, OsString};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if checks::rule_file(text).is_none() {
        return;
    }
    // What is read can be explained.
    let file = std::env::temp_dir().join(format!("hotgate-fuzz-{}.toml", std::process::id()));
    std::fs::write(&file, text).expect("a writable temporary folder");
    let (path, request) = (file.as_os_str(), OsStr::new("GET /a/b?q=1"));
    for words in [vec!["check".as_ref(), path], vec!["explain".as_ref(), "--rules".as_ref(), path, request]] {
        let words = std::iter::once(OsStr::new("hotgate")).chain(words).map(OsString::from);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        hotgate_cli::run(words, &mut out, &mut err).expect("writing to memory");
        assert!(!out.is_empty() || !err.is_empty(), "it says something");
    }
});
