//! `load-tests play`: a real access log over HTTP, and what was refused of it.
//!
//! Open loop: each line is sent at its time, divided by the speed, whatever became of those before.
//! Where a log tells whole seconds, all lines of a second are due at its beginning. Those of one
//! client go out in the order of the log, each after the answer to the one before, so that the server
//! decides them in that order; different clients do not wait for each other.
//!
//! A request is decided between its sending and the head of its answer. While both come within half a
//! log second of its time, two requests that are n seconds apart in the log are decided between
//! n − 0.5 and n + 0.5 log seconds apart. So a window of W − 0.5 log seconds counts exactly the lines
//! that a window of W seconds counts in the log, whatever the jitter. A run that was later than that
//! says that it is not valid.

mod lateness;
mod line;
mod report;
mod schedule;
mod send;
mod tally;
mod text;

use std::{
    future::Future,
    io::{self, Write},
    num::NonZeroUsize,
    path::PathBuf,
    time::Duration,
};

use http::StatusCode;
use indicatif::ProgressBar;
use jiff::Timestamp;
use tokio::runtime;

use report::Report;
use schedule::Schedule;
use send::Sender;
use tally::Tally;

pub use send::{NoTarget, Target};

/// Play an access log to a server, and say what was refused, and to whom.
///
/// Reads the Common and the Combined format. The client of a line goes out as X-Forwarded-For: the
/// server must trust 127.0.0.1 as a proxy (`[client]` source and trusted_proxies).
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The access log; - is standard input.
    #[arg(value_name = "LOG")]
    pub log: PathBuf,
    /// The server, such as http://127.0.0.1:8080.
    #[arg(long, value_name = "URL")]
    pub to: Target,
    /// How many seconds of the log pass in one.
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed)]
    pub speed: f64,
    /// Leave out what was logged before, such as 2015-05-18T08:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub from: Option<Timestamp>,
    /// Leave out what was logged then or later.
    #[arg(long, value_name = "TIME")]
    pub until: Option<Timestamp>,
    /// Requests under way at once, each on a connection of its own; beyond them the next are late.
    #[arg(long, value_name = "N", default_value = "256")]
    pub in_flight: NonZeroUsize,
    /// The statuses that count as refused.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', default_value = "403,429")]
    pub refused: Vec<StatusCode>,
    /// Print one JSON object, with every client.
    #[arg(long)]
    pub json: bool,
    /// How many refused clients to show.
    #[arg(long, value_name = "N", default_value = "20", conflicts_with = "json")]
    pub top: usize,
}

/// A run that is late has refused for other reasons than the log gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every line was decided in time: exit status 0.
    Valid,
    /// Some were late or got no answer, or there was nothing to play: exit status 1.
    NotValid,
}

/// Plays the log until its end or until `stop` is ready, and reports to `out`; a progress bar goes to a
/// terminal.
///
/// # Errors
///
/// When the log cannot be read, nobody listens at the target, or `out` cannot be written.
pub fn run(args: &Args, stop: impl Future<Output = ()>, out: &mut dyn Write) -> io::Result<Ended> {
    let schedule = Schedule::read(args)?;
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let progress = ProgressBar::new(schedule.playable());
    let report = runtime.block_on(play(args, schedule, stop, &progress))?;
    progress.finish_and_clear();
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        text::write(&report, args.top, out)?;
    }
    Ok(if report.valid { Ended::Valid } else { Ended::NotValid })
}

async fn play(
    args: &Args,
    schedule: Schedule,
    stop: impl Future<Output = ()>,
    progress: &ProgressBar,
) -> io::Result<Report> {
    let tally = Tally::new(&args.refused, slack(args.speed));
    let sender = Sender::connect(args.to.clone(), args.in_flight, tally).await?;
    let (read, playable) = (schedule.found(), schedule.playable());
    sender.send_all(schedule, stop, progress).await?;
    Ok(Report::new(args, read, playable, sender.into_tally()))
}

/// Half a second of the log, in the time of the play: what jitter may not exceed.
fn slack(speed: f64) -> Duration {
    Duration::from_millis(500).div_f64(speed)
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        // Beyond these a second of the log is no span that a timer can tell.
        Ok(speed) if (0.001..=1000.0).contains(&speed) => Ok(speed),
        _ => Err("expected a number from 0.001 to 1000".to_owned()),
    }
}
