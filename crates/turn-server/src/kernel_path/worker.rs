//! The paths of one worker.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use tt_model::Nanos;
use tt_path::{Direction, NextHop, NextHops, PathKey, PathSpec, Tally, Writer};
use tt_turn::Server;
use tt_turn::path::{PathChange, PathId, PathLease, PathTraffic};

use super::hops::Hops;
use super::{EPOCH, KernelPath};

/// Maximum number of paths of a worker. Channels beyond it are relayed by sockets.
pub(super) const PATHS_MAX: u32 = 1 << 16;
/// The kernel's coarse clock lags by a tick of at most 10 ms; a lease ends that much earlier.
const TICK: Nanos = Nanos::from_millis(10);
/// Interval at which a path without hops looks for them again, and how many do so at once.
const RETRY_EVERY: Nanos = Nanos::from_millis(500);
const RETRIES: usize = 64;
/// Time after which no core relays on a deleted path any more, and its tally is complete.
const GRACE: Nanos = Nanos::from_millis(20);

/// The paths of one worker. The kernel relays what is open here, and the engine everything else.
pub(crate) struct WorkerPaths {
    shared: Arc<KernelPath>,
    writer: Writer,
    /// Index of the first tally of this worker.
    first_tally: u32,
    held: Vec<Option<Held>>,
    /// Deleted paths, by the time at which their tallies are complete.
    closing: VecDeque<(Nanos, PathId)>,
    /// Hops that no path needs any more, and that are to be released.
    unused: Vec<Hops>,
    /// The state of the next hops that the held paths follow.
    generation: u64,
    /// The time of the last call.
    now: Nanos,
    retry_at: Nanos,
    /// Where the next retries begin.
    retry_from: usize,
    /// Payloads that the engines have counted: to peers, and to clients.
    relayed: [u64; 2],
}

/// A path that the engine has opened.
struct Held {
    lease: PathLease,
    hops: Option<Hops>,
    /// What is in the kernel's tables, if anything: to the peer, and to the client.
    open: Option<[PathKey; 2]>,
    /// What the engine has counted, by direction.
    counted: [Tally; 2],
    /// The engine has closed it: it is never written again.
    is_closing: bool,
}

impl WorkerPaths {
    /// `number` is the worker's.
    pub(super) fn new(shared: Arc<KernelPath>, writer: Writer, number: u16) -> Self {
        let first_tally = u32::from(number) * 2 * PATHS_MAX;
        Self {
            shared,
            writer,
            first_tally,
            held: Vec::new(),
            closing: VecDeque::new(),
            unused: Vec::new(),
            generation: 0,
            now: Nanos(0),
            retry_at: Nanos(0),
            relayed: [0; 2],
            retry_from: 0,
        }
    }

    /// Begins to follow an engine that has no open path yet.
    pub(crate) fn offer(&mut self, server: &mut Server) {
        self.close_all();
        server.offer_paths(PATHS_MAX);
    }

    /// Does what the engine asks for. Call it after every round, before responses are sent.
    pub(crate) fn follow(&mut self, now: Nanos, server: &mut Server) {
        self.now = now;
        while let Some(change) = server.poll_path(now) {
            match change {
                PathChange::Open(id, lease) => self.open(id, lease),
                PathChange::Extend(id, until) => self.extend(id, until),
                PathChange::Close(id) => {
                    self.close(id);
                    self.closing.push_back((now.saturating_add(GRACE), id));
                }
            }
        }
        while let Some((_, id)) = self.closing.pop_front_if(|(at, _)| *at <= now) {
            self.settle(id, server);
        }
        self.follow_hops();
    }

    /// Follows changes of next hops, while no other thread asks about them.
    fn follow_hops(&mut self) {
        let generation = self.shared.generation();
        let has_changed = self.generation != generation;
        if !has_changed && self.unused.is_empty() && self.now < self.retry_at {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let Some(mut hops) = shared.try_hops() else { return };
        if has_changed {
            self.generation = generation;
            self.renew(&mut hops);
        }
        self.unused.drain(..).for_each(|unused| unused.release(&mut hops, self.now));
        if has_changed || self.now >= self.retry_at {
            self.retry(&mut hops);
            self.retry_at = self.now.saturating_add(RETRY_EVERY);
        }
    }

    /// Returns when [`WorkerPaths::follow`] must be called next.
    pub(crate) fn next_wake(&self) -> Option<Nanos> {
        self.closing.front().map(|(at, _)| *at)
    }

    /// Returns the payloads that the engine has counted: to peers, and to clients.
    pub(crate) const fn relayed(&self) -> [u64; 2] {
        self.relayed
    }

    /// Gives the engine what the kernel has relayed since the last call.
    pub(crate) fn count(&mut self, server: &mut Server) {
        for index in 0..self.held.len() as u32 {
            self.count_one(PathId(index), server);
        }
    }

    fn count_one(&mut self, id: PathId, server: &mut Server) {
        let Some(Some(held)) = self.held.get_mut(id.0 as usize) else { return };
        let traffic = held.take_traffic(&self.shared, self.first_tally + 2 * id.0);
        server.count_path(id, traffic);
        self.relayed[0] += traffic.packets_to_peer;
        self.relayed[1] += traffic.packets_to_client;
    }

    /// Closes every path of an engine that has ended all allocations, and waits until their tallies are complete.
    pub(crate) fn finish(&mut self, now: Nanos, server: &mut Server) {
        self.follow(now, server);
        if !self.closing.is_empty() {
            std::thread::sleep(std::time::Duration::from_nanos(GRACE.0));
            self.follow(now.saturating_add(GRACE), server);
        }
    }

    fn open(&mut self, id: PathId, lease: PathLease) {
        let index = id.0 as usize;
        if self.held.len() <= index {
            self.held.resize_with(index + 1, || None);
        }
        let tally = self.first_tally + 2 * id.0;
        let counted = [tally, tally + 1].map(|tally| self.shared.tally(tally));
        let hops = self.shared.try_hops().and_then(|mut hops| Hops::acquire(&lease, &mut hops, self.now));
        self.held[index] = Some(Held { lease, hops, open: None, counted, is_closing: false });
        self.install(id);
    }

    fn extend(&mut self, id: PathId, until: Nanos) {
        if let Some(Some(held)) = self.held.get_mut(id.0 as usize) {
            held.lease.until = until;
            self.install(id);
        }
    }

    /// Writes a path into the kernel's tables, if its hops are known.
    fn install(&mut self, id: PathId) {
        let Some(Some(held)) = self.held.get_mut(id.0 as usize) else { return };
        if held.is_closing {
            return;
        }
        let Some(known) = held.hops.and_then(|hops| hops.known()) else { return };
        let specs = specs(&held.lease, known, self.first_tally + 2 * id.0, &self.shared);
        let keys = [specs[0].key, specs[1].key];
        self.shared.mark_relay(held.lease.relayed.bound.port());
        if held.open != Some(keys) {
            self.delete(id);
        }
        if let Some(Some(held)) = self.held.get_mut(id.0 as usize)
            && held.open.replace(keys).is_none()
        {
            self.shared.count_open(1);
        }
        if let Some(error) = specs.iter().find_map(|spec| self.writer.open(spec).err()) {
            self.shared.write_failed(&error);
            self.delete(id);
        }
    }

    /// Removes a path for good; its tally is counted later.
    fn close(&mut self, id: PathId) {
        self.delete(id);
        self.release(id);
        if let Some(Some(held)) = self.held.get_mut(id.0 as usize) {
            held.is_closing = true;
        }
    }

    /// Removes a path from the kernel's tables.
    fn delete(&mut self, id: PathId) {
        let Some(Some(held)) = self.held.get_mut(id.0 as usize) else { return };
        let Some(keys) = held.open.take() else { return };
        self.shared.count_open(-1);
        for error in keys.iter().filter_map(|key| self.writer.close(key).err()) {
            self.shared.write_failed(&error);
        }
    }

    fn release(&mut self, id: PathId) {
        let Some(Some(held)) = self.held.get_mut(id.0 as usize) else { return };
        self.unused.extend(held.hops.take());
    }

    /// Counts the last packets of a closed path.
    fn settle(&mut self, id: PathId, server: &mut Server) {
        self.count_one(id, server);
        if let Some(held) = self.held.get_mut(id.0 as usize) {
            *held = None;
        }
        if !server.path_closed(id) {
            tracing::error!(path = id.0, "the engine did not wait for this path");
        }
    }

    /// Asks for the hops of every path again. Paths that have another route are deleted, and look for it in a retry.
    fn renew(&mut self, hops: &mut NextHops) {
        for index in 0..self.held.len() {
            let Some(Some(Held { hops: Some(before), .. })) = self.held.get(index) else { continue };
            let (before, renewed) = (*before, before.renewed(hops, self.now));
            let id = PathId(index as u32);
            match (renewed, self.held.get_mut(index)) {
                (Some(renewed), Some(Some(held))) if renewed != before => {
                    held.hops = Some(renewed);
                    self.install(id);
                }
                (Some(_), _) => {}
                (None, _) => {
                    self.delete(id);
                    self.release(id);
                }
            }
        }
    }

    /// Gives some paths without hops another chance.
    fn retry(&mut self, hops: &mut NextHops) {
        let len = self.held.len();
        let waits =
            |index: &usize| matches!(self.held.get(*index), Some(Some(Held { hops: None, is_closing: false, .. })));
        let places = (0..len).map(|at| (self.retry_from + at) % len);
        let waiting: Vec<usize> = places.filter(waits).take(RETRIES).collect();
        self.retry_from = waiting.last().map_or(0, |last| last + 1);
        for index in waiting {
            if let Some(Some(held)) = self.held.get_mut(index) {
                held.hops = Hops::acquire(&held.lease, hops, self.now);
                self.install(PathId(index as u32));
            }
        }
    }

    /// Removes every path, whatever the engine says of them.
    pub(crate) fn close_all(&mut self) {
        for index in 0..self.held.len() as u32 {
            self.close(PathId(index));
        }
        self.held.clear();
        self.closing.clear();
        let mut hops = self.shared.hops();
        self.unused.drain(..).for_each(|unused| unused.release(&mut hops, self.now));
    }
}

impl Drop for WorkerPaths {
    fn drop(&mut self) {
        self.close_all();
    }
}

impl std::fmt::Debug for WorkerPaths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPaths").field("first_tally", &self.first_tally).finish_non_exhaustive()
    }
}

impl Held {
    /// Returns what the kernel has relayed since the last call; `tally` is that of the way to the peer.
    fn take_traffic(&mut self, shared: &KernelPath, tally: u32) -> PathTraffic {
        let now = [tally, tally + 1].map(|tally| shared.tally(tally));
        let before = std::mem::replace(&mut self.counted, now);
        let since = |at: usize| {
            (now[at].packets.wrapping_sub(before[at].packets), now[at].bytes.wrapping_sub(before[at].bytes))
        };
        let ((packets_to_peer, bytes_to_peer), (packets_to_client, bytes_to_client)) = (since(0), since(1));
        PathTraffic { packets_to_peer, bytes_to_peer, packets_to_client, bytes_to_client }
    }
}

/// Returns the entries of a path: to the peer, and to the client.
fn specs(
    lease: &PathLease,
    [(peer_slot, to_peer), (client_slot, to_client)]: [(u16, NextHop); 2],
    tally: u32,
    shared: &KernelPath,
) -> [PathSpec; 2] {
    let [client, listener, relayed, peer] = ends(lease);
    let until = shared.monotonic(lease.until).saturating_sub(TICK);
    let spec = |direction, (from, to), (new_from, new_to), ifindex, path, hop| PathSpec {
        key: PathKey { direction, channel: lease.channel, from, to, ifindex },
        new_from,
        new_to,
        path,
        meter: None,
        until,
        epoch: EPOCH,
        hop,
    };
    // The packets of an end arrive where packets to it leave; others find no path, and go to the sockets.
    [
        spec(Direction::ToPeer, (client, listener), (relayed, peer), to_client.ifindex, tally, peer_slot),
        spec(Direction::ToClient, (peer, relayed), (listener, client), to_peer.ifindex, tally + 1, client_slot),
    ]
}

/// Returns client, listener, relay and peer as packets name them.
pub(super) fn ends(lease: &PathLease) -> [SocketAddr; 4] {
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    [lease.client.client, lease.client.server, lease.relayed.bound, lease.peer].map(canonical)
}
