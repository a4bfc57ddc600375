//! Which rules a request matches: all patterns of a file in one tree.

use http::Method;

use crate::{
    Pattern, RequestPath,
    pattern::{Segment, Segments, covers_method, segments_of},
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

    /// The positions of the rules, rising.
    pub fn rules(&self) -> impl Iterator<Item = usize> + use<> {
        let words = self.bits.0.into_iter().enumerate();
        words.flat_map(|(index, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(index * 64 + bit)
            })
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

    fn join(&mut self, other: &Bits) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
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
    fn join(&mut self, other: &Seen) {
        self.matched.join(&other.matched);
        self.except.join(&other.except);
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
}

/// A node of the tree, by the segments that lead to it.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Sorted by (head, text).
    literals: Vec<Literal>,
    /// Where `{name}` leads.
    param: Option<usize>,
    /// Patterns that end here.
    ends: Ends,
    /// Patterns whose `{*rest}` begins here.
    rests: Ends,
}

/// What patterns that end at one node mean, by their methods.
type Ends = Vec<(Option<Method>, Seen)>;

/// Where a segment's text leads.
#[derive(Clone, Debug)]
struct Literal {
    head: u64,
    text: Box<str>,
    node: usize,
}

impl Matcher {
    /// `exempt` are the patterns of `[exempt]`; `rules` are (match, except) of each rule in order,
    /// at most [`RULES_MAX`].
    pub(crate) fn new<'p>(
        exempt: &[Pattern],
        rules: impl Iterator<Item = (Option<&'p [Pattern]>, &'p [Pattern])>,
    ) -> Self {
        let mut matcher = Matcher { nodes: vec![Node::default()], always: Bits::default() };
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
    pub(crate) fn matching(&self, method: Option<&Method>, path: &RequestPath<'_>) -> Matched {
        let mut seen = self.seen(method, path.raw());
        if !path.is_normal() {
            let normal = self.seen(method, path.normal());
            seen.matched.join(&normal.matched);
            for (word, other) in seen.except.0.iter_mut().zip(normal.except.0) {
                *word &= other;
            }
            seen.exempt &= normal.exempt;
        }
        if seen.exempt {
            return Matched { bits: Bits::default(), exempt: true };
        }
        let mut bits = self.always;
        bits.join(&seen.matched);
        for (word, except) in bits.0.iter_mut().zip(seen.except.0) {
            *word &= !except;
        }
        Matched { bits, exempt: false }
    }

    fn seen(&self, method: Option<&Method>, form: &str) -> Seen {
        let mut seen = Seen::default();
        if let (Some(root), Some(segments)) = (self.nodes.first(), segments_of(form)) {
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
            join_covering(&node.rests, method, seen);
            let Some(segment) = segments.next() else {
                return join_covering(&node.ends, method, seen);
            };
            let literal = node.literal(segment);
            node = match (literal, node.param) {
                (None, None) => return,
                (Some(next), None) | (None, Some(next)) => &self.nodes[next],
                (Some(literal), Some(param)) => {
                    self.walk(&self.nodes[literal], segments, method, seen);
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
                    Segment::Literal(text) => self.literal_child(at, text),
                    Segment::Param(_) => self.param_child(at),
                    Segment::Rest(_) => {
                        rest = true;
                        at
                    }
                };
            }
            let node = &mut self.nodes[at];
            let ends = if rest { &mut node.rests } else { &mut node.ends };
            let place = ends.iter().position(|(method, _)| *method == pattern.method);
            let place = place.unwrap_or_else(|| {
                ends.push((pattern.method.clone(), Seen::default()));
                ends.len() - 1
            });
            mark(&mut ends[place].1);
        }
    }

    fn literal_child(&mut self, at: usize, text: &str) -> usize {
        match self.nodes[at].place(text) {
            Ok(place) => self.nodes[at].literals[place].node,
            Err(place) => {
                let node = self.nodes.len();
                let literal = Literal { head: head(text), text: text.into(), node };
                self.nodes[at].literals.insert(place, literal);
                self.nodes.push(Node::default());
                node
            }
        }
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
    fn literal(&self, segment: &str) -> Option<usize> {
        self.place(segment).ok().map(|place| self.literals[place].node)
    }

    /// Where the literal stands, or where it would.
    fn place(&self, text: &str) -> Result<usize, usize> {
        if self.literals.is_empty() {
            return Err(0);
        }
        let head = head(text);
        self.literals.binary_search_by(|own| (own.head, &*own.text).cmp(&(head, text)))
    }
}

fn join_covering(ends: &Ends, method: Option<&Method>, seen: &mut Seen) {
    for (own, end) in ends {
        if own.as_ref().is_none_or(|own| covers_method(own, method)) {
            seen.join(end);
        }
    }
}

/// A text's first eight bytes as a number, zeros after its end: almost always enough to tell a
/// node's literals apart, in one comparison each.
fn head(text: &str) -> u64 {
    let mut head = [0; 8];
    let length = text.len().min(8);
    head[..length].copy_from_slice(&text.as_bytes()[..length]);
    u64::from_be_bytes(head)
}
