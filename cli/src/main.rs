//! The `hotgate` binary: see the library part of this crate.

use std::{
    env,
    io::{self, BufWriter, Write as _},
    process::ExitCode,
};

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut err = io::stderr().lock();
    let done = hotgate_cli::run(env::args_os(), &mut out, &mut err);
    match done.and_then(|status| out.flush().map(|()| status)) {
        Ok(status) => status.into(),
        // The reader has seen enough, as in `hotgate replay … | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(err, "hotgate: {error}");
            hotgate_cli::Status::Failed.into()
        }
    }
}
