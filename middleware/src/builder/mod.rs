//! How a gate is built.

use std::{
    borrow::Cow,
    env,
    ffi::OsStr,
    fmt, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    time::SystemTime,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use hotgate_detector::{Config, Engine, Finding, Time};
use hotgate_rules::{Commands, Mode, Peer, RuleSet};
use http::{Response, request::Parts};
use siphasher::sip128::SipHasher24;

use crate::{
    BuildError, Gate,
    active::Active,
    check::Faults,
    control::Control,
    counters::{Published, Totals},
    error::SECRET_BYTES_MIN,
    gate::{self, Clock, Shared},
    hooks::Hooks,
    log::{self, Notices, RefusalLog},
    needs,
    operator::Record,
    reload::{Reload, Reloads, read},
    worker::Worker,
};

/// The mode that the environment sets over the rules.
const MODE_VARIABLE: &str = "HOTGATE_MODE";

/// Builds a [`Gate`]; made by [`Gate::builder`].
#[derive(Default)]
#[must_use]
pub struct GateBuilder {
    rules: Option<Source>,
    hooks: Hooks,
}

enum Source {
    File(PathBuf),
    Set(Box<RuleSet>),
}

impl GateBuilder {
    /// Takes the rules from a file; whichever of this and [`rules`](Self::rules) is called last holds.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.rules = Some(Source::File(path.into()));
        self
    }

    /// Takes these rules. A relative `secret_file` is sought from the working directory.
    pub fn rules(mut self, rules: RuleSet) -> Self {
        self.rules = Some(Source::Set(Box::new(rules)));
        self
    }

    /// Asks this function who the peer is, for servers whose way of telling it the gate does not
    /// know. Where it says nothing, the extensions are asked as if it were not there: a
    /// [`PeerAddr`](crate::PeerAddr), Axum's `ConnectInfo<SocketAddr>` (feature `axum`), a `SocketAddr`.
    ///
    /// It is about the connection. Whom a proxy speaks for is up to `[client]` of the rules: what a
    /// header says must not come in here.
    pub fn peer(mut self, find: impl Fn(&Parts) -> Option<Peer> + Send + Sync + 'static) -> Self {
        self.hooks.peer = Some(Box::new(find));
        self
    }

    /// Asks this function who the user is, for rules whose key or `when` names `user`: what
    /// authentication left in the request's extensions, say. `None`: nobody, and the key lacks that part.
    ///
    /// It is asked at most once for a request, only where a rule that matches wants to know, and never
    /// under a lock. What it may not do is wait; should it panic, the request's task does. Where
    /// authentication is a layer, rules by user belong behind it: see [`Gate::inner_layer`].
    pub fn user(
        mut self,
        user: impl Fn(&Parts) -> Option<Cow<'_, str>> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.user = Some(Box::new(user));
        self
    }

    /// Asks this function what rules call `x:NAME`, as [`user`](Self::user) is asked for the user. Of two
    /// functions of one name the later holds.
    pub fn extractor(
        mut self,
        name: &str,
        extract: impl Fn(&Parts) -> Option<Cow<'_, str>> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.extractors.insert(name, Box::new(extract));
        self
    }

    /// Lets this function answer the requests of keys that are hot under rules with `handler = "NAME"`,
    /// in the service's stead; `None`: the request goes on as if the rule were not there. Of two
    /// functions of one name the later holds.
    ///
    /// Of several rules whose handlers apply to one request, only that of the rule first by name is
    /// called; none is, where some rule refuses. What it answers goes out as it is and is not counted as
    /// a response. It may not wait; should it panic, the request's task does.
    pub fn handler(
        mut self,
        name: &str,
        handle: impl Fn(&Parts, &Finding) -> Option<Response<Bytes>> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.handlers.insert(name, Box::new(handle));
        self
    }

    /// Builds the gate and starts its thread. No runtime is needed.
    ///
    /// The environment variable `HOTGATE_MODE` is read here: `enforce`, `observe` or `off`. The lowest of
    /// it, the file's `mode` and the last command holds, for as long as the gate lives.
    ///
    /// # Errors
    ///
    /// When the rules cannot be read or have errors, when `HOTGATE_MODE` is no mode, when they ask for the client and nothing tells
    /// who the peer is, when they name a function that was not registered, when the secret or a
    /// `body_file` cannot be read, when there is no randomness or no thread.
    pub fn build(self) -> Result<Gate, BuildError> {
        let (gate, worker) = self.pair(quanta::Clock::new())?;
        worker.spawn().map_err(BuildError::Thread)?;
        Ok(gate)
    }

    /// The gate, and what its thread does.
    pub(crate) fn pair(self, clock: quanta::Clock) -> Result<(Gate, Worker), BuildError> {
        let (rules, file, reload) = match self.rules.ok_or(BuildError::NoRules)? {
            Source::File(path) => {
                let (rules, reload) = read_rules(&path)?;
                (rules, Some(path), Some(reload))
            }
            Source::Set(rules) => (*rules, None, None),
        };
        let folder = file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let bodies = needs::meet(&rules, &self.hooks, folder)?;
        let commands = commands()?;
        let config = config(&rules, folder)?;
        log::rule_warnings(&rules, file.as_deref());
        let (alive, stop) = mpsc::channel();
        let engine = Engine::new(rules.under(&commands), config);
        let shared = Arc::new(Shared {
            number: gate::next_number(),
            active: ArcSwap::from_pointee(Active::new(engine, &bodies)),
            control: Mutex::new(Control {
                rules,
                commands,
                record: Record::default(),
                bodies,
                file,
                since: Time::default(),
                failed: None,
            }),
            clock: Clock::new(clock),
            hooks: self.hooks,
            notices: Notices::default(),
            faults: Faults::default(),
            refusals: RefusalLog::default(),
            totals: Totals::default().into(),
            published: Published::default().into(),
            reloads: Reloads::default(),
            doors: 0.into(),
            has_inner_door: false.into(),
            _alive: alive,
        });
        let worker = Worker::new(&shared, reload, stop);
        Ok((Gate::new(shared), worker))
    }
}

impl fmt::Debug for GateBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateBuilder").finish_non_exhaustive()
    }
}

/// The rules of a file, and what watches it from here on.
fn read_rules(path: &Path) -> Result<(RuleSet, Reload), BuildError> {
    let unreadable = |source| BuildError::Read { path: path.to_owned(), source };
    let bytes = read::bytes(path).map_err(unreadable)?;
    let reload = Reload::new(path, &bytes);
    let text = read::text(bytes).map_err(unreadable)?;
    let wrong = |problems| BuildError::Rules { path: path.to_owned(), problems };
    Ok((text.parse().map_err(wrong)?, reload))
}

/// What the environment says over the rules: `HOTGATE_MODE`. Set to nothing it is as if it were not set.
fn commands() -> Result<Commands, BuildError> {
    let mut commands = Commands::default();
    if let Some(value) = env::var_os(MODE_VARIABLE).filter(|value| !value.is_empty()) {
        commands.environment = mode(&value)?;
        log::environment(commands.environment);
    }
    Ok(commands)
}

fn mode(value: &OsStr) -> Result<Mode, BuildError> {
    match value.to_str() {
        Some("enforce") => Ok(Mode::Enforce),
        Some("observe") => Ok(Mode::Observe),
        Some("off") => Ok(Mode::Off),
        _ => Err(BuildError::Mode { value: value.to_string_lossy().into_owned() }),
    }
}

fn config(rules: &RuleSet, folder: &Path) -> Result<Config, BuildError> {
    let mut random = [0; 48];
    getrandom::fill(&mut random).map_err(|error| BuildError::Random(error.into()))?;
    let (seeds, secret) = random.split_at(32);
    let mut table_seed = [0; 4];
    for (seed, bytes) in table_seed.iter_mut().zip(seeds.chunks_exact(8)) {
        *seed = u64::from_ne_bytes(bytes.try_into().expect("chunks of eight bytes"));
    }
    let privacy_secret = match rules.secret_file() {
        Some(path) => read_secret(&folder.join(path))?,
        None => secret.try_into().expect("32 of 48 bytes leave 16"),
    };
    Ok(Config { table_seed, privacy_secret, origin_unix_nanos: unix_nanos() })
}

/// A key made of all that the file holds, without the space at its ends. The file is the secret; the
/// hash only brings it to its length.
fn read_secret(path: &Path) -> Result<[u8; 16], BuildError> {
    let path_buf = || path.to_owned();
    let text = fs::read(path).map_err(|source| BuildError::Secret { path: path_buf(), source })?;
    let secret = text.trim_ascii();
    if secret.len() < SECRET_BYTES_MIN {
        return Err(BuildError::ShortSecret { path: path_buf(), bytes: secret.len() });
    }
    Ok(SipHasher24::new().hash(secret).as_bytes())
}

/// The wall clock, for dates in the rules; everything else counts from here on monotonic time.
#[expect(clippy::disallowed_methods, reason = "read once, where a gate is built")]
fn unix_nanos() -> i128 {
    let nanos = |span: std::time::Duration| i128::try_from(span.as_nanos()).unwrap_or(i128::MAX);
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(before) => -nanos(before.duration()),
    }
}

#[cfg(test)]
mod tests;
