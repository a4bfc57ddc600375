//! Keys that only a handler of the service knows, checked by the handler itself.

use std::{
    borrow::Cow,
    error, fmt,
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use bytes::Bytes;
use hotgate_detector::{CheckError, Decision, Refusal};
use hotgate_rules::{Extract, Facts, RequestPath};
use http::{HeaderMap, Method, Response};
use siphasher::sip::SipHasher13;
use smallvec::SmallVec;

use crate::{Gate, log};

/// Parts a key seldom has more of; beyond it a check allocates.
const PARTS_INLINE: usize = 4;

impl Gate {
    /// Asks one rule about a key that only the handler knows, such as one that stands in the body, and
    /// charges it.
    ///
    /// `parts` are the parts of the rule's key by their names in the rule file: `user` and `x:NAME` as
    /// they are, `client` as an address ([`Gate::client`] tells it). Of `user|client` give the first
    /// there is. What the rule's `when` asks is given in the same way; functions that were
    /// registered are not asked. Give a rule that only handlers ask `match = []`, so that it is not
    /// applied to requests as well.
    ///
    /// A programmer's mistake refuses nobody: that there is no such rule, that it counts responses, which
    /// are not known here, or that a part of its key is missing, is warned of once, and the check
    /// passes.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rules = r#"
    ///     app = "shop"
    ///     [[rule]]
    ///     name = "login-user"
    ///     match = []
    ///     key = ["user"]
    ///     over = "2/1m"
    ///     throttle = {}
    /// "#;
    /// let gate = hotgate::Gate::builder().rules(rules.parse()?).build()?;
    /// let login = |user: &str| gate.check("login-user", [("user", user)]);
    /// assert!(login("alice").is_ok() && login("alice").is_ok());
    /// let refused = login("alice").expect_err("the third in a minute");
    /// assert_eq!(refused.into_http().status(), 429);
    /// assert!(login("bob").is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the rule refuses: return it as the response (feature `axum`: it is an `IntoResponse`).
    pub fn check<N: AsRef<str>, V: AsRef<str>>(
        &self,
        rule: &str,
        parts: impl IntoIterator<Item = (N, V)>,
    ) -> Result<(), Refused> {
        let given = Given(parts.into_iter().collect());
        let shared = self.shared();
        let (headers, now) = (HeaderMap::new(), shared.clock.now());
        let facts = Facts {
            method: None,
            path: RequestPath::new(""),
            query: None,
            host: None,
            headers: &headers,
            route: None,
            client: given.client(),
            extracted: &given,
        };
        let active = shared.active.load();
        let decision = match active.engine.check(rule, &facts, now) {
            Ok(decision) => decision,
            Err(fault) => {
                shared.faults.say(rule, &fault);
                return Ok(());
            }
        };
        shared.refusals.observed(&active, &decision, now);
        if decision.refusal.is_none() {
            return Ok(());
        }
        Err(Refused(Box::new(shared.refuse(&active, decision, &Method::POST, now))))
    }
}

/// What a handler gave.
struct Given<N, V>(SmallVec<[(N, V); PARTS_INLINE]>);

impl<N: AsRef<str>, V: AsRef<str>> Given<N, V> {
    fn get(&self, is_it: impl Fn(&str) -> bool) -> Option<&str> {
        self.0.iter().find_map(|(name, value)| is_it(name.as_ref()).then(|| value.as_ref()))
    }

    fn client(&self) -> Option<IpAddr> {
        self.get(|name| name == "client")?.parse::<IpAddr>().ok().map(|addr| addr.to_canonical())
    }
}

impl<N: AsRef<str>, V: AsRef<str>> Extract for Given<N, V> {
    fn user(&self) -> Option<Cow<'_, str>> {
        self.get(|name| name == "user").map(Cow::Borrowed)
    }

    fn extra(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(|given| given.strip_prefix("x:") == Some(name)).map(Cow::Borrowed)
    }
}

/// What is given may be a secret.
impl<N, V> fmt::Debug for Given<N, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Given({} parts)", self.0.len())
    }
}

/// That a rule refuses the key that [`Gate::check`] was given.
pub struct Refused(Box<Response<Bytes>>);

impl Refused {
    /// The answer that the layer would give.
    #[must_use]
    pub fn into_http(self) -> Response<Bytes> {
        *self.0
    }

    /// Why.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.0.extensions().get::<Decision>()?.refusal.as_ref()
    }

    fn rule(&self) -> &str {
        self.refusal().and_then(|refusal| refusal.rule.as_deref()).unwrap_or_default()
    }
}

#[cfg(feature = "axum")]
impl axum::response::IntoResponse for Refused {
    fn into_response(self) -> axum::response::Response {
        self.into_http().map(axum::body::Body::from)
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("refusal", &self.refusal()).finish_non_exhaustive()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused by rule {:?}", self.rule())
    }
}

impl error::Error for Refused {}

/// Programmers' mistakes in checks, each told once: one bit for each by its hash, so that not even names
/// that are made up as the service runs fill anything.
#[derive(Debug, Default)]
pub(crate) struct Faults(AtomicU64);

impl Faults {
    fn say(&self, rule: &str, fault: &CheckError) {
        let kind: u8 = match fault {
            CheckError::UnknownRule => 0,
            CheckError::CountsResponses => 1,
            _ => 2,
        };
        let bit = 1 << (SipHasher13::new().hash(&[&[kind], rule.as_bytes()].concat()) % 64);
        if self.0.load(Relaxed) & bit == 0 && self.0.fetch_or(bit, Relaxed) & bit == 0 {
            log::warn(format_args!("gate.check({rule:?}, …) checks nothing and passes: {fault}"));
        }
    }
}
