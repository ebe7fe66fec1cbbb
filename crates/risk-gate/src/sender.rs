//! The last check before the wire.

use std::fmt;
use std::sync::Arc;

use tt_model::{IntentFlags, IntentKind, OrderIntent, Report, ReportKind, Verdict};
use tt_os::clock::unix_now;
use tt_risk::{Controls, KillSwitch, Mode};
use tt_sync::barrier::Passer;

/// The sender of accepted intents. Before each write it compares the generation of the switches with that of the verdict:
/// an order that was accepted before a kill does not reach the wire after the kill was acknowledged. Nor does one that has
/// become too old while it waited for the sender.
#[derive(Debug)]
pub struct Sender {
    passer: Passer,
    switches: Arc<Controls>,
}

/// An intent was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// The verdict rejects it, or is on another intent.
    Rejected,
    /// It was killed after its verdict.
    Killed,
    /// Its time to live is over since its verdict, or it has become too old (`EXPIRED`).
    Expired,
    /// The sender did not answer to a kill in time, and is closed.
    Closed,
}

impl NotSent {
    /// Returns the report that frees what the intent reserves, for the gate; `None` if it reserves nothing.
    #[must_use]
    pub fn report(self, intent: &OrderIntent) -> Option<Report> {
        match self {
            Self::Rejected => None,
            Self::Killed | Self::Expired | Self::Closed => Some(unsent(intent)),
        }
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rejected => "the gate has not accepted the intent",
            Self::Killed => "the order was killed after its verdict",
            Self::Expired => "the order has become too old after its verdict",
            Self::Closed => "the sender is closed",
        })
    }
}

impl std::error::Error for NotSent {}

impl Sender {
    /// Creates a sender that passes a barrier, which is raised after each change of `switches`.
    #[must_use]
    pub const fn new(passer: Passer, switches: Arc<Controls>) -> Self {
        Self { passer, switches }
    }

    /// Calls `write` with an accepted intent, unless its order was killed or has expired since the verdict. Cancels are
    /// written always.
    ///
    /// In reduce mode, of the orders with an older verdict those pass that are marked reduce-only. Times are on the clock of
    /// the gate ([`unix_now`]).
    ///
    /// # Errors
    /// [`NotSent`]; `write` was not called.
    pub fn send<R>(
        &mut self,
        intent: &OrderIntent,
        verdict: &Verdict,
        write: impl FnOnce(&OrderIntent) -> R,
    ) -> Result<R, NotSent> {
        self.send_at(unix_now().0, intent, verdict, write)
    }

    /// [`send`](Self::send) at `now_ns` on another clock, which is that of the intent and of the gate: simulated time.
    ///
    /// # Errors
    /// [`NotSent`]; `write` was not called.
    pub fn send_at<R>(
        &mut self,
        now_ns: u64,
        intent: &OrderIntent,
        verdict: &Verdict,
        write: impl FnOnce(&OrderIntent) -> R,
    ) -> Result<R, NotSent> {
        if verdict.accept != 1 || verdict.client_id != intent.client_id {
            return Err(NotSent::Rejected);
        }
        // Until this is dropped, a kill waits.
        let Some(_entry) = self.passer.enter() else { return Err(NotSent::Closed) };
        let is_old = self.switches.generation() != verdict.generation;
        let is_cancel = intent.kind == IntentKind::CANCEL;
        if is_old && !is_cancel && is_stopped(&self.switches, intent) {
            return Err(NotSent::Killed);
        }
        if !is_cancel && self.switches.is_expired(now_ns, intent) {
            return Err(NotSent::Expired);
        }
        Ok(write(intent))
    }
}

impl Sender {
    /// Calls `write` with a cancel of [`Ports::cancels`](crate::Ports::cancels), which needs no verdict.
    ///
    /// # Errors
    /// [`NotSent::Rejected`] if it is no cancel, [`NotSent::Closed`]; `write` was not called.
    pub fn cancel<R>(&mut self, cancel: &OrderIntent, write: impl FnOnce(&OrderIntent) -> R) -> Result<R, NotSent> {
        if cancel.kind != IntentKind::CANCEL {
            return Err(NotSent::Rejected);
        }
        let Some(_entry) = self.passer.enter() else { return Err(NotSent::Closed) };
        Ok(write(cancel))
    }
}

/// Returns whether a switch stops the order.
fn is_stopped(switches: &Controls, intent: &OrderIntent) -> bool {
    let scopes = [
        KillSwitch::Global,
        KillSwitch::Account(intent.account),
        KillSwitch::Strategy(intent.strategy),
        KillSwitch::Instrument(intent.instrument),
    ];
    match scopes.into_iter().map(|switch| switches.mode(switch)).max().unwrap_or_default() {
        Mode::Active => false,
        Mode::Reduce => !intent.flags.contains(IntentFlags::REDUCE_ONLY),
        Mode::Kill => true,
    }
}

/// Returns the report that takes an intent back. A replace that was not sent leaves its order as it was.
pub(crate) fn unsent(intent: &OrderIntent) -> Report {
    let kind = match intent.kind {
        IntentKind::REPLACE => ReportKind::REPLACE_REJECTED,
        IntentKind::CANCEL => ReportKind::CANCEL_REJECTED,
        _ => ReportKind::UNSENT,
    };
    let OrderIntent { side, account, instrument, client_id, .. } = *intent;
    Report { kind, side, account, instrument, client_id, ..Report::default() }
}

#[cfg(test)]
mod tests;
