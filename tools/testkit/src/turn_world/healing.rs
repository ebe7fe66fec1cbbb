//! Recovery: restarts, and the checks after the faults have stopped.

use std::cmp::Reverse;

use tt_model::Nanos;

use super::clients::Goal;
use super::event::{Entry, Event};
use super::host::Host;
use super::invariants::{self, Failure};
use super::link::Weather;
use super::model::RelayPlace;
use super::world::World;

/// How long an honest client may take to relay when everything is well again.
pub(super) const LIVENESS: Nanos = Nanos::from_secs(5);

impl World<'_> {
    pub(super) fn crash(&mut self, down: Nanos) {
        if !self.is_up {
            return;
        }
        self.trace.say(self.now, || "the server crashes".to_owned());
        self.is_up = false;
        self.model.restart();
        for (client, stream) in self.clients.iter_mut().zip(&mut self.streams) {
            if client.is_stream() {
                client.is_cut = true;
                stream.restart(self.now);
            }
        }
        self.later(down, Event::Restart);
    }

    pub(super) fn restart(&mut self) {
        if self.is_up {
            return;
        }
        self.trace.say(self.now, || "the server starts".to_owned());
        self.starts += 1;
        let (planted, jump) = (self.host.planted, self.model.wall_jump_ns);
        self.host = Host::start(&self.script.topology, self.script.seed, self.starts, self.now, jump);
        self.host.rotate(self.now, &self.script.topology, self.model.generation);
        self.host.planted = planted;
        self.is_up = true;
        self.register_relays();
    }

    /// The faults stop, and the attackers with them: what is under way is lost, and nothing is from now on.
    pub(super) fn heal(&mut self) -> Result<(), Failure> {
        self.trace.say(self.now, || "the faults stop".to_owned());
        let mut resting = self.forget_events();
        self.weather = Weather::default();
        self.weather_of.fill(Weather::default());
        self.weather_of_peers = Weather::default();
        self.clears.clear();
        (self.squeezes, self.send_errors, self.is_healed) = (0, 0, true);
        resting.sort_unstable();
        if self.is_up {
            resting.into_iter().for_each(|relay| self.rested(self.starts, relay));
        } else {
            self.restart();
        }
        if self.model.is_draining {
            // What drains makes room for its successor.
            self.crash(Nanos(0));
            self.restart();
        }
        if let Some((per_second, burst)) = self.script.topology.rules.error_budget {
            // Who sent in the name of a client has used up its budget.
            let full = self.now.saturating_add(Nanos::from_secs(u64::from(burst / per_second) + 1));
            self.until(full)?;
        }
        self.streams.iter_mut().for_each(|stream| stream.restart(self.now));
        for client in 0..self.clients.len() {
            self.clients[client].forget_asks();
            self.clients[client].appends_left = 0;
            self.renew(client, 30 * 86_400);
            if !self.clients[client].place.is_thief && !super::deeds::is_barred(&self.clients[client].place) {
                self.clients[client].goal = Goal::Seek { is_permitted: false };
                self.pursue(client);
            }
        }
        self.pass()
    }

    /// Nothing is under way any more; the relays that still rest.
    pub(super) fn forget_events(&mut self) -> Vec<RelayPlace> {
        let is_resting = |Reverse(entry): Reverse<Entry>| match entry.event {
            Event::Rested { starts, relay } if starts == self.starts => Some(relay),
            Event::Rested { .. }
            | Event::AtServer { .. }
            | Event::HandedOver { .. }
            | Event::AtRelay { .. }
            | Event::AtClient { .. }
            | Event::AtPeer { .. }
            | Event::Patience { .. }
            | Event::Flush { .. }
            | Event::Piece { .. }
            | Event::Closed { .. }
            | Event::Icmp { .. }
            | Event::Restart
            | Event::Clear { .. } => None,
        };
        std::mem::take(&mut self.events).into_sorted_vec().into_iter().filter_map(is_resting).collect()
    }

    pub(super) fn judge_goals(&mut self) -> Result<(), Failure> {
        for (number, client) in self.clients.iter().enumerate() {
            match (client.goal, client.refusal) {
                (Goal::Reached, _) => self.tally.reached += 1,
                (Goal::Seek { .. }, Some(486 | 508)) => self.tally.excused += 1,
                (Goal::Seek { .. }, _) if self.limited.contains(&client.place.user) => self.tally.excused += 1,
                (Goal::Seek { .. }, refusal) => {
                    let what = format!(
                        "client {number} ({}) does not relay, {:?}, relayed {:?}, refused {refusal:?}",
                        client.addr, client.goal, client.relayed
                    );
                    return Err(Failure { invariant: 10, what, at: self.now });
                }
                (Goal::None, _) => {}
            }
        }
        Ok(())
    }

    /// Everything has expired: nothing may be left of it.
    pub(super) fn judge_emptiness(&mut self) -> Result<(), Failure> {
        self.pass()?;
        self.judge_units()?;
        for worker in 0..self.script.topology.workers {
            invariants::ledger(self.now, &self.host, &self.model, worker)?;
            let tables = self.host.tables(worker);
            let relays = (self.script.topology.relays_v4 + self.script.topology.relays_v6) as usize;
            if (tables.allocations, tables.permissions, tables.channels, tables.shared) != (0, 0, 0, 0)
                || tables.pooled != relays
            {
                let what = format!("worker {worker} is not empty at the end: {tables:?} of {relays} relays");
                return Err(Failure { invariant: 3, what, at: self.now });
            }
        }
        Ok(())
    }
}
