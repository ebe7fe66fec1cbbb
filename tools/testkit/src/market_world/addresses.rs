//! Addresses: feeds that share what their venue allows, through the budget of the shipped feeds.

use market_feed::offline::AddressBudget;
use tt_model::Nanos;

use super::client::{Feed, START};
use super::gate::Gate;
use super::world::{Event, World};

/// What the feeds of a venue share.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) budget: AddressBudget,
    pub(super) gate: Gate,
    /// Books of all feeds.
    books: u64,
}

impl Address {
    /// The addresses of `feeds`, whose numbers they take.
    pub(super) fn of(feeds: &mut [Feed]) -> Vec<Self> {
        let mut addresses: Vec<Self> = Vec::new();
        for feed in feeds {
            let known = addresses.iter().position(|address| address.gate.venue == feed.market.venue);
            feed.address = known.unwrap_or_else(|| {
                let budget = AddressBudget::new(feed.engine_venue.rules().address);
                addresses.push(Self { budget, gate: Gate::new(feed.market.venue), books: 0 });
                addresses.len() - 1
            });
            addresses[feed.address].books += feed.listed.len() as u64;
        }
        addresses
    }
}

/// A snapshot by REST that a feed waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) index: usize,
    asked: Nanos,
    /// The moment that is reserved for its request.
    at: Nanos,
    is_sent: bool,
}

impl World<'_> {
    /// Opens a connection as soon as the venue allows.
    pub(super) fn connect(&mut self, number: usize) {
        let feed = &self.feeds[number];
        if feed.open.is_some() {
            return;
        }
        let now = self.now;
        let at = self.budget_of(number).connect(now);
        if at > self.now {
            self.tally.put_off += 1;
            return self.at(at, Event::Dial { feed: number });
        }
        self.dial(number);
    }

    /// The same for the connection that is to take over.
    pub(super) fn replace(&mut self, number: usize) {
        let feed = &mut self.feeds[number];
        if feed.open.is_none() || feed.next.is_some() || feed.is_dialling {
            return;
        }
        feed.is_dialling = true;
        let generation = feed.generation;
        let now = self.now;
        let at = self.budget_of(number).connect(now);
        if at > self.now {
            self.tally.put_off += 1;
            return self.at(at, Event::DialNext { feed: number, generation });
        }
        self.dial_next(number, generation);
    }

    fn budget_of(&mut self, number: usize) -> &mut AddressBudget {
        &mut self.addresses[self.feeds[number].address].budget
    }

    /// Notes a new connection at the venue.
    pub(super) fn note_connection(&mut self, number: usize) {
        let noted = self.addresses[self.feeds[number].address].gate.connect(self.now);
        if let Err(what) = noted {
            self.fail(9, what);
        }
    }

    /// Says `requests` on a feed's connection of that number, as soon as the venue allows.
    pub(super) fn say(&mut self, number: usize, connection: u64, requests: Vec<String>) {
        for text in requests {
            let feed = &mut self.feeds[number];
            let budget = &mut self.addresses[feed.address].budget;
            let rate = feed.engine_venue.rules().requests;
            let Some(open) = feed.open_of(connection) else { return };
            let at = open.pace.take(rate, self.now);
            let at = budget.send(at, self.now);
            if at > self.now {
                self.tally.put_off += 1;
                self.at(at, Event::Say { feed: number, connection, text });
            } else {
                self.say_now(number, connection, &text);
            }
        }
    }

    pub(super) fn say_now(&mut self, number: usize, connection: u64, text: &str) {
        let feed = &mut self.feeds[number];
        let gate = &mut self.addresses[feed.address].gate;
        let Some(open) = feed.open_of(connection) else { return };
        let noted = gate.request(&mut open.requests, self.now);
        if let Some(arrives) = feed.say(connection, text, self.now) {
            self.at(arrives, Event::Arrive { feed: number });
        }
        if let Err(what) = noted {
            self.fail(9, what);
        }
    }

    /// Waits for a snapshot of a book. Returns whether none is on its way yet.
    pub(super) fn wait_for_snapshot(&mut self, number: usize, index: usize) -> bool {
        let feed = &mut self.feeds[number];
        if !feed.fetching.begin(feed.ids[index]) {
            return false;
        }
        let is_double = feed.waits.iter().any(|wait| wait.index == index);
        let (generation, gap) = (feed.generation, feed.engine_venue.rules().snapshot_gap);
        let at = self.addresses[feed.address].budget.fetch(gap, self.now);
        feed.waits.push(Wait { index, asked: self.now, at, is_sent: false });
        if is_double {
            let what = format!("{}: a second snapshot while one is on its way", feed.listed[index].symbol);
            self.fail(9, what);
        }
        self.at(at, Event::Fetch { feed: number, index, generation });
        true
    }

    /// The moment of a request has come.
    pub(super) fn fetch(&mut self, number: usize, index: usize, generation: u64) {
        let feed = &mut self.feeds[number];
        let (address, gap) = (&mut self.addresses[feed.address], feed.engine_venue.rules().snapshot_gap);
        let is_it = |wait: &&mut Wait| wait.index == index && !wait.is_sent;
        let Some(wait) = feed.waits.iter_mut().find(is_it).filter(|_| feed.generation == generation) else { return };
        if let Some(later) = address.budget.postponed(wait.at, gap, self.now) {
            wait.at = later;
            self.tally.put_off += 1;
            return self.at(later, Event::Fetch { feed: number, index, generation });
        }
        wait.is_sent = true;
        let sent = address.gate.send(self.now);
        let latency = feed.rest_latency;
        self.at(Nanos(self.now.0 + latency.0 / 2), Event::ServeRest { feed: number, index, generation });
        if let Err(what) = sent {
            self.fail(9, what);
        }
    }

    /// The feed's connection is gone, and the snapshots that it waited for are not needed.
    pub(super) fn forget_snapshots(&mut self, number: usize) {
        let feed = &mut self.feeds[number];
        let (address, gap) = (&mut self.addresses[feed.address], feed.engine_venue.rules().snapshot_gap);
        for wait in feed.waits.drain(..).filter(|wait| !wait.is_sent) {
            address.budget.give_back(wait.at, gap, self.now);
        }
        feed.fetching = Default::default();
    }

    /// Whether a request for a snapshot waits for longer than the venue's limits explain.
    pub(super) fn look_at_waits(&mut self) {
        for feed in &self.feeds {
            let address = &self.addresses[feed.address];
            let is_late = |wait: &&Wait| !wait.is_sent && self.now > address.gate.fetch_max(wait.asked, address.books);
            if let Some(wait) = feed.waits.iter().find(is_late) {
                let waited = self.now.0 - wait.asked.0;
                let what = format!(
                    "{}: its snapshot waits for {} ms behind those of {} books",
                    feed.listed[wait.index].symbol,
                    waited / 1_000_000,
                    address.books
                );
                return self.fail(9, what);
            }
        }
    }

    /// When the last feed may ask again.
    pub(super) fn held_until(&self) -> Nanos {
        let of = |address: &Address| address.gate.fetch_max(Nanos(0), address.books);
        self.addresses.iter().map(of).max().unwrap_or_default()
    }

    /// The venue's time without the deeds that move it.
    pub(super) const fn unix(&self) -> Nanos {
        Nanos(START.0 + self.now.0)
    }
}
