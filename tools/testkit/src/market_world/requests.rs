//! Requests of the engine, and the snapshots in reply.

use tt_market::{ConnectionId, Request};
use tt_model::{InstrumentId, Nanos};

use super::client::START;
use super::planted::Planted;
use super::words;
use super::world::{Event, World};

/// A snapshot may be asked for again after this long without an answer.
const SNAPSHOT_WAIT: Nanos = Nanos::from_secs(30);

impl World<'_> {
    /// Does what the engine asks for.
    pub(super) fn serve_requests(&mut self, number: usize) {
        let now = Nanos(START.0 + self.now.0);
        while let Some(request) = self.engine.poll_request(now) {
            let of = |id| self.feeds.iter().position(|feed| feed.ids.contains(&id)).unwrap_or(number);
            match request {
                Request::FetchSnapshot { instrument } => {
                    let number = of(instrument);
                    self.ask(number, instrument, true);
                    if self.planted == Some(Planted::AsksTwice) {
                        self.ask(number, instrument, true);
                    }
                }
                Request::Resubscribe { instrument, connection } => {
                    let number = of(instrument);
                    if self.feeds[number].has(connection) {
                        self.ask(number, instrument, false);
                        if self.planted == Some(Planted::AsksTwice) {
                            self.ask(number, instrument, false);
                        }
                    }
                }
                Request::Pong { connection } => {
                    let Some(number) = self.of_connection(connection) else { continue };
                    let sign_of_life = [words::SIGN_OF_LIFE.to_owned()];
                    if let Some(arrives) = self.feeds[number].say(&sign_of_life, self.now) {
                        self.at(arrives, Event::Arrive { feed: number });
                    }
                }
                Request::Replace { connection } => {
                    if let Some(number) = self.of_connection(connection) {
                        self.replace(number);
                    }
                }
                Request::Reconnect { connection } => {
                    if let Some(number) = self.of_connection(connection) {
                        self.end(number, connection);
                    }
                }
            }
        }
    }

    /// The feed whose open connection it is.
    fn of_connection(&self, connection: ConnectionId) -> Option<usize> {
        self.feeds.iter().position(|feed| feed.has(connection))
    }

    fn ask(&mut self, number: usize, instrument: InstrumentId, by_rest: bool) {
        let now = self.now;
        let feed = &mut self.feeds[number];
        let Some(index) = feed.ids.iter().position(|id| *id == instrument) else { return };
        self.asked[number] += 1;
        if let Some(since) = feed.fetching[index]
            && now.0 - since.0 < SNAPSHOT_WAIT.0
        {
            let what = format!("{}: two snapshots under way", feed.listed[index].symbol);
            return self.fail(4, what);
        }
        feed.fetching[index] = Some(now);
        if by_rest {
            let (latency, subscription) = (feed.rest_latency, feed.subscription(index));
            self.at(Nanos(now.0 + latency.0 / 2), Event::ServeRest { feed: number, index, subscription });
        } else {
            let listed = [&feed.listed[index].clone()];
            let mut requests = words::subscribe(feed.market.venue, "un", &listed);
            requests.extend(words::subscribe(feed.market.venue, "", &listed));
            if let Some(arrives) = feed.say(&requests, now) {
                self.at(arrives, Event::Arrive { feed: number });
            }
            // The answer is a snapshot on the socket, which anything may happen to: one at a time is all that counts.
            self.feeds[number].fetching[index] = None;
        }
        // Each book of a connection that is lost for one cause may be asked for, and again where that fails.
        let books = self.feeds[number].listed.len() as u64;
        let budget = 4 * books * (1 + self.causes[number]);
        if self.asked[number] > budget {
            let what = format!("{} snapshots asked for, {budget} in the budget", self.asked[number]);
            self.fail(4, what);
        }
    }

    pub(super) fn serve_rest(&mut self, number: usize, index: usize, subscription: (u64, u64)) {
        let feed = &mut self.feeds[number];
        if feed.subscription(index) != subscription || self.planted == Some(Planted::LosesSnapshots) {
            return;
        }
        let body = feed.offline.rest_book(index, 1000);
        let arrives = Nanos(self.now.0 + feed.rest_latency.0 / 2);
        self.at(arrives, Event::RestArrives { feed: number, index, subscription, body });
    }

    pub(super) fn rest_arrives(&mut self, number: usize, index: usize, subscription: (u64, u64), body: Option<String>) {
        let feed = &mut self.feeds[number];
        if feed.subscription(index) != subscription {
            return;
        }
        feed.fetching[index] = None;
        let (now, id) = (Nanos(START.0 + self.now.0), feed.ids[index]);
        if let Some(body) = body {
            self.given[number] += 1;
            let result = self.engine.handle_snapshot(now, id, body.as_bytes());
            self.trace.say(self.now, || format!("snapshot of {index}: {result:?}"));
            self.causes[number] += u64::from(result.is_err());
        } else {
            self.causes[number] += 1;
            self.engine.snapshot_failed(id, now);
        }
        self.look(number);
        self.serve_requests(number);
    }
}
