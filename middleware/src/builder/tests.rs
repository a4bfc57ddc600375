use std::{error::Error as _, fs};

use super::*;
use crate::active::what_asks_for_the_client;

const BY_CLIENT: &str = "app = \"shop\"\n[[rule]]\nname = \"api\"\nkey = [\"client\"]\nover = \"9/1m\"\nthrottle = {}\n";

fn error_of(builder: GateBuilder) -> BuildError {
    match builder.build() {
        Ok(_) => panic!("expected an error"),
        Err(error) => error,
    }
}

#[test]
fn a_builder_without_rules_says_what_to_call() {
    assert_eq!(
        error_of(Gate::builder()).to_string(),
        "no rules: expected a call of .file(path) or .rules(set) before .build()"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = error_of(Gate::builder().file("/nowhere/hotgate.toml"));
    assert_eq!(error.to_string(), "cannot read the rule file /nowhere/hotgate.toml");
    assert!(error.source().is_some());
}

#[test]
fn every_error_of_a_file_is_shown_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hotgate.toml");
    fs::write(&path, BY_CLIENT.replace("9/1m", "9/1").replace("throttle", "trottle")).unwrap();
    let shown = error_of(Gate::builder().file(&path)).to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.len() >= 2, "{shown}");
    for line in &lines {
        assert!(line.starts_with(&format!("{}:", path.display())), "{line}");
    }
    assert!(lines.iter().any(|line| line.contains("hotgate.toml:5:8: ")), "{shown}");
}

#[cfg(not(feature = "axum"))]
#[test]
fn rules_by_client_need_a_way_to_know_the_peer() {
    let deny = "app = \"shop\"\n[[deny]]\nclients = [\"203.0.113.0/24\"]\n";
    for (rules, what) in [(BY_CLIENT, "rule \"api\""), (deny, "[[allow]] or [[deny]]")] {
        let shown = error_of(Gate::builder().rules(rules.parse().unwrap())).to_string();
        assert!(shown.starts_with(what) && shown.contains(".peer(f)"), "{shown}");
        assert!(Gate::builder().rules(rules.parse().unwrap()).peer(|_| None).build().is_ok());
    }
    let anonymous = BY_CLIENT.replace("\"client\"", "");
    assert!(Gate::builder().rules(anonymous.parse().unwrap()).build().is_ok());
}

#[test]
fn what_asks_for_the_client_is_found_in_fallbacks_and_lists() {
    let needs = |rules: String| what_asks_for_the_client(&rules.parse().unwrap()).is_some();
    assert!(needs(BY_CLIENT.replace("\"client\"", "\"bearer|client\"")));
    assert!(needs(BY_CLIENT.replace("\"client\"", "\"path\", \"client/24\"")));
    assert!(!needs(BY_CLIENT.replace("\"client\"", "\"host\"")));
}

#[test]
fn the_secret_is_read_beside_the_rule_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hotgate.toml");
    fs::write(&path, format!("{BY_CLIENT}[privacy]\nsecret_file = \"secret\"\n")).unwrap();
    let build = || Gate::builder().file(&path).peer(|_| None).build();

    assert!(matches!(build(), Err(BuildError::Secret { path, .. }) if path.ends_with("secret")));
    fs::write(folder.path().join("secret"), "fifteen bytes..\n").unwrap();
    assert!(matches!(build(), Err(BuildError::ShortSecret { bytes: 15, .. })));
    fs::write(folder.path().join("secret"), "sixteen bytes...\n").unwrap();
    assert!(build().is_ok());
}

#[test]
fn equal_secrets_make_equal_keys_whatever_ends_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let secret = |text: &str| {
        let path = folder.path().join("secret");
        fs::write(&path, text).unwrap();
        read_secret(&path).unwrap()
    };
    assert_eq!(secret("a secret of many bytes"), secret("a secret of many bytes\r\n"));
    assert_ne!(secret("a secret of many bytes"), secret("a secret of many bytez"));
}

#[test]
fn seeds_and_secrets_differ_from_gate_to_gate() {
    let rules = BY_CLIENT.parse().unwrap();
    let (one, other) =
        (config(&rules, Path::new("")).unwrap(), config(&rules, Path::new("")).unwrap());
    assert_ne!(one.table_seed, other.table_seed);
    assert_ne!(one.privacy_secret, other.privacy_secret);
}

#[test]
fn the_environment_has_a_say_in_the_mode() {
    /// Set for the run of this test binary that builds, and is read.
    const BUILDS: &str = "HOTGATE_TEST_BUILDS";
    if env::var_os(BUILDS).is_some() {
        let built = Gate::builder().rules(BY_CLIENT.parse().unwrap()).peer(|_| None).build();
        match built {
            Ok(gate) => println!("{:?}", gate.snapshot().mode.mode),
            Err(error) => println!("{error}"),
        }
        return;
    }
    let said = |value: &str| {
        let this = env::current_exe().unwrap();
        let name = "builder::tests::the_environment_has_a_say_in_the_mode";
        let mut run = std::process::Command::new(this);
        run.args(["--exact", name, "--nocapture"]).env(BUILDS, "").env(MODE_VARIABLE, value);
        let run = run.output().unwrap();
        let (said, warned) =
            (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        (said.into_owned(), warned.contains("HOTGATE_MODE"))
    };
    for (value, expected, is_warned) in [
        ("", "Enforce\n", false),
        ("enforce", "Enforce\n", false),
        ("observe", "Observe\n", true),
        ("off", "Off\n", true),
        ("Observe", "HOTGATE_MODE is \"Observe\", expected enforce, observe or off\n", false),
    ] {
        let (said, warned) = said(value);
        assert!(said.contains(expected), "{value:?}: {said}");
        assert_eq!(warned, is_warned, "{value:?}");
    }
}

fn rule(key: &str, action: &str) -> RuleSet {
    format!("app = \"shop\"\n[[rule]]\nname = \"api\"\nkey = [{key}]\nover = \"9/1m\"\n{action}\n")
        .parse()
        .unwrap()
}

#[test]
fn functions_that_rules_name_must_be_registered() {
    // C12
    let build = |key: &str, action: &str| {
        Gate::builder()
            .rules(rule(key, action))
            .extractor("tenant", |_| None)
            .handler("maze", |_, _| None)
            .handler("tar-pit", |_, _| None)
    };
    assert_eq!(
        error_of(build("\"user\"", "throttle = {}")).to_string(),
        "rule \"api\" asks for user, which no function tells: expected .user(f) on the builder"
    );
    assert_eq!(
        error_of(build("\"x:tenants|user\"", "handler = \"mace\"")).to_string(),
        "rule \"api\" asks for x:tenants, which no function tells: expected .extractor(\"tenants\", f) on \
         the builder, registered: \"tenant\"\n\
         rule \"api\" asks for user, which no function tells: expected .user(f) on the builder\n\
         rule \"api\" names the handler \"mace\", which no function is: expected .handler(\"mace\", f) on \
         the builder, registered: \"maze\", \"tar-pit\""
    );
    assert_eq!(
        error_of(Gate::builder().rules(rule("", "handler = \"maze\""))).to_string(),
        "rule \"api\" names the handler \"maze\", which no function is: expected .handler(\"maze\", f) on \
         the builder, none is registered"
    );
    let all = build("\"x:tenant|user\"", "handler = \"maze\"").user(|_| None).build();
    assert!(all.is_ok());
}

#[test]
fn a_rule_that_only_handlers_ask_needs_no_functions() {
    let rules = rule("\"client\", \"user\", \"x:email\"", "match = []\nthrottle = {}");
    assert!(Gate::builder().rules(rules).build().is_ok());
}

#[test]
fn the_body_of_an_answer_is_read_beside_the_rule_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hotgate.toml");
    let rules = BY_CLIENT.to_owned()
        + "respond = { content_type = \"text/html\", body_file = \"sorry.html\" }\n";
    fs::write(&path, rules).unwrap();
    let body = folder.path().join("sorry.html");
    let build = || Gate::builder().file(&path).peer(|_| None).build();
    let shown = || {
        let error = build().expect_err("the body cannot be read");
        format!("{error}: {}", error.source().unwrap())
    };

    assert!(
        shown().starts_with(&format!("rule \"api\": cannot read body_file {}: ", body.display()))
    );
    fs::create_dir(&body).unwrap();
    assert!(shown().ends_with(": expected a file, found a directory"), "{}", shown());
    fs::remove_dir(&body).unwrap();
    fs::write(&body, vec![b'x'; 1024 * 1024 + 1]).unwrap();
    assert!(shown().ends_with(": expected at most 1048576 bytes"), "{}", shown());
    fs::write(&body, vec![b'x'; 1024 * 1024]).unwrap();
    assert!(build().is_ok());
}
