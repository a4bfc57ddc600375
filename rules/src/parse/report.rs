//! Where errors and warnings are gathered, with their places.

use std::{collections::HashSet, fmt};

use crate::{Problem, Problems};

/// Stands for a value that could not be read: the report holds the reason already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported;

/// What was read, or the word that its error is reported.
pub(super) type Read<T> = Result<T, Reported>;

/// All that is wrong or odd in one file, each at a byte offset.
pub(super) struct Report<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    /// Lines that are no TOML: what else is wrong with them follows from that.
    broken_lines: HashSet<usize>,
    errors: Vec<(usize, String)>,
    warnings: Vec<(usize, String)>,
}

impl<'t> Report<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let next_lines =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Report {
            text,
            line_starts: std::iter::once(0).chain(next_lines).collect(),
            broken_lines: HashSet::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// An error of the syntax; `None` is the end of the text.
    pub(super) fn syntax(&mut self, at: Option<usize>, message: &str) {
        let at = at.unwrap_or(self.text.len());
        self.broken_lines.insert(self.line(at));
        self.errors.push((at, message.to_owned()));
    }

    pub(super) fn error(&mut self, at: usize, message: impl fmt::Display) -> Reported {
        if !self.broken_lines.contains(&self.line(at)) {
            self.errors.push((at, message.to_string()));
        }
        Reported
    }

    /// The error that something is not there. Where the syntax is broken it may well be there.
    pub(super) fn missing(&mut self, at: usize, message: impl fmt::Display) -> Reported {
        if self.broken_lines.is_empty() { self.error(at, message) } else { Reported }
    }

    pub(super) fn warn(&mut self, at: usize, message: impl fmt::Display) {
        self.warnings.push((at, message.to_string()));
    }

    /// The line of an offset, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    /// What was read and the warnings, or all errors.
    pub(super) fn finish<T>(mut self, read: Read<T>) -> Result<(T, Vec<Problem>), Problems> {
        match read {
            Ok(read) if self.errors.is_empty() => Ok((read, self.placed(&self.warnings))),
            _ => {
                debug_assert!(!self.errors.is_empty(), "what could not be read was not reported");
                if self.errors.is_empty() {
                    self.errors.push((0, "the file cannot be read".to_owned()));
                }
                Err(Problems(self.placed(&self.errors)))
            }
        }
    }

    fn placed(&self, found: &[(usize, String)]) -> Vec<Problem> {
        let mut found: Vec<_> = found.iter().collect();
        found.sort_by_key(|(at, _)| *at);
        found.dedup();
        // Each column is counted on from the last one, as one line can hold all problems of a file.
        let (mut last, mut line, mut column) = (0, 1, 1);
        let place = |(at, message): &(usize, String)| {
            let at = (*at).min(self.text.len());
            if self.line(at) > line {
                line = self.line(at);
                (last, column) = (self.line_starts[line - 1], 1);
            }
            let between = self.text.as_bytes()[last..at].iter();
            // A byte of the form 10xxxxxx goes on with a character.
            column += between.filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count();
            last = at;
            Problem { line, column, message: message.clone() }
        };
        found.into_iter().map(place).collect()
    }
}
