//! Keys: the typed parts a rule counts by, taken from the facts, printed, and read back.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    hash::{Hash, Hasher},
    net::IpAddr,
};

use http::{HeaderName, header};
use ipnet::IpNet;
use siphasher::sip::SipHasher24;
use smallvec::SmallVec;

use crate::{Facts, MissingKey, Pattern, Rule};

/// The longest value that is printed as it is, in bytes; a longer one is printed as its hash, so
/// that no request makes a log line or a table entry large.
const SHOWN_VALUE_BYTES_MAX: usize = 256;

/// `key` of a rule: a list of parts, each with the kinds it falls back on, first one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec(pub(crate) Box<[Box<[PartKind]>]>);

impl KeySpec {
    /// The parts; each is the list of kinds that can stand for it.
    pub fn parts(&self) -> impl Iterator<Item = &[PartKind]> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Whether this is `key = []`: one budget for the whole rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the printed form, such as `client=203.0.113.9,param:id=7`.
    ///
    /// # Errors
    ///
    /// When the parts are not this key's, or a value cannot be read; a value that was printed as a
    /// hash cannot be read back, and says so.
    pub fn read(&self, text: &str) -> Result<Key<'static>, KeyTextError> {
        let written: Vec<&str> =
            if text.is_empty() { Vec::new() } else { text.split(',').collect() };
        if written.len() != self.0.len() {
            return Err(KeyTextError::Parts { expected: self.to_string() });
        }
        let read_part = |(part, kinds): (&str, &[PartKind])| {
            let unknown = || KeyTextError::Parts { expected: self.to_string() };
            let (name, value) = part.split_once('=').ok_or_else(unknown)?;
            let alternative = kinds.iter().position(|kind| kind.printed_name() == name);
            let alternative = alternative.ok_or_else(unknown)?;
            Ok(match kinds[alternative].read_value(value)? {
                Value::Missing => Part::MISSING,
                value => Part { alternative: index_u8(alternative), value },
            })
        };
        written.into_iter().zip(self.parts()).map(read_part).collect::<Result<_, _>>().map(Key)
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

/// A printed key that could not be read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTextError {
    /// The text names other parts than the rule's.
    #[error("expected a key of the parts {expected}, each written as part=value")]
    Parts {
        /// The rule's parts.
        expected: String,
    },
    /// A `client` value that is no address, nor a network of the part's prefix.
    #[error(
        "expected an address for client, such as 203.0.113.9, or its network as the rule counts it, not {0:?}"
    )]
    Address(String),
    /// A percent sign without two hexadecimal digits.
    #[error("expected two hexadecimal digits after each % in {0:?}")]
    Encoding(String),
    /// A value that is printed as a hash only.
    #[error("{0:?} is a hash: it names a key that stands, but its value cannot be read from it")]
    Hashed(String),
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
}

impl PartKind {
    /// The name before the `=` of a printed key; `client/24` prints as `client`, its value says /24.
    fn printed_name(&self) -> Cow<'static, str> {
        match self {
            PartKind::Client { .. } => "client".into(),
            // A query's name may hold any byte, so also the separators of a printed key.
            other => percent_encoding::utf8_percent_encode(&other.to_string(), ENCODED)
                .to_string()
                .into(),
        }
    }

    /// Whether the client supplies this part, so that its absence is the client's fault.
    #[must_use]
    pub fn is_supplied_by_client(&self) -> bool {
        !matches!(self, PartKind::Client { .. } | PartKind::Route)
    }

    /// Whether the value is personal or secret, so that it is printed as a hash.
    fn is_hidden(&self, show_key: bool) -> bool {
        match self {
            PartKind::Bearer | PartKind::Cookie(_) => true,
            PartKind::Header(name) => is_secret_field(name) || !show_key,
            PartKind::Query(_) | PartKind::Agent => !show_key,
            _ => false,
        }
    }

    /// Whether values of this kind may be printed as hashes, which compare only under one secret.
    #[must_use]
    pub fn is_hashed(&self, show_key: bool) -> bool {
        self.is_hidden(show_key)
    }

    fn value<'a>(&'a self, rule: &'a Rule, facts: &'a Facts<'_>) -> Option<Value<'a>> {
        let bytes = |bytes: &'a [u8]| Value::Bytes(Cow::Borrowed(bytes));
        match self {
            PartKind::Client { v4, v6, .. } => {
                facts.client.map(|addr| Value::network(addr, *v4, *v6))
            }
            PartKind::Bearer => bearer(facts).map(bytes),
            PartKind::Header(name) => field(facts, name).map(Value::Bytes),
            PartKind::Cookie(name) => cookie(facts, name).map(bytes),
            PartKind::Query(name) => query(facts, name),
            PartKind::Param(name) => rule
                .pattern_for(facts)
                .and_then(|pattern| pattern.param(name, &facts.path))
                .map(|raw| Value::Bytes(percent_encoding::percent_decode_str(raw).into())),
            PartKind::Path => Some(facts.path.normal_trimmed())
                .filter(|path| !path.is_empty())
                .map(|path| bytes(path.as_bytes())),
            PartKind::Route => facts
                .route
                .or_else(|| rule.pattern_for(facts).map(Pattern::path))
                .map(|route| bytes(route.as_bytes())),
            PartKind::Method => facts.method.map(|method| bytes(method.as_str().as_bytes())),
            PartKind::Host => facts.host.map(lowercase),
            PartKind::Agent => field(facts, &header::USER_AGENT).map(Value::Bytes),
        }
    }

    fn read_value(&self, text: &str) -> Result<Value<'static>, KeyTextError> {
        if text == MISSING {
            return Ok(Value::Missing);
        }
        if text.starts_with('#') {
            return Err(KeyTextError::Hashed(text.to_owned()));
        }
        if let PartKind::Client { v4, v6, .. } = self {
            return read_network(text, *v4, *v6)
                .ok_or_else(|| KeyTextError::Address(text.to_owned()));
        }
        let values = text.split('&').map(decode).collect::<Result<Vec<_>, _>>()?;
        Ok(Value::of_list(values).unwrap_or(Value::Bytes(Cow::Borrowed(&[]))))
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
        }
    }
}

/// One key: its parts in the order of the rule's [`KeySpec`], typed and stored apart, so that no two
/// different keys are ever equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key<'a>(SmallVec<[Part<'a>; 2]>);

/// One part of a [`Key`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
        let addr = addr.to_canonical();
        let prefix = if addr.is_ipv4() { v4 } else { v6 };
        let net = IpNet::new_assert(addr, prefix);
        Value::Network(net.network(), prefix)
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

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // All keys of a rule have as many parts.
        self.0.iter().for_each(|part| part.hash(state));
    }
}

impl Hash for Value<'_> {
    /// The most common value, an IPv4 address, in one word beside its kind.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Value::Missing => state.write_u8(0),
            Value::Network(IpAddr::V4(addr), prefix) => {
                state.write_u64(1 << 48 | u64::from(*prefix) << 32 | u64::from(addr.to_bits()));
            }
            Value::Network(IpAddr::V6(addr), prefix) => {
                state.write_u64(2 << 48 | u64::from(*prefix));
                state.write_u128(addr.to_bits());
            }
            Value::Bytes(bytes) => {
                state.write_u8(3);
                bytes.hash(state);
            }
            Value::List(values) => {
                state.write_u8(4);
                values.hash(state);
            }
        }
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

    /// The printed form, such as `client=203.0.113.9,param:id=7`: in values `,`, `=`, `%`, `&`, `<`,
    /// `#`, spaces, controls and all that is not ASCII are percent-encoded; secrets, and what the rule does
    /// not show, are a keyed hash.
    #[must_use]
    pub fn text(&self, show: &Show<'_>) -> String {
        let mut text = String::new();
        for (index, (part, kinds)) in self.0.iter().zip(show.spec.parts()).enumerate() {
            if index > 0 {
                text.push(',');
            }
            let kind = &kinds[usize::from(part.alternative)];
            text.push_str(&kind.printed_name());
            text.push('=');
            show.value(kind, &part.value, &mut text);
        }
        text
    }
}

/// How keys of one rule are printed; made by [`Rule::show`].
#[derive(Debug)]
pub struct Show<'a> {
    spec: &'a KeySpec,
    secret: &'a [u8; 16],
    show_key: bool,
}

impl Show<'_> {
    fn value(&self, kind: &PartKind, value: &Value<'_>, text: &mut String) {
        let values: &[Cow<'_, [u8]>] = match value {
            Value::Missing => return text.push_str(MISSING),
            Value::Network(addr, prefix) => return push_network(*addr, *prefix, text),
            Value::Bytes(bytes) => std::slice::from_ref(bytes),
            Value::List(values) => values,
        };
        // Of the values and what separates them: empty ones, too, are many where a client wants.
        let length: usize = values.iter().map(|bytes| bytes.len() + 1).sum::<usize>() - 1;
        if kind.is_hidden(self.show_key) || length > SHOWN_VALUE_BYTES_MAX {
            let mut hasher = SipHasher24::new_with_key(self.secret);
            for bytes in values {
                hasher.write(&(bytes.len() as u64).to_le_bytes());
                hasher.write(bytes);
            }
            let _ = write!(text, "#{:016x}", hasher.finish());
            return;
        }
        for (index, bytes) in values.iter().enumerate() {
            if index > 0 {
                text.push('&');
            }
            text.extend(percent_encoding::percent_encode(bytes, ENCODED));
        }
    }
}

/// A request that lacks a part of a rule's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingPart {
    /// Whether the client should have supplied it.
    pub by_client: bool,
}

impl Rule {
    /// This rule's key of a request, its `missing_key = "share"` applied.
    ///
    /// # Errors
    ///
    /// When a part is missing and the rule does not share.
    pub fn key<'a>(&'a self, facts: &'a Facts<'_>) -> Result<Key<'a>, MissingPart> {
        self.key.parts().map(|kinds| self.part(kinds, facts)).collect::<Result<_, _>>().map(Key)
    }

    /// Hashes this rule's key of a request, as hashing [`Rule::key`] would, without making it.
    ///
    /// # Errors
    ///
    /// As [`Rule::key`].
    pub fn hash_key(&self, facts: &Facts<'_>, state: &mut impl Hasher) -> Result<(), MissingPart> {
        self.key.parts().try_for_each(|kinds| {
            self.part(kinds, facts)?.hash(state);
            Ok(())
        })
    }

    fn part<'a>(
        &'a self,
        kinds: &'a [PartKind],
        facts: &'a Facts<'_>,
    ) -> Result<Part<'a>, MissingPart> {
        for (index, kind) in kinds.iter().enumerate() {
            if let Some(value) = kind.value(self, facts) {
                return Ok(Part { alternative: index_u8(index), value });
            }
        }
        if self.missing_key == MissingKey::Share {
            return Ok(Part { alternative: 0, value: Value::Missing });
        }
        Err(MissingPart { by_client: kinds.iter().all(PartKind::is_supplied_by_client) })
    }

    /// How this rule's keys are printed; `secret` keys the hashes.
    #[must_use]
    pub fn show<'a>(&'a self, secret: &'a [u8; 16]) -> Show<'a> {
        Show { spec: &self.key, secret, show_key: self.show_key }
    }

    /// The one of the rule's matching patterns whose captures the handler sees, as far as that is
    /// known: the router's own template, else the first that matches the raw path, by which routers
    /// go, else the first.
    pub(crate) fn pattern_for(&self, facts: &Facts<'_>) -> Option<&Pattern> {
        let patterns = self.patterns.iter().flatten();
        let matching = patterns.filter(|pattern| pattern.matches(facts.method, &facts.path));
        matching.min_by_key(|pattern| {
            (facts.route != Some(pattern.path()), !pattern.covers(facts.path.raw()))
        })
    }
}

/// The printed value of a missing part.
const MISSING: &str = "<missing>";

/// What is percent-encoded in a printed value.
const ENCODED: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS
    .add(b' ')
    .add(b',')
    .add(b'=')
    .add(b'%')
    .add(b'&')
    .add(b'<')
    .add(b'#');

fn is_secret_field(name: &HeaderName) -> bool {
    [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE].contains(name)
}

fn read_network(text: &str, v4: u8, v6: u8) -> Option<Value<'static>> {
    if let Ok(addr) = text.parse() {
        return Some(Value::network(addr, v4, v6));
    }
    let net: IpNet = text.parse().ok()?;
    Some(Value::network(net.addr(), v4, v6))
        .filter(|value| matches!(value, Value::Network(_, prefix) if *prefix == net.prefix_len()))
}

fn push_network(addr: IpAddr, prefix: u8, text: &mut String) {
    let whole = if addr.is_ipv4() { 32 } else { 128 };
    let _ = if prefix == whole { write!(text, "{addr}") } else { write!(text, "{addr}/{prefix}") };
}

fn bearer<'a>(facts: &'a Facts<'_>) -> Option<&'a [u8]> {
    let value = facts.headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(b"bearer ".len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

fn field<'a>(facts: &'a Facts<'_>, name: &HeaderName) -> Option<Cow<'a, [u8]>> {
    let mut lines = facts.headers.get_all(name).iter();
    let first = lines.next()?.as_bytes();
    let mut value = Cow::Borrowed(first);
    for line in lines {
        let joined = value.to_mut();
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(line.as_bytes());
    }
    Some(value)
}

fn cookie<'a>(facts: &'a Facts<'_>, name: &str) -> Option<&'a [u8]> {
    let lines = facts.headers.get_all(header::COOKIE).iter();
    let mut pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pairs.find_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (found, value) = pair.split_at(equals);
        (found.trim_ascii() == name.as_bytes()).then(|| value[1..].trim_ascii())
    })
}

fn query<'a>(facts: &Facts<'a>, name: &str) -> Option<Value<'a>> {
    let pairs = form_urlencoded::parse(facts.query?.as_bytes());
    let values = pairs.filter(|(found, _)| found == name).map(|(_, value)| match value {
        Cow::Borrowed(value) => Cow::Borrowed(value.as_bytes()),
        Cow::Owned(value) => Cow::Owned(value.into_bytes()),
    });
    Value::of_list(values.collect())
}

fn lowercase(text: &str) -> Value<'_> {
    Value::Bytes(if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase().into_bytes())
    } else {
        Cow::Borrowed(text.as_bytes())
    })
}

fn decode(text: &str) -> Result<Cow<'static, [u8]>, KeyTextError> {
    let valid = text
        .split('%')
        .skip(1)
        .all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|digit| digit.is_ascii_hexdigit()));
    if !valid {
        return Err(KeyTextError::Encoding(text.to_owned()));
    }
    Ok(Cow::Owned(percent_encoding::percent_decode_str(text).collect()))
}

/// A rule has few kinds a part; the parser refuses more than 255.
fn index_u8(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}
