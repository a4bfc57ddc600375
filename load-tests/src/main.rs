//! Hotgate's figures: each beside a peer in the same run.

use std::{io, num::NonZeroUsize, process::ExitCode};

use clap::{Parser, Subcommand};
use load_tests::play;

mod bench;
mod flood;
mod http;

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
    /// Does a gate stay small, and find and hold the few who matter, in a flood of keys?
    Flood {
        /// Different keys.
        #[arg(long, default_value = "5000000")]
        keys: u32,
        /// The rule's limit.
        #[arg(long, default_value = "1000", value_parser = clap::value_parser!(u32).range(10..=10_000))]
        limit: u32,
        /// `keys` of the gate's `[memory]`, if not the default.
        #[arg(long)]
        memory: Option<u32>,
    },
    /// What does a gate cost an Axum service, beside no gate and beside tower_governor?
    Http {
        /// Clients that callgrind sees once before it counts, at most 100,000.
        #[arg(long, default_value = "100000")]
        clients: u32,
        /// Requests that callgrind counts.
        #[arg(long, default_value = "20000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        requests: u32,
        /// How often wrk asks each server, one beside the other.
        #[arg(long, default_value = "20")]
        rounds: NonZeroUsize,
        /// For how long.
        #[arg(long, default_value = "2", value_parser = clap::value_parser!(u32).range(1..=3_600))]
        seconds: u32,
    },
    /// The requests that `http` counts under callgrind.
    #[command(hide = true)]
    Requests {
        variant: http::Variant,
        clients: u32,
        count: u32,
    },
    Play(play::Args),
}

fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    let done = match Arguments::parse().command {
        Command::Bench { rounds, slice, keys_max } => {
            let done = bench::run(rounds.get(), slice.get(), keys_max, &mut out);
            done.map(|()| ExitCode::SUCCESS)
        }
        Command::Flood { keys, limit, memory } => {
            flood::run(flood::Size { keys, limit, memory }, &mut out).map(exit_code)
        }
        Command::Http { clients, requests, rounds, seconds } => {
            let size = http::Size { clients, requests, rounds: rounds.get(), seconds };
            http::run(size, &mut out).map(exit_code)
        }
        Command::Requests { variant, clients, count } => {
            http::requests(variant, clients, count);
            Ok(ExitCode::SUCCESS)
        }
        Command::Play(args) => play::run(&args, interrupted(), &mut out).map(|ended| match ended {
            play::Ended::Valid => ExitCode::SUCCESS,
            play::Ended::NotValid => ExitCode::FAILURE,
        }),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn exit_code(every_promise_kept: bool) -> ExitCode {
    if every_promise_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Ready at the first Ctrl-C.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // No signal can be had here, so nothing but a kill ends it early.
        std::future::pending::<()>().await;
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
