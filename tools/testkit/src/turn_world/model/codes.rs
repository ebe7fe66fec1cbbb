//! Sets of response codes.

use super::Proven;

/// The codes that an answer may have, 0 for success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::turn_world) struct Codes {
    pub(in crate::turn_world) codes: [u16; 8],
    pub(in crate::turn_world) len: usize,
    /// No answer is right too: a budget may be spent.
    pub(in crate::turn_world) or_silence: bool,
    /// Whether the request proved who sent it.
    pub(in crate::turn_world) user: Option<Proven>,
    /// A refusal is one more guess at a token, which costs budget.
    pub(in crate::turn_world) is_guess: bool,
}

impl Codes {
    pub(in crate::turn_world) fn one(code: u16) -> Self {
        Self::default().and(code)
    }

    pub(in crate::turn_world) fn and(mut self, code: u16) -> Self {
        if !self.allow(code) && self.len < self.codes.len() {
            self.codes[self.len] = code;
            self.len += 1;
        }
        self
    }

    pub(in crate::turn_world) fn and_all(self, other: &Self) -> Self {
        let all = other.list().iter().fold(self, |codes, code| codes.and(*code));
        Self { or_silence: all.or_silence || other.or_silence, is_guess: all.is_guess || other.is_guess, ..all }
    }

    pub(in crate::turn_world) fn allow(&self, code: u16) -> bool {
        self.list().contains(&code)
    }

    pub(in crate::turn_world) fn list(&self) -> &[u16] {
        &self.codes[..self.len]
    }
}
