//! What an engine is given beside its rules.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use siphasher::sip::SipHasher24;

use crate::id::IdSecret;

/// What an [`Engine`](crate::Engine) needs beside its rules.
#[derive(Clone, Copy)]
pub struct Config {
    /// Keys the hash of the tables: random, so that nobody can aim at a line.
    pub table_seed: [u64; 4],
    /// Keys the hashes that stand for secrets and personal data in printed keys.
    pub privacy_secret: [u8; 16],
    /// Where the origin of [`Time`](crate::Time) lies, in nanoseconds since the unix epoch: dates in rules need it.
    pub origin_unix_nanos: i128,
}

impl Config {
    /// A key that says nothing of the tables' seed.
    pub(crate) fn id_secret(&self) -> IdSecret {
        IdSecret([0u8, 1].map(|part| {
            let mut hasher = SipHasher24::new_with_key(&self.privacy_secret);
            (self.table_seed, part).hash(&mut hasher);
            hasher.finish()
        }))
    }
}

/// Shows neither of its secrets.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("origin_unix_nanos", &self.origin_unix_nanos)
            .finish_non_exhaustive()
    }
}
