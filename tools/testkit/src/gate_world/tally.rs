//! Totals of runs.

use crate::tally::tally;

tally! {
    /// Virtual milliseconds.
    virtual_ms,
    /// Intents that were judged.
    intents,
    /// Of them accepted.
    accepted,
    /// Reports that the gate was given.
    reports,
    /// Messages on the wire.
    written,
    /// Accepted intents that the sender held back.
    unsent,
    /// Executions at venues.
    executions,
    /// Deaths of the process.
    crashes,
    /// Losses of power.
    power_losses,
    /// Records that were performed again.
    replayed,
    /// Verdicts that the loss of power took.
    lost,
    /// Kills that were acknowledged.
    kills,
    /// Limits that were replaced.
    reloads,
    /// Intents that were answered without a record, since there was no room.
    unrecorded,
    /// Orders refused without room for their records.
    without_journal,
    /// Cancels that were expected to pass, and did.
    cancels,
    /// Orders that an operator's cancel of their scope reached.
    scope_cancelled,
    /// Reconciliations without a difference.
    reconciled,
    /// Accounts that an operator settled at the end.
    adopted,
    /// Positions that an order reduced when the faults were over.
    reduced,
    /// Positions whose reduction a limit of sizes or rates refused.
    excused,
}
