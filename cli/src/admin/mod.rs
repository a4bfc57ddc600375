//! The commands that ask and command a running gate, by its admin router.

mod client;
mod done;
mod hot;
mod shown;
mod status;
mod table;
mod why;

use std::io::{self, Write};

use hotgate_rules::Spoken;
use serde_json::{Value, json};

use crate::Status;
use client::{Client, Failed};

pub(crate) use client::Remote;
pub(crate) use table::Columns;

/// How the commands' answers are printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Form {
    /// Print the gate's answer as JSON.
    #[arg(long)]
    json: bool,
}

/// What a running gate is asked or commanded; each needs --url and a token.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Is it us? The rules in force, what they refused, what full tables cost.
    Status {
        #[command(flatten)]
        form: Form,
    },
    /// The keys that are hot, the newest first.
    Hot {
        /// Of this rule alone.
        rule: Option<String>,
        /// How many, at most.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
        #[command(flatten)]
        form: Form,
    },
    /// What every rule knows of a key, or what a refusal was.
    Why {
        /// A key such as client=203.0.113.9, an address alone, or the decision id of a refusal.
        key: String,
        #[command(flatten)]
        form: Form,
    },
    /// Refuse a key's requests under a rule, whatever it did.
    Block {
        rule: String,
        /// A key such as client=203.0.113.9, or an address alone.
        key: String,
        /// How long, such as 10m.
        #[arg(long = "for", value_name = "TIME", value_parser = duration)]
        lasts: String,
        #[command(flatten)]
        form: Form,
    },
    /// End verdicts, and clear the counts behind them.
    #[command(
        override_usage = "hotgate lift [OPTIONS] <RULE> <KEY>\n       hotgate lift [OPTIONS] --all-rules <KEY>\n       hotgate lift [OPTIONS] <RULE> --all"
    )]
    Lift {
        /// The rule and the key; one of them beside --all-rules or --all.
        #[arg(required = true, num_args = 1..=2, value_name = "RULE KEY")]
        named: Vec<String>,
        /// The key's verdicts under all rules.
        #[arg(long, conflicts_with = "all")]
        all_rules: bool,
        /// All of the rule's verdicts.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        form: Form,
    },
    /// Answer 403 to the clients of a network.
    Deny(List),
    /// Let the clients of a network pass every rule.
    Allow(List),
    /// The kill switch: observe or off lets requests pass; enforce takes that back.
    Mode {
        #[arg(value_parser = ["enforce", "observe", "off"])]
        mode: String,
        /// One rule; left out: all.
        rule: Option<String>,
        #[command(flatten)]
        form: Form,
    },
    /// The gate's numbers, as Prometheus reads them.
    Metrics,
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// An address or network, such as 203.0.113.0/24.
    #[arg(value_name = "CIDR")]
    clients: String,
    /// How long, such as 1h.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    lasts: String,
    /// Why.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    form: Form,
}

/// How an answer is written.
type Shows = fn(&Value, Columns, &mut dyn Write) -> io::Result<()>;

/// How it is asked to be written; `None`: as it comes.
type Shown<'a> = Option<(&'a Form, Shows)>;

pub(crate) fn run(
    remote: &Remote,
    command: &Command,
    width: Columns,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Status> {
    let answer = Client::new(remote, err).and_then(|client| ask(&client, command));
    let failed = match answer {
        Ok((text, None)) => {
            write!(out, "{text}")?;
            return Ok(Status::Done);
        }
        Ok((text, Some((form, write)))) => match serde_json::from_str::<Value>(&text) {
            Ok(answer) if form.json => {
                return crate::write_json(out, &answer).map(|()| Status::Done);
            }
            Ok(answer) => return write(&answer, width, out).map(|()| Status::Done),
            Err(_) => Failed::Failed("the answer is not JSON".to_owned()),
        },
        Err(failed) => failed,
    };
    let (status, message) = match failed {
        Failed::Usage(message) => (Status::Usage, message),
        Failed::Failed(message) => (Status::Failed, message),
    };
    writeln!(err, "error: {}", shown::clean(&message))?;
    Ok(status)
}

/// The answer to a command, and how it is shown.
fn ask<'a>(client: &Client, command: &'a Command) -> Result<(String, Shown<'a>), Failed> {
    fn show(form: &Form, shows: Shows) -> Shown<'_> {
        Some((form, shows))
    }
    Ok(match command {
        Command::Status { form } => (client.get("status")?, show(form, status::write)),
        Command::Metrics => (client.get("metrics")?, None),
        Command::Hot { rule, limit, form } => {
            let rule = rule.as_deref().map(|rule| {
                let rule =
                    percent_encoding::utf8_percent_encode(rule, percent_encoding::NON_ALPHANUMERIC);
                format!("&rule={rule}")
            });
            let path = format!("hot?limit={limit}{}", rule.unwrap_or_default());
            (client.get(&path)?, show(form, hot::write))
        }
        Command::Why { key, form } => {
            (client.post("why", &json!({ "key": key }))?, show(form, why::write))
        }
        Command::Block { rule, key, lasts, form } => {
            let body = json!({ "rule": rule, "key": key, "for": lasts });
            (client.post("block", &body)?, show(form, done::block))
        }
        Command::Lift { named, all_rules, all, form } => {
            (client.post("lift", &lift(named, *all_rules, *all)?)?, show(form, done::lift))
        }
        Command::Deny(list) => (client.post("deny", &list.body())?, show(&list.form, done::list)),
        Command::Allow(list) => (client.post("allow", &list.body())?, show(&list.form, done::list)),
        Command::Mode { mode, rule, form } => {
            (client.post("mode", &json!({ "mode": mode, "rule": rule }))?, show(form, done::mode))
        }
    })
}

impl List {
    fn body(&self) -> Value {
        json!({ "clients": self.clients, "for": self.lasts, "note": self.note })
    }
}

fn lift(named: &[String], all_rules: bool, all: bool) -> Result<Value, Failed> {
    match (named, all_rules, all) {
        ([rule, key], false, false) => Ok(json!({ "rule": rule, "key": key })),
        ([key], true, false) => Ok(json!({ "key": key, "all_rules": true })),
        ([rule], false, true) => Ok(json!({ "rule": rule, "all_keys": true })),
        _ => Err(Failed::Usage(
            "expected a rule and a key, or --all-rules and a key, or a rule and --all".to_owned(),
        )),
    }
}

/// Read here, so that a slip is told without a gate; sent as it was written.
fn duration(text: &str) -> Result<String, String> {
    text.parse::<Spoken>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}
