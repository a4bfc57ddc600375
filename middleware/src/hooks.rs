//! What the service registers: functions that know what only the service knows.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use hotgate_detector::Finding;
use http::{Response, request::Parts};

use crate::peer::PeerFn;

/// A function that tells of a request what rules call `user` or `x:NAME`.
pub(crate) type ExtractorFn = dyn Fn(&Parts) -> Option<Cow<'_, str>> + Send + Sync;

/// A function that may answer a request in the service's stead.
pub(crate) type HandlerFn = dyn Fn(&Parts, &Finding) -> Option<Response<Bytes>> + Send + Sync;

/// The functions a gate was built with.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) peer: Option<Box<PeerFn>>,
    pub(crate) user: Option<Box<ExtractorFn>>,
    pub(crate) extractors: Named<ExtractorFn>,
    pub(crate) handlers: Named<HandlerFn>,
}

/// Functions by their names, each name once.
pub(crate) struct Named<F: ?Sized>(Vec<(Box<str>, Box<F>)>);

impl<F: ?Sized> Named<F> {
    /// The last function of a name holds.
    pub(crate) fn insert(&mut self, name: &str, function: Box<F>) {
        match self.search(name) {
            Ok(at) => self.0[at].1 = function,
            Err(at) => self.0.insert(at, (name.into(), function)),
        }
    }

    /// A function and its place, which is below [`len`](Self::len).
    pub(crate) fn get(&self, name: &str) -> Option<(usize, &F)> {
        let at = self.search(name).ok()?;
        Some((at, &*self.0[at].1))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The names, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    fn search(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(own, _)| (**own).cmp(name))
    }
}

impl<F: ?Sized> Default for Named<F> {
    fn default() -> Self {
        Named(Vec::new())
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("peer", &self.peer.is_some())
            .field("user", &self.user.is_some())
            .field("extractors", &self.extractors.names().collect::<Vec<_>>())
            .field("handlers", &self.handlers.names().collect::<Vec<_>>())
            .finish()
    }
}
