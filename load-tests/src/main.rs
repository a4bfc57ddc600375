//! Hotgate's figures: each beside a peer in the same run.

use std::{io, num::NonZeroUsize, process::ExitCode};

use clap::{Parser, Subcommand};

mod bench;

#[derive(Parser)]
#[command(name = "load-tests", about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What does one decision cost, beside governor's keyed check?
    Bench {
        /// How often each variant is timed; the figures are the lower quartile.
        #[arg(long, default_value = "21")]
        rounds: NonZeroUsize,
        /// Decisions in each of them.
        #[arg(long, default_value = "65536")]
        slice: NonZeroUsize,
        /// The most clients, of 1,000, 100,000 and 1,000,000.
        #[arg(long, default_value = "1000000")]
        keys_max: u32,
    },
}

fn main() -> ExitCode {
    let written = match Arguments::parse().command {
        Command::Bench { rounds, slice, keys_max } => {
            bench::run(rounds.get(), slice.get(), keys_max, &mut io::stdout().lock())
        }
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_of_nothing_is_bad_usage() {
        for nothing in ["--rounds=0", "--slice=0"] {
            assert!(Arguments::try_parse_from(["load-tests", "bench", nothing]).is_err());
        }
        assert!(Arguments::try_parse_from(["load-tests", "bench"]).is_ok());
    }
}
