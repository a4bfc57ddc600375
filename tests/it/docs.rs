//! The rule files that the documents show, read as a reader of theirs would have them read.
//!
//! A block marked `toml` is read without a word. One marked `toml,bad` is refused and one marked
//! `toml,warns` is read with warnings, in exactly the words of the `text` block that follows it. A
//! block that does not say `app` stands for a part of a file and gets one. One that begins with
//! `[dependencies]` is a part of a Cargo manifest and left to Cargo.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hotgate_rules::{Problem, RuleSet};

/// What the rule file is called in the documents.
const FILE: &str = "hotgate.toml";

#[test]
fn every_rule_file_in_a_document_is_as_it_is_shown() {
    // What must be shown keeps the test from passing over nothing.
    let documents = [
        ("docs/rules.md", 8),
        ("docs/placement.md", 4),
        ("docs/load-tests.md", 1),
        ("README.md", 0),
    ];
    for (name, shown_min) in documents {
        let text = fs::read_to_string(root().join(name));
        if shown_min == 0 && text.is_err() {
            continue;
        }
        let text = text.expect(name);
        let shown = text.lines().filter(|line| line.starts_with("```toml")).count();
        assert!(shown >= shown_min, "{name} shows {shown} rule files");
        let found = faults(&text);
        assert!(found.is_empty(), "{name}:{}", found.join(&format!("\n{name}:")));
    }
}

#[test]
fn every_example_file_is_read_without_a_word() {
    let files = example_files();
    assert!(files.len() >= 4, "found only {files:?}");
    for file in files {
        let (_, said) = read(&fs::read_to_string(&file).unwrap());
        assert_eq!(said, "", "of {}", file.display());
    }
}

/// A field that is read and not described is found here, by the names that an unknown one is
/// answered with.
#[test]
fn every_field_is_described() {
    let document = rules_document();
    let unknown = [
        "zzzzzz = 1",
        "[client]\nzzzzzz = 1",
        "[memory]\nzzzzzz = 1",
        "[privacy]\nzzzzzz = 1",
        "[exempt]\nzzzzzz = 1",
        "[[allow]]\nzzzzzz = 1",
        "[[deny]]\nzzzzzz = 1",
        "[[rule]]\nzzzzzz = 1",
        "[[rule]]\ncount = { zzzzzz = 1 }",
        "[[rule]]\nblock = { zzzzzz = 1 }",
        "[[rule]]\nthrottle = { zzzzzz = 1 }",
        "[[rule]]\nrespond = { zzzzzz = 1 }",
        "[[rule]]\n[[rule.override]]\nzzzzzz = 1",
        "[[rule]]\nkey = [\"zzzzzz\"]",
    ];
    for lines in unknown {
        let (_, said) = read(lines);
        let said = said.lines().find(|line| line.contains("zzzzzz")).expect(lines);
        let (_, names) = said.split_once(", expected ").expect(said);
        let names: Vec<&str> = names.split(", ").flat_map(|name| name.split(" or ")).collect();
        let described = |name: &&&str| {
            let row = format!("\n| `{name}` | ");
            let tables =
                [format!("`[{name}]`"), format!("`[[{name}]]`"), format!("`[[rule.{name}]]`")];
            document.contains(&row) || tables.iter().any(|table| document.contains(table))
        };
        let missing: Vec<&&str> = names.iter().filter(|name| !described(name)).collect();
        assert!(missing.is_empty(), "docs/rules.md does not describe {missing:?} of\n{lines}");
    }
}

/// What comes must leave the list of what has not.
#[test]
fn what_is_listed_as_not_available_yet_is_refused_as_that() {
    let document = rules_document();
    let (_, section) = document.split_once("\n## Not available yet\n").expect("the section");
    let rows: Vec<(&str, &str)> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
        .filter(|(_, names)| names.starts_with('`'))
        .collect();
    assert!(rows.len() >= 4, "found only {rows:?}");
    for (place, names) in rows {
        for name in names.split('`').skip(1).step_by(2) {
            let (_, said) = read(&match place.trim_matches('`') {
                "key" => format!("[[rule]]\nkey = [\"{name}\"]"),
                place @ ("count" | "when") => format!("[[rule]]\n{place} = {{ {name} = 1 }}"),
                "[[rule.override]]" => format!("[[rule]]\n[[rule.override]]\n{name} = 1"),
                "[[rule]]" => format!("[[rule]]\n{name} = 1"),
                "top level" => format!("{name} = 1"),
                other => panic!("no such place: {other}"),
            });
            let refused = |line: &str| {
                line.contains(&format!("\"{name}\"")) && line.ends_with("is not available yet")
            };
            assert!(said.lines().any(refused), "{name} in {place}:\n{said}");
        }
    }
}

#[test]
fn a_document_that_shows_something_else_is_at_fault() {
    let whole = "```toml\napp = \"a\"\n```\n";
    let part = "```toml\n[memory]\nkeys = 1\n```\n";
    let bad = "```toml,bad\napp = \"A\"\n```\n";
    let message = "hotgate.toml:1:7: app: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found \"A\", did you mean \"a\"?";
    let said = |text: &str| format!("```text\n{text}\n```\n");
    let open = "[client]\nsource = \"x-real-ip\"\ntrusted_proxies = [\"0.0.0.0/0\"]\n";
    let warned = "hotgate.toml:4:20: warning: trusted_proxies: \"0.0.0.0/0\" lets everybody choose the address they are counted by";
    let warns = format!("```toml,warns\napp = \"a\"\n{open}```\n");
    for (document, expected) in [
        (whole.to_owned(), 0),
        (part.to_owned(), 0),
        (format!("{bad}\nis answered with\n\n{}", said(message)), 0),
        (format!("{warns}{}", said(warned)), 0),
        // A wrong example, whole and in part; an odd one that does not say so.
        (whole.replace("\"a\"", "\"A\""), 1),
        (part.replace("keys", "kys"), 1),
        (format!("```toml\n{open}```\n"), 1),
        // Another message than the real one, and none.
        (format!("{bad}{}", said("hotgate.toml:1:7: app: no")), 1),
        (bad.to_owned(), 1),
        (format!("{bad}{whole}{}", said(message)), 1),
        // What is said to be refused is read, and the other way round.
        (format!("{}{}", whole.replace("toml", "toml,bad"), said("")), 1),
        (format!("{}{}", warns.replace("warns", "bad"), said(warned)), 1),
        (format!("{}{}", bad.replace("bad", "warns"), said(message)), 1),
        // The places would not be those that the reader counts.
        (format!("{}{}", bad.replace("app", "ap"), said("")), 1),
        (part.replace("toml", "toml,ignore"), 1),
        ("nothing to read".to_owned(), 0),
        (part.replace("memory", "dependencies"), 0),
        ("```toml\napp = \"a\"\n".to_owned(), 1),
    ] {
        let found = faults(&document);
        assert_eq!(found.len(), expected, "{found:?} in\n{document}");
    }
}

/// One fenced block.
struct Block {
    /// The line of its fence, from 1.
    line: usize,
    info: String,
    text: String,
}

/// What is wrong with a document, each as `line: what`.
fn faults(document: &str) -> Vec<String> {
    let blocks = match blocks(document) {
        Ok(blocks) => blocks,
        Err(line) => return vec![format!("{line}: the block is not closed")],
    };
    let shown: Vec<usize> =
        (0..blocks.len()).filter(|at| blocks[*at].info.starts_with("toml")).collect();
    let fault = |at: usize| {
        let fault = fault_of(&blocks[at], blocks.get(at + 1))?;
        Some(format!("{}: {fault}", blocks[at].line))
    };
    shown.into_iter().filter_map(fault).collect()
}

fn fault_of(block: &Block, next: Option<&Block>) -> Option<String> {
    let whole = block
        .text
        .lines()
        .any(|line| line.split_once('=').is_some_and(|(name, _)| name.trim_end() == "app"));
    if block.text.starts_with("[dependencies]\n") {
        return None;
    }
    let is_read = match &*block.info {
        "toml" => {
            let app = if whole { "" } else { "app = \"docs\"\n" };
            let (_, said) = read(&format!("{app}{}", block.text));
            return (!said.is_empty()).then(|| format!("the file is answered with\n{said}"));
        }
        "toml,bad" => false,
        "toml,warns" => true,
        other => return Some(format!("expected toml, toml,bad or toml,warns, found {other}")),
    };
    if !whole {
        return Some("expected a whole file, whose lines a reader can count".to_owned());
    }
    let Some(next) = next.filter(|next| next.info == "text") else {
        return Some("expected a text block behind it with what is said of it".to_owned());
    };
    let (was_read, said) = read(&block.text);
    if was_read != is_read {
        return Some(format!("the file is {}:\n{said}", if was_read { "read" } else { "refused" }));
    }
    (said != next.text.trim_end()).then(|| format!("the file is answered with\n{said}"))
}

/// Whether a rule file is read, and what is said of it: as `hotgate check` prints it.
fn read(text: &str) -> (bool, String) {
    let (is_read, lines): (bool, Vec<String>) = match text.parse::<RuleSet>() {
        Ok(rules) => {
            let said = rules.warnings().iter().map(|Problem { line, column, message, .. }| {
                format!("{FILE}:{line}:{column}: warning: {message}")
            });
            (true, said.collect())
        }
        Err(problems) => {
            (false, problems.iter().map(|problem| format!("{FILE}:{problem}")).collect())
        }
    };
    (is_read, lines.join("\n"))
}

/// The fenced blocks of a document, or the line of one that has no end.
fn blocks(document: &str) -> Result<Vec<Block>, usize> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in document.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => {
                let info = info.trim().to_owned();
                open = Some(Block { line: index + 1, info, text: String::new() });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    open.map_or(Ok(blocks), |block| Err(block.line))
}

/// The rule files that stand beside code.
fn example_files() -> Vec<PathBuf> {
    let entries = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).expect(folder);
        entries.map(|entry| entry.expect("a readable folder").path())
    };
    let named: Vec<PathBuf> = entries("rules/examples").collect();
    let services = entries("examples").map(|folder| folder.join(FILE)).filter(|file| file.exists());
    named.into_iter().chain(services).collect()
}

fn rules_document() -> String {
    fs::read_to_string(root().join("docs/rules.md")).expect("docs/rules.md is there")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
