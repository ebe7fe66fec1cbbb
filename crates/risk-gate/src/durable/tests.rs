//! A gate and its journal: what is replayed is what was, at every place where a journal can end.

use std::fs;
use std::path::Path;

use tt_journal::SegmentFolder;
use tt_meter::Off;
use tt_model::{Breach, IntentKind, OrderIntent, OrderSide, Price, Qty, Report, ReportKind};
use tt_risk::InstrumentState;

mod snapshots;

use super::*;
use crate::input::{Difference, StatedOrder, Statement};
use crate::journal::Durability;
use crate::journal::replay::replay;

const BTC: InstrumentId = InstrumentId(0);
const SEGMENT: &str = "0000000000000001.ttseg";

fn limits() -> LimitsFile {
    let text = include_str!("../../../../deploy/limits.toml").replace("id_window_ms = 600000", "id_window_ms = 1000");
    LimitsFile::parse(&text).unwrap()
}

fn config(folder: &Path, durability: Durability) -> JournalConfig {
    JournalConfig { folder: folder.to_owned(), durability, segment_bytes: Some(1 << 16) }
}

fn order(seq: u64, now_ns: u64) -> OrderIntent {
    let (limit_px, qty) = (Price(6_000_000), Qty(1_000));
    OrderIntent { seq, ts_ns: now_ns, client_id: seq, limit_px, qty, instrument: BTC, ..OrderIntent::default() }
}

fn fill(client_id: u64) -> Report {
    let (qty, px) = (Qty(400), Price(6_000_000));
    Report {
        kind: ReportKind::FILL,
        instrument: BTC,
        client_id,
        execution_id: 9,
        qty,
        px,
        executed: qty,
        ..Report::default()
    }
}

fn mark(now_ns: u64) -> Mark {
    let [ref_px, bid_px, ask_px] = [6_000_000, 5_999_990, 6_000_010].map(Price);
    Mark { ref_px, bid_px, ask_px, ts_ns: now_ns, is_verified: true, proof_ns: now_ns }
}

/// Lets the gate meet an input of every kind; returns its state after each record, from the first.
fn states(gate: &mut DurableGate) -> Vec<String> {
    let text = |gate: &DurableGate| format!("{:?}", gate.gate());
    let mut states = vec![text(gate)];
    let mut seq = 0;
    for round in 1..6 {
        let now_ns = round * 1_000_000;
        gate.set_reference(now_ns, BTC, &mark(now_ns)).unwrap();
        states.push(text(gate));
        for kind in [IntentKind::LIMIT, IntentKind::MARKET, IntentKind::CANCEL, IntentKind(77)] {
            seq += 1;
            let side = if kind == IntentKind::MARKET { OrderSide::Sell } else { OrderSide::Buy };
            gate.evaluate(now_ns, 0, &OrderIntent { kind, side, ..order(seq, now_ns) }, &mut Off);
            states.push(text(gate));
        }
        gate.apply(now_ns, &fill(seq - 3));
        states.push(text(gate));
        let statement = Statement { positions: vec![(BTC, Qty(7))], ..Statement::default() };
        for input in [
            Input::State(BTC, InstrumentState::Auction),
            Input::Resume(0, seq),
            Input::Reconcile(statement),
            Input::Adopt(0),
            Input::Adopt(77),
            Input::Time,
        ] {
            gate.perform(now_ns, &input);
            states.push(text(gate));
        }
        gate.switches().set_mode(KillSwitch::Strategy(round as u16), Mode::Kill);
        gate.evaluate(now_ns, 0, &order(0, now_ns), &mut Off);
        // The mode, then the intent.
        states.push(text(gate));
        states.push(text(gate));
        gate.perform(now_ns, &Input::State(BTC, InstrumentState::Open));
        states.push(text(gate));
    }
    states
}

/// The journal ends at any byte. Its replay gives the state that the gate had after its last whole record, and the next
/// gate continues there.
#[test]
fn a_journal_cut_at_every_byte_restores_the_state_of_its_last_record() {
    let folder = tempfile::tempdir().unwrap();
    let (mut gate, recovered) = DurableGate::open(&limits(), &config(folder.path(), Durability::Durable), 1).unwrap();
    assert_eq!(recovered, Recovered::default());
    let states = states(&mut gate);
    gate.commit(0, &mut []);
    drop(gate);
    let path = folder.path().join(SEGMENT);
    let image = fs::read(&path).unwrap();
    let used = image.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let (mut seen, segments) = (Vec::new(), SegmentFolder::new(folder.path()));
    for at in (used - 1_400..used).rev() {
        let mut cut = image.clone();
        cut[at..].fill(0);
        fs::write(&path, &cut).unwrap();
        let found = replay(&segments, |_, _| Ok(())).unwrap();
        assert_eq!(found.divergence, None, "cut at {at}");
        let records = found.end.records as usize;
        if seen.last() == Some(&records) {
            continue;
        }
        seen.push(records);
        let gate = found.replay.unwrap().gate;
        assert!(format!("{gate:?}") == states[records - 1] || is_mode(records, &states), "{records} records");
        let (mut gate, recovered) =
            DurableGate::open(&limits(), &config(folder.path(), Durability::Process), 1).unwrap();
        assert_eq!(recovered.records as usize, records);
        let next = recovered.last_seq + 1;
        let at_ns = recovered.now_ns;
        assert_eq!(gate.evaluate(at_ns, 0, &order(next, at_ns), &mut Off).intent_seq, next);
        drop(gate);
        let again = replay(&segments, |_, _| Ok(())).unwrap();
        assert_eq!((again.divergence, again.end.records as usize), (None, records + 2));
    }
    assert!(seen.len() > 12, "{seen:?}");
}

/// The state between a change of a mode and the intent that met it is not seen from outside.
fn is_mode(records: usize, states: &[String]) -> bool {
    states.get(records).is_some_and(|next| *next == states[records - 1])
}

/// A recorded verdict that differs in one bit is found, named, and no state to start from.
#[test]
fn a_verdict_that_is_not_the_recorded_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), Durability::Process);
    let (mut gate, _) = DurableGate::open(&limits(), &config, 1).unwrap();
    gate.set_reference(1, BTC, &mark(1)).unwrap();
    let verdict = gate.evaluate(1, 0, &order(1, 1), &mut Off);
    let input = Input::Intent { producer: 0, generation: 0, intent: order(2, 1) };
    let second = judge(&mut gate.gate, 1, (0, 0), &order(2, 1), &mut Off);
    assert_eq!((verdict.accept, second.accept), (1, 1));
    let wrong = Verdict { worst_pos: second.worst_pos ^ 1, ..second };
    gate.record(1, &input, &Answer::Verdict(wrong)).unwrap();
    drop(gate);
    let found = replay(&SegmentFolder::new(folder.path()), |_, _| Ok(())).unwrap();
    let divergence = found.divergence.unwrap();
    assert_eq!((divergence.record.number, &divergence.answer), (4, &Answer::Verdict(second)));
    let error = format!("{:#}", DurableGate::open(&limits(), &config, 1).unwrap_err());
    assert!(error.contains("record 4: the journal has Verdict"), "{error}");
}

/// An accepted intent whose record is lost is taken back: it reserves nothing, and what follows is rejected.
#[test]
fn an_order_without_its_record_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut gate, _) = DurableGate::open(&limits(), &config(folder.path(), Durability::Process), 1).unwrap();
    gate.set_reference(1, BTC, &mark(1)).unwrap();
    let kept = order(1, 1);
    assert_eq!(gate.evaluate(1, 0, &kept, &mut Off).accept, 1);
    let lost = order(2, 1);
    let accepted = gate.evaluate(1, 0, &lost, &mut Off);
    assert_eq!(accepted.accept, 1);
    gate.lose();
    let verdict = gate.withdraw(1, &lost, accepted);
    assert_eq!((verdict.accept, verdict.reasons, u32::from(verdict.first_bit)), (0, Breach::JOURNAL, 46));
    let open = gate.gate().exposure(0, BTC).unwrap();
    assert_eq!((open.open_buy_qty, open.open_orders), (Qty(1_000), 1));
    assert!(gate.is_journal_lost());
    let replace = OrderIntent { seq: 3, kind: IntentKind::REPLACE, qty: Qty(2_000), ..kept };
    assert!(gate.evaluate(1, 0, &replace, &mut Off).reasons.contains(Breach::JOURNAL));
    let cancel = OrderIntent { seq: 4, kind: IntentKind::CANCEL, ..kept };
    let cancelled = gate.evaluate(1, 0, &cancel, &mut Off);
    assert_eq!((cancelled.accept, gate.withdraw(1, &cancel, cancelled).accept), (1, 1), "cancels pass");
}

/// A gate that had no room for records when its process died accepts orders again once there is room.
#[test]
fn a_journal_without_room_at_the_end_does_not_reject_after_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), Durability::Process);
    let (mut gate, _) = DurableGate::open(&limits(), &config, 1).unwrap();
    gate.perform(1, &Input::JournalLost(true));
    drop(gate);
    let (mut gate, _) = DurableGate::open(&limits(), &config, 2).unwrap();
    gate.perform(2, &Input::Adopt(0));
    gate.set_reference(2, BTC, &mark(2)).unwrap();
    let verdict = gate.evaluate(2, 0, &order(1, 2), &mut Off);
    assert_eq!((verdict.accept, verdict.reasons), (1, Breach::NONE));
}

/// A kill that the gate has set itself, and that an operator has lifted, does not come back with a restart.
#[test]
fn a_mode_that_was_lifted_stays_lifted_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), Durability::Process);
    let text = include_str!("../../../../deploy/limits.toml");
    let limits = LimitsFile::parse(&text.replace("burst = 1000 }", "burst = 1 }")).unwrap();
    let (mut gate, _) = DurableGate::open(&limits, &config, 1).unwrap();
    let switch = KillSwitch::Strategy(0);
    for seq in 1..4 {
        assert_eq!(gate.evaluate(1, 0, &order(seq, 1), &mut Off).accept, 0, "there is no mark");
    }
    assert_eq!(gate.switches().mode(switch), Mode::Kill);
    gate.switches().set_mode(switch, Mode::Active);
    gate.perform(1, &Input::Time);
    drop(gate);
    let (mut gate, _) = DurableGate::open(&limits, &config, 2).unwrap();
    gate.perform(2, &Input::Time);
    assert_eq!(gate.switches().mode(switch), Mode::Active);
    assert_eq!(gate.gate().controls().mode(switch), Mode::Active);
}

#[test]
fn a_statement_of_the_venue_ends_the_doubt_only_if_all_of_it_agrees() {
    let mut gate = DurableGate::new(limits().gate().unwrap());
    gate.set_reference(1, BTC, &mark(1)).unwrap();
    gate.evaluate(1, 0, &order(1, 1), &mut Off);
    gate.apply(1, &fill(1));
    gate.perform(1, &Input::Restart);
    let stated =
        StatedOrder { client_id: 1, instrument: BTC, side: OrderSide::Buy, qty: Qty(1_000), executed: Qty(400) };
    let mut differs = |orders: &[StatedOrder], position: i64| {
        let statement = Statement { account: 0, orders: orders.to_vec(), positions: vec![(BTC, Qty(position))] };
        let Answer::Differences(found) = gate.perform(1, &Input::Reconcile(statement)) else { panic!("differences") };
        assert_eq!(gate.gate().is_doubtful(0), !found.is_empty());
        found
    };
    for other in [
        StatedOrder { side: OrderSide::Sell, ..stated },
        StatedOrder { qty: Qty(999), ..stated },
        StatedOrder { executed: Qty(0), ..stated },
    ] {
        assert_eq!(differs(&[other], 400), [Difference::Terms(1)]);
    }
    let position = Difference::Position { instrument: BTC, ours: Qty(400), venue: Qty(401) };
    assert_eq!(differs(&[], 401), [Difference::Missing(1), position]);
    assert_eq!(differs(&[stated, StatedOrder { client_id: 5, ..stated }], 400), [Difference::Unknown(5)]);
    assert_eq!(differs(&[stated], 400), []);
}

/// Limits of one account change the version too: a revert afterwards keeps the later one, and the journal agrees.
#[test]
fn a_revert_does_not_go_back_to_an_earlier_version() {
    let folder = tempfile::tempdir().unwrap();
    let limits = LimitsFile::parse(include_str!("../../../../deploy/gate-limits.toml")).unwrap();
    let config = config(folder.path(), Durability::Process);
    let (mut gate, _) = DurableGate::open(&limits, &config, 1).unwrap();
    let until_ns = limits.next_revert_ns(0);
    let versions = |gate: &DurableGate| [gate.switches().limits_version(), gate.gate().controls().limits_version()];
    assert_eq!(versions(&gate), [1, 1]);
    let of_account = limits.limits_of(0, BTC, 1).unwrap();
    assert_eq!(gate.set_limits(1, 0, BTC, &of_account).unwrap(), 2);
    gate.perform(until_ns - 1, &Input::Time);
    assert_eq!((versions(&gate), gate.revert_ns), ([2, 2], until_ns));
    gate.perform(until_ns, &Input::Time);
    assert_eq!((versions(&gate), gate.revert_ns), ([2, 2], u64::MAX));
    drop(gate);
    let found = replay(&SegmentFolder::new(folder.path()), |_, _| Ok(())).unwrap();
    assert_eq!((found.divergence, found.end.records), (None, 5));
}

/// After a pause with more positions than an event values again, a new rate and new limits are as old as they are: the first
/// orders find no old values.
#[test]
fn a_rate_and_limits_after_a_pause_make_no_order_stale() {
    let text = include_str!("../../../../deploy/gate-limits.toml").replace("accounts = 2", "accounts = 40");
    let text = text.replace("id-window-ms = 600000", "id-window-ms = 1000");
    let file = |version: u32| LimitsFile::parse(&text.replace("version = 1", &format!("version = {version}"))).unwrap();
    let mut gate = DurableGate::of(&file(1)).unwrap();
    let (mut seq, pause_ns) = (0, 10_000_000_000);
    let mut judge = |gate: &mut DurableGate, now_ns| {
        seq += 1;
        gate.set_reference(now_ns, BTC, &mark(now_ns)).unwrap();
        let verdict = gate.evaluate(now_ns, 0, &OrderIntent { strategy: 1, ..order(seq, now_ns) }, &mut Off);
        // As the gate's thread does before the pause.
        assert!(gate.gate().has_old_values());
        while gate.gate().has_old_values() {
            gate.perform(now_ns, &Input::Time);
        }
        // A mark of before the pause has no value until its rows have followed the new one.
        verdict.reasons.contains(Breach::MD_STALE)
    };
    let rate = |now_ns| file(1).conversion("BTC", "60000", now_ns).unwrap().1;
    while gate.gate().has_old_values() {
        gate.perform(pause_ns, &Input::Time);
    }
    for round in 1..4 {
        let now_ns = round * 3 * pause_ns;
        assert!(!judge(&mut gate, now_ns));
        gate.perform(now_ns + pause_ns, &Input::Conversion(1, rate(now_ns + pause_ns)));
        assert!(!judge(&mut gate, now_ns + pause_ns), "a rate, round {round}");
        gate.load(now_ns + 2 * pause_ns, file(1 + round as u32)).unwrap();
        assert!(!judge(&mut gate, now_ns + 2 * pause_ns), "limits, round {round}");
    }
}
