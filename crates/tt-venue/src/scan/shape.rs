//! Objects of many members in one pass: the keys that a venue sends, in its order, lead to raw values.
//!
//! What a message means is read from a [`Shape`] by the same functions that read it from an
//! [`Object`](crate::json::Object). A key that is not expected, or comes twice, leaves the frame to the general path;
//! one that comes at another place than usual costs a search.

use super::Cursor;
use crate::fields::Keyed;
use crate::json;
use core::cell::Cell;

/// Names lists of keys.
macro_rules! keys {
    ($($name:ident: $($key:literal)+;)+) => {
        $(const $name: &[&[u8]; [$($key),+].len()] = &[$($key.as_bytes()),+];)+
    };
}
pub(crate) use keys;

/// The raw values of an object's members, in the order in which its keys are expected; empty for one that is absent.
pub(crate) struct Shape<'a, const N: usize> {
    keys: &'static [&'static [u8]; N],
    values: [&'a [u8]; N],
    /// After the key that was found last: they are mostly asked for in order.
    next: Cell<usize>,
}

impl<const N: usize> Keyed for Shape<'_, N> {
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let next = self.next.get();
        let at = (next..N).chain(0..next).find(|at| self.keys[*at] == key)?;
        self.next.set(at + 1);
        Some(self.values[at]).filter(|value| !value.is_empty())
    }
}

impl<'a> Cursor<'a> {
    /// Passes an object whose keys are among `keys`, each at most once.
    pub(crate) fn object<const N: usize>(&mut self, keys: &'static [&'static [u8]; N]) -> Option<Shape<'a, N>> {
        self.literal(b"{")?;
        if self.passes(b"}") {
            return Some(Shape { keys, values: [&[]; N], next: Cell::new(0) });
        }
        self.members(keys)
    }

    /// Passes what follows an object's opening bracket, or the comma after its first members.
    pub(crate) fn members<const N: usize>(&mut self, keys: &'static [&'static [u8]; N]) -> Option<Shape<'a, N>> {
        let mut shape = Shape { keys, values: [&[]; N], next: Cell::new(0) };
        self.member(&mut shape)?;
        self.tail(&mut shape)?;
        Some(shape)
    }

    /// As `members`, up to the value of the key `stop`; [`tail`](Self::tail) passes the rest.
    pub(crate) fn head<const N: usize>(
        &mut self,
        keys: &'static [&'static [u8]; N],
        stop: &[u8],
    ) -> Option<Shape<'a, N>> {
        let mut shape = Shape { keys, values: [&[]; N], next: Cell::new(0) };
        while !self.passes_key(stop) {
            self.member(&mut shape)?;
            self.literal(b",")?;
        }
        Some(shape)
    }

    /// Passes the other members of an object and its end.
    pub(crate) fn tail<const N: usize>(&mut self, shape: &mut Shape<'a, N>) -> Option<()> {
        while self.passes(b",") {
            self.member(shape)?;
        }
        shape.next.set(0);
        self.literal(b"}")
    }

    fn member<const N: usize>(&mut self, shape: &mut Shape<'a, N>) -> Option<()> {
        let next = shape.next.get();
        let at = (next..N).chain(0..next).find(|at| self.passes_key(shape.keys[*at]))?;
        shape.next.set(at + 1);
        if !shape.values[at].is_empty() {
            return None;
        }
        shape.values[at] = self.raw()?;
        Some(())
    }

    fn passes_key(&mut self, key: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(b"\"").and_then(|rest| rest.strip_prefix(key));
        let Some(rest) = rest.and_then(|rest| rest.strip_prefix(b"\":")) else { return false };
        self.rest = rest;
        true
    }

    /// Passes a value: a plain text with its quotes, a number, a word, or anything nested.
    pub(crate) fn raw(&mut self) -> Option<&'a [u8]> {
        let start = self.rest;
        match start.first()? {
            b'"' => {
                self.skip(1)?;
                self.text()?;
            }
            b'-' | b'0'..=b'9' | b'{' | b'[' | b't' | b'f' | b'n' => self.skip(json::value_len(start)?)?,
            _ => return None,
        }
        let raw = &start[..start.len() - self.rest.len()];
        raw.is_ascii().then_some(raw)
    }

    /// Passes a list, calling `each` with the cursor before each of its elements.
    pub(crate) fn list(&mut self, mut each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.literal(b"[")?;
        if self.passes(b"]") {
            return Some(());
        }
        loop {
            each(self)?;
            if !self.passes(b",") {
                return self.literal(b"]");
            }
        }
    }
}
