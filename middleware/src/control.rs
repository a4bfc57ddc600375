//! Changes of the rules in force: other rules from the file, and operators' commands.

use std::{
    path::PathBuf,
    sync::{Arc, MutexGuard, PoisonError},
};

use hotgate_detector::Time;
use hotgate_rules::{Commands, RuleSet};

use crate::{active::Active, gate::Shared, needs::Bodies, operator::Record, reload::Failed};

/// What the rules in force are made of. Whoever changes them holds it, so that changes come one after
/// another.
pub(crate) struct Control {
    /// The rules as the file has them.
    pub(crate) rules: RuleSet,
    /// What operators said over it.
    pub(crate) commands: Commands,
    /// What the files hold that the rules answer with.
    pub(crate) bodies: Bodies,
    /// When they said it, and why.
    pub(crate) record: Record,
    /// Where the rules came from.
    pub(crate) file: Option<PathBuf>,
    /// Since when these rules of the file hold.
    pub(crate) since: Time,
    /// The last attempt to take others from the file, if it failed.
    pub(crate) failed: Option<Failed>,
}

impl Shared {
    /// Whoever changes something holds it.
    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts in force what `control` holds. Counts and verdicts go on.
    pub(crate) fn enforce(&self, control: &Control) {
        let now = self.clock.now();
        let rules = control.rules.under(&control.commands);
        let engine = self.active.load().engine.succeed(rules, now);
        // What was counted so far was counted under the rules that are in force yet.
        self.totals().gather(&self.active.load());
        let active = Arc::new(Active::new(engine, &control.bodies));
        self.active.store(Arc::clone(&active));
        active.engine.settle_memory();
    }
}
