//! From TOML text to a [`RuleSet`]: every value with its place, every error at once.
//!
//! [`reader`] takes fields out of spanned tables, [`item`] values out of fields; beside them, one file
//! for each idea of the rule file. Each `read` reports what is wrong and goes on, so that one look at a
//! file finds all.

mod action;
mod block;
mod client;
mod count;
mod fields;
mod item;
mod key;
mod lists;
pub(crate) mod net;
mod overrides;
mod pace;
mod period;
mod reach;
mod reader;
mod report;
mod respond;
mod rule;
mod tags;
#[cfg(test)]
mod tests;
mod value;
mod warnings;
mod when;

use std::{collections::HashMap, num::NonZeroU32, path::Path};

use sha2::{Digest, Sha256};
use toml::de::DeTable;

use self::{
    reader::{Fields, Item, Names},
    report::{Read, Report, Reported},
};
use crate::{
    ClientConfig, ClientLists, Memory, Pattern, Problems, Rule, RuleSet,
    lists::ListEntry,
    matcher::{Matcher, RULES_MAX},
    mode::MODES,
    problem::Quoted,
};

/// The largest capacity of a table: more keys than any one process can see in a window.
const CAPACITY_MAX: u32 = 16_777_216;

const FILE: Names = Names {
    table: "the file",
    known: &["app", "mode", "client", "memory", "privacy", "exempt", "allow", "deny", "rule"],
    later: &["fleet", "feeds", "challenge"],
};

const MEMORY: Names = Names { table: "[memory]", known: &["keys", "verdicts"], later: &[] };

const PRIVACY: Names = Names { table: "[privacy]", known: &["secret_file"], later: &[] };

const EXEMPT: Names = Names { table: "[exempt]", known: &["match"], later: &[] };

/// Reads and validates a rule file.
pub(crate) fn rule_set(text: &str) -> Result<RuleSet, Problems> {
    // Editors do not count a byte order mark as a column.
    let version = version(text);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut report = Report::new(text);
    let set = if text.len() > RuleSet::FILE_BYTES_MAX {
        let message = format_args!(
            "expected a rule file of at most {} bytes, found {}",
            RuleSet::FILE_BYTES_MAX,
            text.len()
        );
        Err(report.error(0, message))
    } else {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            report.syntax(error.span().map(|span| span.start), error.message());
        }
        file(table.get_ref(), &mut report)
    };
    let (set, warnings) = report.finish(set)?;
    Ok(RuleSet { version, warnings, ..set })
}

/// What `sha256sum` begins with, so that a file can be told to be the one in force.
fn version(text: &str) -> Box<str> {
    let digest = Sha256::digest(text);
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

fn file(table: &DeTable<'_>, report: &mut Report<'_>) -> Read<RuleSet> {
    let fields = Fields::new(table, 0, &FILE, report);
    let app = fields.require("app", "\"shop\"", report).and_then(|item| rule::name(item, report));
    let mode = fields.read("mode", report, |item, report| item.choice(&MODES, report));
    let client = fields.read("client", report, client::read);
    let memory = fields.read("memory", report, memory);
    let secret_file = fields.read("privacy", report, secret_file);
    let exempt = fields.read("exempt", report, exempt);

    let client = client.map(|client| client.unwrap_or_else(client::default));
    let exempt = exempt.map(Option::unwrap_or_default);
    let around = Around {
        client: client.as_ref().ok(),
        exempt: exempt.as_deref().unwrap_or_default(),
        has_secret: fields.get("privacy").is_some(),
    };
    let tables = tables(&fields, "rule", &rule::NAMES, report);
    let names = names(&tables, report);
    let rules = rules(&tables, &around, report);
    let lists = entries(&fields, &names, &around, report);

    let (rules, exempt) = (rules?, exempt?);
    let matcher = Matcher::new(
        &exempt,
        rules.iter().map(|rule| (rule.patterns.as_deref(), &rule.except[..])),
    );
    Ok(RuleSet {
        app: app?,
        version: Box::default(),
        mode: mode?.unwrap_or_default(),
        client: client?,
        memory: memory?.unwrap_or_default(),
        secret_file: secret_file?,
        lists: ClientLists::new(lists?),
        rules,
        matcher,
        warnings: Vec::new(),
    })
}

/// What rules and lists are read within.
struct Around<'a> {
    /// `[client]`, where it could be read.
    client: Option<&'a ClientConfig>,
    exempt: &'a [Pattern],
    /// Whether `[privacy]` keeps the hashes of keys the same.
    has_secret: bool,
}

/// The tables of a list; none where it is something else, which is reported.
fn tables<'t>(
    fields: &Fields<'t>,
    name: &'static str,
    names: &'static Names,
    report: &mut Report<'_>,
) -> Vec<Fields<'t>> {
    let tables = fields.read(name, report, |item, report| item.tables(names, report));
    tables.ok().flatten().unwrap_or_default()
}

/// The names of all rules, also of those with errors, so that `[[allow]]` can name them.
fn names<'t>(rules: &[Fields<'t>], report: &mut Report<'_>) -> Vec<&'t str> {
    let mut lines: HashMap<&str, usize> = HashMap::new();
    let mut names = Vec::with_capacity(rules.len());
    for rule in rules {
        let item = rule.get("name");
        let name = item.and_then(|item| item.value().as_str());
        names.push(name.unwrap_or_default());
        let (Some(item), Some(name)) = (item, name) else { continue };
        if let Some(line) = lines.get(name) {
            item.error(
                report,
                format_args!("{} is the name of the rule on line {line} already", Quoted(name)),
            );
        } else {
            lines.insert(name, report.line(rule.at));
        }
    }
    names
}

fn rules(tables: &[Fields<'_>], around: &Around<'_>, report: &mut Report<'_>) -> Read<Vec<Rule>> {
    if let Some(first_too_many) = tables.get(RULES_MAX) {
        let message =
            format_args!("rule: expected at most {RULES_MAX} in a file, found {}", tables.len());
        return Err(report.error(first_too_many.at, message));
    }
    let default = client::default();
    let client = around.client.unwrap_or(&default);
    let mut rules = Vec::with_capacity(tables.len());
    for fields in tables {
        if let Ok(rule) = rule::read(fields, client, report) {
            warnings::of_rule(&rule, fields, around, report);
            rules.push((fields, rule));
        }
    }
    tags::check(&rules, client, report);
    let rules: Vec<Rule> = rules.into_iter().map(|(_, rule)| rule).collect();
    if rules.len() == tables.len() { Ok(rules) } else { Err(Reported) }
}

fn entries(
    file: &Fields<'_>,
    rules: &[&str],
    around: &Around<'_>,
    report: &mut Report<'_>,
) -> Read<Vec<ListEntry>> {
    let allows = tables(file, "allow", &lists::ALLOW, report);
    let denies = tables(file, "deny", &lists::DENY, report);
    let mut read: Vec<Read<ListEntry>> = Vec::with_capacity(allows.len() + denies.len());
    read.extend(allows.iter().map(|fields| lists::allow(fields, rules, around.client, report)));
    read.extend(denies.iter().map(|fields| lists::deny(fields, report)));
    read.into_iter().collect()
}

fn memory(item: Item<'_>, report: &mut Report<'_>) -> Read<Memory> {
    let fields = item.table(&MEMORY, report)?;
    // Zero would mean that nothing is limited (C51).
    let capacity = |item: Item<'_>, report: &mut Report<'_>| item.integer(1..=CAPACITY_MAX, report);
    let keys = fields.read("keys", report, capacity);
    let verdicts = fields.read("verdicts", report, capacity);
    let default = Memory::default();
    Ok(Memory {
        keys: keys?.and_then(NonZeroU32::new).unwrap_or(default.keys),
        verdicts: verdicts?.and_then(NonZeroU32::new).unwrap_or(default.verdicts),
    })
}

fn secret_file(item: Item<'_>, report: &mut Report<'_>) -> Read<Box<Path>> {
    let fields = item.table(&PRIVACY, report)?;
    fields.require("secret_file", "\"/run/secrets/hotgate\"", report)?.path(report)
}

fn exempt(item: Item<'_>, report: &mut Report<'_>) -> Read<Vec<Pattern>> {
    let fields = item.table(&EXEMPT, report)?;
    let item = fields.require("match", "[\"/healthz\"]", report)?;
    rule::patterns(item, report)
}
