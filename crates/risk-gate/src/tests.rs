//! The gate's thread between its rings, with quotes of the test's own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tt_model::{
    Breach, Decimal, InstrumentId, Nanos, Notional, OrderIntent, OrderSide, Price, Qty, Report, ReportKind, Verdict,
};
use tt_os::clock::unix_now;
use tt_risk::tree::{Route, RowLimits};
use tt_risk::{Capacity, Gate, InstrumentLimits, InstrumentState, KillSwitch, Limits, Rate, Rules};

use super::*;

const BTC: InstrumentId = InstrumentId(0);

const WIDE: Limits = Limits {
    px_step: Price(1),
    qty_step: Qty(1),
    qty_min: Qty(1),
    qty_max: Qty(1 << 40),
    notional_min: Notional(0),
    notional_max: Notional(1 << 100),
    position_long_max: Qty(1 << 50),
    position_short_max: Qty(1 << 50),
    open_qty_max: Qty(1 << 50),
    open_orders_max: 1 << 20,
    enabled: Limits::PLAIN,
};

const INSTRUMENT_LIMITS: InstrumentLimits =
    InstrumentLimits { collar_bps: 500, mark_age_max_ns: 60_000_000_000, rate: Rate::UNLIMITED };

pub(crate) const RULES: Rules = Rules {
    id_window_ns: 1_000_000,
    intent_age_max_ns: 60_000_000_000,
    cancel_repeat_ns: 0,
    gap_max_ns: 60_000_000_000,
    same_orders_max: u32::MAX,
    same_window_ns: 1,
    refusal_rate: Rate::UNLIMITED,
    cancel_window_ns: 0,
    exec_window_ns: 0,
    revalue_max_ns: 100_000_000,
    equity_age_max_ns: 0,
};

pub(crate) struct Quotes(pub(crate) Mutex<Quote>);

impl QuoteSource for Quotes {
    fn quote(&self, instrument: InstrumentId) -> Option<Quote> {
        (instrument.0 < 2).then(|| *self.0.lock().expect("no test panics with the quote"))
    }
}

/// A quote of now: 1 step wide around 10,000.
fn quote() -> Quote {
    let now = unix_now();
    Quote { bid_px: 9_999, ask_px: 10_001, ts_recv: now, is_verified: true, proof_ts: now, update_id: 41 }
}

fn row_of(account: u16, instrument: InstrumentId, limits: Limits) -> BoardRow {
    BoardRow {
        account,
        instrument,
        symbol: format!("C{}/USDT", instrument.0),
        venue: "test",
        tick_size: Decimal::new(1, 2),
        lot_size: Decimal::new(1, 3),
        limits: Some(limits),
        collar_bps: 500,
        rate_per_s: Rate::UNLIMITED.per_second,
    }
}

/// A row whose limits every order of a test meets.
pub(crate) fn row(account: u16, instrument: InstrumentId) -> BoardRow {
    row_of(account, instrument, WIDE)
}

/// Two accounts in two instruments, with `rows` of limits.
pub(crate) fn start_with(rows: Vec<BoardRow>, quotes: Option<Arc<Quotes>>) -> (Running, Ports) {
    start_watched((rows, quotes), None)
}

/// The same, with a dead man's switch.
fn start_watched((rows, quotes): (Vec<BoardRow>, Option<Arc<Quotes>>), dead_man: Option<DeadMan>) -> (Running, Ports) {
    let mut gate = Gate::new(Capacity {
        accounts: 2,
        instruments: 2,
        producers: 1,
        orders: 100_000,
        executions: 4_096,
        routes: 4,
        currencies: 0,
    });
    gate.set_global_rate(Rate::UNLIMITED);
    gate.set_rules(&RULES);
    for account in 0..2 {
        gate.set_account_rate(account, Rate::UNLIMITED).unwrap();
        for instrument in [InstrumentId(0), InstrumentId(1)] {
            gate.set_instrument_limits(instrument, &INSTRUMENT_LIMITS).unwrap();
            gate.set_reference(0, instrument, &quote().mark()).unwrap();
            gate.set_state(instrument, InstrumentState::Open).unwrap();
            gate.restore(account, instrument, Qty(0), 0).unwrap();
            gate.set_firm_limits(instrument, &RowLimits::UNLIMITED).unwrap();
            let route = Route { producer: 0, account, strategy: 0, instrument };
            gate.set_route(&route, &RowLimits::UNLIMITED).unwrap();
            gate.set_strategy_rate(account, 0, Rate::UNLIMITED).unwrap();
        }
    }
    let quotes = quotes.map(|quotes| quotes as Arc<dyn QuoteSource>);
    let (gate, senders) = (gate.into(), vec!["venue".to_owned()]);
    start(GateConfig {
        gate,
        rows,
        quotes,
        ring_slots: 64,
        sample_one_in: 1,
        cpu: None,
        spins: false,
        senders,
        dead_man,
    })
    .unwrap()
}

pub(crate) fn buy(account: u16, instrument: InstrumentId, qty: i64) -> OrderIntent {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let client_id = NEXT.fetch_add(1, Ordering::Relaxed);
    let (limit_px, qty, ts_ns) = (Price(10_000), Qty(qty), unix_now().0);
    OrderIntent { client_id, ts_ns, account, instrument, limit_px, qty, ..OrderIntent::default() }
}

/// Returns a report of `kind` on `order`.
fn report(kind: ReportKind, order: &OrderIntent) -> Report {
    let OrderIntent { account, instrument, client_id, side, .. } = *order;
    Report { kind, side, account, instrument, client_id, executed: Report::NOT_STATED, ..Report::default() }
}

pub(crate) fn judge(ports: &mut Ports, intent: OrderIntent) -> Verdict {
    ports.intents.send(intent).expect("the ring is empty");
    ports.verdicts.wait().expect("the gate runs")
}

fn reasons(verdict: &Verdict) -> Vec<&'static str> {
    verdict.reasons.names().collect()
}

/// The instruments whose quotes were read.
struct Seen(Mutex<Vec<u32>>);

impl QuoteSource for Seen {
    fn quote(&self, instrument: InstrumentId) -> Option<Quote> {
        self.0.lock().expect("no test panics with the list").push(instrument.0);
        Some(quote())
    }
}

/// Limits of sums need the value of every position, not only of the intent's instrument. The thread does not sleep here.
#[test]
fn an_intent_brings_the_marks_of_all_instruments() {
    let gate = Gate::new(Capacity {
        accounts: 2,
        instruments: 2,
        producers: 1,
        orders: 1,
        executions: 1,
        routes: 1,
        currencies: 0,
    });
    let seen = Arc::new(Seen(Mutex::new(Vec::new())));
    let rows = vec![row(0, InstrumentId(1)), row(0, BTC), row(1, BTC)];
    let quotes = Some(Arc::clone(&seen) as Arc<dyn QuoteSource>);
    let (gate, senders) = (gate.into(), Vec::new());
    let config = GateConfig {
        gate,
        rows,
        quotes,
        ring_slots: 4,
        sample_one_in: 1,
        cpu: None,
        spins: true,
        senders,
        dead_man: None,
    };
    let (running, mut ports) = start(config).unwrap();
    judge(&mut ports, buy(0, BTC, 1));
    running.stop();
    assert_eq!(*seen.0.lock().unwrap(), [0, 1, 0]);
}

/// The first order sets the marks of more positions than an event values again. While no other comes, the thread values the
/// rest, so that the next order does not find values that are too old. Neither does the first order of a new gate.
#[test]
fn an_idle_gate_values_what_an_order_has_left() {
    let run = |revalue_max_ns| {
        let (instruments, accounts) = (4, 20);
        let (orders, executions, routes) = (8, 8, 1);
        let capacity = Capacity { accounts, instruments, producers: 1, orders, executions, routes, currencies: 0 };
        let mut gate = Gate::new(capacity);
        gate.set_rules(&Rules { revalue_max_ns, ..RULES });
        for instrument in (0..instruments).map(InstrumentId) {
            gate.set_instrument_limits(instrument, &INSTRUMENT_LIMITS).unwrap();
            gate.set_reference(0, instrument, &quote().mark()).unwrap();
        }
        let rows = (0..instruments).map(|number| BoardRow { limits: None, ..row(0, InstrumentId(number)) }).collect();
        let quotes: Option<Arc<dyn QuoteSource>> = Some(Arc::new(Seen(Mutex::new(Vec::new()))));
        let (gate, senders) = (gate.into(), Vec::new());
        let (ring_slots, cpu, dead_man) = (4, None, None);
        let config =
            GateConfig { gate, rows, quotes, ring_slots, sample_one_in: 1, cpu, spins: false, senders, dead_man };
        let (running, mut ports) = start(config).unwrap();
        let first = judge(&mut ports, buy(0, BTC, 1));
        let pause = Instant::now();
        while pause.elapsed() < Duration::from_millis(20) {
            thread::yield_now();
        }
        let verdicts = [first, judge(&mut ports, buy(0, BTC, 1))];
        running.stop();
        verdicts.map(|verdict| verdict.reasons.contains(Breach::MD_STALE))
    };
    assert_eq!(run(60_000_000_000), [false; 2]);
    assert!(!run(1_000_000)[1]);
}

/// A contract in BTC is worth nothing that is known until BTC has a rate.
#[test]
fn a_verified_book_sets_the_rate_of_its_base_currency() {
    let spot = r#"kind = "spot", size = "1", currency = "USDT", base = "BTC""#;
    let text = include_str!("../../../deploy/gate-limits.toml");
    assert!(text.contains(spot));
    let limits = LimitsFile::parse(&text.replace(spot, r#"kind = "inverse", size = "10", currency = "BTC""#)).unwrap();
    let judged = |is_verified| {
        let (bid_px, ask_px) = (5_999_990, 6_000_010);
        let quotes = Arc::new(Quotes(Mutex::new(Quote { bid_px, ask_px, is_verified, ..quote() })));
        let config = GateConfig {
            gate: DurableGate::of(&limits).unwrap(),
            rows: vec![BoardRow { limits: None, ..row(0, BTC) }],
            quotes: Some(quotes),
            ring_slots: 4,
            sample_one_in: 1,
            cpu: None,
            spins: false,
            senders: Vec::new(),
            dead_man: None,
        };
        let (running, mut ports) = start(config).unwrap();
        let intent = OrderIntent { seq: 1, strategy: 1, limit_px: Price(6_000_000), ..buy(0, BTC, 50_000) };
        let verdict = judge(&mut ports, intent);
        running.stop();
        verdict
    };
    assert_eq!((reasons(&judged(true)), judged(true).accept), (vec![], 1));
    let unproved = reasons(&judged(false));
    assert!(unproved.contains(&"BOOK_UNVERIFIED") && unproved.contains(&"GROSS_EXPOSURE"), "{unproved:?}");
}

#[test]
fn intents_are_rejected_without_a_proof_or_with_an_old_quote() {
    let quotes = Arc::new(Quotes(Mutex::new(Quote { is_verified: false, ..quote() })));
    let (running, mut ports) = start_with(vec![row_of(0, BTC, WIDE)], Some(Arc::clone(&quotes)));
    assert_eq!(reasons(&judge(&mut ports, buy(0, BTC, 1))), ["BOOK_UNVERIFIED"]);
    *quotes.0.lock().unwrap() = quote();
    assert_eq!(judge(&mut ports, buy(0, BTC, 1)).accept, 1);
    *quotes.0.lock().unwrap() = Quote { ts_recv: Nanos(1), update_id: 43, ..quote() };
    assert_eq!(reasons(&judge(&mut ports, buy(0, BTC, 1))), ["MD_STALE"]);
    *quotes.0.lock().unwrap() = Quote::default();
    assert_eq!(judge(&mut ports, buy(0, BTC, 1)).accept, 0);
    let board = running.board();
    running.stop();
    // Each verdict names the update of the book that it was made by.
    let rows = board.status().verdicts;
    assert_eq!(rows.iter().map(|row| row.book_update_id).collect::<Vec<_>>(), [None, Some(43), Some(41), Some(41)]);
    let ages: Vec<_> = rows.iter().map(|row| row.book_age_us.map(|age_us| age_us > 1_000_000_000_000)).collect();
    assert_eq!(ages, [None, Some(true), Some(false), Some(false)]);
}

#[test]
fn case_k09_k12_a_book_that_lost_a_side_or_is_crossed_is_no_reference() {
    let quotes = Arc::new(Quotes(Mutex::new(quote())));
    let (running, mut ports) = start_with(vec![row_of(0, BTC, WIDE)], Some(Arc::clone(&quotes)));
    assert_eq!(judge(&mut ports, buy(0, BTC, 1)).accept, 1);
    let crossed = Quote { bid_px: 10_002, ..quote() };
    for lost in [Quote { ask_px: 0, ..quote() }, Quote { bid_px: 0, ..quote() }, Quote::default(), crossed] {
        *quotes.0.lock().unwrap() = lost;
        let verdict = judge(&mut ports, buy(0, BTC, 1));
        assert_eq!(verdict.accept, 0, "{lost:?}");
        assert_eq!(reasons(&verdict), ["COLLAR_REF", "MD_STALE", "BOOK_UNVERIFIED"]);
    }
    *quotes.0.lock().unwrap() = quote();
    assert_eq!(judge(&mut ports, buy(0, BTC, 1)).accept, 1);
    running.stop();
}

/// Limits of which every field differs from those of the other `set`.
fn limit_set(set: i64) -> Limits {
    let far = set * 1_000;
    Limits {
        px_step: Price(1),
        qty_step: Qty(1),
        qty_min: Qty(20 + far),
        qty_max: Qty(100 + far),
        notional_min: Notional(i128::from(200_000 + far * 10_000)),
        notional_max: Notional(i128::from(1_000_000 + far * 10_000)),
        position_long_max: Qty((1 << 50) + far),
        position_short_max: Qty((1 << 50) + 7 + far),
        open_qty_max: Qty((1 << 50) + 13 + far),
        open_orders_max: (1 << 20) + far as u32,
        enabled: Limits::PLAIN,
    }
}

/// How long a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// One thread changes limits, one sends intents, one reads the board. Every verdict and every row that is read follows
/// from one set of limits; a mixture of two would accept or reject differently and would show in the row.
#[test]
fn case_k04_a_change_of_limits_is_seen_whole_by_every_thread() {
    const CHANGES: u32 = 400;
    let (running, mut ports) = start_with(vec![row_of(0, BTC, limit_set(0))], None);
    let (control, board) = (running.control(), running.board());
    let first_version = control.switches().limits_version();
    let (done, met) = (AtomicBool::new(false), [const { AtomicBool::new(false) }; 2]);
    let expected_rows: Vec<_> = [0, 1]
        .map(limit_set)
        .map(|of| {
            let maxima = [of.qty_max, of.position_long_max, of.position_short_max, of.open_qty_max].map(|qty| qty.0);
            (maxima, of.notional_max.0 as u64, of.open_orders_max)
        })
        .into();
    thread::scope(|scope| {
        scope.spawn(|| {
            let started = Instant::now();
            let mut change = 0;
            // Until each thread has met both sets, however the threads are scheduled.
            let has_missing = || met.iter().any(|met| !met.load(Ordering::Acquire));
            while change < CHANGES || (has_missing() && started.elapsed() < PATIENCE) {
                change += 1;
                let version = control.set_limits(0, BTC, &limit_set(i64::from(change % 2))).expect("the gate runs");
                assert_eq!(version, first_version + change);
            }
            done.store(true, Ordering::Release);
            assert!(!has_missing(), "not every thread met both sets: {met:?}");
        });
        scope.spawn(|| {
            let mut seen = [0_u32; 2];
            while !done.load(Ordering::Acquire) {
                let status = board.account_statuses().next().expect("one row").1;
                let maxima = [status.qty_max, status.position_long_max, status.position_short_max, status.open_qty_max];
                let read = (maxima, status.notional_max, status.open_orders_max);
                let set = expected_rows.iter().position(|expected| *expected == read);
                seen[set.unwrap_or_else(|| panic!("a mixture of two sets: {read:?}"))] += 1;
                met[0].store(seen.iter().all(|count| *count > 0), Ordering::Release);
            }
        });
        let mut by_set: BTreeMap<u32, u32> = BTreeMap::new();
        let mut last_version = 0;
        while !done.load(Ordering::Acquire) {
            // 50 passes the first set alone, 1,050 the second alone.
            for (qty, set) in [(50, 0), (1_050, 1)] {
                let order = buy(0, BTC, qty);
                let verdict = judge(&mut ports, order);
                // The table holds no more orders than the gate has room for.
                ports.reports.send(report(ReportKind::REJECTED, &order)).expect("the gate takes reports first");
                let in_force = (verdict.limits_version - first_version) % 2;
                let expected: &[_] = match (set, in_force) {
                    (0, 1) => &["QTY_MIN", "NOTIONAL_MIN"],
                    (1, 0) => &["QTY_MAX", "NOTIONAL_MAX"],
                    _ => &[],
                };
                let found = reasons(&verdict);
                assert_eq!(found, expected, "quantity {qty} under version {}", verdict.limits_version);
                assert_eq!(verdict.accept == 1, expected.is_empty());
                assert!(verdict.limits_version >= last_version, "versions never go back");
                last_version = verdict.limits_version;
                *by_set.entry(in_force).or_default() += 1;
            }
            met[1].store(by_set.len() == 2 && by_set.values().all(|count| *count > 10), Ordering::Release);
        }
    });
    running.stop();
}

#[test]
fn limits_that_the_gate_rejects_change_nothing() {
    let (running, mut ports) = start_with(vec![row_of(0, BTC, WIDE)], None);
    let control = running.control();
    let version = control.switches().limits_version();
    let negative = Limits { qty_max: Qty(-1), ..WIDE };
    let rejected = control.set_limits(0, BTC, &negative).expect_err("a negative limit");
    assert_eq!(rejected, SetLimitsError::Gate(tt_risk::GateError::LimitOutOfRange));
    let unknown = control.set_limits(2, BTC, &WIDE).expect_err("an unknown account");
    assert_eq!(unknown.to_string(), "no such account or instrument");
    assert_eq!(judge(&mut ports, buy(0, BTC, 1)).limits_version, version);
    assert_eq!(running.board().account_statuses().next().unwrap().1.qty_max, WIDE.qty_max.0);
    running.stop();
    assert_eq!(control.set_limits(0, BTC, &WIDE), Err(SetLimitsError::Stopped));
}

/// Two accounts and two instruments: verdicts, exposures and the status of each pair are its own.
#[test]
fn two_accounts_in_one_gate_have_their_own_limits_exposures_and_switches() {
    let pairs = [(0, InstrumentId(0)), (0, InstrumentId(1)), (1, InstrumentId(0)), (1, InstrumentId(1))];
    let limits = [10, 20, 30, 40].map(|qty_max| Limits {
        qty_max: Qty(qty_max),
        position_long_max: Qty(1_000 + qty_max),
        position_short_max: Qty(2_000 + qty_max),
        open_qty_max: Qty(3_000 + qty_max),
        open_orders_max: 4_000 + qty_max as u32,
        notional_max: Notional(i128::from(5_000_000 + qty_max)),
        ..WIDE
    });
    let rows = pairs.into_iter().zip(limits).map(|((account, instrument), limits)| row_of(account, instrument, limits));
    let (running, mut ports) = start_with(rows.collect(), None);
    for ((account, instrument), limits) in pairs.into_iter().zip(limits) {
        assert_eq!(judge(&mut ports, buy(account, instrument, limits.qty_max.0)).accept, 1);
        assert_eq!(reasons(&judge(&mut ports, buy(account, instrument, limits.qty_max.0 + 1))), ["QTY_MAX"]);
    }
    let filled = buy(1, InstrumentId(0), 5);
    assert_eq!(judge(&mut ports, filled).accept, 1);
    let fill = Report { execution_id: 1, qty: Qty(2), px: Price(10_000), ..report(ReportKind::FILL, &filled) };
    ports.reports.send(fill).unwrap();
    // The same again, and the end of the order.
    ports.reports.send(fill).unwrap();
    ports.reports.send(report(ReportKind::CANCELLED, &filled)).unwrap();
    // An order that the gate does not know.
    ports.reports.send(Report { account: 0, instrument: InstrumentId(1), client_id: u64::MAX, ..fill }).unwrap();
    running.control().switches().kill(KillSwitch::Account(1));
    assert_eq!(reasons(&judge(&mut ports, buy(1, InstrumentId(1), 1))), ["KILL_ACCOUNT"]);
    assert_eq!(reasons(&judge(&mut ports, buy(0, InstrumentId(1), 1))), ["UNRECONCILED"]);
    let board = running.board();
    running.stop();
    let account_statuses: Vec<_> =
        board.account_statuses().map(|(row, of)| (row.account, row.instrument, of)).collect();
    for (((account, instrument), limits), (position, open_orders)) in
        pairs.into_iter().zip(limits).zip([(0, 1), (2, 1), (2, 1), (0, 1)])
    {
        let expected = AccountStatus {
            position,
            open_orders,
            qty_max: limits.qty_max.0,
            notional_max: limits.notional_max.0 as u64,
            position_long_max: limits.position_long_max.0,
            position_short_max: limits.position_short_max.0,
            open_qty_max: limits.open_qty_max.0,
            open_orders_max: limits.open_orders_max,
        };
        assert!(
            account_statuses.contains(&(account, instrument, expected)),
            "{account} {instrument:?}: {account_statuses:?}"
        );
    }
    let tally = board.tally();
    assert_eq!((tally.intents, tally.accepted, tally.rejected), (11, 5, 6));
    assert_eq!((tally.updates, tally.update_errors, tally.unjudged), (4, 1, 0));
    let status = board.status();
    let accounts: Vec<_> = status.verdicts.iter().map(|verdict| (verdict.account, &*verdict.symbol)).collect();
    assert_eq!(accounts[..2], [(0, "C1/USDT"), (1, "C1/USDT")]);
    let row = status.limits.iter().find(|row| (row.account, &*row.symbol) == (1, "C0/USDT")).unwrap();
    let shown = [&row.position, &row.qty_max, &row.position_long_max, &row.position_short_max, &row.open_qty_max];
    assert_eq!(shown, ["0.002", "0.030", "1.030", "2.030", "3.030"]);
    assert_eq!((&*row.notional_max, row.open_orders, row.open_orders_max), ("50.00030", 1, 4_030));
}

#[test]
fn a_full_ring_of_intents_is_counted_and_nothing_is_lost() {
    let quotes = Arc::new(Quotes(Mutex::new(quote())));
    let (running, mut ports) = start_with(vec![row_of(0, BTC, WIDE)], Some(Arc::clone(&quotes)));
    // The gate cannot read the quote and so cannot go on. It may have taken a batch of 16 from the ring of 64.
    let held = quotes.0.lock().unwrap();
    let full = (0..1_000).map(|_| ports.intents.send(buy(0, BTC, 1))).filter(Result::is_err).count() as u64;
    assert!(full >= 1_000 - 64 - 16, "{full}");
    let (pushed, counted) = running.board().pushes();
    assert_eq!((pushed, counted), (1_000 - full, full));
    drop(held);
    let verdicts: Vec<_> = (0..pushed).map(|_| ports.verdicts.wait().expect("the gate runs").seq).collect();
    assert!(verdicts.iter().copied().eq(1..=pushed), "{verdicts:?}");
    let board = running.board();
    running.stop();
    assert_eq!(board.tally().intents, pushed);
    assert_eq!(ports.verdicts.wait(), None, "the gate has ended");
}

/// An order whose verdict is lost must not reserve anything.
#[test]
fn case_k17_a_full_ring_of_verdicts_holds_the_intents_back() {
    let (running, mut ports) = start_with(vec![row_of(0, BTC, WIDE)], None);
    let board = running.board();
    // One ring of verdicts, one of intents, and the one that the gate may have taken.
    let mut sent = 0;
    let deadline = Instant::now() + Duration::from_secs(10);
    while sent < 128 {
        match ports.intents.send(buy(0, BTC, 1)) {
            Ok(()) => sent += 1,
            Err(_) => thread::yield_now(),
        }
        assert!(Instant::now() < deadline, "{sent} sent");
    }
    while board.tally().intents < 64 {
        thread::yield_now();
        assert!(Instant::now() < deadline, "{:?}", board.tally());
    }
    // What takes risk off still passes.
    let first = ports.verdicts.wait().expect("the gate runs");
    let order = OrderIntent { client_id: first.client_id, ..buy(0, BTC, 1) };
    ports.reports.send(report(ReportKind::CANCELLED, &order)).unwrap();
    let mut verdicts = vec![first.intent_seq];
    while verdicts.len() < 100 {
        // Room for one verdict is used before there is room for the next.
        while verdicts.len() < 10 && board.tally().intents < 64 + verdicts.len() as u64 {
            thread::yield_now();
            assert!(Instant::now() < deadline, "{:?}", board.tally());
        }
        verdicts.push(ports.verdicts.wait().expect("the gate runs").intent_seq);
    }
    running.stop();
    verdicts.extend(std::iter::from_fn(|| ports.verdicts.poll()).map(|verdict| verdict.intent_seq));
    assert!(verdicts.iter().copied().eq(1..=verdicts.len() as u64), "an intent was left out: {verdicts:?}");
    let tally = board.tally();
    assert_eq!((tally.intents, tally.intents + tally.unjudged), (verdicts.len() as u64, 128));
    assert_eq!((tally.updates, tally.update_errors), (1, 0));
    let open = board.account_statuses().next().unwrap().1.open_orders;
    assert_eq!(u64::from(open), verdicts.len() as u64 - 1, "each open order has a verdict");
}

#[test]
fn case_k17_intents_are_not_judged_without_a_receiver_of_verdicts() {
    let (running, ports) = start_with(vec![row_of(0, BTC, WIDE)], None);
    let Ports { mut intents, reports: _reports, verdicts, .. } = ports;
    drop(verdicts);
    let board = running.board();
    let sent = (0..1_000).filter(|_| intents.send(buy(0, BTC, 1)).is_ok()).count() as u64;
    drop(intents);
    running.join();
    let tally = board.tally();
    assert_eq!(tally.intents + tally.unjudged, sent);
    assert!(tally.intents <= 64, "{tally:?}");
}

#[test]
fn the_gate_ends_with_its_intent_sender_after_the_last_intent() {
    let (running, mut ports) = start_with(vec![row_of(0, BTC, WIDE)], None);
    for _ in 0..10 {
        ports.intents.send(buy(0, BTC, 1)).unwrap();
    }
    let Ports { intents, mut verdicts, .. } = ports;
    drop(intents);
    running.join();
    let seqs: Vec<_> = std::iter::from_fn(|| verdicts.wait()).map(|verdict| verdict.seq).collect();
    assert!(seqs.into_iter().eq(1..=10));
}

#[test]
fn a_position_of_either_sign_is_published() {
    let (running, mut ports) = start_with(vec![row_of(0, BTC, WIDE)], None);
    let sold = OrderIntent { side: OrderSide::Sell, ..buy(0, BTC, 7) };
    assert_eq!(judge(&mut ports, sold).reasons, Breach::NONE);
    ports
        .reports
        .send(Report { execution_id: 1, qty: Qty(7), px: Price(10_000), ..report(ReportKind::FILL, &sold) })
        .unwrap();
    let board = running.board();
    running.stop();
    assert_eq!(board.account_statuses().next().unwrap().1.position, -7);
}

/// A producer that sends nothing more is put into reduce mode, and its next intent says so; another sign of life alone does
/// not revive it.
#[test]
fn a_silent_producer_is_in_reduce_mode_and_its_orders_are_cancelled() {
    let dead_man =
        DeadMan { silent_for: Duration::from_millis(20), scopes: vec![KillSwitch::Account(1)], ..DeadMan::default() };
    let (running, mut ports) = start_watched((vec![row(1, BTC)], None), Some(dead_man));
    let control = running.control();
    ports.intents.send(buy(1, BTC, 1)).unwrap();
    assert_eq!(ports.verdicts.wait().unwrap().reasons, Breach::NONE);
    let start = Instant::now();
    while control.switches().mode(KillSwitch::Account(1)) != tt_risk::Mode::Reduce {
        assert!(start.elapsed() < Duration::from_secs(60), "never in reduce mode");
        thread::yield_now();
    }
    assert_eq!(control.switches().mode(KillSwitch::Global), tt_risk::Mode::Active);
    let cancel = loop {
        assert!(start.elapsed() < Duration::from_secs(60), "no cancel");
        match ports.cancels.poll() {
            Some(cancel) => break cancel,
            None => thread::yield_now(),
        }
    };
    assert_eq!((cancel.kind, cancel.account, cancel.qty), (tt_model::IntentKind::CANCEL, 1, Qty(1)));
    ports.intents.beat();
    ports.intents.send(buy(1, BTC, 1)).unwrap();
    assert_eq!(ports.verdicts.wait().unwrap().reasons, Breach::REDUCE_ONLY_STATE);
    control.set_mode(KillSwitch::Account(1), tt_risk::Mode::Active).unwrap();
    running.stop();
}
