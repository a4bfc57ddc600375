//! What the service's functions say of one request, each asked at most once and only where a rule
//! asks.

use std::{borrow::Cow, cell::OnceCell, fmt, iter};

use hotgate_rules::Extract;
use http::request::Parts;

use crate::hooks::Hooks;

/// Extractors a gate can have before a request that one of them is asked about allocates.
const EXTRACTORS_INLINE: usize = 4;

/// What one function said, once it was asked.
type Said<'a> = OnceCell<Option<Cow<'a, str>>>;

/// Stands on the stack while one request is decided. What a function said is kept: to find a key, to
/// compare it with an override's and to print it asks for it again, partly under a lock, where no
/// function of the service may run.
pub(crate) struct Extracted<'a> {
    hooks: &'a Hooks,
    parts: &'a Parts,
    user: Said<'a>,
    /// By the extractors' places.
    first: [Said<'a>; EXTRACTORS_INLINE],
    rest: OnceCell<Box<[Said<'a>]>>,
}

impl<'a> Extracted<'a> {
    pub(crate) fn new(hooks: &'a Hooks, parts: &'a Parts) -> Self {
        Extracted {
            hooks,
            parts,
            user: OnceCell::new(),
            first: [const { OnceCell::new() }; EXTRACTORS_INLINE],
            rest: OnceCell::new(),
        }
    }

    fn said(&self, at: usize) -> &Said<'a> {
        self.first.get(at).unwrap_or_else(|| {
            let count = self.hooks.extractors.len() - EXTRACTORS_INLINE;
            let rest =
                self.rest.get_or_init(|| iter::repeat_with(OnceCell::new).take(count).collect());
            &rest[at - EXTRACTORS_INLINE]
        })
    }
}

impl Extract for Extracted<'_> {
    fn user(&self) -> Option<Cow<'_, str>> {
        let ask = || self.hooks.user.as_ref().and_then(|user| user(self.parts));
        self.user.get_or_init(ask).as_deref().map(Cow::Borrowed)
    }

    fn extra(&self, name: &str) -> Option<Cow<'_, str>> {
        let (at, extractor) = self.hooks.extractors.get(name)?;
        self.said(at).get_or_init(|| extractor(self.parts)).as_deref().map(Cow::Borrowed)
    }
}

/// What was said may be a secret.
impl fmt::Debug for Extracted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extracted").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::hooks::ExtractorFn;

    #[test]
    fn each_function_is_asked_once_however_many_there_are() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let mut hooks = Hooks::default();
        let names: Vec<String> = (0..9).map(|at| format!("x{at}")).collect();
        for name in &names {
            let own = name.clone();
            let extractor: Box<ExtractorFn> = Box::new(move |_| {
                ASKED.fetch_add(1, Relaxed);
                (own != "x7").then(|| Cow::Owned(own.clone()))
            });
            hooks.extractors.insert(name, extractor);
        }
        let parts = http::Request::new(()).into_parts().0;
        let extracted = Extracted::new(&hooks, &parts);
        for _ in 0..3 {
            for name in &names {
                let expected = (name != "x7").then_some(&**name);
                assert_eq!(extracted.extra(name).as_deref(), expected);
            }
            assert_eq!(extracted.extra("unknown"), None);
            assert_eq!(extracted.user(), None);
        }
        assert_eq!(ASKED.load(Relaxed), 9, "also the one that knew nothing");
    }
}
