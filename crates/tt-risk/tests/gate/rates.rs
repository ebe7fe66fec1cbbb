//! The evaluator: message rates, and profiles.

use crate::numbered::{BTC, FAST, INSTRUMENT, LIMITS, MARK, NOW, buy, sell};
use tt_meter::Off;
use tt_model::{Breach, IntentFlags, OrderIntent, Qty, Verdict};
use tt_risk::{Evaluator, Exposure, Limits, Rate};

#[test]
fn case_k06_k20_a_rate_grants_no_more_when_the_clock_steps_back_or_ends() {
    const RATE: Rate = Rate { per_second: 1_000, burst: 5 };
    let limits = Limits { enabled: Breach::RATE_ACCOUNT, ..LIMITS };
    let granted = |gate: &mut Evaluator, times: &mut dyn Iterator<Item = u64>| {
        let order = buy(10_000, 20);
        times
            .map(|now| {
                gate.restore(0, BTC, &Exposure::default()).unwrap();
                u64::from(gate.evaluate_profile::<{ Limits::PLAIN.0 }>(now, &order, &mut Off).accept)
            })
            .sum::<u64>()
    };
    let fresh = || {
        let mut gate = Evaluator::new(1, 1);
        gate.set_limits(0, BTC, &limits).unwrap();
        gate.set_instrument_limits(BTC, &INSTRUMENT).unwrap();
        gate.set_reference(BTC, &MARK).unwrap();
        gate.set_global_rate(FAST);
        gate.set_account_rate(0, RATE).unwrap();
        gate.restore(0, BTC, &Exposure::default()).unwrap();
        gate
    };
    let at = |now, count| std::iter::repeat_n(now, count);

    let mut steady = fresh();
    assert_eq!(granted(&mut steady, &mut at(NOW, 100)), 5);
    assert_eq!(granted(&mut steady, &mut at(NOW + 999_999, 100)), 0);
    assert_eq!(granted(&mut steady, &mut at(NOW + 1_000_000, 100)), 1);
    // Five at once and one each millisecond, of which six are gone.
    assert_eq!(granted(&mut steady, &mut (NOW..NOW + 1_000_000_000).step_by(100_000).skip(11)), 5 + 999 - 6);

    let mut back = fresh();
    assert_eq!(granted(&mut back, &mut at(NOW, 100)), 5);
    assert_eq!(granted(&mut back, &mut at(NOW - 500_000_000, 100)), 0);
    assert_eq!(granted(&mut back, &mut at(NOW, 100)), 0);
    let zigzag = (0..10_000_u64).map(|n| NOW + 10_000_000 + (n % 7) * 1_000);
    assert_eq!(granted(&mut back, &mut { zigzag }), 5);

    let mut end = fresh();
    assert!(granted(&mut end, &mut at(u64::MAX, 100)) == 0);
    assert_eq!(granted(&mut end, &mut at(0, 100)), 5);
    let mut wrap = fresh();
    assert_eq!(granted(&mut wrap, &mut at((1 << 63) - 10_000_000, 100)), 5);
    assert_eq!(granted(&mut wrap, &mut (0..1_000).map(|n| n * 1_000_000)), 0);

    for closed in [Rate { per_second: 0, burst: 5 }, Rate { per_second: 5, burst: 0 }] {
        let mut gate = fresh();
        gate.set_account_rate(0, closed).unwrap();
        assert_eq!(granted(&mut gate, &mut [0, NOW, u64::MAX].into_iter()), 0);
    }
}

/// A profile answers as the whole evaluation does under limits that enable no more.
#[test]
fn a_profile_finds_the_same_of_what_it_looks_for() {
    const EIGHT: u64 = Limits::EIGHT.0;
    let limits = Limits { enabled: Limits::EIGHT, open_orders_max: 300, ..LIMITS };
    let fresh = || {
        let mut gate = Evaluator::new(1, 1);
        gate.set_limits(0, BTC, &limits).unwrap();
        gate.set_instrument_limits(BTC, &INSTRUMENT).unwrap();
        gate.set_reference(BTC, &MARK).unwrap();
        gate.set_global_rate(FAST);
        gate.set_account_rate(0, FAST).unwrap();
        gate.restore(0, BTC, &Exposure::default()).unwrap();
        gate
    };
    let (mut whole, mut profile) = (fresh(), fresh());
    let mut accepted = 0;
    for n in 0..20_000_i64 {
        let px = 9_400 + (n * 37) % 1_300;
        let order = if n % 3 == 0 { sell(px, 5 * (n % 300)) } else { buy(px / 5 * 5, 10 * (n % 120)) };
        let order = OrderIntent { flags: IntentFlags((n % 8) as u8), ..order };
        let now = NOW + n.unsigned_abs();
        let [expected, got] = [
            whole.evaluate_profile::<{ Limits::PLAIN.0 }>(now, &order, &mut Off),
            profile.evaluate_profile::<EIGHT>(now, &order, &mut Off),
        ];
        assert_eq!(got, Verdict { reasons: Breach(expected.reasons.0 & EIGHT), ..expected });
        assert_eq!(whole.exposure(0, BTC), profile.exposure(0, BTC));
        accepted += u32::from(got.accept);
        if n % 50 == 0 {
            for gate in [&mut whole, &mut profile] {
                gate.restore(0, BTC, &Exposure { position: Qty(n % 4_000 - 2_000), ..Exposure::default() }).unwrap();
            }
        }
    }
    assert!(accepted > 1_000, "{accepted}");
    assert!(whole.counters().by_reason().eq(profile.counters().by_reason()));
    assert_eq!(whole.counters().accepted(), profile.counters().accepted());
}
