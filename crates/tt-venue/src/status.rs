//! Whether an instrument is traded: the venues' words for it.

/// Whether an instrument is traded, by its venue's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstrumentStatus {
    /// Orders are matched.
    Trading,
    /// Orders may be cancelled, and nothing else.
    CancelOnly,
    /// Orders that take nothing may be placed.
    PostOnly,
    /// Trading is interrupted for seconds, while positions are settled.
    Settling,
    /// Trading is interrupted.
    Halted,
    /// Trading has not begun.
    Pending,
    /// Trading has ended.
    Closed,
    /// The list does not say, or in a word that is not known.
    #[default]
    Unknown,
}

/// The venues' words, without regard to case.
const STATUSES: [(&str, InstrumentStatus); 33] = [
    ("trading", InstrumentStatus::Trading),
    ("live", InstrumentStatus::Trading),
    ("online", InstrumentStatus::Trading),
    ("open", InstrumentStatus::Trading),
    ("limit_only", InstrumentStatus::Trading),
    ("reduce_only", InstrumentStatus::Trading),
    ("cancel_only", InstrumentStatus::CancelOnly),
    ("post_only", InstrumentStatus::PostOnly),
    ("halt", InstrumentStatus::Halted),
    ("break", InstrumentStatus::Halted),
    ("trading_halt", InstrumentStatus::Halted),
    ("suspend", InstrumentStatus::Halted),
    ("maintenance", InstrumentStatus::Halted),
    ("halted", InstrumentStatus::Halted),
    ("locked", InstrumentStatus::Halted),
    ("work_in_progress", InstrumentStatus::Halted),
    ("preopen", InstrumentStatus::Pending),
    ("pre_trading", InstrumentStatus::Pending),
    ("pending_trading", InstrumentStatus::Pending),
    ("prelaunch", InstrumentStatus::Pending),
    ("pre_delivering", InstrumentStatus::Closed),
    ("delivering", InstrumentStatus::Closed),
    ("delivered", InstrumentStatus::Closed),
    ("pre_settle", InstrumentStatus::Closed),
    ("settling", InstrumentStatus::Closed),
    ("settlement", InstrumentStatus::Settling),
    ("close", InstrumentStatus::Closed),
    ("closed", InstrumentStatus::Closed),
    ("delisted", InstrumentStatus::Closed),
    ("expired", InstrumentStatus::Closed),
    ("inactive", InstrumentStatus::Closed),
    ("archivized", InstrumentStatus::Closed),
    ("post_trading", InstrumentStatus::Closed),
];

impl InstrumentStatus {
    /// The status's name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trading => "trading",
            Self::CancelOnly => "cancel_only",
            Self::PostOnly => "post_only",
            Self::Settling => "settling",
            Self::Halted => "halted",
            Self::Pending => "pending",
            Self::Closed => "closed",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the status of a venue's word.
    pub(crate) fn of(word: Option<&str>) -> Self {
        let known = |word: &str| STATUSES.iter().find(|known| known.0.eq_ignore_ascii_case(word));
        word.and_then(known).map_or(Self::Unknown, |known| known.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_in_any_case() {
        for (word, status) in STATUSES {
            assert_eq!(InstrumentStatus::of(Some(&word.to_ascii_uppercase())), status);
        }
        assert_eq!([None, Some("strange")].map(InstrumentStatus::of), [InstrumentStatus::Unknown; 2]);
    }
}
