//! The commands as a user calls them: arguments in; output, messages and exit status out.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod admin;
mod binary;
mod check;
mod explain;
mod oracle;
mod real_logs;
mod replay;

use std::{io::Write as _, path::Path};

use hotgate_cli::Status;
use serde_json::Value;

/// What one call printed.
struct Run {
    status: Status,
    out: String,
    err: String,
}

impl Run {
    /// The one JSON object of a `--json` call.
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// Calls `hotgate ARGS…`.
fn hotgate<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = hotgate_cli::run(["hotgate".into()].into_iter().chain(args), &mut out, &mut err);
    let status = status.expect("writing to memory does not fail");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Run { status, out: text(out), err: text(err) }
}

/// A temporary file that holds `text`.
fn file(text: impl AsRef<[u8]>) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_ref()).unwrap();
    file
}

/// A path as an argument.
fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn bad_usage_is_2_and_help_is_0() {
    for args in [&["replay"][..], &["frobnicate"], &[], &["check"], &["explain", "GET /"]] {
        let run = hotgate(args);
        assert_eq!(run.status, Status::Usage, "{args:?}");
        assert!(run.out.is_empty() && !run.err.is_empty(), "{args:?}: errors go to stderr");
    }
    for args in [["--help"], ["--version"]] {
        let run = hotgate(args);
        assert_eq!(run.status, Status::Done, "{args:?}");
        assert!(run.err.is_empty() && !run.out.is_empty(), "{args:?}");
    }
}
