//! `[[allow]]` and `[[deny]]`: the narrowest prefix wins, a tie denies.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use ipnet::IpNet;

/// All lists of a file.
///
/// Entries are kept by the length of their prefix, longest first, so that a look-up is one probe for
/// each length in use, however many entries there are.
#[derive(Clone, Debug, Default)]
pub struct ClientLists {
    v4: Vec<Prefixes>,
    v6: Vec<Prefixes>,
    /// As they are written, for people.
    entries: Arc<[ListEntry]>,
}

/// How a client stands on the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// On none.
    Unlisted,
    /// Denied.
    Denied,
    /// Allowed past every rule.
    Allowed,
    /// Allowed past these rules, as bits by their position.
    AllowedPast([u64; 4]),
}

/// One `[[allow]]` or `[[deny]]`, its rule names resolved to positions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListEntry {
    /// Canonical: no IPv4-mapped ones.
    pub clients: Vec<IpNet>,
    /// `None`: a deny; `Some(None)`: past all rules; `Some(Some(bits))`: past those.
    pub allow: Option<Option<[u64; 4]>>,
    /// Its end, in seconds since the unix epoch.
    pub until: Option<i64>,
    /// `note`.
    pub note: Option<Box<str>>,
}

impl ListEntry {
    /// Whether it counts at `unix_nanos`, nanoseconds since the unix epoch.
    #[must_use]
    pub fn counts(&self, unix_nanos: i128) -> bool {
        unix_nanos < self.end()
    }

    fn end(&self) -> i128 {
        self.until.map_or(FOREVER, |seconds| i128::from(seconds) * 1_000_000_000)
    }
}

/// The networks of one prefix length, by their first address.
#[derive(Clone, Debug)]
struct Prefixes {
    length: u8,
    networks: HashMap<IpAddr, Listed>,
}

/// What the entries of one network say, each kind with its end: the first nanosecond since the unix
/// epoch at which it no longer counts.
#[derive(Clone, Debug)]
struct Listed {
    denied: i128,
    allowed: i128,
    past: Vec<([u64; 4], i128)>,
}

/// The end of what was never there.
const NEVER: i128 = i128::MIN;
/// The end of what has none.
const FOREVER: i128 = i128::MAX;

impl ClientLists {
    pub(crate) fn new(entries: Vec<ListEntry>) -> Self {
        let mut lists = ClientLists::default();
        for entry in &entries {
            let end = entry.end();
            for net in &entry.clients {
                let listed = lists.listed(*net);
                match entry.allow {
                    None => listed.denied = listed.denied.max(end),
                    Some(None) => listed.allowed = listed.allowed.max(end),
                    Some(Some(rules)) => listed.past.push((rules, end)),
                }
            }
        }
        lists.entries = entries.into();
        lists
    }

    /// The lists of the file, as they are written; what operators added is not among them.
    #[must_use]
    pub fn entries(&self) -> &[ListEntry] {
        &self.entries
    }

    /// How `client` (canonical) stands at `unix_nanos`, nanoseconds since the unix epoch.
    ///
    /// An entry whose `until` has come no longer counts. The narrowest prefix wins between deny and
    /// allow, and a tie denies. Allows past some rules add up, with an allow past every rule too, as
    /// far as no deny of a wider prefix lies between them: what is wider than that is outweighed by it.
    #[must_use]
    pub fn standing(&self, client: IpAddr, unix_nanos: i128) -> Standing {
        let mut past = [0; 4];
        for prefixes in if client.is_ipv4() { &self.v4 } else { &self.v6 } {
            let Some(listed) = prefixes.listed(client) else { continue };
            if unix_nanos < listed.denied {
                if past == [0; 4] {
                    return Standing::Denied;
                }
                break;
            }
            if unix_nanos < listed.allowed {
                return Standing::Allowed;
            }
            for (rules, _) in listed.past.iter().filter(|(_, end)| unix_nanos < *end) {
                past.iter_mut().zip(rules).for_each(|(word, rules)| *word |= rules);
            }
        }
        if past == [0; 4] { Standing::Unlisted } else { Standing::AllowedPast(past) }
    }

    /// Whether there is nothing to look up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Adds a network that is denied, or allowed past every rule, until a nanosecond since the epoch.
    pub(crate) fn add(&mut self, net: IpNet, denies: bool, until_unix_nanos: i128) {
        let listed = self.listed(net);
        let end = if denies { &mut listed.denied } else { &mut listed.allowed };
        *end = (*end).max(until_unix_nanos);
    }

    fn listed(&mut self, net: IpNet) -> &mut Listed {
        let family = if net.addr().is_ipv4() { &mut self.v4 } else { &mut self.v6 };
        let length = net.prefix_len();
        let place = family.partition_point(|prefixes| prefixes.length > length);
        if family.get(place).is_none_or(|prefixes| prefixes.length != length) {
            family.insert(place, Prefixes { length, networks: HashMap::new() });
        }
        let nothing = Listed { denied: NEVER, allowed: NEVER, past: Vec::new() };
        family[place].networks.entry(net.network()).or_insert(nothing)
    }
}

impl Prefixes {
    fn listed(&self, client: IpAddr) -> Option<&Listed> {
        let net = IpNet::new(client, self.length).ok()?;
        self.networks.get(&net.network())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOON: i128 = 1_800_000_000 * 1_000_000_000;

    fn entry(clients: &[&str], allow: Option<Option<[u64; 4]>>) -> ListEntry {
        let clients = clients.iter().map(|net| net.parse().unwrap()).collect();
        ListEntry { clients, allow, until: None, note: None }
    }

    fn deny(net: &str) -> ListEntry {
        entry(&[net], None)
    }

    fn allow(net: &str) -> ListEntry {
        entry(&[net], Some(None))
    }

    fn allow_past(net: &str, rules: u64) -> ListEntry {
        entry(&[net], Some(Some([rules, 0, 0, 0])))
    }

    #[track_caller]
    fn check(entries: &[ListEntry], client: &str, expected: Standing) {
        let lists = ClientLists::new(entries.to_vec());
        assert_eq!(lists.standing(client.parse().unwrap(), NOON), expected, "{client}");
        assert_eq!(lists.is_empty(), entries.is_empty());
    }

    #[test]
    fn the_narrowest_prefix_wins_and_a_tie_denies() {
        let lists = [deny("203.0.113.0/24"), allow("203.0.113.9/32"), allow("203.0.0.0/16")];
        check(&lists, "203.0.113.1", Standing::Denied);
        check(&lists, "203.0.113.9", Standing::Allowed);
        check(&lists, "203.0.1.1", Standing::Allowed);
        check(&lists, "198.51.100.1", Standing::Unlisted);
        check(&[allow("203.0.113.0/24"), deny("203.0.113.0/24")], "203.0.113.1", Standing::Denied);
        check(&[], "203.0.113.1", Standing::Unlisted);
    }

    #[test]
    fn an_allow_past_some_rules_outweighs_a_wider_deny_and_lifts_nothing_else() {
        let past = Standing::AllowedPast([1, 0, 0, 0]);
        let partner = allow_past("203.0.113.9/32", 1);
        check(&[deny("203.0.0.0/16"), partner.clone()], "203.0.113.9", past);
        check(&[deny("203.0.113.9/32"), partner.clone()], "203.0.113.9", Standing::Denied);
        check(&[allow("203.0.0.0/16"), partner.clone()], "203.0.113.9", Standing::Allowed);
        let wider = [allow("203.0.0.0/8"), allow_past("203.0.0.0/12", 2)];
        let all = [&wider[..], &[deny("203.0.0.0/16"), partner]].concat();
        check(&all, "203.0.113.9", past);
        check(&all, "203.0.113.8", Standing::Denied);
    }

    #[test]
    fn allows_past_some_rules_add_up() {
        let lists = [
            allow_past("203.0.113.0/24", 1),
            allow_past("203.0.113.9/32", 4),
            allow_past("203.0.113.0/24", 8),
        ];
        check(&lists, "203.0.113.9", Standing::AllowedPast([13, 0, 0, 0]));
        check(&lists, "203.0.113.1", Standing::AllowedPast([9, 0, 0, 0]));
        check(&[allow_past("203.0.113.0/24", 0)], "203.0.113.1", Standing::Unlisted);
    }

    #[test]
    fn a_network_covers_its_own_family_only() {
        check(&[allow("127.0.0.0/8")], "127.0.0.1", Standing::Allowed);
        check(&[allow("::/0")], "127.0.0.1", Standing::Unlisted);
        check(&[allow("0.0.0.0/0")], "2001:db8::1", Standing::Unlisted);
        check(&[deny("2001:db8::/32")], "2001:db8::1", Standing::Denied);
    }

    #[test]
    fn host_bits_of_a_network_mean_nothing() {
        check(&[deny("203.0.113.77/24")], "203.0.113.1", Standing::Denied);
    }

    #[test]
    fn an_entry_ends_at_its_until() {
        let ends =
            |allow, until| ListEntry { until: Some(until), ..entry(&["203.0.113.0/24"], allow) };
        let lists = ClientLists::new(vec![
            ends(None, 100),
            ends(Some(None), 200),
            ends(Some(Some([1, 0, 0, 0])), 300),
            ends(None, 50),
        ]);
        let at = |nanos| lists.standing("203.0.113.1".parse().unwrap(), nanos);
        assert_eq!(at(99_999_999_999), Standing::Denied);
        assert_eq!(at(100_000_000_000), Standing::Allowed);
        assert_eq!(at(200_000_000_000), Standing::AllowedPast([1, 0, 0, 0]));
        assert_eq!(at(300_000_000_000), Standing::Unlisted);
    }

    #[test]
    fn an_entry_without_end_outlasts_its_double_with_one() {
        let ended = ListEntry { until: Some(1), ..deny("203.0.113.0/24") };
        check(&[deny("203.0.113.0/24"), ended.clone()], "203.0.113.1", Standing::Denied);
        check(&[ended, deny("203.0.113.0/24")], "203.0.113.1", Standing::Denied);
    }

    /// What the words of the rule file say, entry by entry.
    fn scan(entries: &[ListEntry], client: IpAddr, nanos: i128) -> Standing {
        let holds = |entry: &&ListEntry| {
            entry.until.is_none_or(|until| nanos < i128::from(until) * 1_000_000_000)
        };
        let live: Vec<&ListEntry> = entries.iter().filter(holds).collect();
        let covers = |entry: &&ListEntry, length| {
            entry.clients.iter().any(|net| net.prefix_len() == length && net.contains(&client))
        };
        let mut past = [0; 4];
        for length in (0..=128).rev() {
            let here = live.iter().filter(|entry| covers(entry, length));
            let kinds: Vec<_> = here.map(|entry| entry.allow).collect();
            match (kinds.contains(&None), kinds.contains(&Some(None))) {
                (true, _) if past == [0; 4] => return Standing::Denied,
                (true, _) => break,
                (false, true) => return Standing::Allowed,
                (false, false) => {}
            }
            for rules in kinds.into_iter().flatten().flatten() {
                past.iter_mut().zip(rules).for_each(|(word, rules)| *word |= rules);
            }
        }
        if past == [0; 4] { Standing::Unlisted } else { Standing::AllowedPast(past) }
    }

    fn an_addr() -> impl Strategy<Value = IpAddr> {
        let few = prop::sample::select(vec![0_u8, 1, 128]);
        (any::<bool>(), few.clone(), few.clone(), few).prop_map(|(v4, a, b, c)| {
            if v4 {
                IpAddr::from([10, a, b, c])
            } else {
                IpAddr::from([0x2001, 0xdb8, a.into(), 0, b.into(), 0, 0, c.into()])
            }
        })
    }

    fn an_entry() -> impl Strategy<Value = ListEntry> {
        let net = (an_addr(), any::<prop::sample::Index>()).prop_map(|(addr, length)| {
            let whole = if addr.is_ipv4() { 32 } else { 128 };
            IpNet::new(addr, u8::try_from(length.index(whole + 1)).unwrap()).unwrap()
        });
        let allow = prop_oneof![
            Just(None),
            Just(Some(None)),
            (0_u64..8).prop_map(|rules| Some(Some([rules, 0, 0, rules]))),
        ];
        let until = prop::option::of(0_i64..4);
        (prop::collection::vec(net, 0..3), allow, until)
            .prop_map(|(clients, allow, until)| ListEntry { note: None, clients, allow, until })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_look_up_says_what_a_scan_of_all_entries_says(
            entries in prop::collection::vec(an_entry(), 0..12),
            client in an_addr(),
            seconds in 0_i128..4,
        ) {
            let lists = ClientLists::new(entries.clone());
            let nanos = seconds * 1_000_000_000;
            prop_assert_eq!(lists.standing(client, nanos), scan(&entries, client, nanos));
        }
    }
}
