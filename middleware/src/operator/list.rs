//! Networks that are denied or allowed by command.

use std::time::Duration;

use hotgate_rules::{Mode, network};
use ipnet::IpNet;
use serde::Serialize;

use super::{
    CommandError, Moment, SERVICE, Who,
    error::NOTE_BYTES_MAX,
    moment::Clocks,
    record::{Listed, Record},
};
use crate::{Gate, control::Control, gate::Shared, log, peer::KNOWS_PEERS};

/// What a list does to its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// Lets them pass: uncounted, by any rule.
    Allow,
    /// Answers them 403, before all rules.
    Deny,
}

/// One network on a list, set by command or by the file.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ListEntry {
    /// What happens to them.
    pub list: List,
    /// The network, such as `203.0.113.0/24`.
    pub clients: String,
    /// The rules they are allowed past; left out: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<String>>,
    /// When it was commanded; `None`: it stands in the file.
    pub since: Option<Moment>,
    /// Its end; `None`: it has none.
    pub until: Option<Moment>,
    /// Seconds until then.
    pub seconds_left: Option<u64>,
    /// Why.
    pub note: Option<String>,
    /// What keeps it from acting now, such as a mode or a list of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outweighed_by: Option<String>,
}

impl Gate {
    /// Answers 403 to the clients of a network, before all rules, for that long: in force before this
    /// returns. It takes the place of what was commanded about the same network before, and stands
    /// beside the lists of the file; of all, the narrowest wins, and a tie denies.
    ///
    /// # Errors
    ///
    /// When `clients` is no address or network, when `lasts` is nothing or beyond ten years, when the
    /// note is longer than 512 bytes, when 1,024 networks are listed by command already, when the gate
    /// has no way to know its clients.
    pub fn deny(
        &self,
        clients: &str,
        lasts: Duration,
        note: Option<&str>,
    ) -> Result<ListEntry, CommandError> {
        self.shared().list(List::Deny, clients, lasts, note, SERVICE)
    }

    /// Lets the clients of a network pass every rule, uncounted, for that long; otherwise as
    /// [`deny`](Self::deny) does. Where the file denies the very same network, that still holds, and
    /// [`ListEntry::outweighed_by`] says so.
    ///
    /// # Errors
    ///
    /// As of [`deny`](Self::deny).
    pub fn allow(
        &self,
        clients: &str,
        lasts: Duration,
        note: Option<&str>,
    ) -> Result<ListEntry, CommandError> {
        self.shared().list(List::Allow, clients, lasts, note, SERVICE)
    }
}

impl Shared {
    pub(crate) fn list(
        &self,
        list: List,
        clients: &str,
        lasts: Duration,
        note: Option<&str>,
        who: Who<'_>,
    ) -> Result<ListEntry, CommandError> {
        let clients = network(clients)?;
        CommandError::check_time(lasts)?;
        if let Some(note) = note.filter(|note| note.len() > NOTE_BYTES_MAX) {
            return Err(CommandError::Note(note.len()));
        }
        if !KNOWS_PEERS && self.hooks.peer.is_none() {
            return Err(CommandError::NoPeer);
        }
        let mut control = self.control();
        let clocks = self.clocks();
        let (since, until) = (clocks.now, clocks.now.plus(lasts));
        let note = note.map(Into::into);
        let listed = Listed { denies: list == List::Deny, since, until, note };
        let unix_nanos = self.active.load().engine.unix_nanos(since);
        control.record.list(clients, listed.clone(), since)?;
        let engine = self.active.load();
        control.commands.lists = control.record.commands(|at| engine.engine.unix_nanos(at));
        self.enforce(&control);
        let entry = ListEntry {
            outweighed_by: outweighed(&control, list, clients, unix_nanos),
            ..entry(clients, &listed, clocks)
        };
        drop(control);
        log::list(&entry, who);
        Ok(entry)
    }
}

/// What keeps a new entry from acting.
fn outweighed(control: &Control, list: List, clients: IpNet, unix_nanos: i128) -> Option<String> {
    let Control { rules, commands, .. } = control;
    let mode = rules.mode().min(commands.environment).min(commands.mode);
    if mode == Mode::Off || (list == List::Deny && mode == Mode::Observe) {
        return Some(format!("mode {}", super::mode_name(mode)));
    }
    let denies = |entry: &&hotgate_rules::ListEntry| {
        entry.allow.is_none() && entry.counts(unix_nanos) && entry.clients.contains(&clients)
    };
    let denied = list == List::Allow && rules.lists().entries().iter().any(|entry| denies(&entry));
    denied.then(|| format!("[[deny]] of {clients} in the file"))
}

fn entry(clients: IpNet, listed: &Listed, clocks: Clocks) -> ListEntry {
    ListEntry {
        list: if listed.denies { List::Deny } else { List::Allow },
        clients: clients.to_string(),
        rules: None,
        since: Some(clocks.moment(listed.since)),
        until: Some(clocks.moment(listed.until)),
        seconds_left: Some(clocks.seconds_left(listed.until)),
        note: listed.note.as_deref().map(str::to_owned),
        outweighed_by: None,
    }
}

/// The networks that operators listed and that overlap with `clients`; all of them for `None`.
pub(super) fn commanded(record: &Record, clients: Option<IpNet>, clocks: Clocks) -> Vec<ListEntry> {
    let stands = |listed: &Listed| listed.until > clocks.now;
    let listed = record.lists.iter().filter(|(net, listed)| {
        stands(listed) && clients.is_none_or(|clients| overlap(**net, clients))
    });
    listed.map(|(net, listed)| entry(*net, listed, clocks)).collect()
}

/// The networks of the file's lists that overlap with `clients`. `now` is the gate's reckoning of the
/// wall clock.
pub(super) fn of_file(
    control: &Control,
    clients: IpNet,
    clocks: Clocks,
    now: i128,
) -> Vec<ListEntry> {
    let rules = control.rules.rules();
    let named = |bits: [u64; 4]| {
        let has = |at: &usize| bits[at / 64] >> (at % 64) & 1 == 1;
        (0..rules.len()).filter(has).map(|at| rules[at].name.to_string()).collect()
    };
    let mut found = Vec::new();
    for entry in control.rules.lists().entries().iter().filter(|entry| entry.counts(now)) {
        let end = entry.until.map(|seconds| i128::from(seconds) * 1_000_000_000);
        for net in entry.clients.iter().filter(|net| overlap(**net, clients)) {
            found.push(ListEntry {
                list: if entry.allow.is_none() { List::Deny } else { List::Allow },
                clients: net.to_string(),
                rules: entry.allow.flatten().map(named),
                since: None,
                until: end.map(|end| clocks.moment_of_unix(end, now)),
                seconds_left: end.map(|end| seconds_up(end - now)),
                note: entry.note.as_deref().map(str::to_owned),
                outweighed_by: None,
            });
        }
    }
    found
}

fn seconds_up(nanos: i128) -> u64 {
    u64::try_from(nanos.max(0) / 1_000_000_000 + i128::from(nanos % 1_000_000_000 > 0))
        .unwrap_or(u64::MAX)
}

fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other) || other.contains(&one)
}
