//! What keeps a gate from being built.

use std::{io, path::PathBuf};

use hotgate_rules::Problems;

/// Why a gate could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The builder was given no rules.
    #[error("no rules: expected a call of .file(path) or .rules(set) before .build()")]
    NoRules,
    /// The rule file could not be read.
    #[error("cannot read the rule file {}", path.display())]
    Read {
        /// The rule file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The rule file has errors; all of them are shown, each as `file:line:column: message`.
    #[error("{}", with_path(path, problems))]
    Rules {
        /// The rule file.
        path: PathBuf,
        /// Its errors.
        problems: Problems,
    },
    /// `HOTGATE_MODE` is set to something that is no mode.
    #[error("HOTGATE_MODE is {value:?}, expected enforce, observe or off")]
    Mode {
        /// What it is set to.
        value: String,
    },
    /// Rules ask for the client, and nothing tells the gate who the peer is.
    #[error(
        "{what} needs the client's address and nothing tells it: expected the feature \"axum\" of \
         hotgate, or .peer(f) on the builder, such as .peer(hotgate::PeerAddr::of)"
    )]
    NoPeer {
        /// What needs it.
        what: String,
    },
    /// Rules name functions that the service did not register.
    #[error("{}", missing.join("\n"))]
    Unregistered {
        /// One line for each, with the rule, the function, and the nearest names that are registered.
        missing: Vec<String>,
    },
    /// A file that a rule answers with could not be read.
    #[error("rule {rule:?}: cannot read body_file {}", path.display())]
    Body {
        /// The rule.
        rule: Box<str>,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The secret file could not be read.
    #[error("cannot read [privacy] secret_file {}", path.display())]
    Secret {
        /// The secret file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The secret file is too short to keep a secret.
    #[error("[privacy] secret_file {} holds {bytes} bytes, expected at least {}", path.display(), SECRET_BYTES_MIN)]
    ShortSecret {
        /// The secret file.
        path: PathBuf,
        /// How many bytes it holds, without the space at its ends.
        bytes: usize,
    },
    /// The operating system gave no random bytes.
    #[error("cannot draw random seeds")]
    Random(#[source] io::Error),
    /// The gate's thread could not be started.
    #[error("cannot start the thread \"hotgate\"")]
    Thread(#[source] io::Error),
}

/// The shortest secret: as many bytes as the key that is made of it.
pub(crate) const SECRET_BYTES_MIN: usize = 16;

fn with_path(path: &std::path::Path, problems: &Problems) -> String {
    let lines: Vec<String> =
        problems.iter().map(|problem| format!("{}:{problem}", path.display())).collect();
    lines.join("\n")
}
