//! Invariants and their failure messages.

use tt_model::Nanos;

/// A broken invariant.
///
/// 1. A book that is published as verified equals the venue's book at that sequence, in its best ten levels.
/// 2. Otherwise its state says so within one message: after a lost, swapped or cut frame no reader sees it verified.
/// 3. Two epochs never mix: a frame of a closed connection changes nothing.
/// 4. Requests for snapshots stay in budget: one for each book that was lost, and never two under way.
/// 5. Everything is counted: frames in = applied + named drops, and each gap that the faults made is among the gaps.
/// 6. When the faults stop, every book is verified and true within the venue's silence limit and a minute.
/// 7. The same inputs, played to another engine, lead to the same published state (each fourth seed).
/// 8. A reader of the streams gets every message once and in order, or a mark of what it lost and a snapshot; its book is
///    the engine's at that update. What is lost is counted.
/// 9. The feeds of an address stay within what the venue allows it, wait for the end of a ban, and get each snapshot as
///    soon as the budget explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The invariant's number.
    pub invariant: u8,
    /// When it broke, from the beginning of the run.
    pub at: Nanos,
    /// The failure.
    pub what: String,
}
