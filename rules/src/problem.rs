//! What is wrong with a rule file, and where.

use std::fmt::{self, Write as _};

/// The longest piece of a rule file that a message quotes, in characters; the rest is left out, so
/// that one long value does not bury the message.
const QUOTED_CHARS_MAX: usize = 60;

/// One error or warning about a rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What it is, what was expected, the nearest known name.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// All errors of a rule file, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub(crate) Vec<Problem>);

impl Problems {
    /// The errors; at least one.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Text of the file inside a message: in quotes, escaped, and not too long.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let shown = shortened(self.0);
        for char in shown.chars() {
            match char {
                // A single quote needs no escape between double ones.
                '\'' => f.write_char(char)?,
                char => write!(f, "{}", char.escape_debug())?,
            }
        }
        f.write_str(if shown.len() < self.0.len() { "…\"" } else { "\"" })
    }
}

/// The first [`QUOTED_CHARS_MAX`] characters.
pub(crate) fn shortened(text: &str) -> &str {
    text.char_indices().nth(QUOTED_CHARS_MAX).map_or(text, |(end, _)| &text[..end])
}

/// The known name that `word` was likely meant to be: at most one edit, or one in three letters.
pub(crate) fn nearest<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    /// Longer than any name can be; the distance to a whole megabyte is not worth its time.
    const WORD_BYTES_MAX: usize = 96;
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let distances = known.into_iter().map(|name| (strsim::osa_distance(word, name), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= (word.len() / 3).max(1) && distance < name.len()).then_some(name)
}
