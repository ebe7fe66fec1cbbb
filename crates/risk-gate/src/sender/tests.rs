//! The sender between the gate and a wire, while operators change modes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tt_model::{InstrumentId, Qty};
use tt_risk::Outcome;

use super::*;
use crate::tests::{RULES, buy, judge, row, start_with};
use crate::{Modes, Ports, Running};

const BTC: InstrumentId = InstrumentId(0);
const AGE_MAX_NS: u64 = RULES.intent_age_max_ns;

fn started() -> (Running, Ports) {
    start_with(vec![row(0, BTC)], None)
}

fn accepted(ports: &mut Ports, qty: i64) -> (OrderIntent, Verdict) {
    let intent = buy(0, BTC, qty);
    let verdict = judge(ports, intent);
    assert_eq!(verdict.accept, 1, "{:?}", verdict.reasons.names().collect::<Vec<_>>());
    (intent, verdict)
}

/// An operator cancels what a producer has sent, after a kill too; an order needs its verdict.
#[test]
fn a_cancel_of_a_scope_reaches_the_sender() {
    let (running, mut ports) = started();
    let mut sender = ports.senders.pop().unwrap();
    let control = running.control();
    let (order, verdict) = accepted(&mut ports, 5);
    sender.send(&order, &verdict, |_| ()).unwrap();
    control.set_mode(KillSwitch::Global, Mode::Kill).unwrap();
    let open = vec![(0, order.client_id)];
    assert_eq!(control.cancel_scope(KillSwitch::Account(1)).unwrap(), crate::Cancelled::default());
    assert_eq!(
        control.cancel_scope(KillSwitch::Global).unwrap(),
        crate::Cancelled { requested: 1, open: open.clone() }
    );
    let cancel = ports.cancels.poll().expect("a cancel");
    assert_eq!((cancel.kind, cancel.client_id, cancel.account), (IntentKind::CANCEL, order.client_id, 0));
    assert_eq!(ports.cancels.poll(), None);
    assert_eq!(sender.cancel(&cancel, |cancel| cancel.client_id), Ok(order.client_id));
    assert_eq!(sender.cancel(&order, |_| panic!("the wire")), Err::<(), _>(NotSent::Rejected));
    let ended = Report { kind: ReportKind::CANCELLED, ..unsent(&order) };
    ports.reports.send(ended).unwrap();
    let start = std::time::Instant::now();
    while control.cancel_scope(KillSwitch::Global).unwrap().open == open {
        assert!(start.elapsed() < Duration::from_secs(60), "the report is not applied");
        thread::yield_now();
    }
    drop(ports.cancels);
    let (order, _) = {
        control.set_mode(KillSwitch::Global, Mode::Active).unwrap();
        let intent = buy(0, BTC, 5);
        ports.intents.send(intent).unwrap();
        (intent, ports.verdicts.wait().unwrap())
    };
    let error = control.cancel_scope(KillSwitch::Global).unwrap_err();
    assert_eq!((format!("{error:#}").contains("no sender takes the cancels"), order.account), (true, 0));
    running.stop();
}

/// The sender asks about the age again: by the intent's own time to live, and by the limits in force.
#[test]
fn an_order_that_has_become_too_old_is_not_sent() {
    let (running, mut ports) = started();
    let mut sender = ports.senders.pop().unwrap();
    let (intent, verdict) = accepted(&mut ports, 5);
    let at = |after_ns: u64| intent.ts_ns + after_ns;
    let mortal = OrderIntent { ttl_ms: 7, ..intent };
    assert_eq!(sender.send_at(at(6_999_999), &mortal, &verdict, |sent| sent.qty), Ok(Qty(5)));
    let wire = |_: &OrderIntent| -> () { panic!("the wire") };
    assert_eq!(sender.send_at(at(7_000_000), &mortal, &verdict, wire), Err(NotSent::Expired));
    assert_eq!(sender.send_at(at(AGE_MAX_NS), &intent, &verdict, |sent| sent.qty), Ok(Qty(5)));
    assert_eq!(sender.send_at(at(AGE_MAX_NS + 1), &intent, &verdict, wire), Err(NotSent::Expired));
    let cancel = OrderIntent { kind: IntentKind::CANCEL, ttl_ms: 7, ..intent };
    sender.send_at(at(10 * AGE_MAX_NS), &cancel, &verdict, |_| ()).unwrap();
    let report = NotSent::Expired.report(&intent).unwrap();
    assert_eq!((report.kind, report.client_id), (ReportKind::UNSENT, intent.client_id));
    let long_ago = OrderIntent { ts_ns: intent.ts_ns - 10 * AGE_MAX_NS, ..intent };
    assert_eq!(sender.send(&long_ago, &verdict, wire), Err(NotSent::Expired), "by the process's own clock");
    running.stop();
}

/// An order that was accepted before a kill does not reach the wire after it, and its report frees what it reserves.
#[test]
fn an_order_that_is_killed_after_its_verdict_is_not_sent() {
    let (running, mut ports) = started();
    let mut sender = ports.senders.pop().unwrap();
    let (control, board) = (running.control(), running.board());
    let open = || board.account_statuses().next().unwrap().1.open_orders;
    let (intent, verdict) = accepted(&mut ports, 5);
    assert_eq!(sender.send(&intent, &verdict, |sent| sent.qty), Ok(Qty(5)));
    let switches = [
        KillSwitch::Global,
        KillSwitch::Account(0),
        KillSwitch::Strategy(intent.strategy),
        KillSwitch::Instrument(BTC),
    ];
    for switch in switches {
        let (intent, verdict) = accepted(&mut ports, 5);
        let acknowledged = control.set_mode(switch, Mode::Kill).unwrap();
        // The gate's thread may be inside for longer on a busy machine; the sender is idle.
        assert_eq!(acknowledged.before, Mode::Active);
        assert!(!acknowledged.silent.contains(&"venue".to_owned()), "{acknowledged:?}");
        let sent: Result<(), NotSent> = sender.send(&intent, &verdict, |_| panic!("the wire"));
        assert_eq!(sent, Err(NotSent::Killed));
        let report = NotSent::Killed.report(&intent).unwrap();
        assert_eq!((report.kind, report.client_id), (ReportKind::UNSENT, intent.client_id));
        ports.reports.send(report).unwrap();
        assert_eq!(judge(&mut ports, buy(0, BTC, 1)).accept, 0);
        assert_eq!(control.set_mode(switch, Mode::Active).unwrap().before, Mode::Kill);
    }
    // Another change than one of these four does not concern the order.
    let (intent, verdict) = accepted(&mut ports, 5);
    control.set_mode(KillSwitch::Account(1), Mode::Kill).unwrap();
    sender.send(&intent, &verdict, |_| ()).unwrap();
    // A cancel is sent whatever was killed; a verdict that rejects, or is on another intent, sends nothing.
    let cancel = OrderIntent { kind: IntentKind::CANCEL, ..intent };
    control.set_mode(KillSwitch::Global, Mode::Kill).unwrap();
    sender.send(&cancel, &verdict, |_| ()).unwrap();
    let rejecting = Verdict { accept: 0, ..verdict };
    let other = Verdict { client_id: 0, ..verdict };
    for verdict in [rejecting, other] {
        assert_eq!(sender.send(&cancel, &verdict, |_| ()), Err(NotSent::Rejected));
        assert_eq!(NotSent::Rejected.report(&cancel), None);
    }
    let kind = |intent: &OrderIntent| unsent(intent).kind;
    assert_eq!(kind(&OrderIntent { kind: IntentKind::REPLACE, ..intent }), ReportKind::REPLACE_REJECTED);
    drop(ports);
    running.join();
    // The first order, and the two that were sent or left at the end.
    assert_eq!(open(), 2);
}

#[test]
fn in_reduce_mode_an_older_order_passes_only_if_it_is_marked_so() {
    let (running, mut ports) = started();
    let mut sender = ports.senders.pop().unwrap();
    let (intent, verdict) = accepted(&mut ports, 5);
    running.control().set_mode(KillSwitch::Account(0), Mode::Reduce).unwrap();
    assert_eq!(sender.send(&intent, &verdict, |_| ()), Err(NotSent::Killed));
    let marked = OrderIntent { flags: IntentFlags::REDUCE_ONLY, ..intent };
    sender.send(&marked, &verdict, |_| ()).unwrap();
    running.stop();
}

/// A sender that hangs in a write is named within 10 ms and closed.
#[test]
fn a_silent_sender_is_named_and_closed() {
    let (running, mut ports) = started();
    let mut sender = ports.senders.pop().unwrap();
    let control = running.control();
    let (intent, verdict) = accepted(&mut ports, 5);
    let (entered, has_entered) = channel();
    let (let_go, may_go) = channel::<()>();
    let sending = thread::spawn(move || {
        let first = sender.send(&intent, &verdict, |_| {
            entered.send(()).unwrap();
            may_go.recv().unwrap();
        });
        (first, sender.send(&OrderIntent { kind: IntentKind::CANCEL, ..intent }, &verdict, |_| ()))
    });
    has_entered.recv().unwrap();
    let acknowledged = control.set_mode(KillSwitch::Global, Mode::Kill).unwrap();
    assert_eq!(acknowledged.silent.last().map(String::as_str), Some("venue"));
    assert_eq!(acknowledged.senders, 1);
    assert!(acknowledged.waited >= Duration::from_millis(10), "{acknowledged:?}");
    let_go.send(()).unwrap();
    let (first, second) = sending.join().unwrap();
    assert_eq!(first, Ok(()), "it was under way");
    assert_eq!(second, Err(NotSent::Closed));
    let silent = control.set_mode(KillSwitch::Global, Mode::Active).unwrap().silent;
    assert!(!silent.contains(&"venue".to_owned()), "{silent:?}");
    running.stop();
}

/// A strategy and a sender at full speed while an operator kills: after each acknowledgement, no order is written.
#[test]
fn after_an_acknowledged_kill_nothing_reaches_the_wire() {
    let (running, mut ports) = started();
    let mut sender = ports.senders.pop().unwrap();
    let control = running.control();
    let mut late = 0;
    let (written, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                let intent = buy(0, BTC, 1);
                let verdict = judge(&mut ports, intent);
                match sender.send(&intent, &verdict, |_| written.fetch_add(1, Ordering::Relaxed)) {
                    Ok(_) | Err(NotSent::Rejected) => {}
                    Err(not_sent @ (NotSent::Killed | NotSent::Expired)) => {
                        ports.reports.send(not_sent.report(&intent).unwrap()).unwrap();
                    }
                    // It was not scheduled for 10 ms inside.
                    Err(NotSent::Closed) => ended.store(true, Ordering::Release),
                }
            }
        });
        // Asserted at the end: the thread above must end first.
        for _ in 0..60 {
            let before = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) == before && !ended.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let acknowledged = control.set_mode(KillSwitch::Account(0), Mode::Kill).unwrap();
            if acknowledged.silent.is_empty() {
                let seen = written.load(Ordering::Relaxed);
                (0..50).for_each(|_| thread::yield_now());
                late += written.load(Ordering::Relaxed) - seen;
            }
            control.set_mode(KillSwitch::Account(0), Mode::Active).unwrap();
        }
        ended.store(true, Ordering::Release);
    });
    assert_eq!(late, 0, "after an acknowledged kill");
    running.stop();
}

/// The gate keeps its modes and its journal: a kill from another thread is on disk before it is acknowledged, and a
/// replay of the journal gives every verdict again.
#[test]
fn a_kill_of_a_running_gate_is_on_disk_and_in_its_journal() {
    use crate::{Durability, DurableGate, GateConfig, JournalConfig, LimitsFile, start};
    let folder = tempfile::tempdir().unwrap();
    let limits = include_str!("../../../../deploy/limits.toml").replace("id_window_ms = 600000", "id_window_ms = 1000");
    let limits = LimitsFile::parse(&limits).unwrap();
    let path = folder.path().join("modes");
    let journal = JournalConfig {
        folder: folder.path().join("journal"),
        durability: Durability::Durable,
        segment_bytes: Some(1 << 16),
    };
    let (mut gate, _) = DurableGate::open(&limits, &journal, 1).unwrap();
    gate.keep_modes(Arc::new(Modes::open(&path, gate.switches(), limits.symbols()).unwrap()));
    let config = GateConfig {
        gate,
        rows: Vec::new(),
        quotes: None,
        ring_slots: 64,
        sample_one_in: 1,
        cpu: None,
        spins: false,
        senders: Vec::new(),
        dead_man: None,
    };
    let (running, mut ports) = start(config).unwrap();
    let names = |verdict: Verdict| verdict.reasons.names().map(str::to_owned).collect::<Vec<_>>();
    assert!(!names(judge(&mut ports, buy(0, BTC, 1_000))).contains(&"KILL_ACCOUNT".to_owned()));
    running.control().set_mode(KillSwitch::Account(0), Mode::Kill).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().ends_with("kill account 0\n"));
    // A group of verdicts waits for the disk once.
    let sent = 20;
    (0..sent).for_each(|_| ports.intents.send(buy(0, BTC, 1_000)).unwrap());
    let verdicts: Vec<_> = (0..sent).map(|_| ports.verdicts.wait().unwrap()).collect();
    assert!(verdicts.iter().all(|verdict| names(*verdict)[0] == "KILL_ACCOUNT"));
    let fill =
        Report { kind: ReportKind::FILL, client_id: 9, qty: Qty(1), px: tt_model::Price(1), ..Report::default() };
    ports.reports.send(fill).unwrap();
    drop(ports);
    running.join();
    let segments = crate::open_journal(&journal.folder).unwrap();
    let (mut recorded, mut outcomes) = (Vec::new(), Vec::new());
    let replayed = crate::replay(&segments, |_, record| {
        match &record.answer {
            crate::Answer::Verdict(verdict) => recorded.push(*verdict),
            crate::Answer::Outcome(outcome) => outcomes.push(*outcome),
            crate::Answer::Differences(_) | crate::Answer::Applied(_) => {}
        }
        Ok(())
    });
    assert_eq!(replayed.unwrap().divergence, None);
    assert_eq!((&recorded[1..], &outcomes[..]), (&verdicts[..], &[Outcome::UnknownFill][..]));
}
