//! How a book was last verified.

use tt_model::Nanos;

/// What verified the book at its last update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Proof {
    /// There is no book yet: a snapshot, or the first delta after it, is awaited.
    #[default]
    Syncing = 0,
    /// The venue's checksum over the best levels fitted.
    Crc = 1,
    /// Each update followed the one before by number.
    Sequence = 2,
    /// As `Sequence`, and the venue's best bid and offer of the same update id fitted.
    Oracle = 3,
    /// The venue offers nothing to verify with.
    Unverified = 4,
    /// The book is known to be incomplete or silent; the levels are the last ones that were proved.
    Stale = 5,
    /// As `Sequence`, and a REST snapshot fitted all levels that it has at the update id of the proof
    /// ([`BookStatus::proof_ids_ago`]).
    Snapshot = 6,
}

impl Proof {
    /// The proof's name in reports, metrics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syncing => "syncing",
            Self::Crc => "crc",
            Self::Sequence => "sequence",
            Self::Oracle => "oracle",
            Self::Unverified => "unverified",
            Self::Stale => "stale",
            Self::Snapshot => "snapshot",
        }
    }

    /// Whether the levels were verified at their last update.
    #[must_use]
    pub const fn is_verified(self) -> bool {
        match self {
            Self::Crc | Self::Sequence | Self::Oracle | Self::Snapshot => true,
            Self::Syncing | Self::Unverified | Self::Stale => false,
        }
    }

    /// Whether the last update itself was verified, so that its time is that of the proof.
    #[inline]
    pub(crate) const fn is_of_last_update(self) -> bool {
        matches!(self, Self::Crc | Self::Sequence | Self::Oracle)
    }

    const fn from_bits(bits: u64) -> Self {
        match bits & 15 {
            1 => Self::Crc,
            2 => Self::Sequence,
            3 => Self::Oracle,
            4 => Self::Unverified,
            5 => Self::Stale,
            6 => Self::Snapshot,
            _ => Self::Syncing,
        }
    }
}

/// A book's status: its proof, at which update, since when, and what is odd about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookStatus {
    /// The proof.
    pub proof: Proof,
    /// Best bid above best offer after a whole frame.
    pub is_crossed: bool,
    /// Best bid equal to best offer after a whole frame.
    pub is_locked: bool,
    /// Far levels were dropped at the level cap.
    pub is_truncated: bool,
    /// The book began with a REST snapshot of limited depth: of levels beyond it only those are known that changed since
    /// ([`Engine::known_range`](crate::Engine::known_range)).
    pub is_limited: bool,
    /// How many update ids ago the last proof was; `None` beyond 2^28 - 2, or where there never was one.
    pub proof_ids_ago: Option<u32>,
    /// How long before `ts_recv` the last proof was, in microseconds; saturates at 2^28 - 1 (268 s).
    pub proof_age_us: u32,
}

const FIELD_MAX: u64 = (1 << 28) - 1;

impl BookStatus {
    /// Where the last proof was made at `proof_id` and `ts_proof`, seen from `update_id` and `ts_recv`.
    #[inline]
    #[must_use]
    pub(crate) fn since(self, last: LastProof, update_id: u64, ts_recv: Nanos) -> Self {
        let ids = update_id.wrapping_sub(last.update_id);
        let us = if ts_recv == last.ts { 0 } else { ts_recv.saturating_sub(last.ts).0 / 1000 };
        let known = last.ts.0 != 0 && ids < FIELD_MAX;
        Self {
            proof_ids_ago: known.then_some(ids as u32),
            proof_age_us: if last.ts.0 == 0 { FIELD_MAX as u32 } else { us.min(FIELD_MAX) as u32 },
            ..self
        }
    }

    /// When the update of the last proof was received, to the microsecond, seen from `ts_recv`; zero if that is unknown or
    /// 268 s ago.
    #[must_use]
    pub fn proof_ts(&self, ts_recv: Nanos) -> Nanos {
        let is_known = u64::from(self.proof_age_us) < FIELD_MAX && self.proof_ids_ago.is_some();
        if is_known { ts_recv.saturating_sub(Nanos(u64::from(self.proof_age_us) * 1000)) } else { Nanos(0) }
    }

    /// The status as one word.
    #[inline]
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.proof as u64
            | u64::from(self.is_crossed) << 4
            | u64::from(self.is_locked) << 5
            | u64::from(self.is_truncated) << 6
            | u64::from(self.is_limited) << 7
            | self.proof_ids_ago.map_or(FIELD_MAX, u64::from) << 8
            | u64::from(self.proof_age_us) << 36
    }

    /// The status of a word.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        let ids = bits >> 8 & FIELD_MAX;
        Self {
            proof: Proof::from_bits(bits),
            is_crossed: bits >> 4 & 1 == 1,
            is_locked: bits >> 5 & 1 == 1,
            is_truncated: bits >> 6 & 1 == 1,
            is_limited: bits >> 7 & 1 == 1,
            proof_ids_ago: (ids != FIELD_MAX).then_some(ids as u32),
            proof_age_us: (bits >> 36) as u32,
        }
    }
}

/// When the book was last proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastProof {
    pub(crate) update_id: u64,
    pub(crate) ts: Nanos,
}
