//! What operators say over the rule file, for as long as the process lives.

use std::collections::BTreeMap;

use ipnet::IpNet;

use crate::{Mode, RuleSet, parse, problem::Quoted};

/// What holds over the rule file: what the environment said at the start, and what operators
/// commanded since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Commands {
    /// `HOTGATE_MODE`, as it was at the start.
    pub environment: Mode,
    /// The last command about the whole file.
    pub mode: Mode,
    /// The last command about each rule, by its name.
    pub rule_modes: BTreeMap<Box<str>, Mode>,
    /// Networks that operators denied or allowed; the last command about each.
    pub lists: Vec<ListCommand>,
}

/// An operator's `deny` or `allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCommand {
    /// Canonical, without host bits.
    pub clients: IpNet,
    /// `deny`; otherwise `allow`, past every rule.
    pub denies: bool,
    /// Its end, in nanoseconds since the unix epoch.
    pub until_unix_nanos: i128,
}

/// Reads an address or a network as the rule file does: IPv4-mapped ones are IPv4, and bits beyond the
/// prefix are an error.
///
/// # Errors
///
/// When it is neither; the error says what was expected.
pub fn network(text: &str) -> Result<IpNet, NetworkError> {
    let error = |expected| NetworkError { expected, found: Quoted(text).to_string() };
    let expected = || error("an address or network such as 203.0.113.0/24".to_owned());
    let net = parse::net::parse(text).ok_or_else(expected)?;
    if net != net.trunc() {
        return Err(error(format!("no bits beyond the prefix, such as {}", net.trunc())));
    }
    Ok(net)
}

/// Not an address or network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct NetworkError {
    expected: String,
    found: String,
}

impl RuleSet {
    /// The rules of the file under these commands. The lowest mode holds; networks stand beside those
    /// of the file, and the narrowest of all wins.
    #[must_use]
    pub fn under(&self, commands: &Commands) -> RuleSet {
        let mut set = self.clone();
        set.mode = set.mode.min(commands.environment).min(commands.mode);
        for rule in &mut set.rules {
            rule.mode_max = commands.rule_modes.get(&*rule.name).copied().unwrap_or_default();
        }
        for list in &commands.lists {
            set.lists.add(list.clients, list.denies, list.until_unix_nanos);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Standing;

    const RULES: &str = r#"
        app = "shop"
        [[deny]]
        clients = ["203.0.113.0/24"]
        [[rule]]
        name = "a"
        key = ["client"]
        over = "10/1m"
        throttle = {}
        [[rule]]
        name = "b"
        mode = "observe"
        key = ["client"]
        over = "10/1m"
        throttle = {}
    "#;

    fn modes(commands: &Commands) -> [Mode; 2] {
        let set = RULES.parse::<RuleSet>().unwrap().under(commands);
        [0, 1].map(|rule| set.rules()[rule].mode_under(set.mode(), None))
    }

    #[test]
    fn the_lowest_mode_of_file_environment_and_command_holds() {
        use Mode::{Enforce, Observe, Off};
        let mut commands = Commands::default();
        assert_eq!(modes(&commands), [Enforce, Observe]);
        commands.rule_modes.insert("b".into(), Enforce);
        assert_eq!(modes(&commands), [Enforce, Observe], "a command raises nothing");
        commands.rule_modes.insert("a".into(), Observe);
        assert_eq!(modes(&commands), [Observe, Observe]);
        commands.environment = Off;
        assert_eq!(modes(&commands), [Off, Off]);
        commands = Commands { mode: Observe, ..Commands::default() };
        assert_eq!(modes(&commands), [Observe, Observe]);
    }

    #[test]
    fn a_network_is_read_as_the_file_reads_it() {
        for (text, expected) in [
            ("203.0.113.9", Ok("203.0.113.9/32")),
            ("203.0.113.0/24", Ok("203.0.113.0/24")),
            ("::ffff:203.0.113.0/120", Ok("203.0.113.0/24")),
            ("2001:db8::/48", Ok("2001:db8::/48")),
            (
                "203.0.113.9/24",
                Err(
                    "expected no bits beyond the prefix, such as 203.0.113.0/24, found \"203.0.113.9/24\"",
                ),
            ),
            (
                "shop.example",
                Err(
                    "expected an address or network such as 203.0.113.0/24, found \"shop.example\"",
                ),
            ),
        ] {
            let read = network(text).map(|net| net.to_string()).map_err(|error| error.to_string());
            assert_eq!(read, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn an_operators_network_stands_beside_the_files_until_its_end() {
        let allow = ListCommand {
            clients: "203.0.113.9/32".parse().unwrap(),
            denies: false,
            until_unix_nanos: 1_000,
        };
        let commands = Commands { lists: vec![allow], ..Commands::default() };
        let set = RULES.parse::<RuleSet>().unwrap().under(&commands);
        let standing = |client: &str, nanos| set.lists().standing(client.parse().unwrap(), nanos);
        assert_eq!(standing("203.0.113.9", 999), Standing::Allowed);
        assert_eq!(standing("203.0.113.9", 1_000), Standing::Denied);
        assert_eq!(standing("203.0.113.8", 0), Standing::Denied);
    }
}
