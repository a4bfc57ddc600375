//! What operators said, when and why: what [`Commands`] has no room for.

use std::collections::BTreeMap;

use hotgate_detector::Time;
use hotgate_rules::{Commands, ListCommand};
use ipnet::IpNet;

use super::error::{CommandError, LISTS_MAX};

/// The rules that a file may have, and so the modes of rules that are worth keeping.
const RULES_MAX: usize = 256;

/// When commands were given, and the lists with their notes.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// When the mode of the whole file was commanded last.
    pub(super) mode: Option<Time>,
    /// When each rule's was.
    pub(super) rule_modes: BTreeMap<Box<str>, Time>,
    /// The last command about each network.
    pub(super) lists: BTreeMap<IpNet, Listed>,
}

/// A network that is denied or allowed by command.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) denies: bool,
    pub(super) since: Time,
    pub(super) until: Time,
    pub(super) note: Option<Box<str>>,
}

impl Record {
    /// Notes a network, in the place of what was said of it before, and forgets those that have ended.
    pub(super) fn list(
        &mut self,
        clients: IpNet,
        listed: Listed,
        now: Time,
    ) -> Result<(), CommandError> {
        self.lists.retain(|_, listed| listed.until > now);
        if self.lists.len() >= LISTS_MAX && !self.lists.contains_key(&clients) {
            return Err(CommandError::ListsFull);
        }
        self.lists.insert(clients, listed);
        Ok(())
    }

    /// The networks as the rules take them; `unix_nanos` is the gate's reckoning of a time.
    pub(super) fn commands(&self, unix_nanos: impl Fn(Time) -> i128) -> Vec<ListCommand> {
        let command = |(clients, listed): (&IpNet, &Listed)| ListCommand {
            clients: *clients,
            denies: listed.denies,
            until_unix_nanos: unix_nanos(listed.until),
        };
        self.lists.iter().map(command).collect()
    }

    /// Notes when a rule's mode was commanded. Modes of rules that the file does not have any more are
    /// kept, should they come back, while there is room.
    pub(super) fn rule_mode(
        &mut self,
        commands: &mut Commands,
        rule: &str,
        is_known: impl Fn(&str) -> bool,
        now: Time,
    ) {
        if self.rule_modes.len() >= RULES_MAX {
            self.rule_modes.retain(|name, _| is_known(name));
            commands.rule_modes.retain(|name, _| is_known(name));
        }
        self.rule_modes.insert(rule.into(), now);
    }
}
