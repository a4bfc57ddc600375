//! Which rules a request matches: all patterns of a file in one tree.

use http::Method;

use crate::{
    Pattern, RequestPath,
    pattern::{Segment, covers_method},
};

/// Rules a file can have.
pub(crate) const RULES_MAX: usize = 256;

/// The rules a request matches, as positions in [`crate::RuleSet::rules`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    bits: Bits,
    exempt: bool,
}

impl Matched {
    /// Whether `[exempt]` matched: then no rule applies.
    #[inline]
    #[must_use]
    pub fn is_exempt(&self) -> bool {
        self.exempt
    }

    /// The positions of the rules, as bits.
    #[inline]
    #[must_use]
    pub fn bits(&self) -> [u64; RULES_MAX / 64] {
        self.bits.0
    }

    /// The positions of the rules, rising.
    pub fn rules(&self) -> impl Iterator<Item = usize> + use<> {
        let (mut words, mut index) = (self.bits.0, 0);
        std::iter::from_fn(move || {
            while *words.get(index)? == 0 {
                index += 1;
            }
            let bit = words[index].trailing_zeros() as usize;
            words[index] &= words[index] - 1;
            Some(index * 64 + bit)
        })
    }
}

/// A set of rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bits([u64; RULES_MAX / 64]);

impl Bits {
    fn insert(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    /// Word by word: a loop costs more than the words.
    #[inline]
    fn with(self, other: Bits, join: impl Fn(u64, u64) -> u64) -> Bits {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Bits([join(a, e), join(b, f), join(c, g), join(d, h)])
    }
}

/// What the patterns that one form of a path matches mean.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    matched: Bits,
    except: Bits,
    exempt: bool,
}

impl Seen {
    // Not inlined into the loop that calls it: it mostly runs once, and is kept in registers there.
    #[inline(never)]
    fn join(&mut self, other: &Seen) {
        self.matched = self.matched.with(other.matched, |own, other| own | other);
        self.except = self.except.with(other.except, |own, other| own | other);
        self.exempt |= other.exempt;
    }
}

/// All patterns of a file: a tree of segments, in which every pattern is a way from the root.
///
/// A request walks it once by its raw path, and once more by the normalised one where that differs.
/// A segment can lead on by its text and by `{name}`, so a walk branches; but every node has one
/// parent and so is visited at most once a walk: the work is bounded by the nodes at the depths the
/// path has, at most one for each segment of each spelling of the patterns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matcher {
    /// The root first.
    nodes: Vec<Node>,
    /// The rules whose `match` is left out.
    always: Bits,
    has_patterns: bool,
}

/// A node of the tree, by the segments that lead to it.
#[derive(Clone, Debug, Default)]
struct Node {
    literals: Literals,
    /// Where `{name}` leads.
    param: Option<usize>,
    /// Patterns that end here.
    ends: Vec<End>,
    /// Patterns whose `{*rest}` begins here.
    rests: Vec<End>,
}

/// Where segments lead by their text: a hash table, probed one by one from a text's [`head`] on, half
/// empty at least. Nobody but the operator chooses what stands in it.
#[derive(Clone, Debug, Default)]
struct Literals {
    /// None, or a power of two.
    slots: Vec<Option<Literal>>,
    len: usize,
}

/// Where a segment's text leads.
#[derive(Clone, Debug)]
struct Literal {
    head: u64,
    text: Box<[u8]>,
    node: usize,
}

/// What patterns that end at one node with one method mean.
#[derive(Clone, Debug)]
struct End {
    method: Option<Method>,
    seen: Seen,
}

impl Matcher {
    /// `exempt` are the patterns of `[exempt]`; `rules` are (match, except) of each rule in order,
    /// at most [`RULES_MAX`].
    pub(crate) fn new<'p>(
        exempt: &[Pattern],
        rules: impl Iterator<Item = (Option<&'p [Pattern]>, &'p [Pattern])>,
    ) -> Self {
        let mut matcher = Matcher { nodes: vec![Node::default()], ..Matcher::default() };
        for pattern in exempt {
            matcher.insert(pattern, |seen| seen.exempt = true);
        }
        for (index, (patterns, except)) in rules.take(RULES_MAX).enumerate() {
            match patterns {
                None => matcher.always.insert(index),
                Some(patterns) => {
                    for pattern in patterns {
                        matcher.insert(pattern, |seen| seen.matched.insert(index));
                    }
                }
            }
            for pattern in except {
                matcher.insert(pattern, |seen| seen.except.insert(index));
            }
        }
        matcher
    }

    /// The rules whose `match` covers the raw **or** the normalised path, and whose `except` does
    /// not cover the raw **and** the normalised one.
    ///
    /// Nobody knows which of the two the service goes by, so what watches takes either, and what
    /// lets pass takes both: `/api/../static/x` reaches `/api/{*rest}` in axum, and must not pass as
    /// `/static/{*rest}`.
    #[inline]
    pub(crate) fn matching(&self, method: Option<&Method>, path: &RequestPath<'_>) -> Matched {
        if self.has_patterns {
            self.matching_patterns(method, path)
        } else {
            Matched { bits: self.always, exempt: false }
        }
    }

    fn matching_patterns(&self, method: Option<&Method>, path: &RequestPath<'_>) -> Matched {
        let mut seen = self.seen(method, path.raw());
        if !path.is_normal() {
            let normal = self.seen(method, path.normal());
            seen.matched = seen.matched.with(normal.matched, |raw, normal| raw | normal);
            seen.except = seen.except.with(normal.except, |raw, normal| raw & normal);
            seen.exempt &= normal.exempt;
        }
        if seen.exempt {
            return Matched { bits: Bits::default(), exempt: true };
        }
        let bits = self.always.with(seen.matched, |always, seen| always | seen);
        let bits = bits.with(seen.except, |matched, except| matched & !except);
        Matched { bits, exempt: false }
    }

    #[inline]
    fn seen(&self, method: Option<&Method>, form: &str) -> Seen {
        let mut seen = Seen::default();
        if let (Some(root), Some(segments)) = (self.nodes.first(), Segments::of(form)) {
            self.walk(root, segments, method, &mut seen);
        }
        seen
    }

    /// Recurses only where a segment leads on in two ways, so at most as deep as a pattern is long.
    fn walk<'n>(
        &'n self,
        mut node: &'n Node,
        mut segments: Segments<'_>,
        method: Option<&Method>,
        seen: &mut Seen,
    ) {
        loop {
            if !node.rests.is_empty() {
                self.join(&node.rests, method, seen);
            }
            let Some((head, segment)) = segments.next() else {
                return self.join(&node.ends, method, seen);
            };
            let literal = node.literals.get(head, segment);
            node = match node.param {
                Some(param) => {
                    if let Some(literal) = literal {
                        self.walk(&self.nodes[literal], segments, method, seen);
                    }
                    &self.nodes[param]
                }
                None => match literal {
                    Some(literal) => &self.nodes[literal],
                    None => return,
                },
            };
        }
    }

    fn join(&self, ends: &[End], method: Option<&Method>, seen: &mut Seen) {
        for end in ends {
            if end.method.as_ref().is_none_or(|own| covers_method(own, method)) {
                seen.join(&end.seen);
            }
        }
    }

    fn insert(&mut self, pattern: &Pattern, mark: impl Fn(&mut Seen)) {
        self.has_patterns = true;
        for spelling in pattern.spellings() {
            let mut at = 0;
            let mut rest = false;
            for segment in spelling {
                at = match segment {
                    Segment::Literal(text) => self.literal_child(at, text.as_bytes()),
                    Segment::Param(_) => self.param_child(at),
                    Segment::Rest(_) => {
                        rest = true;
                        at
                    }
                };
            }
            let node = &mut self.nodes[at];
            let ends = if rest { &mut node.rests } else { &mut node.ends };
            let place = ends.iter().position(|end| end.method == pattern.method);
            let place = place.unwrap_or_else(|| {
                ends.push(End { method: pattern.method.clone(), seen: Seen::default() });
                ends.len() - 1
            });
            mark(&mut ends[place].seen);
        }
    }

    fn literal_child(&mut self, at: usize, text: &[u8]) -> usize {
        let (new, head) = (self.nodes.len(), head(text));
        let literals = &mut self.nodes[at].literals;
        if let Some(child) = literals.get(head, text) {
            return child;
        }
        literals.insert(Literal { head, text: text.into(), node: new });
        self.nodes.push(Node::default());
        new
    }

    fn param_child(&mut self, at: usize) -> usize {
        if let Some(child) = self.nodes[at].param {
            return child;
        }
        let new = self.nodes.len();
        self.nodes[at].param = Some(new);
        self.nodes.push(Node::default());
        new
    }
}

impl Literals {
    /// Where a segment leads whose [`head`] is given.
    #[inline]
    fn get(&self, head: u64, segment: &[u8]) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.first(head);
        loop {
            let literal = self.slots[at & (self.slots.len() - 1)].as_ref()?;
            if literal.is(head, segment) {
                return Some(literal.node);
            }
            at += 1;
        }
    }

    fn insert(&mut self, literal: Literal) {
        self.len += 1;
        if self.slots.len() < 2 * self.len {
            let room = vec![None; (2 * self.len).next_power_of_two()];
            let literals = std::mem::replace(&mut self.slots, room).into_iter().flatten();
            literals.for_each(|literal| self.place(literal));
        }
        self.place(literal);
    }

    fn place(&mut self, literal: Literal) {
        let places = self.first(literal.head)..;
        let mask = self.slots.len() - 1;
        let free = places.map(|at| at & mask).find(|at| self.slots[*at].is_none());
        self.slots[free.expect("half of the slots are free")] = Some(literal);
    }

    /// Where to look first: both halves of a product, so that each bit of the head has a say.
    #[inline]
    fn first(&self, head: u64) -> usize {
        let product = u128::from(head) * 0x9e37_79b9_7f4a_7c15;
        ((product >> 64) ^ product) as usize & (self.slots.len() - 1)
    }
}

impl Literal {
    #[inline]
    fn is(&self, head: u64, segment: &[u8]) -> bool {
        self.head == head
            && self.text.len() == segment.len()
            && (segment.len() <= HEAD_BYTES || self.text[HEAD_BYTES..] == segment[HEAD_BYTES..])
    }
}

/// How many bytes of a segment are compared as one number: almost always enough to tell a node's
/// literals apart.
const HEAD_BYTES: usize = size_of::<u64>();

/// A text's first bytes as a number, the first one lowest, zeros after its end.
fn head(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(head) => u64::from_le_bytes(*head),
        None => text.iter().rev().fold(0, |head, octet| head << 8 | u64::from(*octet)),
    }
}

/// The segments of a path that are still to come, each with its [`head`].
///
/// One trailing slash is dropped, but never a segment before it: a router takes `//` for `/{x}/`
/// with an empty `x`.
#[derive(Clone, Copy, Debug)]
struct Segments<'a> {
    form: &'a [u8],
    /// Where the next one begins; beyond the end there is none.
    at: usize,
}

impl<'a> Segments<'a> {
    /// Of one form of a path; `None` where it is no path.
    #[inline]
    fn of(form: &'a str) -> Option<Self> {
        let form = form.as_bytes();
        match form {
            b"/" => Some(Segments { form, at: 2 }),
            [b'/', trimmed @ .., b'/'] => Some(Segments { form: &form[..=trimmed.len()], at: 1 }),
            [b'/', ..] => Some(Segments { form, at: 1 }),
            _ => None,
        }
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = (u64, &'a [u8]);

    /// Looks for the slash in eight octets at once: most segments end there.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.form.get(self.at..)?;
        let word = match (rest.first_chunk(), self.form.last_chunk()) {
            (Some(head), _) => u64::from_le_bytes(*head),
            // The rest is the end of the last eight octets.
            (None, Some(last)) if !rest.is_empty() => {
                u64::from_le_bytes(*last) >> (8 * (HEAD_BYTES - rest.len()))
            }
            (None, _) => head(rest),
        };
        let (head, length) = match first_slash(word) {
            Some(length) => (word & !(u64::MAX << (8 * length)), length),
            None if rest.len() <= HEAD_BYTES => (word, rest.len()),
            None => {
                let later = rest[HEAD_BYTES..].iter().position(|octet| *octet == b'/');
                (word, later.map_or(rest.len(), |later| HEAD_BYTES + later))
            }
        };
        self.at += length + 1;
        Some((head, &rest[..length]))
    }
}

/// How many of eight octets, the first one lowest, stand before the first slash among them.
#[inline]
fn first_slash(word: u64) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    // Where an octet is zero its high bit is set; above the first such octet, it may be by a carry.
    let others = word ^ (ONES * b'/' as u64);
    let zeros = others.wrapping_sub(ONES) & !others & (ONES << 7);
    (zeros != 0).then(|| zeros.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    struct Case {
        patterns: Option<Vec<Pattern>>,
        except: Vec<Pattern>,
    }

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| Pattern::read(text).unwrap()).collect()
    }

    fn rule(texts: &[&str], except: &[&str]) -> Case {
        Case { patterns: Some(patterns(texts)), except: patterns(except) }
    }

    fn matcher(exempt: &[Pattern], rules: &[Case]) -> Matcher {
        let rules = rules.iter().map(|rule| (rule.patterns.as_deref(), &*rule.except));
        Matcher::new(exempt, rules)
    }

    fn get(matcher: &Matcher, path: &str) -> Vec<usize> {
        matcher.matching(Some(&Method::GET), &RequestPath::new(path)).rules().collect()
    }

    #[test]
    fn all_matching_rules_apply() {
        let matcher = matcher(
            &[],
            &[
                rule(&["/products/{id}"], &[]),
                rule(&["/products/new", "/x"], &[]),
                rule(&["GET /{*rest}"], &[]),
                rule(&["POST /{*rest}"], &[]),
                Case { patterns: None, except: vec![] },
            ],
        );
        assert_eq!(get(&matcher, "/products/new"), [0, 1, 2, 4]);
        assert_eq!(get(&matcher, "/products/7/"), [0, 2, 4]);
        assert_eq!(get(&matcher, "/"), [2, 4]);
        assert_eq!(get(&matcher, ""), [4], "no path: only rules without patterns");
        assert_eq!(get(&matcher, "*"), [4]);
        let unknown = matcher.matching(None, &RequestPath::new("/x"));
        assert_eq!(unknown.rules().collect::<Vec<_>>(), [1, 4]);
    }

    #[test]
    fn an_empty_matcher_matches_nothing() {
        assert_eq!(get(&Matcher::default(), "/a"), [0; 0]);
        assert_eq!(get(&matcher(&[], &[]), "/a"), [0; 0]);
    }

    #[test]
    fn the_last_of_256_rules_is_found() {
        let rules: Vec<Case> = (0..256).map(|index| rule(&[&format!("/r{index}")], &[])).collect();
        let matcher = matcher(&[], &rules);
        for index in [0, 63, 64, 127, 128, 255] {
            assert_eq!(get(&matcher, &format!("/r{index}")), [index]);
        }
    }

    // C23
    #[test]
    fn exempt_paths_match_no_rule() {
        let matcher = matcher(&patterns(&["/healthz"]), &[Case { patterns: None, except: vec![] }]);
        let matched = matcher.matching(Some(&Method::GET), &RequestPath::new("/healthz"));
        assert!(matched.is_exempt());
        assert_eq!(matched.rules().count(), 0);
        assert_eq!(get(&matcher, "/healthy"), [0]);
    }

    #[test]
    fn an_exception_holds_only_if_both_forms_of_the_path_are_excepted() {
        let matcher = matcher(
            &patterns(&["/public/{*rest}"]),
            &[
                rule(&["/api/{*rest}"], &["/static/{*rest}", "/api/open"]),
                Case { patterns: None, except: patterns(&["/static/{*rest}"]) },
            ],
        );
        assert_eq!(get(&matcher, "/static/x"), [0; 0]);
        assert_eq!(get(&matcher, "/api/../static/x"), [0, 1], "axum serves it by /api/{{*rest}}");
        assert_eq!(get(&matcher, "/static/../api/x"), [0, 1], "a file server may resolve it");
        assert_eq!(get(&matcher, "/api/open"), [1]);
        assert_eq!(get(&matcher, "/api/%6Fpen"), [0, 1]);
        let exempt = |path| matcher.matching(None, &RequestPath::new(path)).is_exempt();
        assert!(exempt("/public/x"));
        assert!(exempt("/public/./x"), "exempt by either form");
        assert!(!exempt("/api/../public/x"));
        assert!(!exempt("/public/../api/x"));
    }

    /// Every pattern that can be built of a literal and a parameter at each of `depth` segments, and
    /// one of each with an end that no path has.
    fn hostile(depth: u32) -> Vec<Pattern> {
        let text = |choice: u32| {
            let segment =
                |at| if choice >> at & 1 == 1 { "/a".into() } else { format!("/{{p{at}}}") };
            (0..depth).map(segment).collect::<String>()
        };
        (0..1 << depth).map(|choice| Pattern::read(&(text(choice) + "/end")).unwrap()).collect()
    }

    #[test]
    fn patterns_that_branch_everywhere_cost_at_most_their_nodes() {
        let matcher = matcher(&[], &[Case { patterns: Some(hostile(12)), except: vec![] }]);
        let nodes = matcher.nodes.len();
        assert!(nodes <= 3 << 12, "{nodes} nodes: a node for each way, and its end");
        let path = "/a".repeat(2_000) + "//%61";
        let begin = Instant::now();
        for _ in 0..20 {
            assert_eq!(get(&matcher, &path), [0; 0]);
            assert_eq!(get(&matcher, &("/a".repeat(12) + "/end")), [0]);
        }
        // Some 0.1 ms each; a walk that tried all ways of a path this long would never end.
        assert!(begin.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn the_longest_patterns_match_to_their_last_segment() {
        let long = |segment: &str| Pattern::read(&segment.repeat(64)).unwrap();
        let mixed: String = (0..64)
            .map(|at| if at % 2 == 0 { "/a".into() } else { format!("/{{p{at}}}") })
            .collect();
        let set = vec![long("/a"), Pattern::read(&mixed).unwrap()];
        let matcher = matcher(&[], &[Case { patterns: Some(set), except: vec![] }]);
        assert_eq!(get(&matcher, &"/a".repeat(64)), [0]);
        assert_eq!(get(&matcher, &"/a".repeat(65)), [0; 0]);
    }

    fn segment() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "/a",
            "/b",
            "/{x}",
            "/%61",
            "/é",
            "/%C3%A9",
            "/longer-than-8",
            "/longer-than-9",
            "/.x",
        ])
    }

    fn a_pattern() -> impl Strategy<Value = Pattern> {
        let method = prop::sample::select(vec!["", "GET ", "POST ", "HEAD "]);
        let tail = prop::sample::select(vec!["", "", "/", "/{*rest}"]);
        let segments = prop::collection::vec(segment(), 0..4);
        (method, segments, tail).prop_filter_map("a pattern", |(method, segments, tail)| {
            Pattern::read(&format!("{method}{}{tail}", segments.concat())).ok()
        })
    }

    fn a_path() -> impl Strategy<Value = String> {
        let segment = prop::sample::select(vec![
            "/a",
            "/b",
            "/%61",
            "/%62",
            "/é",
            "/%C3%A9",
            "/%c3%a9",
            "/longer-than-8",
            "/longer-than-9",
            "/.x",
            "/",
            "/.",
            "/..",
            "/%2e%2E",
            "/c",
        ]);
        prop::collection::vec(segment, 0..6).prop_map(|segments| segments.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn the_tree_agrees_with_each_pattern_alone(
            exempt in prop::collection::vec(a_pattern(), 0..2),
            rules in prop::collection::vec(
                (prop::option::of(prop::collection::vec(a_pattern(), 1..4)), prop::collection::vec(a_pattern(), 0..3)),
                0..6,
            ),
            path in a_path(),
            method in prop::sample::select(vec![None, Some(Method::GET), Some(Method::HEAD), Some(Method::POST)]),
        ) {
            let path = RequestPath::new(&path);
            let method = method.as_ref();
            let covers = |pattern: &Pattern, form: &str| {
                pattern.covers(form) && pattern.method.as_ref().is_none_or(|own| covers_method(own, method))
            };
            let both = |set: &[Pattern]| {
                [path.raw(), path.normal()].iter().all(|form| set.iter().any(|pattern| covers(pattern, form)))
            };
            let is_exempt = both(&exempt);
            let expected: Vec<usize> = (0..rules.len())
                .filter(|_| !is_exempt)
                .filter(|&index| rules[index].0.as_ref().is_none_or(|set| set.iter().any(|pattern| pattern.matches(method, &path))))
                .filter(|&index| !both(&rules[index].1))
                .collect();
            let matcher = Matcher::new(&exempt, rules.iter().map(|(set, except)| (set.as_deref(), &**except)));
            let found = matcher.matching(method, &path);
            prop_assert_eq!(found.is_exempt(), is_exempt);
            prop_assert_eq!(found.rules().collect::<Vec<_>>(), expected);
        }
    }
}
