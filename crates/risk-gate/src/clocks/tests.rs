//! The gate's thread while the system's clock is set, and while the machine sleeps.

use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tt_journal::SegmentFolder;
use tt_model::{InstrumentId, Nanos, OrderIntent, Price, Verdict};
use tt_os::clock::{WallTime, unix_now, wall_time};

use super::Clocks;
use crate::input::Input;
use crate::journal::replay::replay;
use crate::runner::start_with;
use crate::tests::{Quotes, buy, judge, row};
use crate::{BoardRow, Durability, DurableGate, GateConfig, JournalConfig, LimitsFile, Ports, Quote, Running};

const BTC: InstrumentId = InstrumentId(0);
/// 31,557,600 s: later than every time of these tests, with either sign.
const YEAR_NS: i64 = 31_557_600_000_000_000;

/// Limits that permit 1 BTC, and 0.5 BTC for ever from 2099 on.
fn limits() -> LimitsFile {
    let text = include_str!("../../../../deploy/gate-limits.toml");
    let text = text.replace("rate = { per-second = 2, burst = 2 }", "rate = { per-second = 100, burst = 100 }");
    let text = text.replace("position-long-max = \"0.5\"", "position-long-max = \"0.2\"");
    let temporary = "temporary = { until = \"2099-12-01T00:00:00Z\", position-long-max = \"0.1\" }";
    LimitsFile::parse(&format!("{text}{temporary}\n")).unwrap()
}

fn quote() -> Quote {
    let now = unix_now();
    let (bid_px, ask_px) = (5_999_990, 6_000_010);
    Quote { bid_px, ask_px, ts_recv: now, is_verified: true, proof_ts: now, update_id: 1 }
}

/// Starts a gate with a journal in `folder`, a quote of now and `clocks`.
fn start(folder: &Path, clocks: Clocks) -> (Running, Ports, Arc<Quotes>) {
    let config =
        JournalConfig { folder: folder.to_owned(), durability: Durability::Process, segment_bytes: Some(1 << 16) };
    let (gate, _) = DurableGate::open(&limits(), &config, unix_now().0).unwrap();
    let quotes = Arc::new(Quotes(Mutex::new(quote())));
    let config = GateConfig {
        gate,
        rows: vec![BoardRow { limits: None, ..row(0, BTC) }],
        quotes: Some(Arc::clone(&quotes) as _),
        ring_slots: 4,
        sample_one_in: 1,
        cpu: None,
        spins: false,
        senders: Vec::new(),
        dead_man: None,
    };
    let (running, ports) = start_with(config, clocks).unwrap();
    (running, ports, quotes)
}

fn order(lots: i64) -> OrderIntent {
    OrderIntent { strategy: 1, limit_px: Price(6_000_000), ttl_ms: 60_000, ..buy(0, BTC, lots) }
}

fn reasons(verdict: &Verdict) -> Vec<&'static str> {
    verdict.reasons.names().collect()
}

/// The system's clock in the records of a journal, in order, and whether a sleep was recorded; the replay of the journal
/// gives every answer again.
fn recorded(folder: &Path) -> (Vec<WallTime>, usize) {
    let (mut walls, mut sleeps) = (Vec::new(), 0);
    let replayed = replay(&SegmentFolder::new(folder), |_, record| {
        if let Input::Wall(wall) = record.input {
            walls.push(wall);
        }
        sleeps += usize::from(record.input == Input::Suspended);
        Ok(())
    });
    assert_eq!(replayed.unwrap().divergence, None);
    (walls, sleeps)
}

/// Marks are 2 s, intents 5 s old at most, and both have times of the process: what a thread judges by the system's clock
/// is EXPIRED, MD_STALE or CLOCK_FAULT after a step of a year.
#[test]
fn a_step_of_wall_time_changes_no_verdict_and_is_in_the_journal() {
    static STEP_NS: AtomicI64 = AtomicI64::new(0);
    fn wall() -> WallTime {
        let unix_ns = wall_time().unix_ns.saturating_add_signed(STEP_NS.load(Ordering::Relaxed));
        WallTime { unix_ns, error_ns: Some(7_000) }
    }
    let run = |steps: [i64; 6]| {
        let folder = tempfile::tempdir().unwrap();
        STEP_NS.store(0, Ordering::Relaxed);
        let clocks = Clocks { suspended_ns: || 0, wall, wall_every_ns: 0 };
        let (running, mut ports, quotes) = start(folder.path(), clocks);
        let mut seen = Vec::new();
        for step in steps {
            STEP_NS.store(step, Ordering::Relaxed);
            *quotes.0.lock().unwrap() = quote();
            let verdict = judge(&mut ports, order(3_000));
            assert!(verdict.now_ns.abs_diff(unix_now().0) < 60_000_000_000, "{verdict:?}");
            let Verdict { seq, reasons, worst_pos, limits_version, generation, accept, notes, .. } = verdict;
            seen.push((seq, reasons, worst_pos, limits_version, generation, accept, notes));
        }
        running.stop();
        (seen, recorded(folder.path()).0)
    };
    let steps = [0, -YEAR_NS, YEAR_NS, 3_600_000_000_000, -1, 0];
    let ((still, _), (stepped, walls)) = (run([0; 6]), run(steps));
    assert_eq!(still, stepped);
    // Three orders of 0.03 BTC fit into 0.1 BTC.
    assert_eq!(still.iter().map(|of| of.5).collect::<Vec<_>>(), [1, 1, 1, 0, 0, 0]);
    let near = |wall: &WallTime, step: i64| {
        let expected = wall_time().unix_ns.saturating_add_signed(step);
        wall.error_ns == Some(7_000) && wall.unix_ns.abs_diff(expected) < 600_000_000_000
    };
    // One at the start.
    assert_eq!(walls.len(), 7, "{walls:?}");
    assert!(walls[1..].iter().zip(steps).all(|(wall, step)| near(wall, step)), "{walls:?}");
}

/// `until` is a time of the system's clock.
#[test]
fn temporary_limits_revert_when_the_clock_of_the_system_says_so() {
    static STEP_NS: AtomicI64 = AtomicI64::new(0);
    fn wall() -> WallTime {
        let unix_ns = wall_time().unix_ns.saturating_add_signed(STEP_NS.load(Ordering::Relaxed));
        WallTime { unix_ns, error_ns: None }
    }
    let folder = tempfile::tempdir().unwrap();
    let (running, mut ports, quotes) = start(folder.path(), Clocks { suspended_ns: || 0, wall, wall_every_ns: 0 });
    assert_eq!(reasons(&judge(&mut ports, order(15_000))), ["POS_LONG"]);
    STEP_NS.store(100 * YEAR_NS, Ordering::Relaxed);
    *quotes.0.lock().unwrap() = quote();
    assert_eq!(reasons(&judge(&mut ports, order(15_000))), [""; 0]);
    // What has reverted does not come back.
    STEP_NS.store(0, Ordering::Relaxed);
    assert_eq!(reasons(&judge(&mut ports, order(1_000))), [""; 0]);
    running.stop();
    assert_eq!(recorded(folder.path()).0.len(), 4);
    // The limits that are in force after a restart are those of the journal.
    let config =
        JournalConfig { folder: folder.path().to_owned(), durability: Durability::Process, segment_bytes: None };
    let (mut gate, _) = DurableGate::open(&limits(), &config, unix_now().0).unwrap();
    gate.perform(unix_now().0, &Input::Adopt(0));
    let mark = quote().mark();
    gate.set_reference(mark.ts_ns, BTC, &mark).unwrap();
    let intent = OrderIntent { seq: 4, ts_ns: mark.ts_ns, ..order(1_000) };
    assert_eq!(reasons(&gate.evaluate(mark.ts_ns, 0, &intent, &mut tt_meter::Off)), [""; 0]);
}

/// The quote's time is that of before the sleep: it looks young, and may be hours old.
#[test]
fn after_a_sleep_of_the_machine_orders_wait_for_new_marks() {
    static SLEPT_NS: AtomicU64 = AtomicU64::new(77);
    let folder = tempfile::tempdir().unwrap();
    let clocks = Clocks { suspended_ns: || SLEPT_NS.load(Ordering::Relaxed), ..Clocks::MACHINE };
    let (running, mut ports, quotes) = start(folder.path(), clocks);
    assert_eq!(reasons(&judge(&mut ports, order(1_000))), [""; 0]);
    // A reading of two clocks is not exact.
    SLEPT_NS.fetch_add(900_000, Ordering::Relaxed);
    assert_eq!(reasons(&judge(&mut ports, order(1_000))), [""; 0]);
    SLEPT_NS.fetch_add(3_600_000_000_000, Ordering::Relaxed);
    for _ in 0..3 {
        assert_eq!(reasons(&judge(&mut ports, order(1_000))), ["CLOCK_FAULT"]);
    }
    *quotes.0.lock().unwrap() = quote();
    assert_eq!(reasons(&judge(&mut ports, order(1_000))), [""; 0]);
    running.stop();
    assert_eq!(recorded(folder.path()).1, 1);
}

/// The system's clock was set back between two runs: time goes back for the gate, which says so until marks are new. No id is
/// forgotten and no rate is free again before the time of the first run has come; cancels pass.
#[test]
fn a_clock_set_back_between_two_runs_is_a_clock_fault_and_forgets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config =
        JournalConfig { folder: folder.path().to_owned(), durability: Durability::Process, segment_bytes: None };
    let hour_ns = 3_600_000_000_000;
    let now_ns = unix_now().0;
    let first = |gate: &mut DurableGate, now_ns, seq, client_id, mark_ns| {
        let mark = Quote { ts_recv: Nanos(mark_ns), proof_ts: Nanos(mark_ns), ..quote() }.mark();
        gate.set_reference(now_ns, BTC, &mark).unwrap();
        let intent = OrderIntent { seq, client_id, ts_ns: now_ns, ..order(1_000) };
        gate.evaluate(now_ns, 0, &intent, &mut tt_meter::Off)
    };
    let (mut gate, _) = DurableGate::open(&limits(), &config, now_ns + hour_ns).unwrap();
    assert_eq!(first(&mut gate, now_ns + hour_ns, 1, 1, now_ns + hour_ns).accept, 1);
    let cancelled = tt_model::Report {
        kind: tt_model::ReportKind::CANCELLED,
        instrument: BTC,
        client_id: 1,
        executed: tt_model::Report::NOT_STATED,
        ..tt_model::Report::default()
    };
    gate.apply(now_ns + hour_ns, &cancelled);
    drop(gate);
    let (mut gate, recovered) = DurableGate::open(&limits(), &config, now_ns).unwrap();
    assert_eq!((recovered.now_ns, recovered.last_seq), (now_ns + hour_ns, 1));
    gate.perform(now_ns, &Input::Adopt(0));
    let rates = ["RATE_ACCOUNT", "RATE_INSTRUMENT", "RATE_GLOBAL"];
    assert_eq!(reasons(&first(&mut gate, now_ns, 2, 2, now_ns - 1)), [&rates[..], &["CLOCK_FAULT"]].concat());
    assert_eq!(reasons(&first(&mut gate, now_ns, 3, 3, now_ns)), rates);
    let cancel = OrderIntent { seq: 4, client_id: 1, kind: tt_model::IntentKind::CANCEL, ts_ns: now_ns, ..order(0) };
    assert_eq!(gate.evaluate(now_ns, 0, &cancel, &mut tt_meter::Off).accept, 1);
    // id-window-ms is 600,000: on the clock of the new run it is over, on that of the first it is not.
    let later_ns = now_ns + 2_400_000_000_000;
    assert_eq!(reasons(&first(&mut gate, later_ns, 5, 1, later_ns)), [&rates[..], &["DUP_ID"]].concat());
    let after_ns = now_ns + hour_ns + 600_000_000_000;
    assert_eq!(reasons(&first(&mut gate, after_ns, 6, 1, after_ns)), [""; 0]);
    drop(gate);
    recorded(folder.path());
}
