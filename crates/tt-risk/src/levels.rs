//! Prices at which an account's own orders rest, and the best of each side.

use crate::index::NIL;
use alloc::{boxed::Box, vec};
use tt_model::OrderSide;
use tt_simd::prefetch;

/// In a link: the target is a branch, else a leaf.
const BRANCH: u32 = 1 << 31;

/// A price with the number of orders at it.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    key: u64,
    /// The branch above, or the next free leaf.
    parent: u32,
    orders: u32,
}

/// The keys below differ in `bit` and agree in all higher bits.
#[derive(Clone, Copy, Debug)]
struct Branch {
    children: [u32; 2],
    /// The branch above, or the next free branch.
    parent: u32,
    bit: u32,
}

/// The prices of both sides of every row, one crit-bit tree for each side.
///
/// A walk has at most 64 steps, whatever number of orders is open: one for each bit of a price. An order ends at its leaf
/// without a search. A key orders prices by distance from the opposite side, nearest first.
#[derive(Debug)]
pub(crate) struct Levels {
    leaves: Box<[Leaf]>,
    branches: Box<[Branch]>,
    free_leaf: u32,
    free_branch: u32,
    /// By tree: the root.
    roots: Box<[u32]>,
    /// By tree: the least key, and whether there is one.
    best: Box<[u64]>,
}

impl Levels {
    /// Trees for `rows`, with `prices` prices in all.
    pub(crate) fn new(rows: usize, prices: usize) -> Self {
        let next = |index: usize| if index + 1 < prices { index as u32 + 1 } else { NIL };
        let first = if prices > 0 { 0 } else { NIL };
        Self {
            leaves: (0..prices).map(|index| Leaf { key: 0, parent: next(index), orders: 0 }).collect(),
            branches: (0..prices).map(|index| Branch { children: [NIL; 2], parent: next(index), bit: 0 }).collect(),
            free_leaf: first,
            free_branch: first,
            roots: vec![NIL; rows * 2].into_boxed_slice(),
            best: vec![u64::MAX; rows * 2].into_boxed_slice(),
        }
    }

    /// Returns whether an order of `side` at `px` would match an order that rests in `row`; `None` matches at any price.
    pub(crate) fn is_met(&self, row: usize, side: OrderSide, px: Option<i64>) -> bool {
        let resting = match side {
            OrderSide::Buy => OrderSide::Sell,
            OrderSide::Sell => OrderSide::Buy,
        };
        let tree = tree(row, resting);
        self.roots[tree] != NIL && px.is_none_or(|px| key(resting, px) >= self.best[tree])
    }

    /// Asks for the roots of both sides of `row`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, row: usize) {
        prefetch(&self.roots[row * 2]);
        prefetch(&self.best[row * 2]);
    }

    /// Adds an order that rests at `px`; returns its level.
    pub(crate) fn add(&mut self, row: usize, side: OrderSide, px: i64) -> u32 {
        let (tree, key) = (tree(row, side), key(side, px));
        self.best[tree] = self.best[tree].min(key);
        let root = self.roots[tree];
        if root == NIL {
            let leaf = self.new_leaf(key, NIL);
            self.roots[tree] = leaf;
            return leaf;
        }
        let near = self.descend(root, key);
        let near_key = self.leaves[near as usize].key;
        if near_key == key {
            self.leaves[near as usize].orders += 1;
            return near;
        }
        let bit = 63 - (near_key ^ key).leading_zeros();
        // Keys that differ in a high bit have few branches between: it is nearer from below than from the root.
        let (mut below, mut parent) = (near, self.leaves[near as usize].parent);
        while let Some(branch) = self.branches.get((parent & !BRANCH) as usize)
            && branch.bit < bit
        {
            (below, parent) = (parent, branch.parent);
        }
        self.insert(tree, below, key, bit)
    }

    /// Follows `key` from `node` down to a leaf.
    fn descend(&self, mut node: u32, key: u64) -> u32 {
        while node & BRANCH != 0 {
            let branch = &self.branches[(node & !BRANCH) as usize];
            node = branch.children[(key >> branch.bit & 1) as usize];
        }
        node
    }

    /// Inserts a branch at `bit` above `below`, with a new leaf of `key`.
    fn insert(&mut self, tree: usize, below: u32, key: u64, bit: u32) -> u32 {
        let index = self.free_branch;
        self.free_branch = self.branches[index as usize].parent;
        let branch = index | BRANCH;
        let parent = self.parent(below);
        let leaf = self.new_leaf(key, branch);
        let way = (key >> bit & 1) as usize;
        let mut children = [below; 2];
        children[way] = leaf;
        self.branches[index as usize] = Branch { children, parent, bit };
        self.set_parent(below, branch);
        self.replace_child(tree, parent, below, branch);
        leaf
    }

    /// Removes an order of `side` of `row` from `level`.
    pub(crate) fn remove(&mut self, row: usize, side: OrderSide, level: u32) {
        let Leaf { key, parent, orders } = self.leaves[level as usize];
        if orders > 1 {
            self.leaves[level as usize].orders -= 1;
            return;
        }
        let tree = tree(row, side);
        self.leaves[level as usize].parent = self.free_leaf;
        self.free_leaf = level;
        if parent == NIL {
            self.roots[tree] = NIL;
            self.best[tree] = u64::MAX;
            return;
        }
        let index = parent & !BRANCH;
        let Branch { children, parent: above, .. } = self.branches[index as usize];
        let sibling = if children[0] == level { children[1] } else { children[0] };
        self.set_parent(sibling, above);
        self.replace_child(tree, above, parent, sibling);
        self.branches[index as usize].parent = self.free_branch;
        self.free_branch = index;
        if self.best[tree] == key {
            let nearest = self.descend(self.roots[tree], 0);
            self.best[tree] = self.leaves[nearest as usize].key;
        }
    }

    fn new_leaf(&mut self, key: u64, parent: u32) -> u32 {
        let leaf = self.free_leaf;
        self.free_leaf = self.leaves[leaf as usize].parent;
        self.leaves[leaf as usize] = Leaf { key, parent, orders: 1 };
        leaf
    }

    fn parent(&self, node: u32) -> u32 {
        match node & BRANCH {
            0 => self.leaves[node as usize].parent,
            _ => self.branches[(node & !BRANCH) as usize].parent,
        }
    }

    fn set_parent(&mut self, node: u32, parent: u32) {
        match node & BRANCH {
            0 => self.leaves[node as usize].parent = parent,
            _ => self.branches[(node & !BRANCH) as usize].parent = parent,
        }
    }

    fn replace_child(&mut self, tree: usize, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.roots[tree] = new;
            return;
        }
        let children = &mut self.branches[(parent & !BRANCH) as usize].children;
        children[usize::from(children[0] != old)] = new;
    }
}

const fn tree(row: usize, side: OrderSide) -> usize {
    row * 2 + side as usize
}

/// Orders prices of resting orders of `side`, nearest to the other side first: sells upwards, buys downwards.
const fn key(side: OrderSide, px: i64) -> u64 {
    let upwards = px.cast_unsigned() ^ 1 << 63;
    match side {
        OrderSide::Sell => upwards,
        OrderSide::Buy => !upwards,
    }
}

crate::fields::visit!(Leaf: key, parent, orders);
crate::fields::visit!(Branch: children, parent, bit);
crate::fields::visit!(Levels: leaves, branches, free_leaf, free_branch, roots, best);
