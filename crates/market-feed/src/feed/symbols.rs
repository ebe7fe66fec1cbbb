//! Symbols that end, and begin again, while the others of their feed go on.

use std::collections::HashMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tt_market::ConnectionId;
use tt_model::InstrumentId;
use tt_os::clock::unix_now;
use tt_status::market_streams::BookOrders;
use tt_venue::listing::InstrumentStatus;
use tt_venue::rules::Numbering;

use super::Feed;
use super::connection::Connection;
use super::orders;
use super::verification::random_share;
use crate::listing::{Listed, NotListed};
use crate::topics::Refusal;

/// A request of another thread.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// An instrument ends, by the feed's own number.
    End(InstrumentId),
    /// The orders of so many levels of an instrument are asked for.
    Orders(InstrumentId, usize, mpsc::Sender<BookOrders>),
}

/// A symbol that its venue has ended.
#[derive(Debug)]
struct Ended {
    id: InstrumentId,
    symbol: String,
    /// The instruments with its book that were followed.
    shown: Vec<InstrumentId>,
}

/// The shortest time between two requests for the list that messages of the venue suggest.
const LIST_GAP: Duration = Duration::from_secs(10);

/// What the venue's list says of the symbols of a feed, from time to time.
#[derive(Debug)]
pub(crate) struct ListWatch {
    every: Option<Duration>,
    due: Instant,
    /// When the list was requested last.
    requested: Option<Instant>,
    /// Whether the list on its way is for this.
    is_under_way: bool,
    /// Whether the list after the next one is requested soon, too: a symbol may be in neither.
    wants_two: bool,
    statuses: HashMap<InstrumentId, InstrumentStatus>,
    /// Symbols that the last list did not have.
    absent: Vec<InstrumentId>,
    ended: Vec<Ended>,
}

impl ListWatch {
    pub(super) fn new(every: Option<Duration>) -> Self {
        let due = Instant::now() + every.unwrap_or_default().mul_f64(0.9 + 0.2 * random_share());
        Self {
            every,
            due,
            requested: None,
            is_under_way: false,
            wants_two: false,
            statuses: HashMap::new(),
            absent: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// The status of an instrument at the start.
    pub(crate) fn begin(&mut self, id: InstrumentId, status: InstrumentStatus) {
        self.statuses.insert(id, status);
    }

    /// The list has changed: it is requested soon, and not much more often for that.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.due = self.due.min(self.requested.map_or(now, |at| now.max(at + LIST_GAP)));
    }

    /// A book is empty, which may mean that its instrument has ended: two lists without it say so.
    pub(super) fn doubt(&mut self, now: Instant) {
        self.hurry(now);
        self.wants_two = true;
    }

    /// Why a symbol ends by what the newest list says of it; `None` if it goes on.
    fn end_of(&mut self, id: InstrumentId, now: Option<InstrumentStatus>) -> Option<&'static str> {
        let Some(now) = now else {
            // One list may be incomplete.
            let was_absent = self.absent.contains(&id);
            if !was_absent {
                self.absent.push(id);
            }
            return was_absent.then_some("the venue lists it no longer");
        };
        self.absent.retain(|known| *known != id);
        let before = self.statuses.insert(id, now);
        match now {
            _ if before == Some(now) => None,
            InstrumentStatus::Halted => Some("the venue has halted it"),
            InstrumentStatus::Closed => Some("the venue has closed it"),
            InstrumentStatus::Trading
            | InstrumentStatus::CancelOnly
            | InstrumentStatus::PostOnly
            | InstrumentStatus::Settling
            | InstrumentStatus::Pending
            | InstrumentStatus::Unknown => None,
        }
    }
}

impl Feed {
    /// Ends an instrument; returns its symbol, if it was followed, and the instruments that had its book.
    fn end_symbol(&mut self, id: InstrumentId) -> Option<(String, Vec<InstrumentId>)> {
        let index = self.instruments.iter().position(|known| *known == id)?;
        self.instruments.remove(index);
        let symbol = self.config.symbols.remove(index);
        // The engine has it.
        let _ = self.intake.unsubscribe(id, unix_now());
        let shown = self.shown.followed_of(self.index, id);
        shown.iter().for_each(|shown| self.shown.set_followed(*shown, false));
        Some((symbol, shown))
    }
}

impl Connection<'_> {
    /// Does what other threads have requested.
    pub(super) fn take_commands(&mut self) {
        while let Ok(command) = self.feed.commands.try_recv() {
            match command {
                Command::End(id) => {
                    self.feed.list_watch.ended.retain(|ended| ended.id != id);
                    self.end_symbol(id);
                }
                Command::Orders(id, depth, answer) => {
                    if let Some(orders) = orders::of(self.feed.intake.engine(), id, depth) {
                        // It may be asked for no longer.
                        let _ = answer.send(orders);
                    }
                }
            }
        }
    }

    fn end_symbol(&mut self, id: InstrumentId) -> Option<(String, Vec<InstrumentId>)> {
        let (symbol, shown) = self.feed.end_symbol(id)?;
        self.held.retain(|held| *held != id);
        self.links.iter_mut().filter(|link| link.generation.is_some()).for_each(|link| link.end_symbol(&symbol));
        Some((symbol, shown))
    }

    /// Follows an instrument again.
    fn begin_symbol(&mut self, Ended { id, symbol, shown }: Ended, books: ConnectionId) {
        let venue = self.feed.config.venue.name();
        tracing::info!(venue, symbol, "market: followed again");
        self.feed.status.refusals.retain(|refusal| refusal.subject != symbol);
        for link in self.links.iter_mut().filter(|link| link.generation.is_some()) {
            link.begin_symbol(&symbol);
        }
        self.feed.instruments.push(id);
        self.feed.config.symbols.push(symbol);
        // The engine has both.
        let _ = self.feed.intake.subscribe(books, id, unix_now());
        shown.iter().for_each(|shown| self.feed.shown.set_followed(*shown, true));
    }

    /// Requests the venue's list when it is due.
    pub(super) fn watch_list(&mut self, now: Instant) {
        let feed = &mut *self.feed;
        let watch = &mut feed.list_watch;
        let Some(every) = watch.every.filter(|_| watch.due <= now && feed.status.connected) else { return };
        if !self.relisting.is_empty() || self.succession.is_under_way() || feed.address.is_held(now) {
            return;
        }
        watch.due = now + every.mul_f64(0.9 + 0.2 * random_share());
        watch.requested = Some(now);
        watch.is_under_way = true;
        let mut config = feed.config.clone();
        config.symbols.extend(watch.ended.iter().map(|ended| ended.symbol.clone()));
        self.relisting.push(super::relisting::list(config, feed.clock));
    }

    /// Takes what a message of the venue says of an instrument. A feed whose list is not watched follows what it has.
    #[cold]
    pub(super) fn take_status(&mut self, id: InstrumentId, status: InstrumentStatus) {
        if self.feed.list_watch.every.is_none() {
            return;
        }
        if self.feed.instruments.contains(&id) {
            self.judge(id, Some(status));
        } else if status == InstrumentStatus::Trading {
            self.follow_again(|ended| ended.id == id);
        }
    }

    /// Ends an instrument that the venue has ended.
    fn judge(&mut self, id: InstrumentId, status: Option<InstrumentStatus>) {
        let Some(reason) = self.feed.list_watch.end_of(id, status) else { return };
        let Some((symbol, shown)) = self.end_symbol(id) else { return };
        let venue = self.feed.config.venue.name();
        tracing::warn!(venue, symbol, reason, "market: followed no longer");
        self.feed.status.refuse(Refusal { subject: symbol.clone(), reason: reason.to_owned() });
        self.feed.list_watch.ended.push(Ended { id, symbol, shown });
    }

    /// Follows the ended symbols that `is_back` names.
    fn follow_again(&mut self, is_back: impl Fn(&Ended) -> bool) {
        let Some(books) = self.links.first().map(|link| link.id) else { return };
        if self.succession.is_under_way() {
            return;
        }
        let back: Vec<Ended> = self.feed.list_watch.ended.extract_if(.., |ended| is_back(ended)).collect();
        for ended in back {
            self.feed.list_watch.statuses.insert(ended.id, InstrumentStatus::Trading);
            self.feed.list_watch.absent.retain(|known| *known != ended.id);
            self.begin_symbol(ended, books);
        }
    }

    /// Takes the venue's list, whatever it was requested for.
    pub(super) fn take_list(&mut self, listed: Result<Listed, NotListed>) {
        if !std::mem::take(&mut self.feed.list_watch.is_under_way) {
            return self.feed.take_list(listed);
        }
        match listed {
            Ok(listed) => self.take_statuses(&listed),
            Err(error) => {
                let (venue, error) = (self.feed.config.venue.name(), error.into_error());
                tracing::warn!(venue, %error, "market: no list of instruments");
            }
        }
    }

    /// Ends the symbols that the venue has ended, and follows those again that are traded again.
    fn take_statuses(&mut self, listed: &Listed) {
        let status_of = |symbol: &str| {
            let listing = listed.entries.iter().find(|listing| listing.frame_symbol() == symbol);
            listing.map(|listing| listing.terms.status)
        };
        // An answer without any instrument is no list.
        if listed.entries.is_empty() && !listed.has_refusals() {
            return;
        }
        for id in self.feed.instruments.clone() {
            let status = self.feed.symbol(id).and_then(status_of);
            self.judge(id, status);
        }
        self.follow_again(|ended| status_of(&ended.symbol) == Some(InstrumentStatus::Trading));
        if std::mem::take(&mut self.feed.list_watch.wants_two) {
            self.feed.list_watch.hurry(Instant::now());
        }
    }

    /// Looks at a whole book that came on the socket. At venues that number from one again, an empty one with that number
    /// is the last of an instrument that was delisted, or the first after a restart: the list says which.
    pub(super) fn look_at_snapshot(&mut self, id: InstrumentId) {
        if self.feed.config.venue.rules().numbering != Numbering::RangeFromOne {
            return;
        }
        let top = self.feed.intake.top_of_book(id);
        if top.is_some_and(|top| top.update_id == 1 && top.bid.is_none() && top.ask.is_none()) {
            let (venue, symbol) = (self.feed.config.venue.name(), self.feed.symbol(id).unwrap_or_default());
            tracing::warn!(venue, symbol, "market: the venue has emptied the book: it may be delisted");
            self.feed.list_watch.doubt(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_to_halted_or_closed_ends_a_symbol_and_two_lists_without_it() {
        let mut watch = ListWatch::new(None);
        let id = InstrumentId(3);
        watch.begin(id, InstrumentStatus::Halted);
        assert_eq!(watch.end_of(id, Some(InstrumentStatus::Halted)), None, "as at the start");
        let goes_on = [InstrumentStatus::PostOnly, InstrumentStatus::CancelOnly, InstrumentStatus::Settling];
        for status in goes_on.into_iter().chain([InstrumentStatus::Trading]) {
            assert_eq!(watch.end_of(id, Some(status)), None);
        }
        assert_eq!(watch.end_of(id, Some(InstrumentStatus::Halted)), Some("the venue has halted it"));
        assert_eq!(watch.end_of(id, Some(InstrumentStatus::Closed)), Some("the venue has closed it"));
        assert_eq!(watch.end_of(id, None), None);
        assert_eq!(watch.end_of(id, Some(InstrumentStatus::Trading)), None, "one list was incomplete");
        assert_eq!(watch.end_of(id, None), None);
        assert_eq!(watch.end_of(id, None), Some("the venue lists it no longer"));
    }

    #[test]
    fn a_list_that_has_changed_is_requested_soon_and_not_again_at_once() {
        let (mut watch, now) = (ListWatch::new(Some(Duration::from_secs(300))), Instant::now());
        assert!(watch.due > now + LIST_GAP);
        watch.hurry(now);
        assert_eq!(watch.due, now);
        (watch.requested, watch.due) = (Some(now), now + Duration::from_secs(300));
        watch.hurry(now + Duration::from_secs(1));
        assert_eq!(watch.due, now + LIST_GAP);
        watch.hurry(now + Duration::from_secs(2));
        assert_eq!(watch.due, now + LIST_GAP);
    }
}
