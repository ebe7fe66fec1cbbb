//! Every input and answer is read as it was written.

use super::*;
use crate::input::{Difference, StatedOrder, Statement};
use tt_journal::segments::HEAD_BYTES;
use tt_model::{
    Breach, IntentFlags, IntentKind, Notes, Notional, OrderIntent, OrderSide, Price, Qty, ReportKind, TimeInForce,
    Verdict,
};
use tt_risk::{Limits, Mark};

/// No two values of a field are equal.
fn every() -> Vec<(Input, Answer)> {
    let applied = |applied| Answer::Applied(applied);
    let [ref_px, bid_px, ask_px] = [38, 39, -40].map(Price);
    let mark = Mark { ref_px, bid_px, ask_px, ts_ns: u64::MAX, is_verified: true, proof_ns: 1 << 63 };
    let order = |client_id, side| StatedOrder {
        client_id,
        instrument: InstrumentId(52),
        side,
        qty: Qty(53),
        executed: Qty(54),
    };
    let statement = Statement {
        account: 55,
        orders: vec![order(56, OrderSide::Buy), order(57, OrderSide::Sell)],
        positions: vec![(InstrumentId(58), Qty(-59)), (InstrumentId(60), Qty(61))],
    };
    let differences = vec![
        Difference::Missing(62),
        Difference::Unknown(63),
        Difference::Terms(64),
        Difference::Position { instrument: InstrumentId(65), ours: Qty(66), venue: Qty(-67) },
        Difference::Awaited(InstrumentId(68)),
    ];
    let loaded = LimitsFile::parse(include_str!("../../../../../deploy/gate-limits.toml")).unwrap();
    let mut every = vec![
        (Input::Begin { limits: "a = \"é\"".to_owned() }, applied(Ok(()))),
        (Input::Restart, applied(Ok(()))),
        (Input::Intent { producer: 69, generation: 70, intent: intent() }, Answer::Verdict(verdict())),
        (Input::Mark(InstrumentId(71), mark), applied(Err(GateError::Full))),
        (Input::Resume(72, 73), applied(Ok(()))),
        (Input::Adopt(74), applied(Ok(()))),
        (Input::Reconcile(statement), Answer::Differences(differences)),
        (Input::Time, applied(Ok(()))),
        (Input::JournalLost(true), applied(Ok(()))),
        (Input::Limits(75, InstrumentId(76), limits()), applied(Ok(()))),
        (Input::Load(Box::new(loaded.clone()), None), applied(Ok(()))),
        (Input::Load(Box::new(loaded), Some(94)), applied(Ok(()))),
        (Input::Refusals(98, 99), applied(Ok(()))),
        (Input::Suspended, applied(Ok(()))),
        (Input::Wall(WallTime { unix_ns: 95, error_ns: Some(96) }), applied(Ok(()))),
        (Input::Wall(WallTime { unix_ns: 97, error_ns: None }), applied(Ok(()))),
        (Input::Conversion(81, Conversion { rate: Ratio { num: 82, den: 83 }, ts_ns: 84 }), applied(Ok(()))),
        (Input::Balance(85, 86, -87), applied(Ok(()))),
        (Input::Equity(88, -89), applied(Ok(()))),
        (Input::Day, applied(Ok(()))),
        (Input::Enable(90, 91), applied(Ok(()))),
        (Input::CancelScope(KillSwitch::Strategy(92)), applied(Ok(()))),
        (Input::CancelScope(KillSwitch::Instrument(InstrumentId(93))), applied(Ok(()))),
    ];
    let switches = [
        KillSwitch::Global,
        KillSwitch::Account(77),
        KillSwitch::Strategy(78),
        KillSwitch::Instrument(InstrumentId(79)),
    ];
    every.extend(switches.iter().flat_map(|of| MODES.map(|mode| (Input::Mode(*of, mode), applied(Ok(()))))));
    every.extend(InstrumentState::ALL.map(|state| (Input::State(InstrumentId(80), state), applied(Ok(())))));
    every.extend(Outcome::NAMES.iter().map(|(_, outcome)| (Input::Report(report()), Answer::Outcome(*outcome))));
    every.extend(
        Outcome::NAMES
            .iter()
            .map(|(_, outcome)| (Input::Report(Report { fee: 0, ..report() }), Answer::Outcome(*outcome))),
    );
    for (fee, version) in [(0, 0), (-4_242, 0)] {
        every.push((Input::Report(Report { fee, version, ..report() }), Answer::Outcome(Outcome::Overtaken)));
    }
    every.push((Input::Mark(InstrumentId(71), Mark { proof_ns: 0, ..mark }), applied(Ok(()))));
    every.extend(ERRORS.map(|error| (Input::Time, applied(Err(error)))));
    every
}

#[test]
fn every_record_is_read_as_written_and_none_that_is_cut_or_longer() {
    let (mut body, mut kinds) = (Vec::new(), std::collections::BTreeSet::new());
    for (input, answer) in every() {
        body.clear();
        let kind = encode(&mut body, &input, &answer);
        kinds.insert(kind);
        assert_eq!(decode(kind, &body), Some((input.clone(), answer.clone())));
        // A limits file is long: every byte of its head, and some of its text.
        for len in (0..body.len()).filter(|len| *len < 256 || len % 97 == 0) {
            assert_eq!(decode(kind, &body[..len]), None, "{input:?} cut to {len}");
        }
        body.push(0);
        assert_eq!(decode(kind, &body), None, "{input:?} with a byte more");
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), (BEGIN..=REFUSALS).collect::<Vec<_>>());
    assert_eq!(decode(REFUSALS + 1, &[]), None);
    assert_eq!(decode(0, &[]), None);
}

/// The records of known length have the bytes of the others, and zeros up to a multiple of 8.
#[test]
fn fixed_records_are_those_of_any_length() {
    fn assert_same<const BODY: usize, const BYTES: usize>(
        input: &Input,
        answer: &Answer,
        fixed: &fixed::Fixed<BODY, BYTES>,
    ) {
        let mut body = vec![0; HEAD_BYTES];
        let kind = encode(&mut body, input, answer);
        assert_eq!(body.len(), HEAD_BYTES + BODY, "{input:?}");
        body.resize(body.len().next_multiple_of(8), 0);
        assert_eq!((kind, &body[..]), (fixed.kind, &fixed.bytes[..]), "{input:?}");
    }
    let mut seen = [0; 3];
    for (input, answer) in every() {
        match (&input, &answer) {
            (Input::Intent { producer, generation, intent }, Answer::Verdict(verdict)) => {
                assert_same(&input, &answer, &fixed::judged((*producer, *generation), intent, verdict));
                seen[0] += 1;
            }
            (Input::Mark(instrument, mark), Answer::Applied(applied)) if mark.proof_ns != 0 => {
                assert_same(&input, &answer, &fixed::marked(*instrument, mark, applied));
                seen[1] += 1;
            }
            (Input::Report(report), Answer::Outcome(outcome)) if (report.fee, report.version) == (0, 0) => {
                assert_same(&input, &answer, &fixed::reported(report, *outcome));
                seen[2] += 1;
            }
            _ => {}
        }
    }
    assert_eq!(seen, [1; 3]);
}

fn intent() -> OrderIntent {
    OrderIntent {
        seq: 1,
        ts_ns: 2,
        client_id: 3,
        limit_px: Price(-4),
        qty: Qty(5),
        trigger_px: Price(-6),
        account: 7,
        strategy: 8,
        instrument: InstrumentId(9),
        kind: IntentKind(200),
        side: OrderSide::Sell,
        tif: TimeInForce(11),
        flags: IntentFlags(12),
        ttl_ms: 13,
    }
}

fn verdict() -> Verdict {
    Verdict {
        seq: 14,
        intent_seq: 15,
        client_id: 16,
        reasons: Breach(17 << 40),
        now_ns: 18,
        worst_pos: -19,
        generation: 20,
        limits_version: 21,
        first_bit: 22,
        first_level: 23,
        accept: 24,
        notes: Notes(25),
        producer: 26,
        zero: 27,
    }
}

fn report() -> Report {
    Report {
        kind: ReportKind(99),
        side: OrderSide::Sell,
        account: 28,
        instrument: InstrumentId(29),
        client_id: 30,
        execution_id: 31 << 100,
        undone_id: 32 << 99,
        qty: Qty(33),
        px: Price(-34),
        executed: Qty(-1),
        order_qty: Qty(35),
        limit_px: Price(36),
        trigger_px: Price(37),
        fee: -4_242,
        version: 38,
    }
}

fn limits() -> Limits {
    Limits {
        px_step: Price(41),
        qty_step: Qty(42),
        qty_min: Qty(43),
        qty_max: Qty(44),
        notional_min: Notional(45 << 90),
        notional_max: Notional(46 << 91),
        position_long_max: Qty(47),
        position_short_max: Qty(48),
        open_qty_max: Qty(49),
        open_orders_max: 50,
        enabled: Breach(51),
    }
}
