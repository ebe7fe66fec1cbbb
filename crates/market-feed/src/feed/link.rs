//! One of the WebSockets that a feed needs.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use hyper::Uri;
use tokio::time::Sleep;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message};
use tt_market::ConnectionId;
use tt_meter::Clock;
use tt_model::Nanos;
use tt_os::clock::unix_now;
use tt_venue::rules::{Numbering, Rate, Topic};

use super::Feed;
use crate::account::{LoggedIn, RequestLogin};
use crate::address::{Address, Pace};
use crate::arrivals::Arrivals;
use crate::dial::LastRead;
use crate::liveness::{Liveness, Look};
use crate::settings::LinkConfig;
use crate::socket::{self, Socket};
use crate::topics::{Outgoing, Requests};

/// A closing handshake may take this long.
const CLOSE_MAX: Duration = Duration::from_millis(500);

const NO_CONNECTION: &str = "the engine holds no more connections";

/// What a WebSocket gives: a message, an error, or its end.
pub(super) type Received = Option<Result<Message, tungstenite::Error>>;

/// An open WebSocket with what was asked on it.
pub(super) struct Link {
    pub(super) id: ConnectionId,
    /// Links of the market data that were opened together; `None` for an account's.
    pub(super) generation: Option<u32>,
    pub(super) socket: Socket,
    pub(super) last_read: LastRead,
    pub(super) requests: Requests,
    /// Fills requests that need a login.
    pub(super) login: Option<RequestLogin>,
    /// Requests that wait for their time.
    pub(super) unsent: VecDeque<Outgoing>,
    /// Symbols whose books are to be sent again: those that wait together are asked for together.
    pub(super) resyncs: Vec<String>,
    /// What of the requested topics has arrived.
    pub(super) arrivals: Arrivals,
    rate: Rate,
    pace: Pace,
    address: Address,
    /// When the next request may go out.
    due: Option<Pin<Box<Sleep>>>,
    opened: Instant,
    liveness: Liveness,
    last_ping: Instant,
    /// Something was handed to the WebSocket that it may not have written.
    is_unflushed: bool,
    /// Since when a request finds no room, because the venue reads nothing.
    held_since: Option<Instant>,
    /// An answer to a request may take so long.
    answer_max: Duration,
    /// Close code for the venue, if it has broken the rules.
    close_code: Option<CloseCode>,
}

/// Opens the WebSocket of `config`.
///
/// # Errors
/// It cannot be opened, or the engine holds no more connections; in words.
pub(super) async fn open(feed: &mut Feed, config: &LinkConfig) -> Result<Link, String> {
    let (streams, socket, last_read) = open_any(config, feed.config.compressed, &feed.address, feed.clock)
        .await
        .map_err(|error| format!("{error:#}"))?;
    let venue = feed.config.venue;
    let id = feed.intake.open_connection(venue, &streams.to_string(), unix_now());
    let id = id.map_err(|_| NO_CONNECTION.to_owned())?;
    if streams != config.streams {
        prefer(feed, &streams);
    }
    Ok(Link { generation: Some(0), ..link(feed, id, (socket, last_read), config.topics.clone()) })
}

/// Opens the first address of `config` that can be reached.
///
/// # Errors
/// That of the first address if none can. One that refuses is reached.
async fn open_any(
    config: &LinkConfig,
    compressed: bool,
    address: &Address,
    clock: Clock,
) -> anyhow::Result<(Uri, Socket, LastRead)> {
    let mut unreached = None;
    for streams in std::iter::once(&config.streams).chain(&config.fallback) {
        tokio::time::sleep_until(address.connect().into()).await;
        match socket::open_packed(streams, compressed, clock).await {
            Ok((socket, last_read)) => return Ok((streams.clone(), socket, last_read)),
            Err(error) if error.is::<socket::Refused>() => return Err(unreached.unwrap_or(error)),
            Err(error) => drop(unreached.get_or_insert(error)),
        }
    }
    Err(unreached.unwrap_or_else(|| anyhow::anyhow!("no address")))
}

/// Uses the address that was reached from here on, and the others where it is not.
fn prefer(feed: &mut Feed, reached: &Uri) {
    let config = &mut feed.config;
    let Some(at) = config.streams_fallback.iter().position(|known| known == reached) else { return };
    let first = config.streams_fallback.remove(at);
    let unreached = std::mem::replace(&mut config.streams, first);
    config.streams_fallback.push(unreached);
    let (venue, url) = (config.venue.name(), reached.to_string());
    tracing::warn!(venue, url, "market: the first address cannot be reached: this one is used instead");
}

/// An open WebSocket that waits for its place among the links.
pub(super) type Opened = (LinkConfig, Socket, LastRead);

/// Opens the WebSockets that take over from those of a feed.
///
/// # Errors
/// One cannot be opened; in words.
pub(super) async fn open_successors(
    configs: Vec<LinkConfig>,
    compressed: bool,
    (address, clock): (Address, Clock),
) -> Result<Vec<Opened>, String> {
    let mut opened = Vec::with_capacity(configs.len());
    for config in configs {
        let (streams, socket, last_read) =
            open_any(&config, compressed, &address, clock).await.map_err(|error| format!("{error:#}"))?;
        opened.push((LinkConfig { streams, ..config }, socket, last_read));
    }
    Ok(opened)
}

/// The link of an open WebSocket that takes over.
///
/// # Errors
/// The engine holds no more connections; in words.
pub(super) fn successor(feed: &mut Feed, opened: Opened, generation: u32) -> Result<Link, String> {
    let (config, socket, last_read) = opened;
    let venue = feed.config.venue;
    let id = feed.intake.open_successor(venue, &config.streams.to_string(), unix_now());
    let id = id.map_err(|_| NO_CONNECTION.to_owned())?;
    Ok(Link { generation: Some(generation), ..link(feed, id, (socket, last_read), config.topics) })
}

/// The link of an account's own stream. Where messages are not numbered by connection, it counts as one with the link of
/// the `books`: an account may be silent for hours.
///
/// # Errors
/// The engine holds no more connections; in words.
pub(super) fn of_account(feed: &mut Feed, login: LoggedIn, books: Option<ConnectionId>) -> Result<Link, String> {
    let venue = feed.config.venue;
    let shared = books.filter(|_| venue.rules().numbering != Numbering::Connection);
    let id = match shared {
        Some(id) => id,
        None => {
            let opened = feed.intake.open_connection(venue, "account", unix_now());
            opened.map_err(|_| NO_CONNECTION.to_owned())?
        }
    };
    Ok(link(feed, id, (login.socket, login.last_read), Vec::new()))
}

fn link(feed: &Feed, id: ConnectionId, (socket, last_read): (Socket, LastRead), topics: Vec<&'static Topic>) -> Link {
    let (depth, timing) = (feed.config.depth, feed.config.timing);
    let rules = feed.config.rules_of(&topics);
    Link {
        id,
        generation: None,
        socket,
        last_read,
        arrivals: Arrivals::new(&topics, &feed.config.symbols, depth, Instant::now()),
        login: feed.login.clone().filter(|_| rules.needs_login()),
        requests: Requests::new(rules, topics, depth, timing.answer_max),
        unsent: VecDeque::new(),
        resyncs: Vec::new(),
        rate: rules.requests,
        pace: Pace::default(),
        address: feed.address.clone(),
        due: None,
        opened: Instant::now(),
        liveness: Liveness::new(timing.silence_max, Duration::ZERO),
        last_ping: Instant::now(),
        is_unflushed: false,
        held_since: None,
        answer_max: timing.answer_max,
        close_code: None,
    }
}

impl Link {
    /// Waits until another request may go out; for ever without one.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.unsent.is_empty() && self.resyncs.is_empty() {
            return Poll::Pending;
        }
        let due = self.due.get_or_insert_with(|| {
            let now = self.opened.elapsed();
            let at = self.pace.take(self.rate, Nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)));
            let at = self.address.send(self.opened + Duration::from_nanos(at.0));
            Box::pin(tokio::time::sleep_until(at.into()))
        });
        ready!(due.as_mut().poll(cx));
        self.due = None;
        Poll::Ready(())
    }

    /// Sends what is due. Without room it stays the next one.
    ///
    /// # Errors
    /// The connection is lost; in words.
    pub(super) fn send_next(&mut self) -> Result<(), String> {
        if self.unsent.is_empty() {
            let symbols = std::mem::take(&mut self.resyncs);
            self.unsent = self.requests.resubscribe(&symbols).into();
        }
        let Some(request) = self.unsent.pop_front() else { return Ok(()) };
        let text = match &self.login {
            Some(login) => login.fill(&request.text),
            None => request.text.clone(),
        };
        let now = Instant::now();
        if self.write(Message::text(text))? {
            self.requests.note_sent(&request, now);
            self.held_since = None;
        } else {
            self.unsent.push_front(request);
            self.held_since.get_or_insert(now);
        }
        Ok(())
    }

    /// Asks for the book of `symbol` again.
    pub(super) fn resubscribe(&mut self, symbol: String) {
        if !self.resyncs.contains(&symbol) {
            self.resyncs.push(symbol);
        }
    }

    /// Asks for a symbol's topics no longer.
    pub(super) fn end_symbol(&mut self, symbol: &str) {
        self.resyncs.retain(|known| known != symbol);
        self.arrivals.end(symbol, true);
        self.unsent.extend(self.requests.end(symbol));
    }

    /// Asks for a symbol's topics while others are followed.
    pub(super) fn begin_symbol(&mut self, symbol: &str) {
        self.arrivals.end(symbol, false);
        self.unsent.extend(self.requests.begin(symbol));
    }

    /// Hands a message to the WebSocket, which writes it when the venue reads: until then, what the venue sends is read.
    /// Returns whether there was room.
    ///
    /// # Errors
    /// The connection is lost; in words.
    fn write(&mut self, message: Message) -> Result<bool, String> {
        match self.socket.start_send_unpin(message) {
            Ok(()) => {
                self.is_unflushed = true;
                Ok(true)
            }
            Err(tungstenite::Error::WriteBufferFull(_)) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Writes what was handed to the WebSocket, as far as the venue reads; ends with an error only.
    fn poll_failure(&mut self, cx: &mut Context<'_>) -> Poll<tungstenite::Error> {
        if !self.is_unflushed {
            return Poll::Pending;
        }
        match ready!(self.socket.poll_flush_unpin(cx)) {
            Ok(()) => {
                self.is_unflushed = false;
                Poll::Pending
            }
            Err(error) => Poll::Ready(error),
        }
    }

    /// Takes an error of the WebSocket, and returns it as text.
    pub(super) fn fail(&mut self, error: &tungstenite::Error) -> String {
        self.close_code = socket::close_code(error);
        error.to_string()
    }

    /// Ends it: with a word to the venue where the end was asked for, or where the venue has broken the rules.
    pub(super) async fn close(&mut self, is_asked: bool) {
        let frame = self.close_code.map(|code| CloseFrame { code, reason: "".into() });
        if is_asked || frame.is_some() {
            // The venue may have gone first.
            let _ = tokio::time::timeout(CLOSE_MAX, self.socket.close(frame)).await;
        }
    }

    /// The venue said something.
    pub(super) fn heard(&mut self) {
        self.liveness.heard(self.opened.elapsed());
    }

    /// The venue answered a ping.
    pub(super) fn answered(&mut self) {
        self.liveness.answered(self.opened.elapsed());
    }

    /// Whether everything was asked for and answered.
    pub(super) fn is_settled(&self) -> bool {
        self.unsent.is_empty() && self.requests.all_answered()
    }

    /// The requests that make the venue send.
    pub(super) fn prepare_requests(&mut self, feed: &Feed, listen_key: Option<&str>) {
        self.unsent = self.requests.subscribe(&feed.config.symbols).into();
        if let Some(listen_key) = listen_key {
            self.unsent.extend(self.requests.subscribe_orders(listen_key));
        }
        self.unsent.extend(feed.config.venue.rules().keep_alive.enable.map(Outgoing::unanswered));
    }

    /// Looks after what is due.
    ///
    /// # Errors
    /// The link is of no more use; in words.
    pub(super) fn beat(&mut self, now: Instant) -> Result<(), String> {
        match self.liveness.look(self.opened.elapsed()) {
            Look::Alive => {}
            // Without room for a ping the venue has enough to answer.
            Look::Ask => _ = self.write(Message::Ping(Vec::new().into()))?,
            Look::Silent(silent) => return Err(format!("silent for {:.1} s", silent.as_secs_f64())),
        }
        if self.held_since.is_some_and(|since| now.duration_since(since) > self.answer_max) {
            return Err(format!("the venue has read nothing for {} s", self.answer_max.as_secs()));
        }
        if let Some(subject) = self.requests.overdue(now) {
            return Err(format!("no answer to the request for {}", subject.chars().take(80).collect::<String>()));
        }
        if let Some((ping, every)) = self.requests.ping()
            && now.duration_since(self.last_ping) > every
        {
            self.last_ping = now;
            self.write(Message::text(ping.to_owned()))?;
        }
        Ok(())
    }
}

/// What comes next on one of several links, by its index.
pub(super) enum Next {
    /// The time of its next request has come.
    Due(usize),
    /// A message.
    Received(usize, Received),
}

/// Waits for what comes next on `links`; `first` is listened to first.
pub(super) async fn next(links: &mut [Link], first: usize) -> Next {
    poll_fn(|cx| {
        for step in 0..links.len() {
            let index = (first + step) % links.len();
            let link = &mut links[index];
            if link.poll_due(cx).is_ready() {
                return Poll::Ready(Next::Due(index));
            }
            if let Poll::Ready(error) = link.poll_failure(cx) {
                return Poll::Ready(Next::Received(index, Some(Err(error))));
            }
            if let Poll::Ready(received) = link.socket.poll_next_unpin(cx) {
                return Poll::Ready(Next::Received(index, received));
            }
        }
        Poll::Pending
    })
    .await
}
