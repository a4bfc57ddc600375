//! What the gate's thread does, ten times a second: the rule file, verdict events and counters.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, PoisonError, Weak,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{counters::Idle, gate::Shared, log, reload::Reload};

/// How often the thread looks; a verdict is told at most this late.
const TICK: Duration = Duration::from_millis(100);

/// It holds no gate, so that the last gate's drop ends it; what came since its last tick, that drop
/// tells itself.
pub(crate) struct Worker {
    shared: Weak<Shared>,
    /// `None`: the rules came from the service's code.
    pub(crate) reload: Option<Reload>,
    stop: Receiver<()>,
}

impl Worker {
    pub(crate) fn new(shared: &Arc<Shared>, reload: Option<Reload>, stop: Receiver<()>) -> Self {
        Worker { shared: Arc::downgrade(shared), reload, stop }
    }

    pub(crate) fn spawn(self) -> io::Result<()> {
        thread::Builder::new().name("hotgate".to_owned()).spawn(|| self.run()).map(drop)
    }

    fn run(mut self) {
        let mut next = Instant::now() + TICK;
        let wait = |until: Instant| until.saturating_duration_since(Instant::now());
        while self.stop.recv_timeout(wait(next)) == Err(RecvTimeoutError::Timeout) {
            // On a busy machine each wait is longer than asked for; that must not add up.
            next = (next + TICK).max(Instant::now());
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            self.tick(&shared);
        }
    }

    pub(crate) fn tick(&mut self, shared: &Shared) {
        if let Some(reload) = &mut self.reload {
            guarded(|| reload.tick(shared));
        }
        shared.tick();
    }
}

/// A subscriber or recorder that panics is not ours to fix, and costs its users this one piece of work;
/// the panic hook says where it happened.
pub(crate) fn guarded(work: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(work));
}

impl Shared {
    /// A tick that a recorder's panic ends is made good by the next, which goes on from what was
    /// published.
    fn tick(&self) {
        guarded(|| {
            let now = self.clock.now();
            for event in self.active.load().engine.tick(now) {
                log::verdict(&event);
            }
            self.refusals.say_rest(now);
            self.published.lock().unwrap_or_else(PoisonError::into_inner).publish(self);
            self.warn_of_idle_rules();
        });
    }

    fn warn_of_idle_rules(&self) {
        let active = self.active.load();
        let idle = self.totals().idle(&active);
        for (index, idle) in idle {
            let rule = &active.engine.rules().rules()[index];
            match idle {
                Idle::KeyedNothing { unkeyed } => {
                    log::keyed_nothing(rule, unkeyed, self.notices.no_peer.load(Relaxed));
                }
                Idle::ReachedByNone { sent_on } => log::reached_by_none(rule, sent_on),
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.tick();
    }
}

#[cfg(test)]
mod tests;
