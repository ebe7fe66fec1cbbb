//! The slots of the table `hops`: their users, their state, and what the kernel's table holds.

use std::collections::HashMap;

use tt_model::Nanos;

use super::judge::Target;
use super::refusal::Refusal;
use crate::writer::{HOPS, NextHop};

/// Time that a slot without users rests. A packet that the program looked up before its path was closed has left long
/// before.
pub(crate) const REST: Nanos = Nanos::from_millis(1_000);

/// A slot that has been allotted.
#[derive(Debug)]
struct Slot {
    target: Target,
    users: u32,
    /// Pairs whose route is not verified, or has changed.
    doubts: u32,
    state: Result<NextHop, Refusal>,
    /// What the kernel's table holds.
    written: Option<NextHop>,
    /// The last value that [`Slots::next_change`] returned.
    reported: Result<NextHop, Refusal>,
    is_dirty: bool,
    /// When the last user went; `None` while there is one.
    rests_since: Option<Nanos>,
}

impl Slot {
    fn wanted(&self) -> Result<NextHop, Refusal> {
        if self.users == 0 || self.doubts > 0 { Err(Refusal::Changing) } else { self.state }
    }
}

/// The slots of all next hops.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    by_target: HashMap<Target, u16>,
}

impl Slots {
    /// Allots a slot to a target, or adds a user to the one that it has. The state of a new slot is `state`.
    pub(crate) fn acquire(
        &mut self,
        target: Target,
        now: Nanos,
        state: impl FnOnce() -> Result<NextHop, Refusal>,
    ) -> Result<u16, Refusal> {
        if let Some(index) = self.by_target.get(&target) {
            let slot = &mut self.slots[usize::from(*index)];
            if slot.users == 0 {
                slot.state = state();
            }
            slot.users += 1;
            slot.rests_since = None;
            return Ok(*index);
        }
        let at = self.free_slot(now)?;
        let state = state();
        let written = self.slots.get(at).and_then(|slot| slot.written);
        let slot = Slot {
            target,
            users: 1,
            doubts: 0,
            state,
            written,
            reported: Err(Refusal::Changing),
            is_dirty: false,
            rests_since: None,
        };
        if at == self.slots.len() {
            self.slots.push(slot);
        } else {
            self.by_target.remove(&self.slots[at].target);
            self.slots[at] = slot;
        }
        let index = u16::try_from(at).map_err(|_| Refusal::HopsFull)?;
        self.by_target.insert(target, index);
        Ok(index)
    }

    /// A slot that was never used, or the one that has rested longest.
    fn free_slot(&self, now: Nanos) -> Result<usize, Refusal> {
        if self.slots.len() < HOPS as usize {
            return Ok(self.slots.len());
        }
        let rested = |slot: &Slot| slot.rests_since.filter(|since| now.saturating_sub(*since) >= REST);
        let oldest = self.slots.iter().enumerate().filter_map(|(at, slot)| Some((rested(slot)?, at))).min();
        oldest.map(|(_, at)| at).ok_or(Refusal::HopsFull)
    }

    /// Takes a user away.
    pub(crate) fn release(&mut self, index: u16, now: Nanos) {
        let slot = &mut self.slots[usize::from(index)];
        slot.users = slot.users.saturating_sub(1);
        if slot.users == 0 {
            slot.rests_since = Some(now);
        }
    }

    /// Makes a slot unusable until [`Slots::trust`].
    pub(crate) fn doubt(&mut self, index: u16) {
        self.slots[usize::from(index)].doubts += 1;
    }

    pub(crate) fn trust(&mut self, index: u16) {
        let slot = &mut self.slots[usize::from(index)];
        slot.doubts = slot.doubts.saturating_sub(1);
    }

    pub(crate) fn target(&self, index: u16) -> Target {
        self.slots[usize::from(index)].target
    }

    /// The value of a slot in the kernel's table, or why there is none.
    pub(crate) fn value(&self, index: u16) -> Result<NextHop, Refusal> {
        self.slots[usize::from(index)].wanted()
    }

    /// Marks the slots in use whose neighbour or interface may have changed.
    pub(crate) fn mark(&mut self, is_concerned: impl Fn(&Target) -> bool) {
        for slot in &mut self.slots {
            slot.is_dirty |= slot.users > 0 && is_concerned(&slot.target);
        }
    }

    pub(crate) fn in_use(&self) -> Vec<u16> {
        (0..).zip(&self.slots).filter(|(_, slot)| slot.users > 0).map(|(index, _)| index).collect()
    }

    /// Returns a marked slot, and takes its mark away.
    pub(crate) fn next_dirty(&mut self) -> Option<(u16, Target)> {
        let (index, slot) = (0..).zip(&mut self.slots).find(|(_, slot)| slot.is_dirty)?;
        slot.is_dirty = false;
        Some((index, slot.target))
    }

    pub(crate) fn set_state(&mut self, index: u16, state: Result<NextHop, Refusal>) {
        self.slots[usize::from(index)].state = state;
    }

    /// Returns a slot whose value in the kernel's table must go because its neighbour or interface failed.
    pub(crate) fn next_failed(&self) -> Option<u16> {
        let is_failed = |slot: &Slot| slot.written.is_some() && slot.state.is_err();
        (0..).zip(&self.slots).find(|(_, slot)| is_failed(slot)).map(|(index, _)| index)
    }

    /// Returns the next value to be written, after which [`Slots::written`] is called. A value is never replaced by
    /// another without an invalid one between them: the program may read while the kernel copies.
    pub(crate) fn next_write(&self) -> Option<(u16, Option<NextHop>)> {
        (0..).zip(&self.slots).find_map(|(index, slot)| {
            let wanted = slot.wanted().ok();
            let value = if slot.written.is_some() { None } else { wanted };
            (slot.written != wanted).then_some((index, value))
        })
    }

    pub(crate) fn written(&mut self, index: u16, value: Option<NextHop>) {
        self.slots[usize::from(index)].written = value;
    }

    /// Returns a slot in use whose value differs from the last one returned.
    pub(crate) fn next_change(&mut self) -> Option<u16> {
        let is_changed = |slot: &Slot| slot.users > 0 && slot.reported != slot.wanted();
        let (index, slot) = (0..).zip(&mut self.slots).find(|(_, slot)| is_changed(slot))?;
        slot.reported = slot.wanted();
        Some(index)
    }

    /// Notes that the caller knows the value of a slot.
    pub(crate) fn known(&mut self, index: u16) {
        let slot = &mut self.slots[usize::from(index)];
        slot.reported = slot.wanted();
    }
}

#[cfg(test)]
mod tests;
