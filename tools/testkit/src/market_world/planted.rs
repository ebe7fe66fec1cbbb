//! Faults put in on purpose, one for each invariant: they show that each can fail.

/// A fault between the venue, the engine and the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// (1) A level that the venue deleted stays in what the reader is shown.
    WrongLevel,
    /// (2) Stale books are reported as verified.
    HidesStale,
    /// (3) Frames of a closed connection come in under the new one's name.
    MixesEpochs,
    /// (4) Each request for a snapshot is made twice.
    AsksTwice,
    /// (5) Some frames reach the engine and are not counted.
    LosesCount,
    /// (6) No snapshot ever arrives.
    LosesSnapshots,
    /// (7) Some frames are missing on the tape that is played again.
    LosesInput,
    /// (8) Some messages never reach a reader.
    LosesMessages,
    /// (9) The feeds do not learn of a ban.
    IgnoresBan,
}

impl Planted {
    /// Every one, with the number of the invariant that it breaks.
    pub const ALL: [(Self, u8); 9] = [
        (Self::WrongLevel, 1),
        (Self::HidesStale, 2),
        (Self::MixesEpochs, 3),
        (Self::AsksTwice, 4),
        (Self::LosesCount, 5),
        (Self::LosesSnapshots, 6),
        (Self::LosesInput, 7),
        (Self::LosesMessages, 8),
        (Self::IgnoresBan, 9),
    ];
}
