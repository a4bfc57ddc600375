//! Hotgate's figures: each beside a peer in the same run.

use std::{io, process::ExitCode};

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
        #[arg(long, default_value_t = 21)]
        rounds: usize,
        /// Decisions in each of them.
        #[arg(long, default_value_t = 1 << 16)]
        slice: usize,
    },
}

fn main() -> ExitCode {
    let written = match Arguments::parse().command {
        Command::Bench { rounds, slice } => bench::run(rounds, slice, &mut io::stdout().lock()),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}
