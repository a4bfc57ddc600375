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
    #[must_use]
    pub fn is_exempt(&self) -> bool {
        self.exempt
    }

    /// The positions of the rules, as bits.
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

    /// Joins the first `words` of another, which has no more.
    fn join(&mut self, other: &Bits, words: usize) {
        for (word, other) in self.0.iter_mut().zip(other.0).take(words) {
            *word |= other;
        }
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
    fn join(&mut self, other: &Seen, words: usize) {
        self.matched.join(&other.matched, words);
        self.except.join(&other.except, words);
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
    /// Words of a [`Bits`] that any rule is in.
    words: usize,
}

/// A node of the tree, by the segments that lead to it.
#[derive(Clone, Debug, Default)]
struct Node {
    /// The heads of the literals, sorted as they are.
    heads: Vec<u64>,
    /// Sorted by (head, text).
    literals: Vec<Literal>,
    /// Where `{name}` leads.
    param: Option<usize>,
    /// Patterns that end here.
    ends: Vec<End>,
    /// Patterns whose `{*rest}` begins here.
    rests: Vec<End>,
}

/// Where a segment's text leads.
#[derive(Clone, Debug)]
struct Literal {
    text: Box<[u8]>,
    node: usize,
}

/// What patterns that end at one node with one method mean.
#[derive(Clone, Debug)]
struct End {
    method: Option<Method>,
    seen: Seen,
}

/// A form of a request's path on its way through the tree.
#[derive(Clone, Copy)]
struct Walk<'a> {
    method: Option<&'a Method>,
    segments: Segments<'a>,
    words: usize,
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
            matcher.words = index / 64 + 1;
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
    pub(crate) fn matching(&self, method: Option<&Method>, path: &RequestPath<'_>) -> Matched {
        if self.is_empty() {
            return Matched { bits: self.always, exempt: false };
        }
        let mut seen = self.seen(method, path.raw());
        if !path.is_normal() {
            let normal = self.seen(method, path.normal());
            seen.matched.join(&normal.matched, self.words);
            for (word, other) in seen.except.0.iter_mut().zip(normal.except.0) {
                *word &= other;
            }
            seen.exempt &= normal.exempt;
        }
        if seen.exempt {
            return Matched { bits: Bits::default(), exempt: true };
        }
        let mut bits = self.always;
        bits.join(&seen.matched, self.words);
        for (word, except) in bits.0.iter_mut().zip(seen.except.0).take(self.words) {
            *word &= !except;
        }
        Matched { bits, exempt: false }
    }

    /// Whether there is no pattern at all.
    fn is_empty(&self) -> bool {
        match &*self.nodes {
            [] => true,
            [root] => root.ends.is_empty() && root.rests.is_empty(),
            _ => false,
        }
    }

    fn seen(&self, method: Option<&Method>, form: &str) -> Seen {
        let mut seen = Seen::default();
        if let (Some(root), Some(segments)) = (self.nodes.first(), Segments::of(form)) {
            self.walk(root, Walk { method, segments, words: self.words }, &mut seen);
        }
        seen
    }

    /// Recurses only where a segment leads on in two ways, so at most as deep as a pattern is long.
    fn walk<'n>(&'n self, mut node: &'n Node, mut walk: Walk<'_>, seen: &mut Seen) {
        loop {
            walk.join(&node.rests, seen);
            let Some((head, segment)) = walk.segments.next() else {
                return walk.join(&node.ends, seen);
            };
            node = match (node.literal(head, segment), node.param) {
                (None, None) => return,
                (Some(next), None) | (None, Some(next)) => &self.nodes[next],
                (Some(literal), Some(param)) => {
                    self.walk(&self.nodes[literal], walk, seen);
                    &self.nodes[param]
                }
            };
        }
    }

    fn insert(&mut self, pattern: &Pattern, mark: impl Fn(&mut Seen)) {
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
        let new = self.nodes.len();
        let (node, head) = (&mut self.nodes[at], head(text));
        if let Some(child) = node.literal(head, text) {
            return child;
        }
        let before = |place: usize| (node.heads[place], &*node.literals[place].text) < (head, text);
        let place = (0..node.heads.len()).take_while(|place| before(*place)).count();
        node.heads.insert(place, head);
        node.literals.insert(place, Literal { text: text.into(), node: new });
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

impl Node {
    /// Where a segment that begins with `head` leads by its text.
    #[inline]
    fn literal(&self, head: u64, segment: &[u8]) -> Option<usize> {
        let first = self.heads.partition_point(|own| *own < head);
        let same = self.heads[first..].iter().take_while(|own| **own == head);
        let literals = same.zip(&self.literals[first..]).map(|(_, literal)| literal);
        literals.into_iter().find(|literal| literal.is(segment)).map(|literal| literal.node)
    }
}

impl Literal {
    /// Whether this is the text of a segment whose head is the same.
    #[inline]
    fn is(&self, segment: &[u8]) -> bool {
        self.text.len() == segment.len()
            && self.text.get(HEAD_BYTES..).unwrap_or_default()
                == segment.get(HEAD_BYTES..).unwrap_or_default()
    }
}

impl Walk<'_> {
    #[inline]
    fn join(&self, ends: &[End], seen: &mut Seen) {
        for end in ends {
            if end.method.as_ref().is_none_or(|own| covers_method(own, self.method)) {
                seen.join(&end.seen, self.words);
            }
        }
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

/// The segments of a path that are still to come, each with its head.
///
/// One trailing slash is dropped, but never a segment before it: a router takes `//` for `/{x}/`
/// with an empty `x`.
#[derive(Clone, Copy, Debug)]
struct Segments<'a>(Option<&'a [u8]>);

impl<'a> Segments<'a> {
    /// Of one form of a path; `None` where it is no path.
    fn of(form: &'a str) -> Option<Self> {
        let rest = form.as_bytes().strip_prefix(b"/")?;
        Some(Segments((!rest.is_empty()).then(|| rest.strip_suffix(b"/").unwrap_or(rest))))
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = (u64, &'a [u8]);

    /// Looks for the slash in eight octets at once: most segments end there.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0?;
        let word = head(rest);
        let (head, length) = match first_slash(word) {
            Some(length) => (word & !(u64::MAX << (8 * length)), Some(length)),
            None => {
                let later = rest.get(HEAD_BYTES..).unwrap_or_default();
                let slash = later.iter().position(|octet| *octet == b'/');
                (word, slash.map(|slash| HEAD_BYTES + slash))
            }
        };
        let Some((segment, rest)) = length.and_then(|length| rest.split_at_checked(length)) else {
            self.0 = None;
            return Some((head, rest));
        };
        self.0 = rest.get(1..);
        Some((head, segment))
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
