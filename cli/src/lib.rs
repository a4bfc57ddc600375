//! The `hotgate` command line: `check`, `explain` and `replay` on rule files, and `status`, `hot`, `why`,
//! `block`, `lift`, `deny`, `allow`, `mode` and `metrics` of a running gate.
//!
//! Results go to `out`, errors, warnings and notes to `err`. The exit status is 0 when the work is
//! done, 1 when it failed, 2 for bad usage or bad rules.

mod admin;
mod check;
mod explain;
pub mod log;
mod replay;
mod rule_file;
mod sentence;

use std::{
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done: exit status 0. Also a `check` with warnings only and a `replay` that refused.
    Done,
    /// It failed, such as a `replay` in whose logs nothing could be parsed: exit status 1.
    Failed,
    /// Bad usage or bad rules: exit status 2.
    Usage,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(match status {
            Status::Done => 0,
            Status::Failed => 1,
            Status::Usage => 2,
        })
    }
}

/// API rate and bot protection: rules in one file, judged before they are in force.
#[derive(Debug, Parser)]
#[command(name = "hotgate", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    remote: admin::Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(check::Args),
    Explain(Box<explain::Args>),
    Replay(replay::Args),
    #[command(flatten)]
    Admin(admin::Command),
}

/// Runs the command that `args` (the program's name first) asks for. `out` takes lines of any length.
///
/// # Errors
///
/// When `out` or `err` cannot be written to, or a temporary file fails.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Status> {
    run_at(None, args, out, err)
}

/// As [`run`], on a terminal of so many columns, to which tables of a running gate are fitted.
///
/// # Errors
///
/// As of [`run`].
pub fn run_at(
    columns: Option<usize>,
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Status> {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            write!(err, "{error}")?;
            return Ok(Status::Usage);
        }
        // `--help` and `--version`.
        Err(answer) => {
            write!(out, "{answer}")?;
            return Ok(Status::Done);
        }
    };
    let asks_gate = matches!(cli.command, Command::Admin(_));
    if !asks_gate && (cli.remote.url.is_some() || cli.remote.token_file.is_some()) {
        writeln!(
            err,
            "error: this command asks no gate, so it takes no --url and no --token-file"
        )?;
        return Ok(Status::Usage);
    }
    match cli.command {
        Command::Check(args) => check::run(&args, out, err),
        Command::Explain(args) => explain::run(&args, out, err),
        Command::Replay(args) => replay::run(&args, out, err),
        Command::Admin(command) => admin::run(&cli.remote, &command, columns, out, err),
    }
}

/// Writes `value` as JSON, indented, with a newline at its end.
fn write_json(out: &mut dyn Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
