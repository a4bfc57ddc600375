//! The second opinion on a replay: the plainest way to write the rules of `key = ["client"]`, every
//! window an exact list.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    path::Path,
};

use hotgate_cli::log::Line;

/// What the oracle can judge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Oracle {
    /// `throttle = {}`.
    Throttle,
    /// `throttle = {}` with `count = { status = ["4xx"] }`.
    ThrottleClientErrors,
    /// `block = { for = … }`, in seconds.
    Block(u64),
}

/// What one client was refused: how often, and the first time, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) count: u64,
    pub(crate) first: u64,
}

#[derive(Default)]
struct State {
    charged: Vec<u64>,
    blocked_until: Option<u64>,
}

impl Oracle {
    /// Everyone who is refused, at `limit` in `window` seconds.
    pub(crate) fn refused(
        self,
        log: &Path,
        limit: usize,
        window: u64,
    ) -> BTreeMap<IpAddr, Refused> {
        let text = std::fs::read(log).unwrap();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut lines: Vec<_> = lines.map(|line| Line::read(line).unwrap()).collect();
        lines.sort_by_key(|line| line.time);

        let mut states: HashMap<IpAddr, State> = HashMap::new();
        let mut refused = BTreeMap::new();
        for line in lines {
            let Some(client) = line.client else { continue };
            let now = line.time.as_nanos() / 1_000_000_000;
            let counts = line.status.is_some_and(|status| status.is_client_error());
            if !self.admits(states.entry(client).or_default(), limit, window, now, counts) {
                refused.entry(client).or_insert(Refused { count: 0, first: now }).count += 1;
            }
        }
        refused
    }

    fn admits(self, state: &mut State, limit: usize, window: u64, now: u64, counts: bool) -> bool {
        if state.blocked_until.is_some_and(|until| now < until) {
            return false;
        }
        // (now − window, now]
        state.charged.retain(|time| time + window > now);
        let full = state.charged.len() >= limit;
        match self {
            Oracle::Block(lasts) if full => {
                state.charged.clear();
                state.blocked_until = Some(now + lasts);
            }
            Oracle::ThrottleClientErrors if !full && !counts => {}
            _ if full => {}
            _ => state.charged.push(now),
        }
        !full
    }
}
