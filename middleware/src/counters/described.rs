//! What each metric means, for recorders that tell it.

use metrics::{Unit, describe_counter, describe_gauge};

/// A metric that the gate exports.
struct Described {
    name: &'static str,
    kind: Kind,
    text: &'static str,
}

enum Kind {
    Counter,
    Gauge,
}

use Kind::{Counter, Gauge};

/// All of them.
const METRICS: [Described; 15] = [
    Described {
        name: "hotgate_requests_total",
        kind: Counter,
        text: "Requests that a rule matched, by what the rule alone says of them.",
    },
    Described { name: "hotgate_verdicts", kind: Gauge, text: "Verdicts of a rule that stand." },
    Described {
        name: "hotgate_evicted_live_total",
        kind: Counter,
        text: "Keys that lost a count in use because the table was full.",
    },
    Described {
        name: "hotgate_evicted_limited_total",
        kind: Counter,
        text: "Keys at their limit or under a verdict that lost their count because the table was full.",
    },
    Described {
        name: "hotgate_untracked_total",
        kind: Counter,
        text: "Events that were not counted because the table was full.",
    },
    Described {
        name: "hotgate_unstored_verdicts_total",
        kind: Counter,
        text: "Refusals whose verdict was not kept because the verdict table was full.",
    },
    Described {
        name: "hotgate_forgotten_blocks_total",
        kind: Counter,
        text: "Blocks that ended and will not make the next one longer because their table was full.",
    },
    Described {
        name: "hotgate_dropped_events_total",
        kind: Counter,
        text: "Changes of verdicts that were not logged because too many came between two ticks.",
    },
    Described {
        name: "hotgate_denied_total",
        kind: Counter,
        text: "Requests of clients on a deny list.",
    },
    Described {
        name: "hotgate_no_peer_total",
        kind: Counter,
        text: "Requests that came without their peer's address while rules asked for it.",
    },
    Described {
        name: "hotgate_unusable_hops_total",
        kind: Counter,
        text: "Requests whose trusted proxy named a hop that is no address.",
    },
    Described {
        name: "hotgate_reload_total",
        kind: Counter,
        text: "Changes of the rule file, by whether its rules were loaded, unchanged, refused or the file unreadable.",
    },
    Described {
        name: "hotgate_reload_failing",
        kind: Gauge,
        text: "1 while the rules in force are older than the rule file because that cannot be taken, else 0.",
    },
    Described {
        name: "hotgate_rules_version",
        kind: Gauge,
        text: "The version of the rules in force, the first twelve hexadecimal digits of the file's SHA-256, as a number.",
    },
    Described {
        name: "hotgate_mode",
        kind: Gauge,
        text: "1 for the mode that holds over all rules, 0 for the others.",
    },
];

/// Tells the recorder.
pub(super) fn describe() {
    for Described { name, kind, text } in METRICS {
        match kind {
            Counter => describe_counter!(name, Unit::Count, text),
            Gauge => describe_gauge!(name, Unit::Count, text),
        }
    }
}
