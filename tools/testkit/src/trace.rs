//! A hash of a run's events: equal for equal seeds on every machine.

use tt_model::Nanos;

use crate::draw::mix;

/// The hash of everything that went in and came out, and the lines of it where somebody wants to read them.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
    pub(crate) events: u64,
}

impl Trace {
    pub(crate) fn new(keeps_lines: bool) -> Self {
        Self { hash: 0, lines: keeps_lines.then(Vec::new), events: 0 }
    }

    pub(crate) fn note(&mut self, now: Nanos, kind: u64, bytes: &[u8]) {
        self.events += 1;
        self.hash = mix(self.hash ^ now.0, kind ^ (bytes.len() as u64) << 32);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.hash = (self.hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9FB2_1C65_1E98_DF25).rotate_left(29);
        }
        for byte in rest {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x9FB2_1C65_1E98_DF25).rotate_left(29);
        }
    }

    /// Keeps a line, if anybody wants it.
    pub(crate) fn say(&mut self, now: Nanos, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>14.6} s  {}", now.0 as f64 / 1e9, line()));
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }
}
