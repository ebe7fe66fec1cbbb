//! A short run on whatever two CPUs there are.

use super::{Idle, RingPlan, read_whole, run_ring};
use testkit::{Requirement, require, two_cpus};
use tt_meter::{Clock, Scale};
use tt_model::{OrderTerms, Price, Qty};

#[test]
fn every_event_arrives_whole_and_timed() {
    let Some(_) = require(Requirement::TwoCpus, two_cpus()) else { return };
    let cpus = tt_os::cpu::available().unwrap();
    let [first, second] = [cpus[0], cpus[1]];
    let orders: Vec<_> = (0..7)
        .map(|n| OrderTerms { client_id: n, limit_px: Price(100 + n as i64), qty: Qty(3), ..OrderTerms::default() })
        .collect();
    for idle in [Idle::Rests, Idle::HoldsNext] {
        let plan = RingPlan { cpus: [first, second], capacity: 4, warmup: 10, events: 200, idle };
        let mut seen = 0_u64;
        let run = run_ring(&plan, &orders, Clock::Counter, Scale::NANOSECONDS, |intent| {
            seen += 1;
            read_whole(intent).wrapping_sub(read_whole(intent)) + intent.client_id
        })
        .unwrap();
        assert_eq!((run.faults, run.cycles.len(), seen), (0, 200, 210));
        assert_eq!(run.checksum, (10..210).map(|n| n % 7).sum::<u64>());
        assert!(run.p50_per_ping_pong().unwrap() > 0.0);
    }
}

#[test]
fn one_cpu_cannot_be_two() {
    let plan = RingPlan { cpus: [0, 0], capacity: 1, warmup: 0, events: 1, idle: Idle::Rests };
    let refused = run_ring(&plan, &[OrderTerms::default()], Clock::Counter, Scale::NANOSECONDS, read_whole);
    assert_eq!(refused.unwrap_err(), nix::errno::Errno::EINVAL);
}

#[test]
fn every_field_reaches_the_fold() {
    let plain = OrderTerms::default();
    let folded = read_whole(&plain.numbered(0));
    let changed = [
        OrderTerms { ts_ns: 1, ..plain },
        OrderTerms { client_id: 1, ..plain },
        OrderTerms { limit_px: Price(1), ..plain },
        OrderTerms { qty: Qty(1), ..plain },
        OrderTerms { trigger_px: Price(1), ..plain },
        OrderTerms { account: 1, ..plain },
        OrderTerms { strategy: 1, ..plain },
        OrderTerms { instrument: tt_model::InstrumentId(1), ..plain },
        OrderTerms { kind: tt_model::IntentKind::MARKET, ..plain },
        OrderTerms { side: tt_model::OrderSide::Sell, ..plain },
        OrderTerms { tif: tt_model::TimeInForce::FILL_OR_KILL, ..plain },
        OrderTerms { flags: tt_model::IntentFlags::POST_ONLY, ..plain },
        OrderTerms { ttl_ms: 1, ..plain },
    ];
    assert!(changed.iter().all(|terms| read_whole(&terms.numbered(0)) != folded));
    assert_ne!(read_whole(&plain.numbered(1)), folded);
}
