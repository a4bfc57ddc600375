//! The `hotgate` binary: see the library part of this crate.

use std::{
    env,
    io::{self, BufWriter, IsTerminal as _, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    let mut out = BufWriter::new(WhileRead(io::stdout().lock()));
    let mut err = WhileRead(io::stderr().lock());
    let done = hotgate_cli::run_at(columns(), env::args_os(), &mut out, &mut err);
    match done.and_then(|status| out.flush().map(|()| status)) {
        Ok(status) => status.into(),
        Err(error) => {
            let _ = writeln!(err, "hotgate: {error}");
            hotgate_cli::Status::Failed.into()
        }
    }
}

/// How wide the terminal is, 80 where it does not say; `None` where the output goes elsewhere.
fn columns() -> Option<usize> {
    let term = io::stdout().is_terminal().then(console::Term::stdout)?;
    Some(term.size_checked().map_or(80, |(_, columns)| columns.into()))
}

/// Writes until nobody reads any more, and from then on to nowhere: how a command ends does not
/// depend on how much of its answer is read, as in `hotgate check … | head`.
struct WhileRead<W>(W);

impl<W: Write> Write for WhileRead<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            done => done,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => done,
        }
    }
}
