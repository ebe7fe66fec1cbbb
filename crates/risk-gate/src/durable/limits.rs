//! The limits of a gate with a journal: loads, and temporary limits that revert when the system's clock says so.

use anyhow::{Context as _, Result, ensure};
use gate_limits::LimitsFile;
use tt_model::InstrumentId;
use tt_os::clock::WallTime;
use tt_risk::{GateError, Limits};

use super::DurableGate;
use crate::input::{Answer, Input, perform};
use crate::journal::Keeper;

impl<K: Keeper> DurableGate<K> {
    /// Replaces the limits of an account in an instrument; returns the new version of the limits.
    ///
    /// # Errors
    /// Those of [`tt_risk::Gate::set_limits`].
    pub fn set_limits(
        &mut self,
        now_ns: u64,
        account: u16,
        instrument: InstrumentId,
        limits: &Limits,
    ) -> Result<u32, GateError> {
        self.applied(now_ns, &Input::Limits(account, instrument, *limits))?;
        self.publish_limits();
        Ok(self.own.limits_version())
    }

    /// Replaces all limits between two inputs; returns the version, which verdicts name.
    ///
    /// A node may be beyond the new limits: only orders that reduce pass there.
    ///
    /// # Errors
    /// No file has made the gate; the version is not the next one; an instrument has another number or other units; or the
    /// gate has no room. The limits in force stay.
    pub fn load(&mut self, now_ns: u64, limits: LimitsFile) -> Result<u32> {
        let before = self.limits.as_ref().context("no limits file has made the gate")?;
        limits.check_successor(before, &self.gate, self.calendar_ns(now_ns))?;
        let fits = self.journal.as_ref().is_none_or(|journal| journal.takes(limits.text().len()));
        ensure!(fits, "the limits are longer than a segment of the journal");
        self.follow(now_ns);
        self.swap(now_ns, Box::new(limits))?;
        Ok(self.own.limits_version())
    }

    /// Returns the limits file in force.
    #[must_use]
    pub fn limits(&self) -> Option<&LimitsFile> {
        self.limits.as_deref()
    }

    fn swap(&mut self, now_ns: u64, limits: Box<LimitsFile>) -> Result<(), GateError> {
        let calendar_ns = self.calendar_ns(now_ns);
        self.revert_ns = limits.next_revert_ns(calendar_ns);
        let input = Input::Load(limits, (self.wall_ahead_ns != 0).then_some(calendar_ns));
        let answer = perform(&mut self.gate, now_ns, &input);
        self.keep_own_modes();
        // A journal that is lost says so with the next order.
        let _ = self.record(now_ns, &input, &answer);
        self.publish_limits();
        let (Input::Load(limits, _), Answer::Applied(applied)) = (input, answer) else { return Ok(()) };
        self.limits = Some(limits);
        applied
    }

    /// Temporary limits whose time is over revert.
    #[cold]
    pub(super) fn revert(&mut self, now_ns: u64) {
        self.revert_ns = u64::MAX;
        if let Some(limits) = self.limits.take()
            && let Err(error) = self.swap(now_ns, limits)
        {
            tracing::error!(%error, "risk: temporary limits have not reverted: limits are withdrawn");
        }
    }

    /// Returns the time of `now_ns` on the system's clock, as the last [`Input::Wall`] showed it.
    pub(super) const fn calendar_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add_signed(self.wall_ahead_ns)
    }

    /// Notes the system's clock; returns whether it is to be recorded: not from the reserve of a full disk.
    pub(super) fn keep_wall_time(&mut self, now_ns: u64, wall: &WallTime) -> bool {
        let ahead_ns = i128::from(wall.unix_ns) - i128::from(now_ns);
        self.wall_ahead_ns = i64::try_from(ahead_ns).unwrap_or(if ahead_ns < 0 { i64::MIN } else { i64::MAX });
        !self.is_journal_lost()
    }
}
