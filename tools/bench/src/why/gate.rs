//! The gate that ships, without a queue before it.

use anyhow::Context as _;
use tt_meter::Calibration;

use crate::harness::plan::Plan;
use crate::report::{Bootstrap, Estimate};
use crate::rows::registry::{self, Selection};

/// The row of `bench gate`: a new order through every check and the journal.
const ROW: &str = "gate_new_ns";

/// Times new orders on `cpu`.
pub(super) fn of_new_orders(
    calibration: &Calibration,
    plan: &Plan,
    bootstrap: &Bootstrap,
    cpu: usize,
) -> anyhow::Result<Estimate> {
    tt_os::cpu::pin(cpu).with_context(|| format!("cannot pin to CPU {cpu}"))?;
    let entries = registry::select(Selection::Gate, Some(ROW))?;
    let entry = entries.iter().find(|entry| entry.name == ROW).context(ROW)?;
    let mut bench = (entry.make)().context(ROW)?;
    bench.verify().context(ROW)?;
    let (blocks, warmup_ns) = if plan.quick { (10, 50_000_000) } else { (20, 200_000_000) };
    let plan = Plan { blocks, block_ns: 20_000_000, warmup_ns, ..*plan };
    bench.warm_up(calibration, &plan)?;
    for _ in 0..plan.blocks {
        bench.block(calibration, &plan)?;
    }
    let rows = bench.finish(bootstrap);
    let finished = rows.into_iter().find(|finished| finished.row.name == ROW).context(ROW)?;
    bootstrap.mean(&finished.samples).context("no order was timed")
}
