//! Symbols that end while the others of their connection go on, and begin again.

use tt_model::Nanos;

use super::client::START;
use super::words;
use super::world::{Event, World};

impl World<'_> {
    /// The client ends a symbol for `pause`.
    pub(super) fn unfollow(&mut self, number: usize, index: usize, pause: Nanos) {
        let feed = &mut self.feeds[number];
        if feed.open.is_none() || !feed.followed[index] {
            return;
        }
        (feed.followed[index], feed.lost[index], feed.misquoted[index]) = (false, false, None);
        feed.asked[index] = None;
        let id = feed.ids[index];
        self.engines[feed.engine].unsubscribe(id, Nanos(START.0 + self.now.0));
        self.request(number, index, "un");
        self.at(Nanos(self.now.0 + pause.0), Event::Follow { feed: number, index });
        self.look(number);
    }

    /// The client follows a symbol again, unless a new connection does so already.
    pub(super) fn follow(&mut self, number: usize, index: usize) {
        let feed = &mut self.feeds[number];
        let Some(open) = feed.open.as_ref().filter(|_| !feed.followed[index]) else { return };
        let (connection, id) = (open.connection, feed.ids[index]);
        feed.followed[index] = true;
        let now = Nanos(START.0 + self.now.0);
        let engine = &mut self.engines[feed.engine];
        engine.subscribe(connection, id, now);
        if let Some((next, _)) = &feed.next {
            engine.announce_successor(next.connection, id, now);
        }
        self.request(number, index, "");
        self.look(number);
        self.serve_requests(number);
    }

    fn request(&mut self, number: usize, index: usize, prefix: &str) {
        let feed = &self.feeds[number];
        let requests = words::subscribe(feed.market.venue, prefix, &[&feed.listed[index].clone()]);
        let next = feed.next.as_ref().map(|(next, _)| next);
        let connections: Vec<u64> = feed.open.iter().chain(next).map(|open| open.number).collect();
        for connection in connections {
            self.say(number, connection, requests.clone());
        }
    }
}
