//! Keys: the typed parts a rule counts by, taken from the facts, printed, and read back.

mod extract;
#[cfg(test)]
mod tests;
mod text;

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    hash::{Hash, Hasher},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use http::{HeaderName, header};
use smallvec::SmallVec;

pub use extract::MissingPart;
pub use text::{KeyTextError, Show};

/// `key` of a rule: a list of parts, each with the kinds it falls back on, first one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec(pub(crate) Box<[Box<[PartKind]>]>);

impl KeySpec {
    /// The parts; each is the list of kinds that can stand for it.
    pub fn parts(&self) -> impl Iterator<Item = &[PartKind]> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// By which prefix it counts IPv4 clients, where its one part is the client's network, if that is
    /// known.
    #[inline]
    #[must_use]
    pub fn client_prefix(&self) -> Option<ClientPrefix> {
        let [kinds] = &*self.0 else { return None };
        match **kinds {
            [PartKind::Client { v4, .. }, ..] => Some(ClientPrefix(v4)),
            _ => None,
        }
    }

    /// Whether this is `key = []`: one budget for the whole rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, kinds) in self.parts().enumerate() {
            if index > 0 {
                f.write_char(',')?;
            }
            for (index, kind) in kinds.iter().enumerate() {
                if index > 0 {
                    f.write_char('|')?;
                }
                write!(f, "{kind}")?;
            }
        }
        Ok(())
    }
}

/// What one part of a key is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartKind {
    /// `client` or `client/N`: the client's network.
    Client {
        /// The N that is written, if one is.
        written: Option<u8>,
        /// The prefix IPv4 clients are counted by.
        v4: u8,
        /// The prefix IPv6 clients are counted by.
        v6: u8,
    },
    /// `bearer`: the token of `Authorization: Bearer`.
    Bearer,
    /// `header:NAME`: all lines of the field, joined as RFC 9110, 5.3 says.
    Header(HeaderName),
    /// `cookie:NAME`: the first cookie of that name.
    Cookie(Box<str>),
    /// `query:NAME`: all values of that name, form-decoded.
    Query(Box<str>),
    /// `param:NAME`: what `{NAME}` of the rule's pattern stands for, percent-decoded once.
    Param(Box<str>),
    /// `path`: the normalised path, without one trailing slash.
    Path,
    /// `route`: the router's template, else the rule's own pattern.
    Route,
    /// `method`.
    Method,
    /// `host`: in lower case, without its port.
    Host,
    /// `agent`: the `User-Agent` field.
    Agent,
    /// `user`: who the service says it is.
    User,
    /// `x:NAME`: what the service's extractor of that name says.
    Extra(Box<str>),
}

impl PartKind {
    /// Whether the client supplies this part, so that its absence is the client's fault.
    #[must_use]
    pub fn is_supplied_by_client(&self) -> bool {
        !matches!(
            self,
            PartKind::Client { .. } | PartKind::Route | PartKind::User | PartKind::Extra(_)
        )
    }

    /// Whether values of this kind, personal or secret as they are, are printed as hashes, which
    /// compare only under one secret.
    #[must_use]
    pub fn is_hashed(&self, show_key: bool) -> bool {
        match self {
            PartKind::Bearer | PartKind::Cookie(_) => true,
            PartKind::Header(name) => is_secret_field(name) || !show_key,
            PartKind::Query(_) | PartKind::Agent | PartKind::User | PartKind::Extra(_) => !show_key,
            _ => false,
        }
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartKind::Client { written: None, .. } => f.write_str("client"),
            PartKind::Client { written: Some(prefix), .. } => write!(f, "client/{prefix}"),
            PartKind::Bearer => f.write_str("bearer"),
            PartKind::Header(name) => write!(f, "header:{name}"),
            PartKind::Cookie(name) => write!(f, "cookie:{name}"),
            PartKind::Query(name) => write!(f, "query:{name}"),
            PartKind::Param(name) => write!(f, "param:{name}"),
            PartKind::Path => f.write_str("path"),
            PartKind::Route => f.write_str("route"),
            PartKind::Method => f.write_str("method"),
            PartKind::Host => f.write_str("host"),
            PartKind::Agent => f.write_str("agent"),
            PartKind::User => f.write_str("user"),
            PartKind::Extra(name) => write!(f, "x:{name}"),
        }
    }
}

/// One key: its parts in the order of the rule's [`KeySpec`], typed and stored apart, so that no two
/// different keys are ever equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key<'a>(SmallVec<[Part<'a>; 1]>);

/// One part of a [`Key`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Which of the part's kinds the value is of: a fallback never shares a count with the kind it
    /// stands in for.
    pub alternative: u8,
    /// The value.
    pub value: Value<'a>,
}

impl Part<'_> {
    /// What stands for a part that none of its kinds gives.
    const MISSING: Self = Part { alternative: 0, value: Value::Missing };
}

/// The value of one [`Part`].
#[derive(Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// None, under `missing_key = "share"`.
    Missing,
    /// A network: its first address and its prefix length.
    Network(IpAddr, u8),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// Two or more values of one query name.
    List(Box<[Cow<'a, [u8]>]>),
}

impl<'a> Value<'a> {
    fn network(addr: IpAddr, v4: u8, v6: u8) -> Self {
        match addr.to_canonical() {
            IpAddr::V4(addr) => Value::Network(first_of(addr, v4).into(), v4),
            IpAddr::V6(addr) => {
                let host = u128::MAX.checked_shr(v6.into()).unwrap_or(0);
                Value::Network(Ipv6Addr::from_bits(addr.to_bits() & !host).into(), v6)
            }
        }
    }

    fn of_list(mut values: Vec<Cow<'a, [u8]>>) -> Option<Self> {
        match values.len() {
            0 => None,
            1 => values.pop().map(Value::Bytes),
            _ => Some(Value::List(values.into())),
        }
    }

    fn into_owned(self) -> Value<'static> {
        let owned = |bytes: Cow<'_, [u8]>| Cow::Owned(bytes.into_owned());
        match self {
            Value::Missing => Value::Missing,
            Value::Network(addr, prefix) => Value::Network(addr, prefix),
            Value::Bytes(bytes) => Value::Bytes(owned(bytes)),
            Value::List(values) => Value::List(values.into_iter().map(owned).collect()),
        }
    }
}

impl Hash for Part<'_> {
    /// In few words: the kind, the form of the value and the value itself.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let form = |form: u64| u64::from(self.alternative) << 56 | form << 48;
        match &self.value {
            Value::Missing => state.write_u64(form(0)),
            Value::Network(IpAddr::V4(addr), prefix) => {
                hash_v4(self.alternative, *addr, *prefix, state);
            }
            Value::Network(IpAddr::V6(addr), prefix) => {
                state.write_u64(form(2) | u64::from(*prefix));
                state.write_u128(addr.to_bits());
            }
            Value::Bytes(bytes) => {
                state.write_u64(form(3));
                bytes.hash(state);
            }
            Value::List(values) => {
                state.write_u64(form(4));
                values.hash(state);
            }
        }
    }
}

/// How many bits of an IPv4 client's address a rule counts by that counts by nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientPrefix(u8);

impl ClientPrefix {
    /// Hashes a client as [`Rule::hash_key`](crate::Rule::hash_key) does.
    #[inline]
    pub fn hash(self, client: Ipv4Addr, state: &mut impl Hasher) {
        hash_v4(0, first_of(client, self.0), self.0, state);
    }
}

/// The commonest part: an IPv4 network, in one word.
fn hash_v4(alternative: u8, addr: Ipv4Addr, prefix: u8, state: &mut impl Hasher) {
    let form = u64::from(alternative) << 56 | 1 << 48 | u64::from(prefix) << 32;
    state.write_u64(form | u64::from(addr.to_bits()));
}

/// The first address of `addr`'s network.
fn first_of(addr: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    let host = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
    Ipv4Addr::from_bits(addr.to_bits() & !host)
}

/// Bytes may be a secret, so only their number is shown; [`Key::text`] knows which are none.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Missing => f.write_str("Missing"),
            Value::Network(addr, prefix) => write!(f, "Network({addr}/{prefix})"),
            Value::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Value::List(values) => write!(f, "List({} values)", values.len()),
        }
    }
}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // All keys of a rule have as many parts, so their number says nothing.
        self.0.iter().for_each(|part| part.hash(state));
    }
}

impl Key<'_> {
    /// The parts.
    #[must_use]
    pub fn parts(&self) -> &[Part<'_>] {
        &self.0
    }

    /// The key with its values its own; an address allocates nothing.
    #[must_use]
    pub fn into_owned(self) -> Key<'static> {
        let owned =
            |part: Part<'_>| Part { alternative: part.alternative, value: part.value.into_owned() };
        Key(self.0.into_iter().map(owned).collect())
    }
}

fn is_secret_field(name: &HeaderName) -> bool {
    [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE].contains(name)
}

/// A rule has few kinds a part; the parser refuses more than 255.
fn index_u8(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}
