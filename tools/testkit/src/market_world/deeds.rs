//! What a script's actions do.

use sim::{Fault, SnapshotFault};
use tt_model::Nanos;

use super::client::START;
use super::script::{Action, Deed, Ill};
use super::world::{Event, World};

impl World<'_> {
    pub(super) fn act(&mut self, action: Action) {
        let Action { venue: number, deed, draw, .. } = action;
        self.trace.say(self.now, || action.to_string());
        self.tally.faults += 1;
        self.causes[number] += 1;
        let now = self.now;
        let feed = &mut self.feeds[number];
        let index = (draw >> 16) as usize % feed.listed.len();
        match deed {
            Deed::Frame(Ill::Misquote) => feed.layers[index].quotes.push_back(draw),
            Deed::Frame(ill) => feed.layers[index].waiting.push_back((ill, draw)),
            // A venue that restarts its numbering while no frame arrives cannot be distinguished from one that continues.
            Deed::Reset if now < feed.silent_until => {}
            Deed::Reset => feed.offline.fault(index, Fault::Reset),
            Deed::HalfOpen => feed.offline.fault(index, Fault::HalfOpen),
            Deed::Silence(seconds) => {
                feed.silent_until = Nanos(now.0 + seconds * 1_000_000_000);
                feed.offline.mute(true);
                let until = feed.silent_until;
                self.at(until, Event::Speak { feed: number });
            }
            Deed::Disconnect => {
                feed.offline.disconnect_all();
                if let Some(arrives) = feed.collect(now) {
                    self.at(arrives, Event::Arrive { feed: number });
                }
            }
            Deed::Reconnect => {
                if let Some(connection) = feed.open.as_ref().map(|open| open.connection) {
                    self.end(number, connection);
                }
            }
            Deed::Replace => self.replace(number),
            Deed::PlannedEnd(millis) => {
                feed.offline.announce_end();
                if let Some(arrives) = feed.collect(now) {
                    self.at(arrives, Event::Arrive { feed: number });
                }
                self.at(Nanos(now.0 + millis * 1_000_000), Event::EndAnnounced { feed: number });
            }
            Deed::SilentTopic(millis) => feed.topic_silent_until[index] = Nanos(now.0 + millis * 1_000_000),
            Deed::SlowConsumer(millis) => feed.blocked_until = Nanos(now.0 + millis * 1_000_000),
            Deed::StaleSnapshot => feed.offline.snapshot_fault(index, SnapshotFault::Stale),
            Deed::PartialSnapshot => feed.offline.snapshot_fault(index, SnapshotFault::Partial),
            Deed::Refusals => feed.offline.refuse_snapshots(1 + (draw % 3) as u32),
            Deed::SlowRest(millis) => feed.rest_latency = Nanos(millis * 1_000_000),
            Deed::Unfollow(millis) => self.unfollow(number, index, Nanos::from_millis(millis)),
            Deed::Skew(seconds) => feed.skew_us += seconds * 1_000_000,
            Deed::Ban(seconds) => self.addresses[feed.address].gate.ban(Nanos::from_secs(seconds), now),
            Deed::Spend(weight) => {
                let unix = Nanos(START.0 + now.0);
                self.addresses[feed.address].gate.spend(weight as u32, unix);
            }
            Deed::SlowReader(millis) => self.block_reader(draw, Nanos::from_millis(millis)),
            Deed::SlowPublisher(millis) => self.block_publisher(Nanos::from_millis(millis)),
        }
    }
}
