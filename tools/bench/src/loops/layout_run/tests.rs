//! Every layout passes what it is given, whole and in order.

use super::{Layout, LayoutPlan, index_pair, packed_slots, run_layout, shipped, whole};
use testkit::{Requirement, require, two_cpus};
use tt_meter::{Clock, Scale};

fn is_a_bounded_queue((mut push, mut pop): (impl FnMut(u64) -> bool, impl FnMut() -> Option<u64>)) {
    for lap in 0..5 {
        assert_eq!(pop(), None);
        assert_eq!([0, 1, 2, 3, 4].map(|n| push(lap + n)), [true, true, true, true, false]);
        assert_eq!([0, 1, 2].map(|_| pop()), [0, 1, 2].map(|n| Some(lap + n)));
        assert!(push(99));
        assert_eq!([pop(), pop(), pop()], [Some(lap + 3), Some(99), None]);
    }
}

#[test]
fn every_layout_is_a_bounded_queue() {
    is_a_bounded_queue(shipped::<7>(4));
    is_a_bounded_queue(shipped::<8>(4));
    is_a_bounded_queue(packed_slots::ends(4));
    is_a_bounded_queue(index_pair::ends::<true, { index_pair::APART }>(4));
    is_a_bounded_queue(index_pair::ends::<false, { index_pair::APART }>(4));
    is_a_bounded_queue(index_pair::ends::<false, 1>(4));
}

#[test]
fn an_event_whose_words_differ_has_no_stamp() {
    assert_eq!([whole([5, 5, 5]), whole([5, 5, 4]), whole([4, 5, 5])], [5, u64::MAX, u64::MAX]);
}

#[test]
fn every_layout_passes_its_stream_between_two_cores() {
    let Some(_) = require(Requirement::TwoCpus, two_cpus()) else { return };
    let cpus = tt_os::cpu::available().unwrap();
    let [first, second] = [cpus[0], cpus[1]];
    let plan = LayoutPlan { cpus: [first, second], capacity: 8, warmup: 5, events: 50, stream_events: 2_000 };
    for layout in Layout::ALL {
        let run = run_layout(layout, &plan, Clock::Counter, Scale::NANOSECONDS).unwrap();
        assert_eq!((run.faults, run.cycles.len()), (0, 50), "{}", layout.name());
        assert!(run.p50_per_ping_pong().unwrap() > 0.0 && run.stream_cycles > 0.0);
    }
}
