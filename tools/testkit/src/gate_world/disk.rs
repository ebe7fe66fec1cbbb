//! A disk in virtual time: pages that a loss of power takes unless they were synced, and a file of modes.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use risk_gate::{Durability, Keeper, ModesFile, Storage};
use tt_journal::segments::{Disk, Segment};

use crate::draw::Draw;

/// What the disk writes at once or not at all.
const PAGE_BYTES: usize = 512;

#[derive(Debug, Default)]
struct Image {
    now: Vec<u8>,
    synced: Vec<u8>,
}

/// The file of modes. A text that takes the place of another without a sync is lost with the power.
#[derive(Debug, Default)]
struct Text {
    now: Option<String>,
    synced: Option<String>,
    next: Option<String>,
    is_next_synced: bool,
}

#[derive(Debug, Default)]
struct State {
    segments: BTreeMap<u64, Image>,
    modes: Text,
    /// The segment that is written.
    current: u64,
    /// The last write: segment, offset, bytes.
    last: (u64, usize, usize),
    is_full: bool,
    /// Whether the file of modes has no room either.
    is_modes_full: bool,
    sync_fails: bool,
}

/// The disk.
#[derive(Clone, Debug, Default)]
pub(super) struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_full(&self, is_full: bool) {
        self.state().is_full = is_full;
    }

    pub(super) fn set_sync_fails(&self, fails: bool) {
        self.state().sync_fails = fails;
    }

    /// Syncs what is written now, as a thread does every 10 ms; returns whether that succeeded.
    pub(super) fn sync_current(&self) -> bool {
        let current = self.state().current;
        self.sync(current).is_ok()
    }

    fn sync(&self, number: u64) -> io::Result<()> {
        let mut state = self.state();
        if state.sync_fails {
            return Err(io::Error::other("a bad sector"));
        }
        if let Some(Image { now, synced }) = state.segments.get_mut(&number) {
            synced.clone_from(now);
        }
        Ok(())
    }

    /// The process dies within the last write: some of its bytes are in the file.
    pub(super) fn tear(&self, draw: &mut Draw) {
        let mut state = self.state();
        let (number, at, len) = state.last;
        if let Some(image) = state.segments.get_mut(&number) {
            let kept = draw.below(len as u64 + 1) as usize;
            image.now[at + kept..at + len].fill(0);
        }
    }

    /// The loss of power: each page that was not synced survives or not.
    pub(super) fn lose_power(&self, draw: &mut Draw) {
        let mut state = self.state();
        for Image { now, synced } in state.segments.values_mut() {
            for (now, synced) in now.chunks_mut(PAGE_BYTES).zip(synced.chunks(PAGE_BYTES)) {
                if now != synced && draw.chance(1, 2) {
                    now.copy_from_slice(synced);
                }
            }
            synced.clone_from(now);
        }
        let modes = &mut state.modes;
        modes.now.clone_from(&modes.synced);
        modes.next = None;
    }
}

/// A segment on the disk.
#[derive(Debug)]
pub(super) struct SimSegment {
    disk: SimDisk,
    number: u64,
    bytes: usize,
}

impl Disk for SimDisk {
    type Segment = SimSegment;

    fn numbers(&self) -> io::Result<Vec<u64>> {
        Ok(self.state().segments.keys().copied().collect())
    }

    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        let state = self.state();
        state.segments.get(&number).map(|image| image.now.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&self, number: u64, bytes: usize) -> io::Result<SimSegment> {
        let mut state = self.state();
        if state.is_full || state.segments.contains_key(&number) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.segments.insert(number, Image { now: vec![0; bytes], synced: vec![0; bytes] });
        Ok(SimSegment { disk: self.clone(), number, bytes })
    }

    fn open(&self, number: u64) -> io::Result<SimSegment> {
        let state = self.state();
        let bytes = state.segments.get(&number).map(|image| image.now.len()).ok_or(io::ErrorKind::NotFound)?;
        Ok(SimSegment { disk: self.clone(), number, bytes })
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        self.state().segments.remove(&number);
        Ok(())
    }
}

impl Segment for SimSegment {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        let mut state = self.disk.state();
        state.last = (self.number, at, bytes.len());
        if let Some(image) = state.segments.get_mut(&self.number) {
            image.now[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync(self.number)
    }
}

/// Makes segments when they are asked for. Its syncs are the world's.
#[derive(Debug)]
pub(super) struct SimKeeper {
    disk: SimDisk,
    bytes: usize,
    asked: Option<u64>,
    syncs: bool,
}

impl Storage for SimDisk {
    type Keeper = SimKeeper;

    fn keeper(self, current: &SimSegment, bytes: usize, durability: Durability) -> anyhow::Result<SimKeeper> {
        self.state().current = current.number;
        Ok(SimKeeper { disk: self, bytes, asked: None, syncs: durability == Durability::Process })
    }

    fn snapshots(&self) -> io::Result<Vec<u64>> {
        Ok(Vec::new())
    }

    fn read_snapshot(&self, _: u64) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

impl Keeper for SimKeeper {
    type Segment = SimSegment;

    fn ask(&mut self, number: u64) {
        self.asked = Some(number);
    }

    fn take(&mut self) -> Option<io::Result<SimSegment>> {
        let number = self.asked.take()?;
        Some(self.disk.remove(number).and_then(|()| self.disk.create(number, self.bytes)))
    }

    fn follow(&mut self, current: &SimSegment) {
        self.disk.state().current = current.number;
    }

    fn wrote(&mut self) {}

    fn has_failed(&self) -> bool {
        self.syncs && self.disk.state().sync_fails
    }
}

impl ModesFile for SimDisk {
    fn name(&self) -> String {
        "modes".to_owned()
    }

    fn read(&self) -> io::Result<Option<String>> {
        Ok(self.state().modes.now.clone())
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut state = self.state();
        if state.is_modes_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let modes = &mut state.modes;
        (modes.next, modes.is_next_synced) = (Some(text.to_owned()), false);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.state().modes.is_next_synced = true;
        Ok(())
    }

    fn replace(&self) -> io::Result<()> {
        let modes = &mut self.state().modes;
        modes.now = modes.next.take();
        if modes.is_next_synced {
            modes.synced.clone_from(&modes.now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use risk_gate::{Answer, DurableGate, Input, LimitsFile, Modes};
    use std::sync::Arc;
    use tt_journal::{SegmentReader, SegmentWriter};
    use tt_meter::Off;
    use tt_model::{Breach, InstrumentId, IntentKind, Notes, OrderIntent, Price, Qty};
    use tt_risk::{KillSwitch, Mark, Mode};

    use crate::gate_world::Script;

    /// A journal of which the power leaves only the beginning still begins: the next start doubts every account.
    #[test]
    fn the_beginning_of_a_journal_survives_the_loss_of_power() {
        for seed in 0..8 {
            let (disk, setup) = (SimDisk::default(), Script::of(seed).setup);
            let limits = LimitsFile::parse(&setup.text()).unwrap();
            let open = || DurableGate::open_on(&limits, disk.clone(), (Durability::Process, 1 << 14), 1).unwrap();
            let (gate, first) = open();
            assert_eq!((first.records, gate.gate().is_doubtful(0)), (0, false));
            drop(gate);
            disk.lose_power(&mut Draw::new(seed));
            let (gate, second) = open();
            assert_eq!((second.records, gate.gate().is_doubtful(0)), (1, true), "seed {seed}");
        }
    }

    /// A disk stays full: orders are rejected, cancels pass, and both go on when there is room, without another start.
    #[test]
    fn a_disk_that_stays_full_does_not_lose_the_journal() {
        let disk = SimDisk::default();
        let text = include_str!("../../../../deploy/limits.toml").replace("burst = 1000 }", "burst = 100000 }");
        let limits = LimitsFile::parse(&text).unwrap();
        let open = || DurableGate::open_on(&limits, disk.clone(), (Durability::Process, 1 << 14), 1).unwrap();
        let (mut gate, _) = open();
        let (mut now, mut seq) = (1, 0);
        let mut judge = |gate: &mut DurableGate<SimKeeper>, kind: IntentKind, client_id: u64| {
            (now, seq) = (now + 1_000_000_000, seq + 1);
            let [ref_px, bid_px, ask_px] = [6_000_000, 5_999_990, 6_000_010].map(Price);
            let mark = Mark { ref_px, bid_px, ask_px, ts_ns: now, is_verified: true, proof_ns: now };
            gate.set_reference(now, InstrumentId(0), &mark).unwrap();
            let (limit_px, qty) = (Price(6_000_000), Qty(1_000));
            let intent = OrderIntent { seq, ts_ns: now, client_id, limit_px, qty, kind, ..OrderIntent::default() };
            gate.evaluate(now, 0, &intent, &mut Off)
        };
        let (limit, cancel) = (IntentKind::LIMIT, IntentKind::CANCEL);
        assert_eq!(judge(&mut gate, limit, 1).accept, 1);
        disk.set_full(true);
        let mut judged = 1;
        while judge(&mut gate, limit, 2).seq != 0 {
            judged += 1;
        }
        assert!(judged > 10, "{judged} verdicts in a segment");
        for _ in 0..2_000 {
            let verdict = judge(&mut gate, limit, 3);
            assert_eq!((verdict.seq, verdict.accept, verdict.reasons), (0, 0, Breach::JOURNAL));
        }
        // Cancels are recorded while the first half of the reserve lasts, and pass in any case.
        let numbers: Vec<u64> = (1_000..3_000)
            .map(|client_id| {
                let verdict = judge(&mut gate, cancel, client_id);
                assert_eq!((verdict.accept, verdict.reasons), (1, Breach::NONE));
                verdict.seq
            })
            .collect();
        assert!(numbers[0] != 0 && numbers[1_999] == 0, "{:?} and {:?}", numbers[0], numbers[1_999]);
        // Operators and reports use the second half.
        assert_eq!(gate.perform(1, &Input::Adopt(0)), Answer::Applied(Ok(())));
        assert!(gate.holds_marks());
        disk.set_full(false);
        let verdict = judge(&mut gate, limit, 5_000);
        assert_eq!((verdict.accept, verdict.reasons, gate.is_journal_lost()), (1, Breach::NONE, false));
        assert!(verdict.seq > numbers[0]);
        let state = format!("{:?}", gate.gate());
        drop(gate);
        let replayed = risk_gate::replay(&disk, |_, _| Ok(())).unwrap();
        assert_eq!(replayed.divergence, None);
        assert!(format!("{:?}", replayed.replay.unwrap().gate) == state);
    }

    /// The record that says that there is room again does not reach the disk: the order behind it is not recorded, and so is
    /// rejected. Which record begins a segment depends on how many were before: each number of them is tried.
    #[test]
    fn an_order_is_rejected_whose_journal_was_lost_just_before_it() {
        let limits = LimitsFile::parse(include_str!("../../../../deploy/limits.toml")).unwrap();
        let [ref_px, bid_px, ask_px] = [6_000_000, 5_999_990, 6_000_010].map(Price);
        let mark = Mark { ref_px, bid_px, ask_px, ts_ns: 1, is_verified: true, proof_ns: 1 };
        let order = |seq| {
            let (limit_px, qty, kind) = (Price(6_000_000), Qty(1_000), IntentKind::LIMIT);
            OrderIntent { seq, ts_ns: 1, client_id: seq, limit_px, qty, kind, ..OrderIntent::default() }
        };
        let mut counts = [0; 2];
        for records in 0..600 {
            let disk = SimDisk::default();
            let (mut gate, _) = DurableGate::open_on(&limits, disk.clone(), (Durability::Durable, 1 << 14), 1).unwrap();
            gate.set_reference(1, InstrumentId(0), &mark).unwrap();
            disk.set_full(true);
            (0..records).for_each(|_| drop(gate.perform(1, &Input::Time)));
            gate.evaluate(1, 0, &order(1), &mut Off);
            disk.set_full(false);
            disk.set_sync_fails(true);
            let verdict = gate.evaluate(1, 0, &order(2), &mut Off);
            assert_eq!(verdict.accept == 1, !gate.is_journal_lost(), "behind {records} records: {verdict:?}");
            counts[usize::from(gate.is_journal_lost())] += 1;
        }
        assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    }

    /// A producer that is refused too often is killed while the disk is full, also where nothing can be recorded; the kill is
    /// in the journal and in the file of modes once there is room, and in force after a restart.
    #[test]
    fn too_many_refusals_kill_while_the_disk_is_full() {
        let disk = SimDisk::default();
        let text = include_str!("../../../../deploy/gate-limits.toml");
        let text = text.replace(
            "refusal-rate = { per-second = 100, burst = 1000 }",
            "refusal-rate = { per-second = 1, burst = 20 }",
        );
        let limits = LimitsFile::parse(&text).unwrap();
        let open = || {
            let (mut gate, _) = DurableGate::open_on(&limits, disk.clone(), (Durability::Process, 1 << 14), 1).unwrap();
            let modes = Modes::open_on(Box::new(disk.clone()), gate.switches(), limits.symbols()).unwrap();
            gate.keep_modes(Arc::new(modes));
            gate
        };
        let mut gate = open();
        let (mut now, mut seq) = (1_000_000_000, 0);
        let mut judge = |gate: &mut DurableGate<SimKeeper>, kind: IntentKind, after_ns: u64| {
            (now, seq) = (now + after_ns, seq + 1);
            let (limit_px, qty) = (Price(6_000_000), Qty(1_000));
            let intent = OrderIntent { seq, ts_ns: now, client_id: seq, limit_px, qty, kind, ..OrderIntent::default() };
            gate.evaluate(now, 0, &OrderIntent { strategy: 1, ..intent }, &mut Off)
        };
        let (limit, cancel) = (IntentKind::LIMIT, IntentKind::CANCEL);
        disk.set_full(true);
        disk.state().is_modes_full = true;
        // One a second takes nothing from the burst. There is no mark, so every order is refused.
        while judge(&mut gate, limit, 1_000_000_000).seq != 0 {}
        while judge(&mut gate, cancel, 1_000_000_000).seq != 0 {}
        let strategy = KillSwitch::Strategy(1);
        let modes =
            |gate: &DurableGate<SimKeeper>| [gate.switches().mode(strategy), gate.gate().controls().mode(strategy)];
        judge(&mut gate, limit, 60_000_000_000);
        for _ in 0..19 {
            assert_eq!(modes(&gate), [Mode::Active; 2]);
            assert_eq!(judge(&mut gate, limit, 1).reasons, Breach::JOURNAL);
        }
        assert_eq!(modes(&gate), [Mode::Active; 2]);
        let generation = gate.switches().generation();
        assert_eq!((judge(&mut gate, limit, 1).seq, modes(&gate)), (0, [Mode::Kill; 2]));
        assert_ne!(gate.switches().generation(), generation);
        assert_eq!(ModesFile::read(&disk).unwrap(), None, "the file of modes had no room");
        let after = judge(&mut gate, cancel, 1);
        assert_eq!((after.accept, after.notes), (1, Notes(Notes::FORCED.0 | Notes::ORDER_UNKNOWN.0)));
        // An operator revives it: the next refusal kills again, since the bucket is as empty as before.
        disk.set_full(false);
        disk.state().is_modes_full = false;
        let killed = judge(&mut gate, limit, 1);
        assert!(killed.seq != 0 && killed.reasons.contains(Breach::KILL_STRATEGY), "{killed:?}");
        assert!(ModesFile::read(&disk).unwrap().unwrap().contains("kill strategy 1"));
        gate.switches().revive(strategy);
        judge(&mut gate, limit, 1);
        assert_eq!(modes(&gate), [Mode::Kill; 2]);
        let state = format!("{:?}", gate.gate());
        drop(gate);
        let replayed = risk_gate::replay(&disk, |_, _| Ok(())).unwrap();
        assert_eq!(replayed.divergence, None);
        // The running gate's own changes were taken from it.
        let mut replayed = replayed.replay.unwrap().gate;
        while replayed.poll_mode_change().is_some() {}
        assert!(format!("{replayed:?}") == state);
        assert_eq!(modes(&open()), [Mode::Kill; 2]);
    }

    /// A segment whose sync has failed is the last one: what of it is lost with the power makes no hole.
    #[test]
    fn no_segment_begins_behind_one_that_is_not_synced() {
        for seed in 0..8 {
            let disk = SimDisk::default();
            let end = SegmentReader::new(&disk).unwrap().end();
            let mut writer = SegmentWriter::resume(&disk, &end, 4096, 0).unwrap();
            writer.put_spare(disk.create(2, 4096).unwrap());
            disk.set_sync_fails(true);
            while writer.append(1, 1, &[7; 500]).is_ok() {}
            disk.lose_power(&mut Draw::new(seed));
            let mut reader = SegmentReader::new(&disk).unwrap();
            while reader.read().unwrap_or_else(|error| panic!("seed {seed}: {error}")).is_some() {}
        }
    }
}
