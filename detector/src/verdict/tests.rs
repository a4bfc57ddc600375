use hotgate_rules::{RuleSet, Trigger};

use super::*;

fn verdicts(action: &str) -> Verdicts {
    let text = format!(
        "app = \"test\"\n[[rule]]\nname = \"all\"\nkey = [\"client\"]\nover = \"1/1s\"\n{action}"
    );
    let rules: RuleSet = text.parse().unwrap_or_else(|problems| panic!("{problems}"));
    let rule = &rules.rules()[0];
    let Trigger::Over(rate) = rule.trigger else { panic!("it has a limit") };
    Verdicts::new(rule, Ticks::new(rate.window), rate.window, 10)
}

#[test]
fn ticks_look_again_only_when_a_verdict_may_have_changed() {
    let at = |secs: u64| Time::from_nanos(secs * 1_000_000_000);
    for (action, next) in [
        ("block = { for = \"1h\" }", 3_600),
        ("block = { for = \"1h\", extend = true }", 12),
        ("block = { for = \"11500ms\", extend = true }", 11),
    ] {
        let verdicts = verdicts(action);
        let Action::Block(terms) = &verdicts.action else { panic!("it blocks") };
        let subject = Subject { hash: 7, key: "client=192.0.2.1".into(), observed: false };
        verdicts.block(subject, &terms, at(0)).unwrap();
        verdicts.tick(at(11));
        let due = Time::from_nanos(verdicts.due.load(Relaxed));
        assert_eq!(due.since(at(0)).as_secs(), next, "{action}");
    }
}
