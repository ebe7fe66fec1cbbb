//! What became of a report.

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// It was applied.
    Applied,
    /// It was applied before; nothing changed.
    Duplicate,
    /// It came after the end of its order; a fill changed the position.
    Late,
    /// More was executed than ordered. The position changed, and the account is in reduce mode.
    Overfill,
    /// The venue has more of the order than was asked for; the gate reserves it.
    Enlarged,
    /// The venue has an order that the gate did not know. It is open now, and the account is in doubt.
    Adopted,
    /// A fill of an unknown order changed the position. The account is in doubt.
    UnknownFill,
    /// It names an unknown order or execution; nothing changed. The account is in doubt if something was executed.
    Unknown,
    /// It contradicts what was applied. An execution changes nothing; an end ends its order. The account is in doubt.
    Conflict,
    /// A table is full; nothing changed. The account is in doubt.
    Full,
    /// A field has a value without a meaning; nothing changed. The account is in doubt.
    Malformed,
    /// It states terms that are, or may be, older than those of the order. What is reserved stays.
    Overtaken,
}

impl Outcome {
    /// Every outcome, with its name.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("applied", Self::Applied),
        ("duplicate", Self::Duplicate),
        ("late", Self::Late),
        ("overfill", Self::Overfill),
        ("enlarged", Self::Enlarged),
        ("adopted", Self::Adopted),
        ("unknown_fill", Self::UnknownFill),
        ("unknown", Self::Unknown),
        ("conflict", Self::Conflict),
        ("full", Self::Full),
        ("malformed", Self::Malformed),
        ("overtaken", Self::Overtaken),
    ];

    /// Returns the name of the outcome.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// Returns whether the report says what the gate expects of its order, now or once before.
    #[must_use]
    pub const fn is_expected(self) -> bool {
        matches!(self, Self::Applied | Self::Duplicate | Self::Late | Self::Overtaken)
    }
}
