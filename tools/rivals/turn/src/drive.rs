//! Closed and open loops over a row's traffic, with everything that comes back accounted for.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::histogram::Histogram;
use crate::traffic::{Fault, Traffic};

/// Setting: nothing arrived for so long, so that what is out is lost.
const SILENCE_NS: u64 = 200_000_000;
/// Datagrams that are remembered; far more than are ever out at once.
const SLOTS: usize = 1 << 17;
/// Arrivals that are read before more is sent.
const READ_MAX: usize = 32;

/// How the generator paces itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// So many are out at any time; latencies are service times.
    Closed { window: usize },
    /// So many leave a second, whatever comes back; latencies count from when each should have left.
    Open { per_second: u64 },
}

/// What a run came to. `sent` is `delivered` plus `lost` plus nothing else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    /// Arrived after it was given up; counted as lost too.
    pub(crate) late: u64,
    pub(crate) reordered: u64,
    pub(crate) corrupt: u64,
    pub(crate) astray: u64,
    /// Sends that the kernel refused; not in `sent`.
    pub(crate) refused: u64,
    /// From the first send to the last arrival.
    pub(crate) elapsed_ns: u64,
    /// From the first send to the last.
    pub(crate) sending_ns: u64,
    pub(crate) latency: Histogram,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    sequence: u64,
    flow: u32,
    is_out: bool,
    since_ns: u64,
}

struct Drive<'a, 'b> {
    traffic: &'a mut Traffic<'b>,
    slots: Vec<Slot>,
    /// The next sequence; 0 is never used.
    next: u64,
    /// Greatest sequence that has arrived, for each flow.
    greatest: Vec<u64>,
    out: u64,
    start: Instant,
    /// When the last one arrived that was waited for.
    arrived_ns: u64,
    /// Since when there is silence: the last arrival, or the last time that all were given up.
    silent_since_ns: u64,
    tally: Tally,
}

/// Drives `traffic` for `duration`, and waits for what is out.
///
/// # Errors
/// The sockets do not work.
pub(crate) fn drive(traffic: &mut Traffic<'_>, pace: Pace, duration: Duration, first: u64) -> anyhow::Result<Tally> {
    let greatest = vec![0; traffic.flows.len()];
    let slots = vec![Slot::default(); SLOTS];
    let (start, tally) = (Instant::now(), Tally::default());
    let mut drive =
        Drive { traffic, slots, next: first, greatest, out: 0, start, arrived_ns: 0, silent_since_ns: 0, tally };
    let end_ns = duration.as_nanos() as u64;
    match pace {
        Pace::Closed { window } => drive.closed(window as u64, end_ns)?,
        Pace::Open { per_second } => drive.open(per_second, end_ns)?,
    }
    drive.drain()?;
    drive.tally.elapsed_ns = drive.arrived_ns.max(1);
    Ok(drive.tally)
}

impl Drive<'_, '_> {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn closed(&mut self, window: u64, end_ns: u64) -> anyhow::Result<()> {
        let train = self.traffic.train as u64;
        loop {
            let now_ns = self.now_ns();
            if now_ns >= end_ns {
                return Ok(());
            }
            while self.out + train <= window {
                self.send(None)?;
            }
            self.read()?;
            self.give_up_when_silent();
        }
    }

    fn open(&mut self, per_second: u64, end_ns: u64) -> anyhow::Result<()> {
        for number in 0.. {
            let due_ns = number * 1_000_000_000 / per_second;
            if due_ns >= end_ns {
                return Ok(());
            }
            while self.now_ns() < due_ns {
                self.read()?;
            }
            self.send(Some(due_ns))?;
        }
        Ok(())
    }

    /// Sends a train; `due_ns` is when it should have left, where that is laid down.
    fn send(&mut self, due_ns: Option<u64>) -> anyhow::Result<()> {
        let first = self.next;
        let flow = self.traffic.flow_of(first);
        let train = self.traffic.train as u64;
        let since_ns = due_ns.unwrap_or_else(|| self.now_ns());
        self.next += train;
        if self.traffic.send(first).is_err() {
            self.tally.refused += train;
            return Ok(());
        }
        for sequence in first..first + train {
            let slot = &mut self.slots[sequence as usize % SLOTS];
            anyhow::ensure!(!slot.is_out, "more is out than can be remembered");
            *slot = Slot { sequence, flow, is_out: true, since_ns };
        }
        self.out += train;
        self.tally.sent += train;
        self.tally.sending_ns = self.now_ns();
        Ok(())
    }

    fn read(&mut self) -> anyhow::Result<()> {
        for _ in 0..READ_MAX {
            let Some(arrival) = self.traffic.receive().context("cannot receive")? else { return Ok(()) };
            let now_ns = self.now_ns();
            match arrival {
                Ok((flow, sequence)) => self.take(flow, sequence, now_ns),
                Err(Fault::Corrupt) => self.tally.corrupt += 1,
                Err(Fault::Astray) => self.tally.astray += 1,
            }
        }
        Ok(())
    }

    fn take(&mut self, flow: u32, sequence: u64, now_ns: u64) {
        let slot = &mut self.slots[sequence as usize % SLOTS];
        if slot.sequence != sequence || slot.flow != flow {
            self.tally.late += 1;
            return;
        }
        if !slot.is_out {
            self.tally.duplicated += 1;
            return;
        }
        slot.is_out = false;
        self.out -= 1;
        self.tally.delivered += 1;
        self.tally.latency.record(now_ns - slot.since_ns);
        (self.arrived_ns, self.silent_since_ns) = (now_ns, now_ns);
        let greatest = &mut self.greatest[flow as usize];
        self.tally.reordered += u64::from(sequence < *greatest);
        *greatest = sequence.max(*greatest);
    }

    fn give_up_when_silent(&mut self) {
        if self.out == 0 || self.now_ns() - self.silent_since_ns < SILENCE_NS {
            return;
        }
        for slot in &mut self.slots {
            if slot.is_out {
                // A sequence that no arrival has, so that whatever still comes is late.
                *slot = Slot::default();
            }
        }
        self.tally.lost += self.out;
        self.out = 0;
        self.silent_since_ns = self.now_ns();
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        while self.out > 0 {
            self.read()?;
            self.give_up_when_silent();
        }
        Ok(())
    }
}
