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
        feed.fetching[index] = None;
        feed.ended[index] += 1;
        let id = feed.ids[index];
        self.engine.unsubscribe(id, Nanos(START.0 + self.now.0));
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
        self.engine.subscribe(connection, id, now);
        if let Some((next, _)) = &feed.next {
            self.engine.announce_successor(next.connection, id, now);
        }
        self.request(number, index, "");
        self.look(number);
        self.serve_requests(number);
    }

    fn request(&mut self, number: usize, index: usize, prefix: &str) {
        let feed = &mut self.feeds[number];
        let requests = words::subscribe(feed.market.venue, prefix, &[&feed.listed[index].clone()]);
        let said = [feed.say(&requests, self.now), feed.say_next(&requests, self.now)];
        for arrives in said.into_iter().flatten() {
            self.at(arrives, Event::Arrive { feed: number });
        }
    }
}
