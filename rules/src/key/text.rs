//! The printed form of keys, which is also what an operator writes to name one.

use std::{borrow::Cow, fmt::Write as _, hash::Hasher as _, net::IpAddr};

use ipnet::IpNet;
use siphasher::sip::SipHasher24;

use super::{Key, KeySpec, Part, PartKind, Value, index_u8};
use crate::Rule;

/// The longest value that is printed as it is, in bytes; a longer one is printed as its hash, so
/// that no request makes a log line or a table entry large.
const SHOWN_VALUE_BYTES_MAX: usize = 256;

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
        if kind.is_hashed(self.show_key) || length > SHOWN_VALUE_BYTES_MAX {
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

impl Rule {
    /// How this rule's keys are printed; `secret` keys the hashes.
    #[must_use]
    pub fn show<'a>(&'a self, secret: &'a [u8; 16]) -> Show<'a> {
        Show { spec: &self.key, secret, show_key: self.show_key }
    }
}

impl Key<'_> {
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

impl KeySpec {
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
