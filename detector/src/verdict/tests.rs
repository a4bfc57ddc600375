use hotgate_rules::RuleSet;

use super::*;

fn terms(block: &str) -> Block {
    let text = format!(
        "app = \"test\"\n[[rule]]\nname = \"all\"\nkey = [\"client\"]\nover = \"1/1s\"\nblock = {block}"
    );
    let rules: RuleSet = text.parse().unwrap_or_else(|problems| panic!("{problems}"));
    let Action::Block(terms) = &rules.rules()[0].action else { panic!("it blocks") };
    *terms
}

#[test]
fn ticks_look_again_only_when_a_verdict_may_have_changed() {
    let at = |secs: u64| Time::from_nanos(secs * 1_000_000_000);
    for (block, next) in [
        ("{ for = \"1h\" }", 3_600),
        ("{ for = \"1h\", extend = true }", 12),
        ("{ for = \"11500ms\", extend = true }", 11),
    ] {
        let window = Duration::from_secs(1);
        let verdicts =
            Verdicts::new("all".into(), "block", Ticks::new(window), window, 10, Arc::default());
        let subject = Subject { hash: 7, key: "client=192.0.2.1".into(), observed: false };
        verdicts.block(subject, &terms(block), at(0)).unwrap();
        verdicts.tick(at(11));
        let due = Time::from_nanos(verdicts.due.load(Relaxed));
        assert_eq!(due.since(at(0)).as_secs(), next, "{block}");
    }
}
