//! Parts of the design and the code that implements them.

use serde::Serialize;

/// An item of this repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The file, from the root of the repository.
    pub path: &'static str,
    /// `ring`, `Price`, `Producer::push`: a type, a function, or one of a type's functions or constants.
    pub item: &'static str,
}

/// One row of the implementation map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// `cache-line alignment`.
    pub name: &'static str,
    /// What the code does for it.
    pub what: &'static str,
    /// The code that does it.
    pub sources: &'static [Source],
}
