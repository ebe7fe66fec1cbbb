//! Cycles between the top-level modules of a crate.
//!
//! The references of a module are its `use` declarations and paths that begin with `crate` or `super`, without what is
//! under `#[cfg(test)]`. A name that the crate's root re-exports counts as a reference to its module.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{self, Token};
use crate::tree::{File, Tree};

/// Modules and the modules of the same crate that they use.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// A crate's folder and one of its cycles, as modules in alphabetical order.
pub(super) fn find(tree: &Tree) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for root in tree.rust() {
        let Some(source) = root.path.strip_suffix("lib.rs").or_else(|| root.path.strip_suffix("main.rs")) else {
            continue;
        };
        if let Some(folder) = source.strip_suffix("/src/") {
            let files: Vec<&File> =
                tree.rust().filter(|file| file.path.starts_with(source) && !file.is_tests()).collect();
            found.extend(cycles(&edges(source, root, &files)).into_iter().map(|cycle| (folder.to_owned(), cycle)));
        }
    }
    found
}

fn edges(source: &str, root: &File, files: &[&File]) -> Edges {
    let root = Module::read(&[], root);
    let names: BTreeSet<&str> = root.modules.iter().map(String::as_str).collect();
    let mut exported = BTreeMap::new();
    for (path, name) in root.paths.iter().filter_map(|path| Some((path, path.name.as_ref()?))) {
        if let Some(module) = path.segments.first().filter(|first| names.contains(first.as_str())) {
            exported.insert(name.as_str(), module.as_str());
        }
    }
    let mut edges = Edges::new();
    for file in files {
        let inner = file.path[source.len()..].trim_end_matches(".rs");
        let place: Vec<&str> = inner.split('/').collect();
        let Some(from) = place.first().filter(|first| names.contains(*first)) else { continue };
        let to = Module::read(&place, file).paths.into_iter().filter_map(|path| {
            let first = path.segments.first()?.as_str();
            names.get(first).copied().or_else(|| exported.get(first).copied()).map(str::to_owned)
        });
        edges.entry((*from).to_owned()).or_default().extend(to.filter(|to| to != from));
    }
    edges
}

/// Sets of modules that reach each other.
fn cycles(edges: &Edges) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|from| (from.as_str(), reached(edges, from))).collect();
    let mut found = BTreeSet::new();
    for (from, to) in &reach {
        let mutual = to.iter().filter(|to| reach.get(*to).is_some_and(|back| back.contains(from)));
        let cycle: Vec<String> = mutual.map(|name| (*name).to_owned()).collect();
        if !cycle.is_empty() {
            found.insert(cycle);
        }
    }
    found.into_iter().collect()
}

fn reached<'a>(edges: &'a Edges, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for to in edges.get(module).into_iter().flatten() {
            if reached.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    reached
}

/// A path of one file, seen from the crate's root.
#[derive(Debug, PartialEq)]
struct RootPath {
    segments: Vec<String>,
    /// The name that a `use` declaration gives it.
    name: Option<String>,
}

/// Declarations and references of one file.
#[derive(Debug, Default)]
struct Module {
    modules: Vec<String>,
    paths: Vec<RootPath>,
}

impl Module {
    /// Reads `file`, whose place in the crate is `place`.
    fn read(place: &[&str], file: &File) -> Self {
        let tokens: Vec<Token> = code::without_tests(code::tokens(file.code()));
        let mut reader = Reader {
            tokens: &tokens,
            at: 0,
            place: place.iter().map(|part| (*part).to_owned()).collect(),
            module: Self::default(),
        };
        reader.read();
        reader.module
    }
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    place: Vec<String>,
    module: Module,
}

impl Reader<'_> {
    fn read(&mut self) {
        // The depth of braces at which each inline module ends.
        let (mut depth, mut inline) = (0_usize, Vec::new());
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match *token {
                Token::Word("use") => self.use_tree(&[]),
                Token::Word("mod") => {
                    let Some(Token::Word(name)) = self.tokens.get(self.at) else { continue };
                    if self.place.is_empty() {
                        self.module.modules.push((*name).to_owned());
                    }
                    if self.tokens.get(self.at + 1) == Some(&Token::Mark('{')) {
                        self.place.push((*name).to_owned());
                        inline.push(depth);
                    }
                }
                Token::Word("crate" | "super") if !self.follows_colons() => {
                    self.at -= 1;
                    let path = self.path();
                    self.refer(&path, None);
                }
                Token::Mark('{') => depth += 1,
                Token::Mark('}') => {
                    depth = depth.saturating_sub(1);
                    if inline.last() == Some(&depth) {
                        inline.pop();
                        self.place.pop();
                    }
                }
                Token::Word(_) | Token::Mark(_) | Token::Colons => {}
            }
        }
    }

    fn follows_colons(&self) -> bool {
        self.at >= 2 && self.tokens[self.at - 2] == Token::Colons
    }

    /// `a::b::c` from the current token on.
    fn path(&mut self) -> Vec<String> {
        let mut path = Vec::new();
        while let Some(Token::Word(word)) = self.tokens.get(self.at) {
            path.push((*word).to_owned());
            self.at += 1;
            if self.tokens.get(self.at) != Some(&Token::Colons) {
                break;
            }
            self.at += 1;
        }
        path
    }

    fn use_tree(&mut self, before: &[String]) {
        let path = [before, &self.path()].concat();
        match self.tokens.get(self.at) {
            Some(Token::Mark('{')) => {
                self.at += 1;
                while let Some(token) = self.tokens.get(self.at) {
                    match token {
                        Token::Mark('}') => {
                            self.at += 1;
                            break;
                        }
                        Token::Mark(',') => self.at += 1,
                        Token::Word(_) | Token::Mark(_) | Token::Colons => self.use_tree(&path),
                    }
                }
            }
            Some(Token::Word("as")) => {
                if let Some(Token::Word(name)) = self.tokens.get(self.at + 1) {
                    self.refer(&path, Some((*name).to_owned()));
                }
                self.at += 2;
            }
            Some(Token::Mark('*')) => {
                self.at += 1;
                self.refer(&path, None);
            }
            _ => {
                let name = path.iter().rev().find(|part| *part != "self").cloned();
                self.refer(&path, name);
                // Never stuck on a token that no path begins with.
                if matches!(self.tokens.get(self.at), Some(Token::Colons)) {
                    self.at += 1;
                }
            }
        }
    }

    /// Notes `path` as seen from the root, if it leads there.
    fn refer(&mut self, path: &[String], name: Option<String>) {
        let mut base = self.place.clone();
        let mut rest = path;
        let mut is_relative = false;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => base.clear(),
                "super" => drop(base.pop()),
                "self" => {}
                _ => break,
            }
            is_relative = true;
            rest = after;
        }
        // In the root itself a plain name may be one of its modules.
        if is_relative || self.place.is_empty() {
            base.extend(rest.iter().cloned());
            if !base.is_empty() {
                self.module.paths.push(RootPath { segments: base, name });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        find(&Tree::of(files))
    }

    const ROOT: (&str, &str) = ("a/src/lib.rs", "mod x;\nmod y;\nmod z;\npub use y::Thing;\n");

    fn cycle(names: &[&str]) -> Vec<(String, Vec<String>)> {
        vec![("a".to_owned(), names.iter().map(|name| (*name).to_owned()).collect())]
    }

    #[test]
    fn finds_cycles_through_declarations_and_paths() {
        let x = ("a/src/x.rs", "use std::fmt;\nuse crate::{fmt, y::{self, Inner}};\n");
        assert_eq!(found(&[ROOT, x, ("a/src/y/deep.rs", "fn f() { crate::x::g() }")]), cycle(&["x", "y"]));
        assert_eq!(found(&[ROOT, x, ("a/src/y/deep.rs", "fn f() { super::super::x::g() }")]), cycle(&["x", "y"]));
        assert_eq!(found(&[ROOT, x, ("a/src/y.rs", "mod inner { use super::super::x; }")]), cycle(&["x", "y"]));
        assert_eq!(
            found(&[ROOT, x, ("a/src/y.rs", "use super::z;"), ("a/src/z.rs", "use super::x::A;")]),
            cycle(&["x", "y", "z"])
        );
    }

    #[test]
    fn a_name_that_the_root_exports_counts_for_its_module() {
        let y = ("a/src/y.rs", "use crate::x;");
        assert_eq!(found(&[ROOT, ("a/src/x.rs", "use crate::Thing;"), y]), cycle(&["x", "y"]));
        assert_eq!(found(&[ROOT, ("a/src/x.rs", "use crate::Other;"), y]), []);
    }

    #[test]
    fn inner_modules_and_tests_are_no_cycle() {
        let y = "mod deep;\nuse self::deep::D;\n#[cfg(test)]\nmod tests {\n use crate::x::A;\n}\nfn f() {}\n";
        let files =
            [ROOT, ("a/src/x.rs", "use crate::y::Thing;"), ("a/src/y.rs", y), ("a/src/y/deep.rs", "use super::D;")];
        assert_eq!(found(&files), []);
        assert_eq!(found(&[ROOT, ("a/src/x.rs", "use crate::y;"), ("a/src/y/tests.rs", "use crate::x;")]), []);
    }
}
