//! The fields of a spanned TOML table, by name.

use toml::de::DeTable;

pub(super) use super::item::{Entry, Item, alternatives};
use super::report::{Read, Report, Reported};
use crate::problem::{Quoted, nearest};

/// The fields a table can have.
pub(super) struct Names {
    /// What the table is called in messages.
    pub(super) table: &'static str,
    /// Fields that are read.
    pub(super) known: &'static [&'static str],
    /// Fields of the grammar that are still refused.
    pub(super) later: &'static [&'static str],
}

/// A table whose field names are known to be right.
#[derive(Clone, Copy)]
pub(super) struct Fields<'t> {
    names: &'static Names,
    table: &'t DeTable<'t>,
    /// Where it begins, for what is missing in it.
    pub(super) at: usize,
}

impl<'t> Fields<'t> {
    /// Reports every field that is unknown or not available yet.
    pub(super) fn new(
        table: &'t DeTable<'t>,
        at: usize,
        names: &'static Names,
        report: &mut Report<'_>,
    ) -> Self {
        for key in table.keys() {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            if names.later.contains(&name) {
                report.error(
                    at,
                    format_args!("{} in {} is not available yet", Quoted(name), names.table),
                );
            } else if !names.known.contains(&name) {
                let hint = match nearest(name, names.known.iter().chain(names.later).copied()) {
                    Some(near) => format!("did you mean {}?", Quoted(near)),
                    None if names.known.is_empty() => "expected none".to_owned(),
                    None => format!("expected {}", alternatives(names.known)),
                };
                report.error(
                    at,
                    format_args!("unknown field {} in {}, {hint}", Quoted(name), names.table),
                );
            }
        }
        Fields { names, table, at }
    }

    pub(super) fn get(&self, name: &'static str) -> Option<Item<'t>> {
        debug_assert!(self.names.known.contains(&name), "{name} is not declared");
        let (key, value) = self.table.get_key_value(name)?;
        // A value that the syntax left out stands nowhere.
        let at = if value.span().is_empty() { key.span().start } else { value.span().start };
        Some(Item::new(name, at, value.get_ref()))
    }

    /// The field of this name, if the table may have it; one that is not available yet is none.
    pub(super) fn get_known(&self, name: &'static str) -> Option<Item<'t>> {
        self.names.known.contains(&name).then(|| self.get(name)).flatten()
    }

    /// The field, or the error that it is missing, with an example of how to write it.
    pub(super) fn require(
        &self,
        name: &'static str,
        example: &str,
        report: &mut Report<'_>,
    ) -> Read<Item<'t>> {
        self.get(name).ok_or_else(|| self.missing(name, example, report))
    }

    pub(super) fn missing(&self, name: &str, example: &str, report: &mut Report<'_>) -> Reported {
        let table = self.names.table;
        report.missing(self.at, format_args!("{table} needs {name}, such as {name} = {example}"))
    }

    /// The field as `read` reads it, if it is there.
    pub(super) fn read<T>(
        &self,
        name: &'static str,
        report: &mut Report<'_>,
        read: impl FnOnce(Item<'t>, &mut Report<'_>) -> Read<T>,
    ) -> Read<Option<T>> {
        self.get(name).map(|item| read(item, report)).transpose()
    }

    /// Where each field among `names` stands that is there, also one that is not available yet.
    pub(super) fn places(&self, names: &'static [&'static str]) -> Vec<(&'static str, usize)> {
        let found = names.iter().filter_map(|name| {
            let (key, _) = self.table.get_key_value(*name)?;
            Some((*name, key.span().start))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(_, at)| *at);
        found
    }
}
