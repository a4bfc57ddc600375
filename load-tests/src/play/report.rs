//! What a play found, as `--json` prints it.

use std::{collections::BTreeMap, time::Duration};

use hotgate_detector::Time;
use http::StatusCode;
use serde::Serialize;

use super::{
    Args,
    lateness::Lateness,
    schedule::{Read, timestamp},
    slack,
    tally::{ClientTally, Tally},
};

/// What a play found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) log: String,
    pub(super) url: String,
    pub(super) speed: f64,
    /// Every line was answered within half a log second of its time.
    pub(super) valid: bool,
    pub(super) lines: u64,
    pub(super) played: u64,
    pub(super) unparsed: u64,
    /// Before `--from` or after `--until`.
    pub(super) outside: u64,
    /// Their first field is no address.
    pub(super) no_client: u64,
    /// They ask for nothing that an HTTP client can send.
    pub(super) no_request: u64,
    /// Due after the play was stopped.
    pub(super) stopped: u64,
    /// The moments of the first and the last line, RFC 3339, UTC; `null` where none was playable.
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    /// The statuses that count as refused.
    pub(super) refusing: Vec<u16>,
    pub(super) refused: u64,
    /// Lines without an answer.
    pub(super) failed: u64,
    /// Why the first of them has none.
    pub(super) failure: Option<String>,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) lateness: LatenessReport,
    /// Most refused first, then by address.
    pub(super) clients: Vec<ClientReport>,
}

/// How late lines were sent and answered.
#[derive(Debug, Serialize)]
pub(super) struct LatenessReport {
    /// Half a second of the log, in milliseconds of the play.
    pub(super) slack_ms: f64,
    /// Lines sent that late or later.
    pub(super) sent: u64,
    /// Half of the lines were sent at most that late.
    pub(super) sent_p50_ms: f64,
    pub(super) sent_most_ms: f64,
    /// Lines answered that late or later.
    pub(super) answered: u64,
    /// Half of the lines were answered at most that late.
    pub(super) answered_p50_ms: f64,
    pub(super) answered_most_ms: f64,
}

/// What one client got.
#[derive(Debug, Serialize)]
pub(super) struct ClientReport {
    pub(super) client: String,
    pub(super) played: u64,
    pub(super) refused: u64,
    pub(super) statuses: BTreeMap<u16, u64>,
    /// When the first and the last of the refused lines were logged.
    pub(super) first: Option<String>,
    pub(super) last: Option<String>,
}

impl Report {
    pub(super) fn new(args: &Args, read: Read, playable: u64, tally: Tally) -> Self {
        let valid = tally.is_valid();
        let mut clients: Vec<_> = tally.clients.into_iter().map(ClientReport::new).collect();
        clients.sort_by(|a, b| b.refused.cmp(&a.refused).then_with(|| a.client.cmp(&b.client)));
        Report {
            log: args.log.display().to_string(),
            url: args.to.to_string(),
            speed: args.speed,
            valid,
            lines: read.lines,
            played: tally.played,
            unparsed: read.unparsed,
            outside: read.outside,
            no_client: read.no_client,
            no_request: read.no_request,
            stopped: playable - tally.played,
            from: read.span.map(|(first, _)| rfc3339(first)),
            to: read.span.map(|(_, last)| rfc3339(last)),
            refusing: args.refused.iter().map(StatusCode::as_u16).collect(),
            refused: tally.refused,
            failed: tally.failed,
            failure: tally.failure,
            statuses: tally.statuses,
            lateness: LatenessReport::new(slack(args.speed), &tally.sent, &tally.answered),
            clients,
        }
    }
}

impl LatenessReport {
    fn new(slack: Duration, sent: &Lateness, answered: &Lateness) -> Self {
        LatenessReport {
            slack_ms: milliseconds(slack),
            sent: sent.too_late(),
            sent_p50_ms: milliseconds(sent.p50()),
            sent_most_ms: milliseconds(sent.most()),
            answered: answered.too_late(),
            answered_p50_ms: milliseconds(answered.p50()),
            answered_most_ms: milliseconds(answered.most()),
        }
    }
}

impl ClientReport {
    fn new((client, tally): (String, ClientTally)) -> Self {
        let ClientTally { played, refused, statuses, span } = tally;
        let (first, last) = span.map(|(first, last)| (rfc3339(first), rfc3339(last))).unzip();
        ClientReport { client, played, refused, statuses, first, last }
    }
}

/// To a hundredth.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100_000.0).round() / 100.0
}

/// Such as `2015-05-18T08:05:10Z`.
fn rfc3339(time: Time) -> String {
    timestamp(time).to_string()
}
