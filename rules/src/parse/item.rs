//! One spanned TOML value: read by type, its errors told by place.

use std::{fmt, ops::RangeInclusive, path::Path, str::FromStr};

use http::StatusCode;
use toml::de::{DeString, DeValue};

use super::{
    reader::{Fields, Names},
    report::{Read, Report, Reported},
};
use crate::{
    UnitError,
    problem::{Quoted, nearest, shortened},
};

/// One value, where it stands, and the field it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Item<'t> {
    pub(super) name: &'static str,
    pub(super) at: usize,
    value: &'t DeValue<'t>,
}

impl<'t> Item<'t> {
    pub(super) fn new(name: &'static str, at: usize, value: &'t DeValue<'t>) -> Self {
        Item { name, at, value }
    }

    pub(super) fn value(&self) -> &'t DeValue<'t> {
        self.value
    }

    /// `name: message`.
    pub(super) fn error(&self, report: &mut Report<'_>, message: impl fmt::Display) -> Reported {
        report.error(self.at, format_args!("{}: {message}", self.name))
    }

    /// `name: expected this, found that`.
    pub(super) fn expected(
        &self,
        report: &mut Report<'_>,
        expected: impl fmt::Display,
    ) -> Reported {
        self.error(report, format_args!("expected {expected}, found {self}"))
    }

    /// `name: expected this, found that, did you mean likely?`
    pub(super) fn likely(
        &self,
        report: &mut Report<'_>,
        expected: impl fmt::Display,
        likely: impl fmt::Display,
    ) -> Reported {
        self.error(
            report,
            format_args!("expected {expected}, found {self}, did you mean {likely}?"),
        )
    }

    /// Text; `expected` describes it where something else stands there.
    pub(super) fn text(&self, expected: &str, report: &mut Report<'_>) -> Read<&'t str> {
        self.value.as_str().ok_or_else(|| self.expected(report, expected))
    }

    pub(super) fn note(self, report: &mut Report<'_>) -> Read<&'t str> {
        self.text("text", report)
    }

    /// The path of a file, as it is written.
    pub(super) fn path(self, report: &mut Report<'_>) -> Read<Box<Path>> {
        const EXPECTED: &str = "the path of a file";
        let path = self.text(EXPECTED, report)?;
        if path.is_empty() {
            return Err(self.expected(report, EXPECTED));
        }
        Ok(Path::new(path).into())
    }

    pub(super) fn boolean(self, report: &mut Report<'_>) -> Read<bool> {
        self.value.as_bool().ok_or_else(|| self.expected(report, "true or false"))
    }

    /// `true`; what is false by nature is left out, not switched off.
    pub(super) fn only_true(self, report: &mut Report<'_>) -> Read<()> {
        match self.value {
            DeValue::Boolean(true) => Ok(()),
            _ => Err(self.expected(report, "true, or the field left out")),
        }
    }

    pub(super) fn integer(self, range: RangeInclusive<u32>, report: &mut Report<'_>) -> Read<u32> {
        let integer = match self.value {
            DeValue::Integer(digits) => u32::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        integer.filter(|integer| range.contains(integer)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            self.expected(report, format_args!("a whole number from {least} to {most}"))
        })
    }

    pub(super) fn status(
        self,
        range: RangeInclusive<u32>,
        report: &mut Report<'_>,
    ) -> Read<StatusCode> {
        let status = self.integer(range, report)?;
        let status = u16::try_from(status).ok().map(StatusCode::from_u16);
        status.and_then(Result::ok).ok_or(Reported)
    }

    /// A duration or a rate. A bare number is answered with a unit.
    pub(super) fn unit<T: FromStr<Err = UnitError>>(self, report: &mut Report<'_>) -> Read<T> {
        let text = match self.value {
            DeValue::String(text) => text,
            DeValue::Integer(digits) if digits.radix() == 10 => shortened(digits.as_str()),
            _ => "",
        };
        text.parse().map_err(|error: UnitError| self.error(report, error.found(self)))
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        self,
        choices: &[(&'static str, T)],
        report: &mut Report<'_>,
    ) -> Read<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let text = self.value.as_str().unwrap_or_default();
        if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == text) {
            return Ok(*choice);
        }
        let words_quoted: Vec<String> = words.iter().map(|word| Quoted(word).to_string()).collect();
        let expected = alternatives(&words_quoted);
        Err(match nearest(&text.to_lowercase(), words) {
            Some(near) => self.likely(report, expected, Quoted(near)),
            None => self.expected(report, expected),
        })
    }

    /// A list; text alone is answered with the list of it.
    pub(super) fn list(self, example: &str, report: &mut Report<'_>) -> Read<Vec<Item<'t>>> {
        match self.value {
            DeValue::Array(values) => Ok(self.items(values)),
            DeValue::String(_) | DeValue::Integer(_) => Err(self.likely(
                report,
                format_args!("a list such as {example}"),
                format_args!("[{self}]"),
            )),
            _ => Err(self.expected(report, format_args!("a list such as {example}"))),
        }
    }

    /// A list, or one value that stands for the list of it.
    pub(super) fn list_or_one(self) -> Vec<Item<'t>> {
        match self.value {
            DeValue::Array(values) => self.items(values),
            _ => vec![self],
        }
    }

    pub(super) fn table(self, names: &'static Names, report: &mut Report<'_>) -> Read<Fields<'t>> {
        match self.value {
            DeValue::Table(table) => Ok(Fields::new(table, self.at, names, report)),
            _ => Err(self.expected(report, "a table")),
        }
    }

    /// A field of the table that this is, whether or not it can be read.
    pub(super) fn field(self, name: &'static str) -> Option<Item<'t>> {
        let DeValue::Table(table) = self.value else { return None };
        let (_, value) = table.get_key_value(name)?;
        Some(Item { name, ..self }.with(value))
    }

    pub(super) fn is_empty_table(self) -> bool {
        matches!(self.value, DeValue::Table(table) if table.is_empty())
    }

    /// The entries of a table whose names the operator chooses; at least one, and at most `most`.
    pub(super) fn entries(
        self,
        example: &str,
        most: usize,
        report: &mut Report<'_>,
    ) -> Read<Vec<Entry<'t>>> {
        let DeValue::Table(table) = self.value else {
            return Err(self.expected(report, format_args!("a table such as {example}")));
        };
        if table.is_empty() || table.len() > most {
            let message = format_args!(
                "expected 1 to {most} entries, such as {example}, found {}",
                table.len()
            );
            return Err(self.error(report, message));
        }
        let entry = |(key, value): (&'t toml::Spanned<DeString<'t>>, &'t _)| {
            let at = key.span().start;
            Entry { name: key.get_ref(), at, item: Item { at, ..self }.with(value) }
        };
        let mut entries: Vec<_> = table.iter().map(entry).collect();
        entries.sort_by_key(|entry| entry.at);
        Ok(entries)
    }

    /// The same field's item for a value inside it, which stands where it says or here.
    fn with(self, value: &'t toml::Spanned<DeValue<'t>>) -> Item<'t> {
        // A value that the syntax left out stands nowhere.
        let at = if value.span().is_empty() { self.at } else { value.span().start };
        Item { name: self.name, at, value: value.get_ref() }
    }

    /// A list of tables: `[[name]]`, or inline.
    pub(super) fn tables(
        self,
        names: &'static Names,
        report: &mut Report<'_>,
    ) -> Read<Vec<Fields<'t>>> {
        match self.value {
            DeValue::Array(values) => {
                let items = self.items(values).into_iter();
                Ok(items.filter_map(|item| item.table(names, report).ok()).collect())
            }
            _ => {
                Err(self
                    .expected(report, format_args!("a list of tables, each under {}", names.table)))
            }
        }
    }

    fn items(self, values: &'t toml::de::DeArray<'t>) -> Vec<Item<'t>> {
        values.iter().map(|value| self.with(value)).collect()
    }
}

/// One entry of a table whose names the operator chooses.
pub(super) struct Entry<'t> {
    pub(super) name: &'t str,
    /// Where its name stands.
    pub(super) at: usize,
    /// Its value, under the name of the table.
    pub(super) item: Item<'t>,
}

/// What is found, as a message says it.
impl fmt::Display for Item<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            DeValue::String(text) => Quoted(text).fmt(f),
            DeValue::Integer(digits) => f.write_str(shortened(&digits.to_string())),
            DeValue::Float(digits) => f.write_str(shortened(digits.as_str())),
            DeValue::Boolean(value) => value.fmt(f),
            DeValue::Datetime(date) => date.fmt(f),
            DeValue::Array(values) if values.is_empty() => f.write_str("[]"),
            DeValue::Array(_) => f.write_str("a list"),
            DeValue::Table(_) => f.write_str("a table"),
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
pub(super) fn alternatives(words: &[impl AsRef<str>]) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        text.push_str(match index {
            0 => "",
            _ if index + 1 == words.len() => " or ",
            _ => ", ",
        });
        text.push_str(word.as_ref());
    }
    text
}
