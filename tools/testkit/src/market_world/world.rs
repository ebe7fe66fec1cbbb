//! The run: one clock, one heap of what comes next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tt_market::{Applied, BookUpdate, DropReason};
use tt_model::Nanos;

use super::addresses::Address;
use super::client::{Feed, START};
use super::failure::Failure;
use super::faults::{InFlight, What};
use super::gate::Answer;
use super::planted::Planted;
use super::publishing::Publishing;
use super::reading::{Seen, healing_max};
use super::script::Script;
use super::tally::Tally;
use super::tape::Taped;
use super::words::{self, Kind};
use crate::trace::Trace;

/// How often deadlines are looked at.
const BEAT: Nanos = Nanos::from_millis(100);

/// After the faults everything goes on at a pace slower by this much.
const CALM: u64 = 6;

/// Of so many seeds, one is played once more from its inputs.
const REPLAYED_ONE_IN: u64 = 4;

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that happened, as one number.
    pub hash: u64,
    /// The result.
    pub tally: Tally,
    /// The first broken invariant.
    pub failure: Option<Failure>,
    /// Event lines, if requested.
    pub lines: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Act(usize),
    Step {
        feed: usize,
        index: usize,
    },
    Arrive {
        feed: usize,
    },
    /// The moment of a request for a snapshot has come.
    Fetch {
        feed: usize,
        index: usize,
        generation: u64,
    },
    ServeRest {
        feed: usize,
        index: usize,
        generation: u64,
    },
    RestArrives {
        feed: usize,
        index: usize,
        generation: u64,
        answer: Answer,
    },
    Connect {
        feed: usize,
    },
    /// The venue allows the connection.
    Dial {
        feed: usize,
    },
    /// The venue allows the connection that is to take over.
    DialNext {
        feed: usize,
        generation: u64,
    },
    /// The venue allows a request.
    Say {
        feed: usize,
        connection: u64,
        text: String,
    },
    /// A reader comes.
    BeginReader {
        reader: usize,
    },
    Read {
        reader: usize,
    },
    /// The client follows a symbol again.
    Follow {
        feed: usize,
        index: usize,
    },
    Speak {
        feed: usize,
    },
    /// The venue closes what it has announced the end of.
    EndAnnounced {
        feed: usize,
    },
    /// The faults stop.
    Calm,
    Beat,
}

pub(super) struct World<'a> {
    pub(super) script: &'a Script,
    pub(super) planted: Option<Planted>,
    pub(super) engines: Vec<Taped>,
    pub(super) feeds: Vec<Feed>,
    pub(super) addresses: Vec<Address>,
    pub(super) publishing: Option<Publishing>,
    pub(super) now: Nanos,
    pub(super) next: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    pub(super) order: u64,
    pub(super) trace: Trace,
    pub(super) tally: Tally,
    /// Frames given to the engine, by feed.
    pub(super) given: Vec<u64>,
    /// Gaps that the faults made in books that stood as verified, by feed.
    pub(super) gaps_made: Vec<u64>,
    /// Possible causes of a request, by feed.
    pub(super) causes: Vec<u64>,
    pub(super) asked: Vec<u64>,
    pub(super) failure: Option<Failure>,
}

/// Plays `script`, with a `planted` fault if there is one.
#[must_use]
pub fn play(script: &Script, planted: Option<Planted>, keeps_lines: bool) -> Outcome {
    let is_replayed = script.seed.is_multiple_of(REPLAYED_ONE_IN);
    let mut engines: Vec<Taped> = (0..script.engines()).map(|_| Taped::new(is_replayed, planted)).collect();
    let mut feeds: Vec<Feed> =
        (0..script.markets.len()).map(|number| Feed::new(script, number, &mut engines)).collect();
    let addresses = Address::of(&mut feeds);
    let publishing = Publishing::new(script, &feeds, &mut engines);
    let count = feeds.len();
    let mut world = World {
        script,
        planted,
        engines,
        feeds,
        addresses,
        publishing,
        now: Nanos(0),
        next: BinaryHeap::new(),
        order: 0,
        trace: Trace::new(keeps_lines),
        tally: Tally::default(),
        given: vec![0; count],
        gaps_made: vec![0; count],
        causes: vec![0; count],
        asked: vec![0; count],
        failure: None,
    };
    world.begin();
    world.run();
    world.end_readers();
    if let Some(what) = world.engines.iter().find_map(Taped::differs_again) {
        world.fail(7, what);
    }
    world.tally.replayed = u64::from(is_replayed);
    let counters = world.feeds.iter().map(|feed| world.engines[feed.engine].counters(feed.engine_venue));
    (world.tally.gaps, world.tally.resyncs) =
        counters.fold((0, 0), |(gaps, resyncs), venue| (gaps + venue.gaps, resyncs + venue.resyncs));
    world.tally.frames = world.given.iter().sum();
    world.tally.virtual_s = world.now.0 / 1_000_000_000;
    Outcome { hash: world.trace.hash(), tally: world.tally, failure: world.failure, lines: world.trace.take_lines() }
}

impl World<'_> {
    fn begin(&mut self) {
        for feed in 0..self.feeds.len() {
            self.at(Nanos(0), Event::Connect { feed });
            for index in 0..self.feeds[feed].listed.len() {
                self.at(Nanos(1_000_000 + index as u64 * 700_000), Event::Step { feed, index });
            }
        }
        for number in 0..self.script.actions.len() {
            self.at(self.script.actions[number].at, Event::Act(number));
        }
        for (reader, script) in self.script.readers.iter().enumerate() {
            self.at(script.begins, Event::BeginReader { reader });
        }
        self.at(self.script.faulty, Event::Calm);
        self.at(BEAT, Event::Beat);
    }

    pub(super) fn at(&mut self, when: Nanos, event: Event) {
        self.order += 1;
        self.next.push(Reverse((when, self.order, event)));
    }

    fn run(&mut self) {
        let limits = self.feeds.iter().map(|feed| healing_max(feed.market.venue).0);
        let healing = limits.max().unwrap_or(0);
        while let Some(Reverse((when, _, event))) = self.next.pop() {
            self.now = when;
            match event {
                Event::Act(number) => self.act(self.script.actions[number]),
                Event::Step { feed, index } => self.step(feed, index),
                Event::Arrive { feed } => self.arrive(feed),
                Event::Fetch { feed, index, generation } => self.fetch(feed, index, generation),
                Event::ServeRest { feed, index, generation } => self.serve_rest(feed, index, generation),
                Event::RestArrives { feed, index, generation, answer } => {
                    self.rest_arrives(feed, index, generation, answer);
                }
                Event::Dial { feed } => self.dial(feed),
                Event::DialNext { feed, generation } => self.dial_next(feed, generation),
                Event::Say { feed, connection, text } => self.say_now(feed, connection, &text),
                Event::BeginReader { reader } => self.begin_reader(reader),
                Event::Read { reader } => self.read(reader),
                Event::Follow { feed, index } => self.follow(feed, index),
                Event::Connect { feed } => self.connect(feed),
                Event::EndAnnounced { feed } => {
                    self.feeds[feed].offline.end_announced();
                    if let Some(arrives) = self.feeds[feed].collect(self.now) {
                        self.at(arrives, Event::Arrive { feed });
                    }
                }
                Event::Speak { feed } => {
                    let feed = &mut self.feeds[feed];
                    feed.offline.mute(self.now < feed.silent_until);
                }
                Event::Calm => self.feeds.iter_mut().for_each(Feed::heal),
                Event::Beat => self.beat(),
            }
            self.distribute();
            if self.failure.is_some() || self.is_healed() {
                return;
            }
            // Nothing heals during a ban.
            if self.now.0 > self.script.faulty.max(self.held_until()).0 + healing {
                let late = self.late_books();
                return self.fail(6, format!("not healed: {late}"));
            }
        }
    }

    fn is_calm(&self) -> bool {
        self.now > self.script.faulty
    }

    /// Whether the faults have stopped, and every book is verified and the venue's.
    fn is_healed(&self) -> bool {
        self.now.0 > self.script.faulty.0 + 2_000_000_000 && self.late_books().is_empty()
    }

    fn late_books(&self) -> String {
        let mut late = String::new();
        for feed in &self.feeds {
            let board = self.engines[feed.engine].board();
            for (index, id) in feed.ids.iter().enumerate() {
                let seen = Seen::of(board, *id, self.planted);
                if !seen.is_current(feed, index) {
                    late += &format!("{} {:?}; ", feed.listed[index].symbol, seen.top.status.proof);
                }
            }
        }
        late
    }

    pub(super) fn fail(&mut self, invariant: u8, what: String) {
        if self.failure.is_none() {
            self.failure = Some(Failure { invariant, at: self.now, what });
        }
    }

    fn step(&mut self, feed: usize, index: usize) {
        if let Some(arrives) = self.feeds[feed].step(index, self.now) {
            self.at(arrives, Event::Arrive { feed });
        }
        let market = self.feeds[feed].market;
        // So slow in the end that a book reaches the venue's update.
        let pause = if self.is_calm() { (market.step.0 * CALM).max(market.latency.0 * 3) } else { market.step.0 };
        self.at(Nanos(self.now.0 + pause), Event::Step { feed, index });
    }

    /// Opens a connection, and asks for everything on it.
    pub(super) fn dial(&mut self, number: usize) {
        let now = Nanos(START.0 + self.now.0);
        let feed = &mut self.feeds[number];
        if feed.open.is_some() {
            return;
        }
        self.tally.connections += 1;
        self.causes[number] += feed.listed.len() as u64;
        feed.generation += 1;
        let engine = &mut self.engines[feed.engine];
        let connection = engine.open_connection(feed.engine_venue, now);
        for id in &feed.ids {
            engine.subscribe(connection, *id, now);
        }
        let open = feed.dial(connection);
        let opened = open.number;
        feed.open = Some(open);
        let requests = words::subscribe(feed.market.venue, "", &feed.listed.iter().collect::<Vec<_>>());
        self.note_connection(number);
        self.say(number, opened, requests);
        self.look(number);
        self.serve_requests(number);
    }

    /// The client closes its connection and will open another.
    pub(super) fn close(&mut self, number: usize) {
        let feed = &mut self.feeds[number];
        let Some(open) = feed.open.take() else { return };
        feed.offline.close(&open.received);
        feed.lost.fill(false);
        feed.followed.fill(true);
        feed.misquoted.fill(None);
        feed.asked.fill(None);
        feed.is_dialling = false;
        let wait = feed.reconnect_wait();
        self.engines[feed.engine].close_connection(open.connection, Nanos(START.0 + self.now.0));
        self.forget_snapshots(number);
        let feed = &self.feeds[number];
        let board = self.engines[feed.engine].board();
        let is_verified = |index: &usize| Seen::of(board, feed.ids[*index], self.planted).is_verified();
        if let Some(index) = (0..feed.listed.len()).find(is_verified) {
            let what = format!("{} is published as verified without a connection", feed.listed[index].symbol);
            return self.fail(2, what);
        }
        self.look(number);
        self.at(Nanos(self.now.0 + wait.0), Event::Connect { feed: number });
    }

    fn arrive(&mut self, number: usize) {
        let blocked_until = self.feeds[number].blocked_until;
        if self.now < blocked_until {
            return self.at(blocked_until, Event::Arrive { feed: number });
        }
        while self.failure.is_none()
            && self.feeds[number].in_flight.front().is_some_and(|sent| sent.arrives <= self.now)
            && let Some(sent) = self.feeds[number].in_flight.pop_front()
        {
            self.take(number, sent);
        }
    }

    fn take(&mut self, number: usize, sent: InFlight) {
        let feed = &self.feeds[number];
        let open = feed.open.as_ref().map(|open| open.connection);
        let (is_old, is_shared) = (!feed.has(sent.connection), feed.next.is_some());
        match sent.what {
            What::End if !is_old => self.end(number, sent.connection),
            What::Lost { index, update_id } if !is_old => self.lose(number, index, update_id),
            What::End | What::Lost { .. } => {}
            What::Frame { bytes, kind, claim } => {
                if self.planted == Some(Planted::LosesSnapshots) && matches!(kind, Kind::Snapshot(_)) {
                    return;
                }
                let mixes = self.planted == Some(Planted::MixesEpochs);
                let connection = open.filter(|_| mixes).unwrap_or(sent.connection);
                let now = Nanos(START.0 + self.now.0);
                self.given[number] += 1;
                if self.planted == Some(Planted::LosesCount) && self.given[number].is_multiple_of(64) {
                    return;
                }
                let result = self.engines[self.feeds[number].engine].handle_frame(now, connection, &bytes);
                self.trace.say(self.now, || format!("{kind:?} {claim:?} {result:?}"));
                if is_old {
                    self.tally.late += 1;
                    if result != Err(DropReason::OldConnection) {
                        return self.fail(3, format!("a frame of a closed connection: {result:?}"));
                    }
                }
                if let (
                    Ok(Applied::Book { update: BookUpdate::Snapshot | BookUpdate::Delta, .. }),
                    Kind::Update(index) | Kind::Snapshot(index),
                ) = (result, kind)
                {
                    self.feeds[number].taken[index] = sent.steps;
                    self.feeds[number].attempts = 0;
                }
                if !is_old {
                    self.note_misquote(number, kind, claim, result);
                }
                // While two connections have the books, nothing outside of the engine says which one a frame is for.
                if !is_old && !is_shared {
                    self.judge(number, kind, claim, result.err());
                }
                self.look(number);
                self.serve_requests(number);
                self.advance_succession(number);
            }
        }
    }

    /// Returns the published state of the feed's books.
    pub(super) fn look(&mut self, number: usize) {
        let (mut untrue, mut misquoted) = (None, None);
        let feed = &mut self.feeds[number];
        let board = self.engines[feed.engine].board();
        for index in 0..feed.listed.len() {
            let seen = Seen::of(board, feed.ids[index], self.planted);
            let words = [seen.top.update_id, seen.top.ts_recv.0, seen.top.status.proof as u64];
            let best =
                [seen.top.bid, seen.top.ask].map(|level| level.map_or(0, |level| level.px.0 ^ level.qty.0) as u64);
            let bytes: Vec<u8> = words.iter().chain(&best).flat_map(|word| word.to_le_bytes()).collect();
            self.trace.note(self.now, number as u64, &bytes);
            feed.misquoted[index] = feed.misquoted[index].filter(|update_id| seen.top.update_id <= *update_id);
            if seen.is_verified() && feed.misquoted[index] == Some(seen.top.update_id) {
                let symbol = &feed.listed[index].symbol;
                misquoted = Some(format!("{symbol} is published as verified against another best quote"));
            }
            if seen.is_verified() && !feed.followed[index] {
                misquoted = Some(format!("{} is published as verified and not followed", feed.listed[index].symbol));
            }
            if seen.is_verified() {
                self.tally.verified += 1;
                untrue = untrue.or_else(|| seen.untrue(feed, index));
            } else {
                self.tally.unverified += 1;
                feed.lost[index] = false;
            }
        }
        let counters = *self.engines[feed.engine].counters(feed.engine_venue);
        if let Some(what) = untrue {
            return self.fail(1, what);
        }
        if let Some(what) = misquoted {
            return self.fail(2, what);
        }
        if !counters.closes() || counters.frames != self.given[number] {
            let what = format!(
                "{} frames in, {} applied, {} dropped, {} counted",
                self.given[number],
                counters.applied,
                counters.drops_total(),
                counters.frames
            );
            return self.fail(5, what);
        }
        if counters.gaps < self.gaps_made[number] {
            self.fail(5, format!("{} gaps were made, {} are counted", self.gaps_made[number], counters.gaps));
        }
    }

    fn beat(&mut self) {
        for engine in 0..self.engines.len() {
            self.engines[engine].handle_timeout(Nanos(START.0 + self.now.0));
            if let Some(what) = self.engines[engine].take_wrong() {
                self.fail(8, what);
            }
        }
        self.look_at_waits();
        for number in 0..self.feeds.len() {
            self.look(number);
            self.serve_requests(number);
            self.advance_succession(number);
        }
        self.at(Nanos(self.now.0 + BEAT.0), Event::Beat);
    }
}
