//! One rule's verdicts: which keys are hot, and until when.
//!
//! Verdicts stand apart from the counts, in a map with its own capacity, so that no flood of new keys
//! can push one out. Whoever changes a verdict for a request holds the key's line in the counting
//! table, so that window and verdict agree.

mod map;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicU32, AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed},
        },
    },
    time::Duration,
};

use hotgate_rules::{Action, Block, Rule};

use crate::{
    Change, Event, RuleCounts, Time,
    window::{Limit, State, Ticks, Window},
};
use map::Map;

/// How often a verdict whose end moves out is said to go on.
const GOES_ON_EVERY: Duration = Duration::from_secs(10);

/// How often a verdict whose end has not moved out for that long is looked at again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Events of one rule that wait for a tick; beyond it they are dropped and counted. Ten ticks a
/// second take away far more than a rule that holds 65,536 verdicts brings.
const EVENTS_MAX: usize = 65_536;

/// What stands for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A throttle: the window refuses, not the verdict.
    Hot,
    /// A block, and its end.
    Blocked(Time),
}

#[derive(Debug)]
pub(crate) struct Verdicts {
    rule: Arc<str>,
    action: Action,
    ticks: Ticks,
    window: Duration,
    standing: Map<Verdict>,
    /// Blocks that have ended but make the next one longer.
    past: Map<Past>,
    /// When the next verdict may end or be said to go on: a tick has nothing to look for before.
    due: AtomicU64,
    events: Mutex<Vec<Event>>,
    unstored: AtomicU64,
    forgotten_blocks: AtomicU64,
    dropped_events: AtomicU64,
}

#[derive(Debug)]
struct Verdict {
    key: Arc<str>,
    kind: Kind,
    since: Time,
    until: Time,
    /// The end that was said last, and when.
    said: (Time, Time),
    repeat: u32,
    observed: bool,
    manual: bool,
}

impl Verdict {
    /// One that the rule itself comes to, for the first time.
    fn new(subject: Subject, kind: Kind, until: Time, now: Time) -> Self {
        let Subject { key, observed, .. } = subject;
        let said = (until, now);
        Verdict { key, kind, since: now, until, said, repeat: 1, observed, manual: false }
    }
}

#[derive(Debug)]
enum Kind {
    Hot(Demand),
    Block { lasts: Duration },
}

#[derive(Clone, Copy, Debug)]
struct Past {
    lasts: Duration,
    repeat: u32,
    forgotten: Time,
}

/// The attempts of a throttled key. It cools once they have been below 0.8 N for a whole window.
#[derive(Debug)]
pub(crate) struct Demand {
    pub(crate) limit: Limit,
    pub(crate) state: State,
    pub(crate) ring: Box<[AtomicU32]>,
}

impl Demand {
    fn window<'a>(&'a self, ticks: &'a Ticks) -> Window<'a> {
        Window { ring: &self.ring, limit: self.limit, ticks }
    }
}

/// Whom a verdict is about.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) hash: u64,
    pub(crate) key: Arc<str>,
    /// Nobody is refused for it.
    pub(crate) observed: bool,
}

impl Verdicts {
    pub(crate) fn new(rule: &Rule, ticks: Ticks, window: Duration, capacity: u32) -> Self {
        Verdicts {
            rule: Arc::clone(&rule.name),
            action: rule.action.clone(),
            ticks,
            window,
            standing: Map::new(capacity),
            past: Map::new(capacity),
            due: AtomicU64::new(u64::MAX),
            events: Mutex::default(),
            unstored: AtomicU64::new(0),
            forgotten_blocks: AtomicU64::new(0),
            dropped_events: AtomicU64::new(0),
        }
    }

    /// Adds what the verdicts counted.
    pub(crate) fn add_to(&self, counts: RuleCounts) -> RuleCounts {
        RuleCounts {
            unstored_verdicts: self.unstored.load(Relaxed),
            forgotten_blocks: self.forgotten_blocks.load(Relaxed),
            dropped_events: self.dropped_events.load(Relaxed),
            standing_verdicts: u64::from(self.standing.len()),
            ..counts
        }
    }

    /// What stands for a key; next to nothing where no verdict stands at all.
    pub(crate) fn standing(&self, hash: u64, now: Time) -> Option<Standing> {
        if self.standing.len() == 0 {
            return None;
        }
        let verdict = self.standing.map.get(&hash).filter(|verdict| verdict.until > now)?;
        Some(match verdict.kind {
            Kind::Hot(_) => Standing::Hot,
            Kind::Block { .. } => Standing::Blocked(verdict.until),
        })
    }

    /// Counts an attempt under a verdict that stands; when it ends now.
    pub(crate) fn attempt(&self, hash: u64, standing: Standing, now: Time) -> Option<Time> {
        if let Standing::Blocked(until) = standing
            && !self.may_extend()
        {
            return Some(until);
        }
        let mut verdict = self.standing.map.get_mut(&hash)?;
        let extends = self.extends(&verdict);
        let until = match &mut verdict.kind {
            Kind::Hot(demand) => {
                (demand.state, _) = demand.window(&self.ticks).push(demand.state, now);
                self.cools(demand, now)
            }
            Kind::Block { lasts } => extends.then(|| now.plus(*lasts)),
        };
        verdict.until = until.map_or(verdict.until, |until| until.max(verdict.until));
        Some(verdict.until)
    }

    /// Whether attempts push a block's end out; never an operator's, who said when it ends.
    fn extends(&self, verdict: &Verdict) -> bool {
        !verdict.manual && self.may_extend()
    }

    fn may_extend(&self) -> bool {
        matches!(self.action, Action::Block(Block { extend: true, .. }))
    }

    /// When the key will have cooled if nothing more comes.
    fn cools(&self, demand: &Demand, now: Time) -> Option<Time> {
        // While the deciding attempt is inside, 0.8 N of them stand; a whole window later it is over.
        let deciding = demand.window(&self.ticks).deciding(demand.state, now);
        deciding.map(|stamp| self.ticks.leaves(stamp, now).plus(self.window))
    }

    /// Begins a throttle; `demand` holds the attempts that are known. At least 0.8 N stand now, so
    /// that it lasts for a window at least.
    pub(crate) fn throttle(&self, subject: Subject, demand: Demand, now: Time) -> bool {
        let soonest = now.plus(self.window);
        let until = self.cools(&demand, now).map_or(soonest, |cool| cool.max(soonest));
        self.begin(subject.hash, Verdict::new(subject, Kind::Hot(demand), until, now))
    }

    /// Begins a block by the rule's terms, longer if it is a repeat; its length, or `None` where it
    /// could not be stored.
    pub(crate) fn block(&self, subject: Subject, terms: &Block, now: Time) -> Option<Duration> {
        self.end_expired(subject.hash, now);
        let past =
            self.past.map.get(&subject.hash).map(|past| *past).filter(|past| past.forgotten > now);
        let (lasts, repeat) = past.map_or((terms.lasts, 1), |past| {
            (
                past.lasts.saturating_mul(terms.grow.get()).min(terms.max),
                past.repeat.saturating_add(1),
            )
        });
        let hash = subject.hash;
        let verdict = Verdict::new(subject, Kind::Block { lasts }, now.plus(lasts), now);
        self.begin(hash, Verdict { repeat, ..verdict }).then_some(lasts)
    }

    /// Blocks a key by hand, in the place of whatever stands; false, and nothing changed, where
    /// nothing stands and there is no room.
    pub(crate) fn block_by_hand(&self, subject: Subject, lasts: Duration, now: Time) -> bool {
        let hash = subject.hash;
        let stood = self.standing.take(hash);
        if stood.is_none() && !self.standing.reserve() {
            return false;
        }
        if let Some(verdict) = stood {
            self.say_lifted(&verdict, now);
        }
        self.past.remove_if(hash, |_| true);
        let verdict = Verdict::new(subject, Kind::Block { lasts }, now.plus(lasts), now);
        self.stand(hash, Verdict { manual: true, ..verdict });
        true
    }

    /// Whether there is room for a verdict; counts one that finds none. Asked before one is made
    /// up, so that a full table makes no refusal dear.
    pub(crate) fn has_room(&self) -> bool {
        let has_room = self.standing.has_room();
        self.unstored.fetch_add(u64::from(!has_room), Relaxed);
        has_room
    }

    fn begin(&self, hash: u64, verdict: Verdict) -> bool {
        self.end_expired(hash, verdict.since);
        let reserved = self.standing.reserve();
        if reserved {
            self.stand(hash, verdict);
        }
        reserved
    }

    /// Lets a verdict stand that has room.
    fn stand(&self, hash: u64, verdict: Verdict) {
        let look = verdict.until.min(verdict.since.plus(GOES_ON_EVERY));
        self.say(&verdict, Change::Began, verdict.until);
        self.standing.insert_reserved(hash, verdict);
        self.due.fetch_min(look.as_nanos(), AcqRel);
    }

    /// Ends a key's verdict, whatever it is, and forgets its past blocks. Whether one stood.
    pub(crate) fn lift(&self, hash: u64, now: Time) -> bool {
        let verdict = self.standing.remove_if(hash, |_| true);
        // Last, for a tick that ends the verdict meanwhile makes it a past one first.
        self.past.remove_if(hash, |_| true);
        verdict.is_some_and(|verdict| self.say_lifted(&verdict, now))
    }

    /// Says that an operator ended a verdict, unless it was over; whether it stood.
    fn say_lifted(&self, verdict: &Verdict, now: Time) -> bool {
        let stood = verdict.until > now;
        if stood {
            self.say(verdict, Change::Lifted, now);
        } else {
            self.say(verdict, Change::Ended, verdict.until);
        }
        stood
    }

    /// The hash of a key that a verdict stands for, by its printed form.
    pub(crate) fn find(&self, key: &str) -> Option<u64> {
        let mut verdicts = self.standing.map.iter();
        verdicts.find(|verdict| *verdict.key == *key).map(|verdict| *verdict.key())
    }

    /// Ends what is over, and takes the events since the last tick.
    pub(crate) fn tick(&self, now: Time) -> Vec<Event> {
        if now.as_nanos() >= self.due.load(Acquire) {
            self.sweep(now);
        }
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut events)
    }

    fn sweep(&self, now: Time) {
        // Whoever lowered it before has put its verdict where this sweep sees it.
        self.due.swap(u64::MAX, AcqRel);
        let mut due = Time::MAX;
        self.standing.retain(|hash, verdict| {
            if verdict.until <= now {
                self.ended(*hash, verdict);
                return false;
            }
            if verdict.until > verdict.said.0 && now.since(verdict.said.1) >= GOES_ON_EVERY {
                verdict.said = (verdict.until, now);
                self.say(verdict, Change::GoesOn, verdict.until);
            }
            due = due.min(verdict.until);
            if matches!(verdict.kind, Kind::Hot(_)) || self.extends(verdict) {
                due = due.min(verdict.said.1.plus(GOES_ON_EVERY).max(now.plus(LOOK_EVERY)));
            }
            true
        });
        self.past.retain(|_, past| {
            due = due.min(if past.forgotten > now { past.forgotten } else { Time::MAX });
            past.forgotten > now
        });
        self.due.fetch_min(due.as_nanos(), AcqRel);
    }

    fn end_expired(&self, hash: u64, now: Time) {
        if let Some(verdict) = self.standing.remove_if(hash, |verdict| verdict.until <= now) {
            self.ended(hash, &verdict);
        }
    }

    fn ended(&self, hash: u64, verdict: &Verdict) {
        self.say(verdict, Change::Ended, verdict.until);
        let (Kind::Block { lasts }, Action::Block(terms)) = (&verdict.kind, &self.action) else {
            return;
        };
        let forgotten = verdict.until.plus(terms.forget);
        if terms.grow.get() > 1 && !verdict.manual {
            self.past.remove_if(hash, |_| true);
            if self.past.reserve() {
                let past = Past { lasts: *lasts, repeat: verdict.repeat, forgotten };
                self.past.insert_reserved(hash, past);
            } else {
                self.forgotten_blocks.fetch_add(1, Relaxed);
            }
        }
    }

    fn say(&self, verdict: &Verdict, change: Change, until: Time) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() >= EVENTS_MAX {
            self.dropped_events.fetch_add(1, Relaxed);
            return;
        }
        events.push(Event {
            rule: Arc::clone(&self.rule),
            action: self.action.name(),
            key: Arc::clone(&verdict.key),
            change,
            since: verdict.since,
            until,
            observed: verdict.observed,
            manual: verdict.manual,
            repeat: verdict.repeat,
        });
    }
}
