//! The rule file, read again while the gate runs.
//!
//! The gate's thread looks at the file, reads it, and puts the rules in force; no request waits for any
//! of it. Rules that cannot be taken leave the old ones in force, and that is told: in the log, as
//! metrics, and by [`Gate::snapshot`](crate::Gate::snapshot).

mod news;
mod quiet;
pub(crate) mod read;
mod watch;

use std::{
    error::Error as _,
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use hotgate_detector::Time;
use hotgate_rules::{Problem, RuleSet};

use crate::{
    BuildError,
    control::Control,
    gate::Shared,
    log,
    needs::{self, Bodies},
};

pub(crate) use news::News;
use watch::Watch;

/// What the gate's thread keeps of the rule file.
#[derive(Debug)]
pub(crate) struct Reload {
    /// As it was given, for messages.
    file: PathBuf,
    watch: Watch,
    waiting: Option<Waiting>,
}

/// Rules that name a file that cannot be read. Its mending does not show in the rule file.
#[derive(Debug)]
struct Waiting {
    rules: RuleSet,
    /// When they are tried again.
    until: Time,
}

/// How soon that is.
const AGAIN: Duration = Duration::from_secs(3);

/// What became of the attempts to take a changed file.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    /// Its rules came into force.
    pub(crate) loaded: AtomicU64,
    /// It holds what is in force already.
    pub(crate) unchanged: AtomicU64,
    /// Its rules cannot be taken.
    pub(crate) refused: AtomicU64,
    /// It cannot be read.
    pub(crate) unreadable: AtomicU64,
    /// Whether the last attempt failed.
    pub(crate) failing: AtomicBool,
}

/// An attempt that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) at: Time,
    /// In the form in which they are logged, each with its place.
    pub(crate) problems: Vec<String>,
}

/// Problems of one attempt that are kept and logged; somebody may have taken a log for the rule file.
const PROBLEMS_MAX: usize = 100;

impl Reloads {
    /// With the names of the outcomes.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 4] {
        let count = |count: &AtomicU64| count.load(Relaxed);
        [
            ("loaded", count(&self.loaded)),
            ("unchanged", count(&self.unchanged)),
            ("refused", count(&self.refused)),
            ("unreadable", count(&self.unreadable)),
        ]
    }
}

impl Reload {
    /// Watches `file`, which held `content` when its rules were taken.
    pub(crate) fn new(file: &Path, content: &[u8]) -> Self {
        Reload { file: file.to_owned(), watch: Watch::new(file, content), waiting: None }
    }

    /// Looks at the file, and takes what it holds if that has changed.
    pub(crate) fn tick(&mut self, shared: &Shared) {
        let now = shared.clock.now();
        let waiting = if let Some(read) = self.watch.look(now) {
            self.waiting = None;
            shared.take(self, read)
        } else if let Some(waiting) = self.waiting.take_if(|waiting| waiting.until <= now) {
            shared.put_in_force(self, waiting.rules, true)
        } else {
            return;
        };
        self.waiting = waiting.map(|rules| Waiting { rules, until: now.plus(AGAIN) });
    }
}

impl Shared {
    /// Puts the rules of a file in force, or says why not. Rules that come back wait for other files.
    fn take(&self, reload: &Reload, read: io::Result<Vec<u8>>) -> Option<RuleSet> {
        let file = &reload.file;
        let text = match read.and_then(read::text) {
            Ok(text) => text,
            Err(error) => {
                self.reloads.unreadable.fetch_add(1, Relaxed);
                self.fail(file, vec![unreadable(file, &error)]);
                return None;
            }
        };
        match text.parse::<RuleSet>() {
            Ok(rules) => self.put_in_force(reload, rules, false),
            Err(problems) => {
                let located = |problem: &Problem| format!("{}:{problem}", file.display());
                self.reloads.refused.fetch_add(1, Relaxed);
                self.fail(file, problems.iter().map(located).collect());
                None
            }
        }
    }

    /// `again`: they have waited, and why is told already.
    fn put_in_force(&self, reload: &Reload, rules: RuleSet, again: bool) -> Option<RuleSet> {
        let file = &reload.file;
        let met = needs::meet(&rules, &self.hooks, reload.watch.folder());
        let waits = matches!(met, Err(BuildError::Body { .. }));
        let mut control = self.control();
        let reasons = control.rules.restart_reasons(&rules);
        let met = if reasons.is_empty() { met.map_err(|error| told(&error)) } else { Err(reasons) };
        let succeeded = met.map(|bodies| self.succeed(&mut control, &rules, bodies));
        // A subscriber may ask the gate how it stands.
        drop(control);
        match succeeded {
            Ok(None) => log::rules_unchanged(file, rules.version()),
            Ok(Some(news)) => {
                log::rules_changed(file, &news);
                log::rule_warnings(&rules, Some(file));
            }
            Err(_) if again => return Some(rules),
            Err(reasons) => {
                let problem = |reason: String| format!("{}: {reason}", file.display());
                self.reloads.refused.fetch_add(1, Relaxed);
                self.fail(file, reasons.into_iter().map(problem).collect());
                return waits.then_some(rules);
            }
        }
        None
    }

    /// What the rules change; `None`: nothing, they are in force.
    fn succeed(&self, control: &mut Control, rules: &RuleSet, bodies: Bodies) -> Option<News> {
        control.failed = None;
        self.reloads.failing.store(false, Relaxed);
        if rules.version() == control.rules.version() {
            self.reloads.unchanged.fetch_add(1, Relaxed);
            return None;
        }
        let news = News::between(&control.rules, rules);
        control.rules = rules.clone();
        control.bodies = bodies;
        control.since = self.clock.now();
        self.enforce(control);
        self.reloads.loaded.fetch_add(1, Relaxed);
        Some(news)
    }

    /// The rules in force stay.
    fn fail(&self, file: &Path, mut problems: Vec<String>) {
        let more = problems.len().saturating_sub(PROBLEMS_MAX);
        if more > 0 {
            problems.truncate(PROBLEMS_MAX);
            problems.push(format!("{}: and {more} more", file.display()));
        }
        self.reloads.failing.store(true, Relaxed);
        let version = {
            let mut control = self.control();
            control.failed = Some(Failed { at: self.clock.now(), problems: problems.clone() });
            control.rules.version().to_owned()
        };
        log::rules_failed(file, &version, &problems);
    }
}

/// An error with what caused it; one line for each thing that is wrong.
fn told(error: &BuildError) -> Vec<String> {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    error.to_string().lines().map(|line| format!("{line}{cause}")).collect()
}

fn unreadable(file: &Path, error: &io::Error) -> String {
    format!("{}: cannot read the rule file: {error}", file.display())
}

#[cfg(test)]
mod tests;
