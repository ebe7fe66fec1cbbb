//! One connection to a venue with its own engine, followed until something has been observed.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Bytes;
use tokio_tungstenite::tungstenite::Message;
use tt_market::DropReason;
use tt_market::candle::CandleSource;
use tt_market::counters::VenueCounters;
use tt_market::{Applied, BookUpdate, Capacity, ConnectionId, Engine, InstrumentSpec, Request};
use tt_meter::{Clock, Off};
use tt_model::InstrumentId;
use tt_os::clock::unix_now;
use tt_venue::Symbol;
use tt_venue::event::{Event, EventBuffer};
use tt_venue::listing::Listing;

use super::observations::Observations;
use crate::account::RequestLogin;
use crate::arrivals::Arrivals;
use crate::rest::{self, RestRequest};
use crate::settings::FeedConfig;
use crate::socket::Socket;
use crate::topics::{Answer, Outgoing, Refusal, Requests};

/// How often deadlines are looked at.
const BEAT: Duration = Duration::from_millis(50);

/// Pages of 64 price steps for each book.
const PAGES_PER_INSTRUMENT: usize = 4096;

type Fetched = (InstrumentId, Result<Bytes, rest::Failed>);

/// Why a wait has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// What was waited for is there.
    So,
    /// It did not come in time.
    Late,
    /// It will not come: the connection is gone.
    Lost(String),
}

/// One instrument whose book is followed.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) symbol: String,
    pub(super) id: InstrumentId,
    /// Frames that changed the book.
    pub(super) updates: u64,
}

/// A connection that is followed.
pub(super) struct Visit<'a> {
    feed: &'a FeedConfig,
    engine: Engine,
    connection: ConnectionId,
    buffer: EventBuffer,
    socket: Socket,
    clock: Clock,
    login: Option<RequestLogin>,
    requests: Requests,
    pub(super) arrivals: Arrivals,
    unsent: VecDeque<Outgoing>,
    send_not_before: Instant,
    fetches: FuturesUnordered<Pin<Box<dyn Future<Output = Fetched>>>>,
    /// Books whose snapshots wait until all requests are answered.
    held: Vec<InstrumentId>,
    pub(super) followed: Vec<Followed>,
    pub(super) refusals: Vec<Refusal>,
    /// Why snapshots could not be fetched.
    pub(super) not_fetched: Option<String>,
    pub(super) observations: Observations,
    pub(super) last_heard: Instant,
}

impl<'a> Visit<'a> {
    /// Follows `listings` on `socket`, of which nothing is asked yet.
    ///
    /// # Errors
    /// The engine does not take an instrument.
    pub(super) fn new(
        feed: &'a FeedConfig,
        listings: &[Listing],
        (socket, login): (Socket, Option<RequestLogin>),
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let pages = Capacity::default().pages.max(listings.len() * PAGES_PER_INSTRUMENT);
        let book_orders = feed.book_orders();
        let capacity =
            Capacity { instruments: listings.len(), connections: 1, pages, book_orders, ..Capacity::default() };
        let mut engine = Engine::new(capacity);
        let mut followed = Vec::with_capacity(listings.len());
        let now = unix_now();
        let opened = engine.open_connection(feed.venue, now);
        let connection = opened.map_err(|error| anyhow::anyhow!("no connection: {error}"))?;
        for listing in listings {
            let symbol = Symbol::new(listing.symbol.as_bytes());
            let symbol = symbol.map_err(|fault| anyhow::anyhow!("{}: {}", listing.symbol, fault.name()))?;
            let spec = InstrumentSpec {
                venue: feed.venue,
                symbol,
                tick_size: listing.tick_size,
                lot_size: listing.lot_size,
                depth_max: feed.rules().truncates.then_some(feed.depth as usize),
                candles: CandleSource::Trades,
            };
            let added = engine.add_instrument(spec).and_then(|id| {
                if feed.level3 {
                    engine.follow_orders(id)?;
                }
                if feed.is_full() {
                    engine.follow_full_book(id)?;
                }
                engine.subscribe(connection, id, now).map(|()| id)
            });
            let id = added.map_err(|error| anyhow::anyhow!("{} cannot be followed: {error}", listing.symbol))?;
            followed.push(Followed { symbol: listing.symbol.clone(), id, updates: 0 });
        }
        // Those of the address that is visited.
        let topics = feed.links().swap_remove(0).topics;
        let symbols: Vec<String> = listings.iter().map(|listing| listing.symbol.clone()).collect();
        let arrivals = Arrivals::new(&topics, &symbols, feed.depth, Instant::now()).counting();
        let mut requests = Requests::new(feed.rules(), topics, feed.depth, feed.timing.answer_max);
        let mut unsent: VecDeque<Outgoing> = requests.subscribe(&symbols).into();
        unsent.extend(feed.venue.rules().keep_alive.enable.map(Outgoing::unanswered));
        let moment = Instant::now();
        Ok(Self {
            feed,
            engine,
            connection,
            buffer: EventBuffer::with_orders(
                capacity.frame_levels,
                capacity.frame_entries,
                capacity.frame_entries.max(book_orders),
            ),
            socket,
            clock,
            login,
            requests,
            arrivals,
            unsent,
            send_not_before: moment,
            fetches: FuturesUnordered::new(),
            held: Vec::new(),
            followed,
            refusals: Vec::new(),
            not_fetched: None,
            observations: Observations::default(),
            last_heard: moment,
        })
    }

    pub(super) fn counters(&self) -> &VenueCounters {
        self.engine.counters().venue(self.feed.venue)
    }

    pub(super) const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Whether every request was sent and answered.
    pub(super) fn is_answered(&self) -> bool {
        self.unsent.is_empty() && self.requests.all_answered()
    }

    /// What was asked for and not answered.
    pub(super) fn unanswered(&self) -> String {
        self.requests.overdue(Instant::now() + self.feed.timing.answer_max * 2).unwrap_or_default().to_owned()
    }

    /// Sends one message as it is.
    pub(super) async fn send(&mut self, message: Message) -> Result<(), String> {
        self.socket.send(message).await.map_err(|error| error.to_string())
    }

    /// Goes on until `is_so`, for `most` at most.
    pub(super) async fn until(&mut self, most: Duration, mut is_so: impl FnMut(&Self) -> bool) -> Ended {
        let deadline = Instant::now() + most;
        loop {
            if is_so(self) {
                return Ended::So;
            }
            if Instant::now() >= deadline {
                return Ended::Late;
            }
            if let Err(reason) = self.turn(deadline).await {
                return Ended::Lost(reason);
            }
        }
    }

    /// Takes what comes next.
    async fn turn(&mut self, deadline: Instant) -> Result<(), String> {
        let wake = deadline.min(Instant::now() + BEAT);
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(self.send_not_before.into()), if !self.unsent.is_empty() => {
                self.send_not_before = Instant::now() + Duration::from_nanos(self.feed.rules().requests.gap.0);
                if let Some(request) = self.unsent.pop_front() {
                    self.requests.note_sent(&request, Instant::now());
                    let text = match &self.login {
                        Some(login) => login.fill(&request.text),
                        None => request.text,
                    };
                    self.send(Message::text(text)).await?;
                }
            }
            Some((instrument, fetched)) = self.fetches.next(), if !self.fetches.is_empty() => {
                self.take_snapshot(instrument, fetched);
            }
            message = self.socket.next() => {
                let message = message.ok_or("the venue closed the connection")?.map_err(|error| error.to_string())?;
                self.take(message)?;
            }
            () = tokio::time::sleep_until(wake.into()) => {}
        }
        let now = Instant::now();
        if self.is_answered() {
            self.arrivals.begin(now);
        }
        // What is silent is asked of `arrivals`.
        let _ = self.arrivals.check(now);
        self.engine.handle_timeout(unix_now());
        self.serve_requests().await
    }

    fn take(&mut self, message: Message) -> Result<(), String> {
        self.last_heard = Instant::now();
        match message {
            Message::Text(text) => self.take_frame(text.as_str()),
            Message::Binary(bytes) => self.take_frame(&String::from_utf8_lossy(&bytes)),
            Message::Ping(_) => self.observations.pings += 1,
            Message::Pong(_) => self.observations.pongs += 1,
            Message::Close(reason) => {
                let reason = reason.map_or_else(String::new, |close| close.to_string());
                return Err(format!("the venue closed the connection: {reason}"));
            }
            Message::Frame(_) => {}
        }
        Ok(())
    }

    fn take_frame(&mut self, text: &str) {
        let now = unix_now();
        self.arrivals.take(text.as_bytes(), self.last_heard);
        let venue = self.feed.venue;
        let read = venue.parse(text.as_bytes(), &mut self.buffer);
        self.observations.note(venue, text, read.as_ref().map_err(|fault| *fault), self.buffer.is_general());
        if self.requests.is_answer(text) {
            let Answer { refusal, again } = self.requests.take(text);
            self.refusals.extend(refusal);
            self.unsent.extend(again);
        }
        let before = *self.counters();
        let applied = self.engine.handle_frame(now, self.connection, text.as_bytes(), &mut Off);
        let (gaps, lag_ns) = (self.counters().gaps, self.counters().lag_signed_ns());
        if gaps > before.gaps {
            self.observations.gap.get_or_insert_with(|| text.to_owned());
        }
        if lag_ns != before.lag_signed_ns() {
            self.observations.lag(lag_ns);
        }
        match (applied, &read) {
            // A rejection is reported with its request.
            (Err(DropReason::Rejected), _) => {}
            (Err(fault), _) => self.observations.drop(fault, text),
            (
                Ok(Applied::Book { instrument: id, update: BookUpdate::Snapshot | BookUpdate::Delta }),
                Ok(Event::BookDelta(_) | Event::BookSnapshot(_) | Event::BookOrders(_)),
            ) => {
                self.followed.iter_mut().filter(|book| book.id == id).for_each(|book| book.updates += 1);
            }
            (Ok(_), _) => {}
        }
    }

    /// Does what the engine asks for.
    async fn serve_requests(&mut self) -> Result<(), String> {
        if self.is_answered() {
            for instrument in std::mem::take(&mut self.held) {
                self.fetch(instrument);
            }
        }
        while let Some(request) = self.engine.poll_request(unix_now()) {
            match request {
                Request::FetchSnapshot { instrument } if self.is_answered() => self.fetch(instrument),
                Request::FetchSnapshot { instrument } => self.held.push(instrument),
                Request::Resubscribe { instrument, .. } => {
                    let symbol = self.symbol(instrument);
                    self.unsent.extend(self.requests.resubscribe(&[symbol]));
                }
                Request::Reconnect { .. } => return Err("silent for too long".to_owned()),
                // A visit is short.
                Request::Replace { .. } => {}
                Request::Pong { .. } => {
                    if let Some(answer) = self.feed.venue.rules().keep_alive.pong {
                        self.send(Message::text(answer)).await?;
                    }
                }
            }
        }
        Ok(())
    }

    fn symbol(&self, instrument: InstrumentId) -> String {
        let book = self.followed.iter().find(|book| book.id == instrument);
        book.map_or_else(String::new, |book| book.symbol.clone())
    }

    fn fetch(&mut self, instrument: InstrumentId) {
        let Some(path) = self.feed.snapshot_path(&self.symbol(instrument)) else { return };
        let uri = self.feed.rest_uri(&path);
        let clock = self.clock;
        self.fetches.push(Box::pin(async move {
            let fetched = match uri {
                Ok(uri) => rest::send(&uri, RestRequest::get(), clock).await.map(|response| response.body),
                Err(error) => Err(rest::Failed::new(error)),
            };
            (instrument, fetched)
        }));
    }

    fn take_snapshot(&mut self, instrument: InstrumentId, fetched: Result<Bytes, rest::Failed>) {
        let now = unix_now();
        match fetched {
            Ok(body) => {
                if let Err(fault) = self.engine.handle_snapshot(now, instrument, &body, &mut Off) {
                    self.observations.drop(fault, &String::from_utf8_lossy(&body));
                }
            }
            Err(failed) => {
                self.not_fetched = Some(failed.reason);
                self.engine.snapshot_failed(instrument, now);
            }
        }
    }

    /// Ends the connection as one does.
    pub(super) async fn close(mut self) -> anyhow::Result<()> {
        tokio::time::timeout(Duration::from_millis(500), self.socket.close(None)).await.context("no farewell")??;
        Ok(())
    }
}
