//! One row against one server, once.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tt_os::readings::Readings;

use crate::cycle;
use crate::drive::{Pace, Tally, drive};
use crate::process::{CallCount, Process, deferred_ns};
use crate::record::Record;
use crate::rivals::Contestant;
use crate::rows::{CYCLES_AT_ONCE, CYCLES_OF_A_RUN, MANY, Way, Work};
use crate::spray;
use crate::stage::{Generator, Running};
use crate::traffic::Form;

/// Setting: a server that has nothing to do sleeps after so long, and its CPU time is exact.
pub(crate) const SETTLE: Duration = Duration::from_millis(4);
/// Setting: what runs before the clock starts, and is thrown away.
pub(crate) const WARM_UP: Duration = Duration::from_millis(80);
/// What the floor sends back where others answer a Binding request: as long as the request and half of the answer.
const BINDING_ECHO_LEN: usize = 28;
/// Setting: system calls are counted over so long.
const CALLS_FOR: Duration = Duration::from_millis(300);
/// Setting: the generator is run without a server for so long.
const ALONE_FOR: Duration = Duration::from_millis(300);

/// Why `contestant` has no run of `work`, if so.
pub(crate) fn refusal(contestant: Contestant, work: Work) -> Option<&'static str> {
    match (contestant, work) {
        (Contestant::TurnRs, Work::Traffic { way: Way::ToPeer | Way::FromPeer, .. }) => Some("no relay to a peer"),
        (Contestant::TurnRs, Work::Spray { .. }) => Some("no relay to a peer"),
        (Contestant::Echo, Work::Cycle | Work::Spray { .. } | Work::Memory | Work::Crowd { .. }) => {
            Some("no allocations")
        }
        (one, Work::Crowd { .. }) if one != Contestant::Truetick && !one.is_one_socket() => Some("not asked"),
        _ => None,
    }
}

/// Everything that a run needs, except the row and the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) duration: Duration,
    /// Count system calls, and nothing else.
    pub(crate) counts_calls: bool,
    pub(crate) server_cpu: Option<usize>,
}

/// Runs `work` once; the record lacks only what the caller knows.
pub(crate) fn run(generator: &mut Generator, server: &Running, work: Work, plan: Plan) -> anyhow::Result<Record> {
    match work {
        Work::Traffic { way, payload_len, flows, train, pace } => {
            let payload_len =
                if server.contestant == Contestant::Echo { payload_len.max(BINDING_ECHO_LEN) } else { payload_len };
            let form = if payload_len == 0 { Form::Binding } else { Form::Payload { len: payload_len } };
            let paths = generator.paths(server, way, flows)?;
            let mut traffic = generator.traffic(paths.flows, form, train);
            let mut next = 1;
            let mut go = |pace, duration| -> anyhow::Result<Tally> {
                let tally = drive(&mut traffic, pace, duration, next)?;
                next += tally.sent + tally.refused;
                Ok(tally)
            };
            let warm_up = go(pace, WARM_UP)?;
            ensure!(warm_up.delivered > 0, "nothing arrives");
            let mut achieved = 0.0;
            let record = measure(server, plan, |duration| {
                let tally = go(pace, duration)?;
                achieved = tally.sent as f64 * 1e9 / tally.sending_ns.max(1) as f64;
                Ok(tally)
            })?;
            generator.release(paths.clients)?;
            Ok(void_unless_kept(pace, achieved, record))
        }
        Work::Cycle => {
            let mut go = |count| cycle::run(generator, server.address, CYCLES_AT_ONCE, count);
            let warm_up = go(CYCLES_OF_A_RUN / 10)?;
            ensure!(warm_up.delivered > 0, "no cycle completed");
            measure(server, plan, |_| go(CYCLES_OF_A_RUN))
        }
        Work::Spray { relays } => {
            let clients = generator.allocations(server, relays)?;
            let relayed: Vec<_> = clients.iter().map(|client| client.relayed).collect();
            let mut go = |duration| spray::run(generator, server.address, &relayed, duration);
            go(WARM_UP)?;
            let record = measure(server, plan, go)?;
            generator.release(clients)?;
            Ok(record)
        }
        Work::Memory => memory(generator, server, (MANY, Process::resident_bytes)),
        Work::Crowd { allocations } => memory(generator, server, (allocations, Process::all_bytes)),
    }
}

/// Memory with one allocation, and with many.
fn memory(
    generator: &mut Generator,
    server: &Running,
    (count, bytes): (usize, fn(&Process) -> anyhow::Result<u64>),
) -> anyhow::Result<Record> {
    let first = generator.one_of_many(server, None)?;
    thread::sleep(SETTLE);
    let resident_one = bytes(&server.process)?;
    for number in 1..count {
        let client = generator.one_of_many(server, Some(&first));
        client.with_context(|| format!("allocation {number}"))?;
    }
    thread::sleep(SETTLE);
    let resident_all = bytes(&server.process)?;
    generator.forget()?;
    Ok(Record { kind: "memory".into(), resident_one, resident_all, allocations: count as u64, ..Record::default() })
}

/// What the generator delivers to itself in a second, with no server between: no rate of a row can be above it.
pub(crate) fn alone(generator: &mut Generator, len: usize, train: usize, window: usize) -> anyhow::Result<f64> {
    let flow = generator.straight();
    let mut traffic = generator.traffic(vec![flow], Form::Payload { len }, train);
    let tally = drive(&mut traffic, Pace::Closed { window }, ALONE_FOR, 1)?;
    ensure!(tally.delivered == tally.sent && tally.corrupt == 0, "the generator loses what it sends to itself");
    Ok(tally.delivered as f64 * 1e9 / tally.elapsed_ns as f64)
}

/// Runs `go` between two readings of everything.
pub(crate) fn measure(
    server: &Running,
    plan: Plan,
    mut go: impl FnMut(Duration) -> anyhow::Result<Tally>,
) -> anyhow::Result<Record> {
    if plan.counts_calls {
        let count = CallCount::attach(&server.process)?;
        let tally = go(CALLS_FOR)?;
        let calls = count.detach()?;
        return Ok(Record { kind: "calls".into(), calls, ..of_tally(tally) });
    }
    let deferred = || plan.server_cpu.and_then(deferred_ns).unwrap_or(0);
    thread::sleep(SETTLE);
    let readings = Readings::take();
    let (cpu_before, deferred_before) = (server.process.cpu_ns()?, deferred());
    let tally = go(plan.duration)?;
    thread::sleep(SETTLE);
    let cpu_ns = server.process.cpu_ns()? - cpu_before;
    let deferred_ns = deferred() - deferred_before;
    let steal_pct = Readings::take().since(&readings).steal_share() * 100.0;
    Ok(Record { kind: "traffic".into(), cpu_ns, deferred_ns, steal_pct, ..of_tally(tally) })
}

pub(crate) fn of_tally(tally: Tally) -> Record {
    Record {
        sent: tally.sent,
        delivered: tally.delivered,
        lost: tally.lost,
        duplicated: tally.duplicated,
        late: tally.late,
        reordered: tally.reordered,
        corrupt: tally.corrupt,
        astray: tally.astray,
        refused: tally.refused,
        elapsed_ns: tally.elapsed_ns,
        latency: tally.latency,
        ..Record::default()
    }
}

/// A run of an open loop whose generator did not keep the offered rate to within one per cent is void.
fn void_unless_kept(pace: Pace, achieved: f64, record: Record) -> Record {
    match pace {
        Pace::Open { per_second } if achieved < 0.99 * per_second as f64 && record.kind == "traffic" => {
            Record { kind: format!("void: {per_second} offered and {achieved:.0} sent a second"), ..record }
        }
        Pace::Open { .. } | Pace::Closed { .. } => record,
    }
}
