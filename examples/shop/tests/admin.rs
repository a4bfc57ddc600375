//! What the shop prints for its operator works as it is pasted.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
};

/// A running shop, killed with its test.
struct Shop(Child);

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What `hotgate ARGS…` prints.
fn hotgate(args: &[&str]) -> String {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["hotgate"].iter().chain(args).map(Into::into);
    let status = hotgate_cli::run(args, &mut out, &mut err).expect("memory can be written to");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    assert_eq!(status, hotgate_cli::Status::Done, "{}", text(err));
    text(out)
}

#[test]
fn the_token_it_prints_lets_the_operator_in() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shop"));
    command.args(["--listen", "127.0.0.1:0"]).env("RUST_LOG", "error").env_remove("HOTGATE_MODE");
    let mut shop = Shop(command.stdout(Stdio::piped()).spawn().expect("the shop runs"));
    let said = BufReader::new(shop.0.stdout.take().expect("a pipe")).lines();
    let export = said.map(|line| line.expect("text")).find(|line| line.contains("HOTGATE_TOKEN="));
    let export = export.expect("a line to paste");
    let value = |name: &str| {
        let (_, rest) = export.split_once(&format!("{name}=")).expect(name);
        rest.split_whitespace().next().expect("a value").to_owned()
    };
    let mut token = tempfile::NamedTempFile::new().expect("a file");
    token.write_all(value("HOTGATE_TOKEN").as_bytes()).expect("a file written");
    assert_eq!(value("HOTGATE_TOKEN").len(), 32);
    let (url, file) = (value("HOTGATE_URL"), token.path().to_str().expect("a path"));
    let asked = |args: &[&str]| hotgate(&[&["--url", &url, "--token-file", file], args].concat());

    assert!(asked(&["status"]).contains("login-stuffing"));
    asked(&["block", "login-stuffing", "127.0.0.1", "--for", "10m"]);
    assert!(asked(&["why", "127.0.0.1"]).contains("rule     login-stuffing (block): blocked"));
    asked(&["lift", "--all-rules", "127.0.0.1"]);
    assert_eq!(asked(&["hot"]), "no key is hot\n");
}
