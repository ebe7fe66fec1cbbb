//! Requests of the engine, and the snapshots in reply.

use tt_market::{ConnectionId, Request};
use tt_model::{InstrumentId, Nanos};

use super::addresses::Address;
use super::client::{Feed, START};
use super::gate::Answer;
use super::planted::Planted;
use super::words;
use super::world::{Event, World};

/// A snapshot may be asked for again after this long without an answer.
const SNAPSHOT_WAIT: Nanos = Nanos::from_secs(30);
/// `Retry-After` of a request that the simulated venue refuses.
const REFUSED_S: u64 = 1;

impl World<'_> {
    /// Does what the engine asks for.
    pub(super) fn serve_requests(&mut self, number: usize) {
        let now = Nanos(START.0 + self.now.0);
        let engine = self.feeds[number].engine;
        while let Some(request) = self.engines[engine].poll_request(now) {
            let is_of = |feed: &Feed, id| feed.engine == engine && feed.ids.contains(&id);
            let of = |id| self.feeds.iter().position(|feed| is_of(feed, id)).unwrap_or(number);
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
                    let Some(number) = self.of_connection(engine, connection) else { continue };
                    let open = self.feeds[number].open.as_ref().map(|open| open.number);
                    self.say(number, open.unwrap_or(0), vec![words::SIGN_OF_LIFE.to_owned()]);
                }
                Request::Replace { connection } => {
                    if let Some(number) = self.of_connection(engine, connection) {
                        self.replace(number);
                    }
                }
                Request::Reconnect { connection } => {
                    if let Some(number) = self.of_connection(engine, connection) {
                        self.end(number, connection);
                    }
                }
            }
        }
    }

    /// The feed whose open connection it is.
    fn of_connection(&self, engine: usize, connection: ConnectionId) -> Option<usize> {
        self.feeds.iter().position(|feed| feed.engine == engine && feed.has(connection))
    }

    fn ask(&mut self, number: usize, instrument: InstrumentId, by_rest: bool) {
        let now = self.now;
        let feed = &mut self.feeds[number];
        let Some(index) = feed.ids.iter().position(|id| *id == instrument) else { return };
        if let Some(since) = feed.asked[index]
            && now.0 - since.0 < SNAPSHOT_WAIT.0
        {
            let what = format!("{}: two snapshots under way", feed.listed[index].symbol);
            return self.fail(4, what);
        }
        feed.asked[index] = Some(now);
        if by_rest {
            // One that waits for the venue's limits is not asked for again.
            if !self.wait_for_snapshot(number, index) {
                self.tally.repeated += 1;
                return;
            }
        } else {
            let listed = [&feed.listed[index].clone()];
            let mut requests = words::subscribe(feed.market.venue, "un", &listed);
            requests.extend(words::subscribe(feed.market.venue, "", &listed));
            // The answer is a snapshot on the socket, which anything may happen to: one at a time is all that counts.
            feed.asked[index] = None;
            let open = feed.open.as_ref().map(|open| open.number);
            self.say(number, open.unwrap_or(0), requests);
        }
        self.asked[number] += 1;
        // Each book of a connection that is lost for one cause may be asked for, and again where that fails.
        let books = self.feeds[number].listed.len() as u64;
        let budget = 4 * books * (1 + self.causes[number]);
        if self.asked[number] > budget {
            let what = format!("{} snapshots asked for, {budget} in the budget", self.asked[number]);
            self.fail(4, what);
        }
    }

    pub(super) fn serve_rest(&mut self, number: usize, index: usize, generation: u64) {
        let unix = self.unix();
        let feed = &mut self.feeds[number];
        let gate = &mut self.addresses[feed.address].gate;
        // A request arrives also if its connection has ended since.
        let answer = match gate.arrive(unix, self.now) {
            Err(what) => return self.fail(9, what),
            Ok(Err(seconds)) => {
                self.tally.banned += 1;
                Answer::Later(seconds)
            }
            Ok(Ok(used)) => match feed.offline.rest_book(index, 1000) {
                Some(body) => Answer::Snapshot(body, used),
                None => Answer::Later(REFUSED_S),
            },
        };
        if self.planted == Some(Planted::LosesSnapshots) {
            return;
        }
        let arrives = Nanos(self.now.0 + feed.rest_latency.0 / 2);
        self.at(arrives, Event::RestArrives { feed: number, index, generation, answer });
    }

    pub(super) fn rest_arrives(&mut self, number: usize, index: usize, generation: u64, answer: Answer) {
        let unix = self.unix();
        let feed = &mut self.feeds[number];
        if feed.generation != generation {
            return;
        }
        feed.asked[index] = None;
        feed.fetching.end(feed.ids[index]);
        feed.waits.retain(|wait| wait.index != index);
        let Address { budget, gate, .. } = &mut self.addresses[feed.address];
        gate.learn(&answer, unix, self.now);
        let id = feed.ids[index];
        let engine = &mut self.engines[feed.engine];
        match answer {
            Answer::Snapshot(body, used) => {
                budget.note_weight(used, unix, self.now);
                self.given[number] += 1;
                let result = engine.handle_snapshot(unix, id, body.as_bytes());
                self.trace.say(self.now, || format!("snapshot of {index}: {result:?}"));
                self.causes[number] += u64::from(result.is_err());
            }
            Answer::Later(seconds) => {
                if self.planted != Some(Planted::IgnoresBan) {
                    budget.leave_alone(Nanos::from_secs(seconds), self.now);
                }
                self.trace.say(self.now, || format!("no snapshot of {index} for {seconds} s"));
                self.causes[number] += 1;
                engine.snapshot_failed(id, unix);
            }
        }
        self.look(number);
        self.serve_requests(number);
    }
}
