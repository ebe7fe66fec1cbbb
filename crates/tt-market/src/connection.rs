//! Connections and their epochs.

use crate::continuity::Continuity;
use alloc::vec::Vec;
use tt_model::Nanos;
use tt_venue::Venue;

/// One opened connection. It is never given out again, so that what still arrives from a closed one is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    slot: u16,
    venue: Venue,
    epoch: u32,
}

impl ConnectionId {
    /// Where the connection leads.
    #[must_use]
    pub const fn venue(self) -> Venue {
        self.venue
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    epoch: u32,
    open: Option<Venue>,
    ts_last: Nanos,
    /// The number of the next message, where the venue numbers them.
    next_message: Option<u64>,
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    slots: Vec<Slot>,
}

impl Connections {
    pub(crate) fn new(connections: usize) -> Self {
        let len = connections.min(usize::from(u16::MAX));
        Self { slots: alloc::vec![Slot { epoch: 0, open: None, ts_last: Nanos(0), next_message: None }; len] }
    }

    pub(crate) fn open(&mut self, venue: Venue, now: Nanos) -> Option<ConnectionId> {
        let slot = self.slots.iter().position(|slot| slot.open.is_none())?;
        let state = &mut self.slots[slot];
        state.epoch = state.epoch.wrapping_add(1);
        state.open = Some(venue);
        state.ts_last = now;
        state.next_message = None;
        Some(ConnectionId { slot: slot as u16, venue, epoch: state.epoch })
    }

    /// Whether the connection is open; notes that it showed life at `now`.
    #[inline]
    pub(crate) fn touch(&mut self, id: ConnectionId, now: Nanos) -> bool {
        match self.slots.get_mut(usize::from(id.slot)) {
            Some(slot) if slot.epoch == id.epoch && slot.open.is_some() => {
                slot.ts_last = now;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Order of message `number` of an open connection relative to the one before it.
    pub(crate) fn follow(&mut self, id: ConnectionId, number: u64) -> Continuity {
        let Some(slot) = self.slots.get_mut(usize::from(id.slot)) else { return Continuity::Next };
        let continuity = match slot.next_message {
            Some(next) if number < next => return Continuity::Duplicate,
            Some(next) if number > next => Continuity::Gap,
            Some(_) | None => Continuity::Next,
        };
        slot.next_message = Some(number.saturating_add(1));
        continuity
    }

    pub(crate) fn is_open(&self, id: ConnectionId) -> bool {
        self.slots.get(usize::from(id.slot)).is_some_and(|slot| slot.epoch == id.epoch && slot.open.is_some())
    }

    pub(crate) fn close(&mut self, id: ConnectionId) -> bool {
        let open = self.is_open(id);
        if open {
            self.slots[usize::from(id.slot)].open = None;
        }
        open
    }

    /// The first open connection that has shown no life for longer than its venue allows.
    pub(crate) fn silent(&self, now: Nanos) -> Option<ConnectionId> {
        self.slots.iter().enumerate().find_map(|(index, slot)| {
            let venue = slot.open?;
            let silent = now.saturating_sub(slot.ts_last) > venue.rules().silence_max;
            silent.then_some(ConnectionId { slot: index as u16, venue, epoch: slot.epoch })
        })
    }
}
