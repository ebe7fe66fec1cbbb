//! What a slot's sequence says: which event begins a batch there, and how many are published with it.
//!
//! The low 58 bits are those of the first event's position. The others are those of the position too, with the count less
//! one flipped into them, so that the sequence of a batch of one is the position. A sequence is taken for that of a later
//! lap only if no batch begins at its slot for 2^58 events: that is 30 years at 300 million events a second.

/// Most events that one sequence publishes.
pub(super) const BATCH_MAX: usize = 1 << (u64::BITS - POSITION_BITS);

const POSITION_BITS: u32 = 58;

/// Returns the sequence that publishes `count` events from `position` on, at least one and at most [`BATCH_MAX`].
#[inline(always)]
pub(super) const fn publishing(position: u64, count: usize) -> u64 {
    position ^ ((count as u64 - 1) << POSITION_BITS)
}

/// Returns how many events from `position` on are published by the `sequence` of its slot, in a ring of `capacity` slots;
/// `None` if none is, or more than there are slots, which a faulty producer in another process could say.
#[inline(always)]
pub(super) const fn published(sequence: u64, position: u64, capacity: usize) -> Option<u64> {
    let count_max = if capacity < BATCH_MAX { capacity } else { BATCH_MAX };
    // The bits of the count come first, and those of the position make it too large where they differ.
    let more = (sequence ^ position).rotate_left(u64::BITS - POSITION_BITS);
    if more < count_max as u64 { Some(more + 1) } else { None }
}

/// Returns whether a ring of `capacity` slots can have `sequence` in the slot of `position`, the next one to be read.
pub(super) const fn is_possible(sequence: u64, position: u64, capacity: usize) -> bool {
    let behind = position.wrapping_sub(sequence) << (u64::BITS - POSITION_BITS);
    let laps = behind >> (u64::BITS - POSITION_BITS);
    // Of an earlier lap, which is not half of all positions ago.
    let is_old = laps & (capacity as u64 - 1) == 0 && behind.cast_signed() > 0;
    is_old || published(sequence, position, capacity).is_some()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sequence_publishes_its_batch_and_no_other(position: u64, count in 1..=BATCH_MAX, other: u64, lap in 1_u64..64) {
            let sequence = publishing(position, count);
            prop_assert_eq!(published(sequence, position, 1 << 20), Some(count as u64));
            prop_assert_eq!(published(sequence, position, 8), Some(count as u64).filter(|count| *count <= 8));
            prop_assert_eq!(publishing(position, 1), position);
            prop_assume!(other << 6 != position << 6);
            prop_assert_eq!(published(sequence, other, 1 << 20), None);
            let later = position.wrapping_add(lap * 64);
            prop_assert!(is_possible(sequence, position, 64) && is_possible(sequence, later, 64));
            prop_assert!(!is_possible(sequence, later.wrapping_add(1), 64));
            prop_assert!(!is_possible(publishing(later, count), position, 64));
            prop_assert_eq!(is_possible(sequence, position, 8), count <= 8);
        }
    }
}
