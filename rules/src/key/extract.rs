//! A rule's key, taken from the facts of a request.

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
    net::IpAddr,
};

use http::{HeaderName, header};

use super::{Key, Part, PartKind, Value, index_u8};
use crate::{Facts, MissingKey, Pattern, Rule};

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

    /// Hashes this rule's key of a request, as hashing [`Rule::key`] does, without making it.
    ///
    /// # Errors
    ///
    /// As [`Rule::key`].
    #[inline]
    pub fn hash_key(&self, facts: &Facts<'_>, state: &mut impl Hasher) -> Result<(), MissingPart> {
        // The commonest key, without the detour over a value.
        if let (Some(prefix), Some(IpAddr::V4(client))) = (self.key.client_prefix(), facts.client) {
            prefix.hash(client, state);
            return Ok(());
        }
        self.hash_parts(facts, state)
    }

    fn hash_parts(&self, facts: &Facts<'_>, state: &mut impl Hasher) -> Result<(), MissingPart> {
        for kinds in self.key.parts() {
            self.part(kinds, facts)?.hash(state);
        }
        Ok(())
    }

    #[inline]
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
            return Ok(Part::MISSING);
        }
        Err(MissingPart { by_client: kinds.iter().all(PartKind::is_supplied_by_client) })
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

impl PartKind {
    #[inline]
    pub(crate) fn value<'a>(&'a self, rule: &'a Rule, facts: &'a Facts<'_>) -> Option<Value<'a>> {
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
            PartKind::User => facts.extracted.user().map(text),
            PartKind::Extra(name) => facts.extracted.extra(name).map(text),
        }
    }
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

fn text(text: Cow<'_, str>) -> Value<'_> {
    Value::Bytes(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    })
}

fn lowercase(text: &str) -> Value<'_> {
    Value::Bytes(if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase().into_bytes())
    } else {
        Cow::Borrowed(text.as_bytes())
    })
}
