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
};

use hotgate_detector::Time;
use hotgate_rules::RuleSet;

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
}

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
        Reload { file: file.to_owned(), watch: Watch::new(file, content) }
    }

    /// Looks at the file, and takes what it holds if that has changed.
    pub(crate) fn tick(&mut self, shared: &Shared) {
        if let Some(read) = self.watch.look(shared.clock.now()) {
            shared.take(&self.file, read);
        }
    }
}

impl Shared {
    /// Puts the rules of a file in force, or says why not.
    fn take(&self, file: &Path, read: io::Result<Vec<u8>>) {
        let text = match read.and_then(read::text) {
            Ok(text) => text,
            Err(error) => {
                self.reloads.unreadable.fetch_add(1, Relaxed);
                return self.fail(file, vec![unreadable(file, &error)]);
            }
        };
        let located = |problem: &dyn std::fmt::Display| format!("{}:{problem}", file.display());
        let rules = match text.parse::<RuleSet>() {
            Ok(rules) => rules,
            Err(problems) => {
                self.reloads.refused.fetch_add(1, Relaxed);
                return self.fail(file, problems.iter().map(|problem| located(problem)).collect());
            }
        };
        let folder = file.parent().unwrap_or(Path::new(""));
        let met = needs::meet(&rules, &self.hooks, folder).map_err(|error| told(&error));
        let mut control = self.control();
        let reasons = control.rules.restart_reasons(&rules);
        let met = if reasons.is_empty() { met } else { Err(reasons) };
        let succeeded = met.map(|bodies| self.succeed(&mut control, &rules, bodies));
        // A subscriber may ask the gate how it stands.
        drop(control);
        match succeeded {
            Ok(None) => log::rules_unchanged(file, rules.version()),
            Ok(Some(news)) => {
                log::rules_changed(file, &news);
                log::rule_warnings(&rules, Some(file));
            }
            Err(reasons) => {
                self.reloads.refused.fetch_add(1, Relaxed);
                let problem = |reason: String| format!("{}: {reason}", file.display());
                self.fail(file, reasons.into_iter().map(problem).collect());
            }
        }
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
