//! Connections that take over from one that is still open.

use tt_market::ConnectionId;
use tt_model::Nanos;

use super::client::START;
use super::faults::Layer;
use super::words;
use super::world::World;

/// A connection takes over after this long, although some book has not gone over.
const MEET_MAX: Nanos = Nanos::from_secs(10);

impl World<'_> {
    /// Opens the connection that is to take over, and asks for everything on it.
    pub(super) fn dial_next(&mut self, number: usize, generation: u64) {
        let now = Nanos(START.0 + self.now.0);
        let feed = &mut self.feeds[number];
        if feed.generation != generation || !std::mem::take(&mut feed.is_dialling) || feed.open.is_none() {
            return;
        }
        self.tally.connections += 1;
        let connection = self.engines[feed.engine].open_connection(feed.engine_venue, now);
        let open = feed.dial(connection);
        let opened = open.number;
        feed.next = Some((open, self.now));
        // It may bring what was lost.
        feed.lost.fill(false);
        let followed: Vec<usize> = (0..feed.listed.len()).filter(|index| feed.followed[*index]).collect();
        for index in &followed {
            self.engines[feed.engine].announce_successor(connection, feed.ids[*index], now);
        }
        let listed: Vec<_> = followed.iter().map(|index| &feed.listed[*index]).collect();
        let requests = if listed.is_empty() { Vec::new() } else { words::subscribe(feed.market.venue, "", &listed) };
        self.note_connection(number);
        self.say(number, opened, requests);
        self.look(number);
        self.serve_requests(number);
    }

    /// Ends the first connection once every book has gone over.
    pub(super) fn advance_succession(&mut self, number: usize) {
        let feed = &self.feeds[number];
        let Some((_, since)) = feed.next else { return };
        let mut followed = feed.ids.iter().zip(&feed.followed).filter(|(_, is_followed)| **is_followed);
        let engine = &self.engines[feed.engine];
        let have_met = !followed.any(|(id, _)| engine.awaits_successor(*id));
        if have_met || self.now.0 - since.0 > MEET_MAX.0 {
            self.complete_succession(number);
        }
    }

    /// Ends the first connection; the other one has its place.
    fn complete_succession(&mut self, number: usize) {
        let feed = &mut self.feeds[number];
        let Some((next, _)) = feed.next.take() else { return };
        self.tally.successions += 1;
        feed.layers.iter_mut().for_each(Layer::forget);
        if let Some(first) = feed.open.replace(next) {
            feed.offline.close(&first.received);
            self.engines[feed.engine].close_connection(first.connection, Nanos(START.0 + self.now.0));
        }
        self.look(number);
        self.serve_requests(number);
    }

    /// One of the feed's connections has ended, or is of no use.
    pub(super) fn end(&mut self, number: usize, connection: ConnectionId) {
        let feed = &mut self.feeds[number];
        match feed.next.take() {
            Some((next, _)) if next.connection == connection => {
                feed.offline.close(&next.received);
                self.engines[feed.engine].close_connection(connection, Nanos(START.0 + self.now.0));
                // Books that have gone over to it have no connection now.
                self.close(number);
            }
            Some(next) => {
                feed.next = Some(next);
                self.complete_succession(number);
            }
            None => self.close(number),
        }
    }
}
