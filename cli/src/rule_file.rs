//! Reading a rule file, with every problem named by its place.

use std::{
    fs::File,
    io::{self, Read as _, Write},
    path::Path,
};

use hotgate_rules::{Problem, RuleSet};

/// Why there is no rule set.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The file cannot be read.
    Unreadable(String),
    /// Its rules have errors, at least one.
    Invalid(Vec<Problem>),
}

/// Reads and validates the rule file at `path`.
pub(crate) fn load(path: &Path) -> Result<RuleSet, Unusable> {
    let text = read(path).map_err(|error| Unusable::Unreadable(error.to_string()))?;
    text.parse::<RuleSet>()
        .map_err(|problems| Unusable::Invalid(problems.iter().cloned().collect()))
}

/// As [`load`], with the errors written to `err`; `None` if there are any. Warnings are `check`'s.
pub(crate) fn load_or_explain(path: &Path, err: &mut dyn Write) -> io::Result<Option<RuleSet>> {
    match load(path) {
        Ok(rules) => Ok(Some(rules)),
        Err(unusable) => unusable.write(path, err).map(|()| None),
    }
}

impl Unusable {
    /// Writes every error as `file:line:column: message`.
    pub(crate) fn write(&self, path: &Path, err: &mut dyn Write) -> io::Result<()> {
        match self {
            Unusable::Unreadable(message) => writeln!(err, "{}: {message}", path.display()),
            Unusable::Invalid(problems) => problems
                .iter()
                .try_for_each(|problem| writeln!(err, "{}:{problem}", path.display())),
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    // A wrong path (a log, a device) is not read for ever.
    File::open(path)?.take(RuleSet::FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > RuleSet::FILE_BYTES_MAX {
        let limit = format!("expected a rule file of at most {} bytes", RuleSet::FILE_BYTES_MAX);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, limit));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is not valid UTF-8"))
    })
}
