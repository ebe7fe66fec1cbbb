//! YAML as a tree in which every key has its line.

use saphyr_parser::{Event, Parser};

/// The deepest nesting; eturnal needs four levels.
const DEPTH_MAX: usize = 16;
/// The most nodes of a file.
const NODES_MAX: usize = 100_000;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Text, a number or a switch.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their lines and values, in order.
    Map(Vec<(String, usize, Node)>),
}

impl Node {
    /// Returns the text of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(text) => Some(text),
            Self::List(_) | Self::Map(_) => None,
        }
    }

    /// Returns the values of a list, or the value itself.
    pub(crate) fn values(&self) -> &[Self] {
        match self {
            Self::List(values) => values,
            Self::Scalar(_) | Self::Map(_) => std::slice::from_ref(self),
        }
    }

    /// Returns the entries of a map; none of anything else.
    pub(crate) fn entries(&self) -> &[(String, usize, Self)] {
        match self {
            Self::Map(entries) => entries,
            Self::Scalar(_) | Self::List(_) => &[],
        }
    }
}

/// A list or a map that is being read.
enum Open {
    List(Vec<Node>),
    Map(Vec<(String, usize, Node)>, Option<(String, usize)>),
}

/// Reads the first document of `text`; an empty one is an empty map.
///
/// # Errors
/// The text is not YAML, has an alias, a key that is no scalar, or more than 16 levels; the error names the line.
pub(crate) fn read(text: &str) -> Result<Node, String> {
    let mut open: Vec<Open> = Vec::new();
    let mut nodes = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| format!("line {}: {}", error.marker().line(), error.info()))?;
        let line = span.start.line();
        nodes += 1;
        if open.len() > DEPTH_MAX || nodes > NODES_MAX {
            return Err(format!("line {line}: too large or nested too deeply"));
        }
        let done = match event {
            Event::Scalar(text, ..) => Some(Node::Scalar(text.into_owned())),
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                None
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(Vec::new(), None));
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(Open::close),
            Event::Alias(_) => return Err(format!("line {line}: aliases are not read: repeat the value")),
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => None,
        };
        let Some(node) = done else { continue };
        match open.last_mut() {
            Some(parent) => parent.add(node, line)?,
            None => return Ok(node),
        }
    }
    Ok(Node::Map(Vec::new()))
}

impl Open {
    fn close(self) -> Node {
        match self {
            Self::List(values) => Node::List(values),
            Self::Map(entries, _) => Node::Map(entries),
        }
    }

    fn add(&mut self, node: Node, line: usize) -> Result<(), String> {
        match self {
            Self::List(values) => values.push(node),
            Self::Map(entries, key) => match (key.take(), node) {
                (Some((name, line)), node) => {
                    if entries.iter().any(|(other, ..)| *other == name) {
                        return Err(format!("line {line}: a key is repeated"));
                    }
                    entries.push((name, line, node));
                }
                (None, Node::Scalar(name)) => *key = Some((name, line)),
                (None, Node::List(_) | Node::Map(_)) => return Err(format!("line {line}: a key is no text")),
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_line_of_each_key() {
        let node =
            read("eturnal:\n  secret: \"a b\" # why\n  listen:\n    -\n      ip: \"::\"\n      port: 3478\n").unwrap();
        let (name, line, inner) = &node.entries()[0];
        assert_eq!((name.as_str(), *line), ("eturnal", 1));
        let keys: Vec<_> = inner.entries().iter().map(|(name, line, _)| (name.as_str(), *line)).collect();
        assert_eq!(keys, [("secret", 2), ("listen", 3)]);
        assert_eq!(inner.entries()[0].2.text(), Some("a b"));
        assert_eq!(inner.entries()[1].2.values()[0].entries()[1].2.text(), Some("3478"));
    }

    #[test]
    fn rejects_what_it_does_not_read() {
        for (text, error) in [
            ("a: &x 1\nb: *x\n", "line 2: aliases"),
            ("a: 1\na: 2\n", "line 2: a key is repeated"),
            ("[a]: 1\n", "line 1: a key is no text"),
            (&"[".repeat(64), "line 1: "),
            ("a: [\n", "line "),
        ] {
            let read = read(text).unwrap_err();
            assert!(read.starts_with(error), "{read}");
        }
        assert_eq!(read("# nothing\n"), Ok(Node::Map(Vec::new())));
    }
}
