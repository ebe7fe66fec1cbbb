//! Which memory layout of a ring hands an event over soonest: `cargo run --release -p tt-floor --example layouts`.
//!
//! The layouts take turns on the same two cores. Each run carries its own ping-pong.

use std::time::Instant;
use tt_floor::{Layout, LayoutPlan, run_layout};
use tt_meter::{Calibration, Clock};

const ROUNDS: usize = 8;

fn main() {
    let origin = Instant::now();
    let mut os_ns = || u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let Calibration { clock, scale, .. } = Calibration::measure(Clock::new(|| 0), &mut os_ns, 50_000_000);
    let cpus = tt_os::cpu::available().unwrap_or_default();
    let &[first, second, ..] = cpus.as_slice() else {
        println!("two CPUs are needed");
        return;
    };
    let plan =
        LayoutPlan { cpus: [first, second], capacity: 1024, warmup: 1_000, events: 30_000, stream_events: 500_000 };
    println!(
        "{:28} {:14} {:>12} {:>8} {:>15} {:>18}",
        "layout", "placement", "ping-pong ns", "p50 ns", "p50 / ping-pong", "streamed ns/event"
    );
    for _ in 0..ROUNDS {
        for layout in Layout::ALL {
            let name = layout.name();
            match run_layout(layout, &plan, clock, scale) {
                Ok(run) if run.faults == 0 => {
                    let ping_pong = f64::midpoint(run.ping_pong_before, run.ping_pong_after);
                    let times = run.p50_per_ping_pong().unwrap_or_default();
                    let [ping_pong_ns, p50_ns, streamed_ns] =
                        [ping_pong, times * ping_pong, run.stream_cycles].map(|cycles| scale.ns_f64(cycles));
                    let placement = run.placement.name();
                    println!(
                        "{name:28} {placement:14} {ping_pong_ns:12.1} {p50_ns:8.0} {times:15.2} {streamed_ns:18.1}"
                    );
                }
                Ok(run) => println!("{name:28} void: {} events were not what was sent", run.faults),
                Err(reason) => println!("{name:28} void: {reason}"),
            }
        }
    }
}
