//! The probe: the one trait that crosses every engine.

/// A stage of one pass from bytes in to a decision or bytes out. Every engine has these five.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Stage {
    /// Header, cookie, attributes; keys and digits of a market frame.
    Parse = 0,
    /// Types, lengths, sequence, checksum.
    Validate = 1,
    /// The five-tuple's allocation, the instrument's book, the account's limits.
    LookUp = 2,
    /// The answer's attributes, or the state's change (`apply`).
    Build = 3,
    /// Bytes written out, or state made visible (`publish`).
    Serialize = 4,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Self; 5] = [Self::Parse, Self::Validate, Self::LookUp, Self::Build, Self::Serialize];

    /// The stage's name in reports and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Validate => "validate",
            Self::LookUp => "look_up",
            Self::Build => "build",
            Self::Serialize => "serialize",
        }
    }
}

/// Watches the stages of a pass. An argument of every engine's `handle_*`, never a type parameter of the engine.
pub trait Probe {
    /// A pass begins.
    fn begin(&mut self);
    /// `stage` has ended; the next one begins.
    fn mark(&mut self, stage: Stage);
    /// The pass has ended.
    fn end(&mut self);
}

/// The probe that watches nothing and compiles to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Off;

impl Probe for Off {
    #[inline(always)]
    fn begin(&mut self) {}
    #[inline(always)]
    fn mark(&mut self, _stage: Stage) {}
    #[inline(always)]
    fn end(&mut self) {}
}
