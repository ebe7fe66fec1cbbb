//! The UDP listeners of one worker, in places that they keep.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tt_model::{FiveTuple, Nanos, Transport};
use tt_net::{Poller, Received, UdpSocket};
use tt_turn::Server;

use crate::listener_id::{ListenerId, ListenerUse};
use crate::overload::{KnownClients, Overload};

/// What a listener takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Everything.
    Open,
    /// What belongs to allocations. It closes once no worker has one here; this worker may have some.
    Used,
    /// The same, while other workers have allocations here.
    Unused,
    /// What has arrived before the kernel stopped giving it more.
    Leaving,
    /// Nothing: it closes after the round that has read the last of it.
    Empty,
}

#[derive(Debug)]
struct Place {
    id: ListenerId,
    socket: UdpSocket,
    state: State,
    /// The worker retires: the kernel gives it nothing more, and it sends to its clients from here.
    is_retiring: bool,
    /// Of a listener that is not open any more, while this worker has allocations here.
    share: Option<ListenerUse>,
    /// The number of workers that have some. It lives as long as the sockets.
    workers: Option<Arc<AtomicUsize>>,
    overload: Overload,
}

/// The UDP listeners of one worker. The place of a listener is its poll key.
#[derive(Debug, Default)]
pub(crate) struct UdpListeners {
    places: Vec<Option<Place>>,
    /// Listeners that are not open.
    closing: usize,
    /// When to look at the first of those that take a share.
    look_at: Option<Nanos>,
}

impl UdpListeners {
    /// Adds a listener to `poller`, and returns its key: it may have something to read already.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub(crate) fn add(&mut self, id: ListenerId, socket: UdpSocket, poller: &Poller) -> io::Result<u64> {
        let key = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        poller.add(&socket, key as u64)?;
        let place = Place {
            id,
            socket,
            state: State::Open,
            is_retiring: false,
            share: None,
            workers: None,
            overload: Overload::default(),
        };
        if key == self.places.len() {
            self.places.push(Some(place));
        } else {
            self.places[key] = Some(place);
        }
        Ok(key as u64)
    }

    /// Lets a listener take only what belongs to allocations, until no worker has some here.
    pub(crate) fn remove(&mut self, id: ListenerId, share: ListenerUse) {
        // A worker that retires has closed it, or never had it.
        if let Some(place) = self.places.iter_mut().flatten().find(|place| place.id == id && place.share.is_none()) {
            self.closing += usize::from(place.state == State::Open);
            place.is_retiring = false;
            if matches!(place.state, State::Open | State::Used) {
                (place.state, place.workers, place.share) = (State::Used, Some(share.workers()), Some(share));
            }
        }
    }

    /// Lets the kernel give everything that arrives to other workers. Returns the keys of the listeners: what is left in
    /// them must be read. They close once this worker has no allocations there.
    pub(crate) fn retire(&mut self) -> Vec<u64> {
        for place in self.places.iter_mut().flatten() {
            // Without it the last datagrams may be lost.
            let _ = place.socket.leave_group();
            if place.state == State::Open {
                (place.state, place.is_retiring, place.workers) = (State::Used, true, Some(Arc::default()));
                self.closing += 1;
            }
        }
        self.keys().collect()
    }

    /// Closes what has been read to its end, and returns the keys of listeners that leave: what is left in them must be
    /// read. Call it between two rounds.
    pub(crate) fn close_unused(&mut self, server: &Server, poller: &Poller) -> Vec<u64> {
        for place in &mut self.places {
            if let Some(closed) = place.take_if(|place| place.state == State::Empty) {
                // The kernel removes it when it is closed, unless another process has it too.
                let _ = poller.remove(&closed.socket);
                self.closing -= 1;
            }
        }
        let is_used = |key: &u64| self.place(*key).is_some_and(|place| place.state == State::Used);
        let unused: Vec<u64> =
            self.keys().filter(is_used).filter(|key| !self.serves_allocations(*key, server)).collect();
        let mut leaving = Vec::new();
        for (key, place) in (0..).zip(&mut self.places) {
            let Some(Place { socket, state, share, workers: Some(workers), .. }) = place else { continue };
            if unused.contains(&key) {
                *state = State::Unused;
                drop(share.take());
            }
            if *state == State::Unused && workers.load(Ordering::Acquire) == 0 {
                // Without it the last datagrams, which belong to no allocation, may be lost.
                let _ = socket.leave_group();
                *state = State::Leaving;
                leaving.push(key);
            }
        }
        leaving
    }

    /// Takes note of what was read of a listener. Returns whether it began to take only a share of what comes from unknown
    /// sources, because more arrives than is read.
    pub(crate) fn note_read(&mut self, now: Nanos, key: u64, received: &Received, server: &Server) -> bool {
        let Some(Some(place)) = self.places.get_mut(key as usize) else { return false };
        if received.drained && place.state == State::Leaving {
            place.state = State::Empty;
        }
        place.overload.note_read(now, received.drained) && self.look(now, key, server)
    }

    /// Looks at the listeners that take a share, where it is due.
    pub(crate) fn run_timers(&mut self, now: Nanos, server: &Server) {
        if self.look_at.is_none_or(|due| due > now) {
            return;
        }
        for key in 0..self.places.len() as u64 {
            if self.place(key).and_then(|place| place.overload.next_look()).is_some_and(|due| due <= now) {
                self.look(now, key, server);
            }
        }
        self.look_at = self.next_look();
    }

    /// Returns when [`UdpListeners::run_timers`] has to be called.
    pub(crate) const fn next_wake(&self) -> Option<Nanos> {
        self.look_at
    }

    fn next_look(&self) -> Option<Nanos> {
        self.places.iter().flatten().filter_map(|place| place.overload.next_look()).min()
    }

    fn look(&mut self, now: Nanos, key: u64, server: &Server) -> bool {
        let Some(Some(place)) = self.places.get_mut(key as usize) else { return false };
        let mut overload = std::mem::take(&mut place.overload);
        let addresses = || {
            let flows = server.live_allocations().map(|live| live.flow);
            flows.filter(|flow| self.has_flow(key, flow)).map(|flow| flow.client).collect()
        };
        let known = KnownClients { made: server.counters().allocations_made, addresses: &addresses };
        let begun = self.get(key).is_some_and(|socket| overload.look(now, socket, &known));
        if let Some(Some(place)) = self.places.get_mut(key as usize) {
            place.overload = overload;
        }
        self.look_at = self.next_look();
        begun
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    /// Whether any listener is not open.
    pub(crate) const fn is_any_closing(&self) -> bool {
        self.closing > 0
    }

    /// Returns the keys of all listeners.
    pub(crate) fn keys(&self) -> impl Iterator<Item = u64> {
        (0..).zip(&self.places).filter(|(_, place)| place.is_some()).map(|(key, _)| key)
    }

    /// Returns the socket of `key`.
    pub(crate) fn get(&self, key: u64) -> Option<&UdpSocket> {
        self.place(key).map(|place| &place.socket)
    }

    /// Returns whether a datagram to `server` that `key` has received is for an open listener.
    pub(crate) fn is_open(&self, key: u64, server: SocketAddr) -> bool {
        let is_open = |key| self.place(key).is_some_and(|place| place.state == State::Open || place.is_retiring);
        self.closing == 0 || is_open(key) || self.find(server).is_some_and(is_open)
    }

    /// Returns the listener that sends from `server`: bound to that address, or to the unspecified one; an open one first.
    pub(crate) fn find(&self, server: SocketAddr) -> Option<u64> {
        let takes_all = |local: SocketAddr| {
            local.ip().is_unspecified() && local.port() == server.port() && local.is_ipv4() == server.is_ipv4()
        };
        let is_exact = |local: SocketAddr| local == server;
        let find = |suits: &dyn Fn(SocketAddr) -> bool, is_any: bool| {
            let suits = |place: &Place| suits(place.socket.local_addr()) && (is_any || place.state == State::Open);
            self.places.iter().position(|place| place.as_ref().is_some_and(suits))
        };
        let open = find(&is_exact, false).or_else(|| find(&takes_all, false));
        let found = match open {
            None if self.closing > 0 => find(&is_exact, true).or_else(|| find(&takes_all, true))?,
            open => open?,
        };
        Some(found as u64)
    }

    fn place(&self, key: u64) -> Option<&Place> {
        self.places.get(key as usize)?.as_ref()
    }

    fn has_flow(&self, key: u64, flow: &FiveTuple) -> bool {
        flow.transport == Transport::Udp && self.find(flow.server) == Some(key)
    }

    fn serves_allocations(&self, key: u64, server: &Server) -> bool {
        server.live_allocations().any(|live| self.has_flow(key, &live.flow))
    }
}
