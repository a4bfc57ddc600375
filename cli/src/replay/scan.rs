//! The first pass over the logs: every line's time, and what the lines hold.

use std::io;

use hotgate_detector::Time;
use hotgate_rules::ClientConfig;
use serde::Serialize;

use super::logged;
use crate::log::{Entry, LINE_BYTES_MAX, Line, Source, Unparsed};

/// Unparsed lines that are shown.
const BAD_LINES_SHOWN: usize = 3;

/// Bytes of an unparsed line that are shown.
const BAD_LINE_BYTES_SHOWN: usize = 60;

/// What the first pass found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) lines: u64,
    pub(super) parsed: u64,
    /// Parsed lines whose time is before that of the parsed line before them in the same log.
    pub(super) reordered: u64,
    /// Parsed lines whose first field names no client.
    pub(super) no_client: u64,
    /// Parsed lines whose client is a proxy that the rules trust: whoever was behind it is not held.
    pub(super) of_proxies: u64,
    /// Parsed lines in the Combined format.
    pub(super) combined: u64,
    /// The first and the last moment.
    pub(super) span: Option<(Time, Time)>,
    /// The first unparsed lines.
    pub(super) bad_lines: Vec<BadLine>,
}

/// A line that could not be parsed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BadLine {
    pub(super) log: String,
    /// From 1.
    pub(super) line: u64,
    pub(super) reason: String,
    /// How it begins, bytes that are not printed escaped; empty where the line is too long to be read.
    pub(super) text: String,
}

impl Scan {
    pub(super) fn unparsed(&self) -> u64 {
        self.lines - self.parsed
    }

    /// Reads the `index`th log to its end and hands every parsed line's entry to `push`.
    pub(super) fn read(
        &mut self,
        index: usize,
        source: &mut Source,
        config: &ClientConfig,
        mut push: impl FnMut(Entry) -> io::Result<()>,
    ) -> io::Result<()> {
        let name = source.name.clone();
        let (mut number, mut before) = (0, None);
        source.for_each_line(|place, bytes| {
            number += 1;
            self.lines += 1;
            let line = bytes.ok_or(Unparsed::TooLong(LINE_BYTES_MAX)).and_then(Line::read);
            match line {
                Ok(line) => {
                    self.reordered += u64::from(before.is_some_and(|before| line.time < before));
                    before = Some(line.time);
                    self.count(&line, config);
                    push(Entry::new(line.time, index, place))?;
                }
                Err(reason) if self.bad_lines.len() < BAD_LINES_SHOWN => {
                    let (log, reason) = (name.clone(), reason.to_string());
                    let text = bytes.map(beginning).unwrap_or_default();
                    self.bad_lines.push(BadLine { log, line: number, reason, text });
                }
                Err(_) => {}
            }
            Ok(())
        })
    }

    fn count(&mut self, line: &Line<'_>, config: &ClientConfig) {
        self.parsed += 1;
        let client = logged::client(line, config);
        self.no_client += u64::from(client.is_none());
        let is_proxy = |client| config.trusted.iter().any(|net| net.contains(&client));
        self.of_proxies += u64::from(client.is_some_and(is_proxy));
        self.combined += u64::from(line.agent.is_some());
        let (from, to) = self.span.unwrap_or((line.time, line.time));
        self.span = Some((from.min(line.time), to.max(line.time)));
    }
}

fn beginning(line: &[u8]) -> String {
    let shown = &line[..line.len().min(BAD_LINE_BYTES_SHOWN)];
    format!("{}{}", shown.escape_ascii(), if shown.len() < line.len() { "…" } else { "" })
}
