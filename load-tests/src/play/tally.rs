//! What came of what was sent.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use hotgate_detector::Time;
use http::StatusCode;

use super::lateness::Lateness;

/// Clients that are told apart, so that a log of ever new ones fills no memory; what others were
/// refused still counts in the sums.
const CLIENTS_MAX: usize = 100_000;

/// What came of one line.
pub(super) struct Answer {
    pub(super) logged: Time,
    /// The answer's status, or why there was none.
    pub(super) status: Result<StatusCode, String>,
    /// How long after its time it was sent.
    pub(super) sent_late: Duration,
    /// How long after its time its answer came.
    pub(super) answered_late: Duration,
}

/// Sums over all lines, and over those of each client.
#[derive(Debug)]
pub(super) struct Tally {
    refusing: Vec<StatusCode>,
    pub(super) played: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    /// Why the first line that failed did.
    pub(super) failure: Option<String>,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) sent: Lateness,
    pub(super) answered: Lateness,
    pub(super) clients: HashMap<String, ClientTally>,
}

/// What one client got.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientTally {
    pub(super) played: u64,
    pub(super) refused: u64,
    pub(super) statuses: BTreeMap<u16, u64>,
    /// The times, in the log, of the first and the last refusal.
    pub(super) span: Option<(Time, Time)>,
}

impl Tally {
    /// Nothing yet. `refusing` are the statuses that count as refused; what is late by `slack` may
    /// have been decided differently.
    pub(super) fn new(refusing: &[StatusCode], slack: Duration) -> Self {
        Tally {
            refusing: refusing.to_vec(),
            played: 0,
            refused: 0,
            failed: 0,
            failure: None,
            statuses: BTreeMap::new(),
            sent: Lateness::new(slack),
            answered: Lateness::new(slack),
            clients: HashMap::new(),
        }
    }

    pub(super) fn take(&mut self, client: &str, answer: Answer) {
        self.played += 1;
        self.sent.take(answer.sent_late);
        self.answered.take(answer.answered_late);
        let listed = self.clients.len() < CLIENTS_MAX || self.clients.contains_key(client);
        // What is not listed is counted nowhere else.
        let mut unlisted = ClientTally::default();
        let of_client =
            if listed { self.clients.entry(client.to_owned()).or_default() } else { &mut unlisted };
        of_client.played += 1;
        let status = match answer.status {
            Ok(status) => status,
            Err(why) => {
                self.failed += 1;
                self.failure.get_or_insert(why);
                return;
            }
        };
        for statuses in [&mut self.statuses, &mut of_client.statuses] {
            *statuses.entry(status.as_u16()).or_default() += 1;
        }
        if self.refusing.contains(&status) {
            self.refused += 1;
            of_client.refused += 1;
            let (first, last) = of_client.span.unwrap_or((answer.logged, answer.logged));
            of_client.span = Some((first.min(answer.logged), last.max(answer.logged)));
        }
    }

    /// Whether every line was decided within the slack after its time.
    pub(super) fn is_valid(&self) -> bool {
        self.played > 0 && self.failed == 0 && self.answered.too_late() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLACK: Duration = Duration::from_millis(50);

    fn answer(second: u64, status: Result<u16, &str>, late: u64) -> Answer {
        Answer {
            logged: Time::from_nanos(second * 1_000_000_000),
            status: status.map(|code| StatusCode::from_u16(code).unwrap()).map_err(str::to_owned),
            sent_late: Duration::ZERO,
            answered_late: Duration::from_millis(late),
        }
    }

    #[test]
    fn refusals_are_told_by_client_with_the_first_and_the_last() {
        let mut tally = Tally::new(&[StatusCode::TOO_MANY_REQUESTS], SLACK);
        for (second, status) in [(3, 200), (7, 429), (5, 429), (9, 403), (8, 429)] {
            tally.take("a", answer(second, Ok(status), 1));
        }
        tally.take("b", answer(4, Ok(404), 49));
        assert_eq!((tally.played, tally.refused), (6, 3));
        let a = &tally.clients["a"];
        assert_eq!((a.played, a.refused), (5, 3), "403 is not among those that refuse here");
        let seconds = |time: Time| time.as_nanos() / 1_000_000_000;
        assert_eq!(a.span.map(|(first, last)| (seconds(first), seconds(last))), Some((5, 8)));
        assert_eq!(tally.clients["b"].span, None);
        assert_eq!(tally.statuses[&429], 3);
        assert!(tally.is_valid(), "49 of 50 ms");
    }

    #[test]
    fn a_run_that_was_late_or_unanswered_or_empty_is_not_valid() {
        let empty = Tally::new(&[], SLACK);
        assert!(!empty.is_valid());
        let mut late = Tally::new(&[], SLACK);
        late.take("a", answer(1, Ok(200), 50));
        assert!(!late.is_valid());
        assert_eq!((late.answered.too_late(), late.sent.too_late()), (1, 0));
        let mut unanswered = Tally::new(&[], SLACK);
        unanswered.take("a", answer(1, Ok(200), 0));
        unanswered.take("a", answer(1, Err("reset"), 0));
        assert!(!unanswered.is_valid());
        assert_eq!(unanswered.failure.as_deref(), Some("reset"));
    }
}
