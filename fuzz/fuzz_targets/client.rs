#![no_main]

#[path = "../../rules/tests/it/checks.rs"]
#[allow(dead_code, reason = "one check for each target")]
mod checks;

libfuzzer_sys::fuzz_target!(|text: &[u8]| checks::client(text));
