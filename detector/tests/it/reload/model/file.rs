//! What a rule file says, and the text that says it.

use std::fmt::Write as _;

pub(super) const PATHS: [&str; 2] = ["/a", "/b"];
pub(super) const CLIENTS: [&str; 2] = ["192.0.2.1", "192.0.2.2"];

/// Blocks grow to this, and are forgotten after that.
pub(super) const MAX: u64 = 150;
pub(super) const FORGET: u64 = 100;

/// Who asks, of what is looked at beside the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who {
    pub(super) client: usize,
    /// What the service's extractor says.
    pub(super) gold: bool,
}

/// What a rule says.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) path: Option<usize>,
    /// Whether it is for `x:plan = "gold"` alone.
    pub(super) when: bool,
    pub(super) n: usize,
    pub(super) window: u64,
    pub(super) action: Action,
    pub(super) status: bool,
    pub(super) mode: Mode,
    /// In seconds.
    pub(super) from: Option<u64>,
    pub(super) until: Option<u64>,
    /// The second client's own terms, and those of requests whose plan is gold.
    pub(super) by_key: Option<Other>,
    pub(super) by_when: Option<Other>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    Throttle(Option<Pace>),
    Block { lasts: u64, extend: bool, grow: u64 },
    Tag,
    Handler,
}

/// One request every so many milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    pub(super) every: u64,
    pub(super) burst: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Other {
    Limit(usize),
    Exempt,
    Observe,
    /// A block's length or a pace's own, for rules that have one.
    Act(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    Enforce,
    Observe,
    Off,
}

/// An allow or deny of one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    pub(super) client: usize,
    /// In seconds.
    pub(super) until: Option<u64>,
    /// An allow past this rule alone.
    pub(super) rule: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct File {
    /// The rules, in their order.
    pub(super) rules: Vec<(usize, Terms)>,
    pub(super) mode: Mode,
    pub(super) allowed: Option<Listed>,
    pub(super) denied: Option<Listed>,
}

impl Listed {
    pub(super) fn holds(&self, client: usize, now: u64) -> bool {
        self.client == client && self.until.is_none_or(|until| now < until * 1_000)
    }
}

impl Terms {
    /// The terms that an override gives, if one is for it. That by key goes first.
    fn other(&self, who: Who) -> Option<Other> {
        self.by_key.filter(|_| who.client == 1).or(self.by_when.filter(|_| who.gold))
    }

    pub(super) fn n(&self, who: Who) -> usize {
        match self.other(who) {
            Some(Other::Limit(n)) => n,
            _ => self.n,
        }
    }

    pub(super) fn action(&self, who: Who) -> Action {
        match (self.action, self.other(who)) {
            (Action::Block { extend, grow, .. }, Some(Other::Act(lasts))) => {
                Action::Block { lasts, extend, grow }
            }
            (Action::Throttle(Some(pace)), Some(Other::Act(every))) => {
                Action::Throttle(Some(Pace { every, ..pace }))
            }
            (own, _) => own,
        }
    }

    pub(super) fn mode(&self, file: Mode, who: Who) -> Mode {
        let observes = matches!(self.other(who), Some(Other::Observe));
        match (file, if observes { Mode::Observe } else { self.mode }) {
            (Mode::Off, _) | (_, Mode::Off) => Mode::Off,
            (Mode::Enforce, Mode::Enforce) => Mode::Enforce,
            _ => Mode::Observe,
        }
    }

    pub(super) fn is_free(&self, file: Mode, who: Who) -> bool {
        self.mode(file, who) == Mode::Off || matches!(self.other(who), Some(Other::Exempt))
    }

    /// Whether it looks at a request of this kind, by now.
    pub(super) fn holds(&self, who: Who, now: u64) -> bool {
        let is_on = self.from.is_none_or(|from| from * 1_000 <= now)
            && self.until.is_none_or(|until| now < until * 1_000);
        is_on && (!self.when || who.gold)
    }

    pub(super) fn is_inner(&self) -> bool {
        self.when || self.by_when.is_some()
    }

    /// Whether requests that are refused count as well.
    pub(super) fn counts_attempts(&self) -> bool {
        self.action != Action::Throttle(None)
    }

    pub(super) fn same_meaning(&self, other: &Terms) -> bool {
        (self.path, self.when, self.window, self.status)
            == (other.path, other.when, other.window, other.status)
    }

    pub(super) fn same_action(&self, other: &Terms) -> bool {
        std::mem::discriminant(&self.action) == std::mem::discriminant(&other.action)
    }
}

impl File {
    pub(super) fn text(&self) -> String {
        let mut text =
            format!("mode = \"{}\"\n[memory]\nkeys = 16\nverdicts = 16\n", mode(self.mode));
        let knows = |name: usize| self.rules.iter().any(|(own, _)| *own == name);
        for (list, listed) in [("allow", self.allowed), ("deny", self.denied)] {
            let Some(Listed { client, until, rule }) = listed else { continue };
            let _ = writeln!(text, "[[{list}]]\nclients = [\"{}\"]", CLIENTS[client]);
            if let Some(until) = until {
                let _ = writeln!(text, "until = {}", date(until));
            }
            if let Some(rule) = rule.filter(|rule| list == "allow" && knows(*rule)) {
                let _ = writeln!(text, "rules = [\"r{rule}\"]");
            }
        }
        self.rules.iter().for_each(|(name, terms)| terms.write(*name, &mut text));
        text
    }
}

impl Terms {
    fn write(&self, name: usize, text: &mut String) {
        let _ = writeln!(text, "[[rule]]\nname = \"r{name}\"\nkey = [\"client\"]");
        let _ = writeln!(
            text,
            "over = \"{}/{}ms\"\nmode = \"{}\"",
            self.n,
            self.window,
            mode(self.mode)
        );
        if let Some(path) = self.path {
            let _ = writeln!(text, "match = \"{}\"", PATHS[path]);
        }
        if self.when {
            text.push_str("when = { \"x:plan\" = \"gold\" }\n");
        }
        for (field, seconds) in [("from", self.from), ("until", self.until)] {
            if let Some(seconds) = seconds {
                let _ = writeln!(text, "{field} = {}", date(seconds));
            }
        }
        if self.status {
            text.push_str("count = { status = [401] }\n");
        }
        let _ = match self.action {
            Action::Throttle(None) => writeln!(text, "throttle = {{}}"),
            Action::Throttle(Some(Pace { every, burst })) => {
                writeln!(text, "throttle = {{ pace = \"1/{every}ms\", burst = {burst} }}")
            }
            Action::Block { lasts, extend, grow } => writeln!(
                text,
                "block = {{ for = \"{lasts}ms\", extend = {extend}, grow = {grow}, max = \"{MAX}ms\", \
                 forget = \"{FORGET}ms\" }}"
            ),
            Action::Tag => writeln!(text, "tag = {{ header = \"x-hot\" }}"),
            Action::Handler => writeln!(text, "handler = \"maze\""),
        };
        let by_key = format!("key = [\"{}\"]", CLIENTS[1]);
        let by_when = "when = { \"x:plan\" = \"gold\" }".to_owned();
        for (other, covers) in [(self.by_key, by_key), (self.by_when, by_when)] {
            let Some(other) = other else { continue };
            let _ = writeln!(text, "[[rule.override]]\n{covers}");
            let _ = match (other, self.action) {
                (Other::Limit(n), _) => writeln!(text, "over = \"{n}/{}ms\"", self.window),
                (Other::Exempt, _) => writeln!(text, "exempt = true"),
                (Other::Observe, _) => writeln!(text, "mode = \"observe\""),
                (Other::Act(lasts), Action::Block { .. }) => {
                    writeln!(text, "block = {{ for = \"{lasts}ms\" }}")
                }
                (Other::Act(every), Action::Throttle(Some(_))) => {
                    writeln!(text, "throttle = {{ pace = \"1/{every}ms\" }}")
                }
                // Nothing of its own.
                (Other::Act(_), _) => writeln!(text, "over = \"{}/{}ms\"", self.n, self.window),
            };
        }
    }
}

fn date(seconds: u64) -> String {
    format!("1970-01-01T00:00:{seconds:02}Z")
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
        Mode::Off => "off",
    }
}
