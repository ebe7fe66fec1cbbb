//! The reasons of an intent with their nodes, values and limits.

use super::From;
use crate::{
    gate::Gate,
    index::NIL,
    tree::{Finding, Tree, Witness},
};
use tt_model::{Breach, OrderIntent};

/// Passes breaches on, with their nodes.
struct Named<'a, F> {
    tree: &'a Tree,
    see: F,
}

impl<F: FnMut(Finding)> Witness for Named<'_, F> {
    fn see(&mut self, node: u32, reason: Breach, values: Option<[i128; 2]>) {
        let node = (node != NIL).then(|| self.tree.node_at(node));
        (self.see)(Finding { node, reason, values });
    }
}

impl Gate {
    /// Calls `see` with each reason that a node, or the instrument's ratio of cancels, has against `intent` at `now_ns`, as
    /// [`evaluate`](Self::evaluate) would find it. Only the time passes.
    pub fn findings(&mut self, now_ns: u64, producer: u16, intent: &OrderIntent, see: impl FnMut(Finding)) {
        self.pass_time(now_ns);
        let (row, _) = self.core.row_index(intent.account, intent.instrument);
        let target = self.orders.find(self.horizon_ns, intent.account, intent.client_id);
        let from = From { now_ns, row, producer, route: self.permitted_route(producer, intent) };
        self.judge(from, intent, target, &mut Named { tree: &self.tree, see });
    }
}
