//! `hotgate check`: is a rule file valid, and what do its rules say?

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::PathBuf,
};

use hotgate_rules::{Problem, RuleSet, Uses};
use serde::Serialize;

use crate::{
    Status,
    rule_file::{self, Unusable},
    sentence, write_json,
};

/// Validate a rule file and say each of its rules as a sentence.
///
/// Errors and warnings go to standard error as `file:line:column: message`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The rule file.
    rules: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    valid: bool,
    errors: Vec<Place<'a>>,
    warnings: Vec<Place<'a>>,
    rules: Vec<Said<'a>>,
    /// Calls on the gate's builder that the rules need.
    registered: Vec<String>,
}

#[derive(Serialize)]
struct Place<'a> {
    /// Left out where the file cannot be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    message: &'a str,
}

impl<'a> Place<'a> {
    fn of(problem: &'a Problem) -> Self {
        let Problem { line, column, message, .. } = problem;
        Place { line: Some(*line), column: Some(*column), message }
    }
}

/// One rule.
#[derive(Serialize)]
struct Said<'a> {
    name: &'a str,
    action: &'static str,
    mode: &'static str,
    key: String,
    sentence: String,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Status> {
    let loaded = rule_file::load(&args.rules);
    if args.json {
        write_json(out, &report(args, &loaded))?;
    } else {
        write_text(args, &loaded, out, err)?;
    }
    Ok(if loaded.is_ok() { Status::Done } else { Status::Usage })
}

fn write_text(
    args: &Args,
    loaded: &Result<RuleSet, Unusable>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    let rules = match loaded {
        Ok(rules) => rules,
        Err(unusable) => return unusable.write(&args.rules, err),
    };
    for Problem { line, column, message, .. } in rules.warnings() {
        writeln!(err, "{}:{line}:{column}: warning: {message}", args.rules.display())?;
    }
    if let Some(note) = sentence::file_mode(rules.mode()) {
        writeln!(out, "{note}")?;
    }
    if rules.rules().is_empty() {
        writeln!(out, "no rules")?;
    }
    for rule in rules.rules() {
        writeln!(out, "{}", sentence::named(rule))?;
    }
    let registered = registered(&rules.uses());
    if !registered.is_empty() {
        writeln!(out, "the service registers {}", registered.join(", "))?;
    }
    Ok(())
}

/// The calls on the gate's builder that the rules need.
fn registered(uses: &Uses<'_>) -> Vec<String> {
    let named = |call: &str, names: &BTreeMap<&str, &str>| -> Vec<String> {
        names.keys().map(|name| format!(".{call}({name:?}, f)")).collect()
    };
    let user = uses.user.map(|_| ".user(f)".to_owned());
    let extractors = named("extractor", &uses.extractors);
    user.into_iter().chain(extractors).chain(named("handler", &uses.handlers)).collect()
}

fn report<'a>(args: &Args, loaded: &'a Result<RuleSet, Unusable>) -> Report<'a> {
    let (errors, warnings, rules) = match loaded {
        Ok(rules) => {
            let warnings = rules.warnings().iter().map(Place::of).collect();
            let said = rules.rules().iter().map(|rule| Said {
                name: &rule.name,
                action: rule.action.name(),
                mode: rule.mode.min(rules.mode()).name(),
                key: rule.key.to_string(),
                sentence: sentence::of(rule),
            });
            (Vec::new(), warnings, said.collect())
        }
        Err(Unusable::Invalid(problems)) => {
            (problems.iter().map(Place::of).collect(), Vec::new(), Vec::new())
        }
        Err(Unusable::Unreadable(message)) => {
            (vec![Place { line: None, column: None, message }], Vec::new(), Vec::new())
        }
    };
    let file = args.rules.display().to_string();
    let registered = loaded.as_ref().map(|rules| registered(&rules.uses())).unwrap_or_default();
    Report { file, valid: loaded.is_ok(), errors, warnings, rules, registered }
}
