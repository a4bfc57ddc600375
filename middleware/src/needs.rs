//! What rules need that their file does not hold: functions of the service, and other files.

use std::{collections::HashMap, io, path::Path};

use bytes::Bytes;
use hotgate_rules::{Action, PartKind, Rule, RuleSet};

use crate::{
    BuildError,
    active::{of_requests, what_asks_for_the_client},
    hooks::Hooks,
    peer::KNOWS_PEERS,
    reload::read,
};

/// The largest `body_file`, in bytes: an answer to those who are too many should be small. A larger
/// one is an error.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Registered names that an error lists.
const NAMES_LISTED_MAX: usize = 3;

/// What `body_file` of the rules' `respond` holds, by the path as it is written.
#[derive(Debug, Default)]
pub(crate) struct Bodies(HashMap<Box<Path>, Bytes>);

impl Bodies {
    pub(crate) fn get(&self, path: &Path) -> Bytes {
        self.0.get(path).cloned().unwrap_or_default()
    }
}

/// Makes sure that `rules` can be put in force: that the service registered the functions they name
/// and can tell who the client is, where they ask; and reads the files they name for their answers,
/// relative ones from `folder`, where the rule file stands.
///
/// It reads files: not for the request path.
pub(crate) fn meet(rules: &RuleSet, hooks: &Hooks, folder: &Path) -> Result<Bodies, BuildError> {
    if let Some(what) = what_asks_for_the_client(rules)
        && !KNOWS_PEERS
        && hooks.peer.is_none()
    {
        return Err(BuildError::NoPeer { what });
    }
    let missing: Vec<String> = rules.rules().iter().flat_map(|rule| missing(rule, hooks)).collect();
    if !missing.is_empty() {
        return Err(BuildError::Unregistered { missing });
    }
    bodies(rules, folder)
}

fn bodies(rules: &RuleSet, folder: &Path) -> Result<Bodies, BuildError> {
    let mut bodies = Bodies::default();
    for rule in rules.rules() {
        let Some(path) = rule.respond.as_ref().and_then(|respond| respond.body_file.as_deref())
        else {
            continue;
        };
        if !bodies.0.contains_key(path) {
            let at = folder.join(path);
            let body = body(&at).map_err(|source| BuildError::Body {
                rule: (*rule.name).into(),
                path: at,
                source,
            })?;
            bodies.0.insert(path.into(), body);
        }
    }
    Ok(bodies)
}

/// One line for each function that the rule names and nobody registered.
fn missing(rule: &Rule, hooks: &Hooks) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in of_requests(rule) {
        let line = match kind {
            PartKind::User if hooks.user.is_none() => {
                "user, which no function tells: expected .user(f) on the builder".to_owned()
            }
            PartKind::Extra(name) if hooks.extractors.get(name).is_none() => {
                let registered = nearest(name, hooks.extractors.names());
                format!(
                    "x:{name}, which no function tells: expected .extractor({name:?}, f) on the \
                     builder, {registered}"
                )
            }
            _ => continue,
        };
        lines.push(format!("rule {:?} asks for {line}", rule.name));
    }
    let overrides = rule.overrides.iter().filter_map(|terms| terms.action.as_ref());
    for action in std::iter::once(&rule.action).chain(overrides) {
        if let Action::Handler(name) = action
            && hooks.handlers.get(name).is_none()
        {
            let registered = nearest(name, hooks.handlers.names());
            lines.push(format!(
                "rule {:?} names the handler {name:?}, which no function is: expected \
                 .handler({name:?}, f) on the builder, {registered}",
                rule.name
            ));
        }
    }
    lines.dedup();
    lines
}

/// What is registered, the likeliest first.
fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|name| strsim::osa_distance(word, name));
    names.truncate(NAMES_LISTED_MAX);
    if names.is_empty() {
        return "none is registered".to_owned();
    }
    let names: Vec<String> = names.into_iter().map(|name| format!("{name:?}")).collect();
    format!("registered: {}", names.join(", "))
}

fn body(path: &Path) -> io::Result<Bytes> {
    let body = read::up_to(BODY_BYTES_MAX, path)?;
    if body.len() > BODY_BYTES_MAX {
        let limit = format!("expected at most {BODY_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, limit));
    }
    Ok(body.into())
}
