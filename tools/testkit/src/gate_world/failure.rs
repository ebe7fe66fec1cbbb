//! Invariants and their failure messages.

use tt_model::Nanos;

/// A broken invariant.
///
/// 1. Every bit of every verdict, the outcome of every report, every exposure and every mode is the oracle's.
/// 2. What the gate reserves covers what the venue has, except for what no intent asked the venue for; at rest it is equal.
/// 3. Accounts add up to the firm, strategies to their account; when all has ended, nothing is reserved anywhere.
/// 4. An execution moves a position once, and its bust takes it back once.
/// 5. After an acknowledged kill no order in its scope reaches the wire, also after a restart; no kill is acknowledged
///    while a write is under way.
/// 6. A cancel of the strategy's own order passes; an operator's cancel of a scope reaches every open order in it, and no
///    other.
/// 7. Nothing is visible or on the wire without its record, as far as the journal promises; recovery leads to the state of
///    the last record.
/// 8. A number of a producer is judged once; intents in are verdicts out and intents that wait.
/// 9. A verdict is made with the one version of the limits that it names.
/// 10. No window holds more accepted orders than burst and rate allow, on the gate's clock and on the world's.
/// 11. When the faults are over, the accounts reconcile, and an order that reduces a position passes within 1 s.
///
/// Invariant 12, that a seed has one hash everywhere, compares builds: `cargo xtask test worlds`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The invariant's number.
    pub invariant: u8,
    /// When it broke, from the beginning of the run.
    pub at: Nanos,
    /// The failure.
    pub what: String,
}
