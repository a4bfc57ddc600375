//! What the gate tells: verdicts, refusals (some a second), and warnings (each once).

mod notices;
mod refusals;

use std::{
    fmt,
    io::{self, Write as _},
    path::Path,
};

use hotgate_detector::{Change, Event};
use hotgate_rules::{Mode, PartKind, Rule, RuleSet};
use tracing::subscriber::NoSubscriber;

use crate::{
    operator::{Blocked, Lifted, List, ListEntry, ModeChange, Who, mode_name},
    reload::News,
};

pub(crate) use notices::Notices;
pub(crate) use refusals::RefusalLog;

/// The target of every event.
const TARGET: &str = "hotgate";

/// Says a warning to the subscriber of this thread, or to stderr where it has none: that another
/// thread has one helps nobody here.
pub(crate) fn warn(message: fmt::Arguments<'_>) {
    if tracing::dispatcher::get_default(|dispatch| dispatch.is::<NoSubscriber>()) {
        // There is nobody to tell that stderr is closed.
        let _ = writeln!(io::stderr().lock(), "hotgate: warning: {message}");
    } else {
        tracing::warn!(target: TARGET, "{message}");
    }
}

/// One event for each change of a verdict.
pub(crate) fn verdict(event: &Event) {
    let Event { rule, action, key, observed, manual, repeat, .. } = event;
    let lasts = event.duration();
    macro_rules! say {
        ($level:ident, $message:literal) => {
            tracing::$level!(
                target: TARGET, rule = &**rule, action, key = &**key, ?lasts, observed, manual, repeat, $message
            )
        };
    }
    match event.change {
        Change::Began if *observed => say!(info, "hot, observed only"),
        Change::Began => say!(warn, "hot"),
        Change::GoesOn => say!(info, "still hot"),
        Change::Ended => say!(info, "cooled"),
        Change::Lifted => say!(info, "lifted"),
        Change::Voided => say!(info, "void, since the rule means something else now"),
        _ => say!(info, "changed"),
    }
}

/// What of a rule file is allowed but likely not meant.
pub(crate) fn rule_warnings(rules: &RuleSet, file: Option<&Path>) {
    for problem in rules.warnings() {
        match file {
            Some(path) => warn(format_args!("{}:{problem}", path.display())),
            None => warn(format_args!("rules:{problem}")),
        }
    }
}

/// The environment has a say in the mode. A gate that refuses nobody must not go unnoticed.
pub(crate) fn environment(mode: Mode) {
    if mode < Mode::Enforce {
        let mode = mode_name(mode);
        warn(format_args!("HOTGATE_MODE={mode} holds over every rule until the process ends"));
    }
}

/// Other rules are in force.
pub(crate) fn rules_changed(file: &Path, news: &News) {
    let News { from, to, added, removed, reset, mode } = news;
    let list = |names: &[String]| (!names.is_empty()).then(|| names.join(","));
    let (added, removed, reset) = (list(added), list(removed), list(reset));
    let mode = mode.map(tracing::field::debug);
    tracing::info!(
        target: TARGET, file = %file.display(), from, to, added, removed, reset, mode,
        "other rules are in force"
    );
}

/// The rule file was changed, and back again.
pub(crate) fn rules_unchanged(file: &Path, version: &str) {
    tracing::info!(
        target: TARGET, file = %file.display(), version, "the rule file holds what is in force"
    );
}

/// The rule file changed to something that cannot be taken.
pub(crate) fn rules_failed(file: &Path, version: &str, problems: &[String]) {
    for problem in problems {
        warn(format_args!("{problem}"));
    }
    warn(format_args!(
        "{} was not taken; the rules of version {version} stay in force",
        file.display()
    ));
}

/// A mode that was commanded. Commands are told as warnings, so that no usual filter hides who did
/// what.
pub(crate) fn mode(change: &ModeChange, Who { name: who, peer }: Who<'_>) {
    let ModeChange { rule, commanded, mode, held_by } = change;
    let (commanded, mode) = (mode_name(*commanded), mode_name(*mode));
    tracing::warn!(
        target: TARGET, who, peer, rule, commanded, mode, held_by, "mode commanded"
    );
}

/// A network that was denied or allowed by command.
pub(crate) fn list(entry: &ListEntry, Who { name: who, peer }: Who<'_>) {
    let ListEntry { list, clients, until, note, outweighed_by, .. } = entry;
    let until = until.map(tracing::field::display);
    match list {
        List::Deny => tracing::warn!(
            target: TARGET, who, peer, clients, until, note, outweighed_by, "denied by command"
        ),
        List::Allow => tracing::warn!(
            target: TARGET, who, peer, clients, until, note, outweighed_by, "allowed by command"
        ),
    }
}

/// A key that was blocked by command.
pub(crate) fn blocked(block: &Blocked, Who { name: who, peer }: Who<'_>) {
    let Blocked { rule, key, until, observed, .. } = block;
    tracing::warn!(
        target: TARGET, who, peer, rule, key, %until, observed, "blocked by command"
    );
}

/// Verdicts that were ended by command.
pub(crate) fn lifted(lift: &Lifted, Who { name: who, peer }: Who<'_>) {
    let Lifted { rules, key, lifted } = lift;
    let rules = rules.join(",");
    tracing::warn!(target: TARGET, who, peer, rules, key, lifted, "lifted by command");
}

/// Says once that a rule matched many requests and found a key in none.
pub(crate) fn keyed_nothing(rule: &Rule, unkeyed: u64, no_peer: u64) {
    let asks_client =
        rule.key.parts().flatten().any(|kind| matches!(kind, PartKind::Client { .. }));
    let cause = if asks_client && no_peer > 0 {
        "the server does not tell the peer's address"
    } else if asks_client {
        "the peer has no network address, or a proxy does not send what [client] source names"
    } else if rule.kinds().any(|kind| matches!(kind, PartKind::User | PartKind::Extra(_))) {
        "the functions that the service registered know nothing of any; do they look at what a layer \
         further in leaves? Then gate.inner_layer() belongs inside that layer"
    } else {
        "no request carries all parts of it; is a name misspelt?"
    };
    warn(format_args!(
        "rule {:?} matched {unkeyed} requests and found its key {:?} in none: {cause}",
        rule.name,
        rule.key.to_string()
    ));
}

/// Says once that a rule matched many requests of which none reached its door.
pub(crate) fn reached_by_none(rule: &Rule, sent_on: u64) {
    warn(format_args!(
        "rule {:?} matched {sent_on} requests at the outer door and none came to the inner one, where it is \
         asked: no gate.inner_layer() stands in their way, or what stands before it, such as \
         authentication, lets none of them pass",
        rule.name
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set for the run of this test binary that warns, and is read.
    const WARNS: &str = "HOTGATE_TEST_WARNS";

    #[test]
    fn a_warning_goes_to_stderr_where_its_thread_has_no_subscriber() {
        if std::env::var_os(WARNS).is_some() {
            warn(format_args!("before any"));
            let subscriber = tracing_subscriber::fmt().with_writer(io::sink).finish();
            tracing::subscriber::with_default(subscriber, || {
                warn(format_args!("to a subscriber"));
                let elsewhere = std::thread::spawn(|| warn(format_args!("on another thread")));
                elsewhere.join().unwrap();
            });
            warn(format_args!("after it"));
            return;
        }
        let this = std::env::current_exe().unwrap();
        let name = "log::tests::a_warning_goes_to_stderr_where_its_thread_has_no_subscriber";
        let run = std::process::Command::new(this)
            .args(["--exact", name, "--nocapture"])
            .env(WARNS, "")
            .output()
            .unwrap();
        let stderr = String::from_utf8(run.stderr).unwrap();
        let warnings: Vec<_> =
            stderr.lines().filter_map(|line| line.strip_prefix("hotgate: warning: ")).collect();
        assert_eq!(warnings, ["before any", "on another thread", "after it"], "{stderr}");
    }
}
