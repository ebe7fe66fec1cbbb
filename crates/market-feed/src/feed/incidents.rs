//! What went wrong with books, for show: what was expected, what came, and when the book was proved again.

use std::sync::Arc;

use tt_market::{Applied, IncidentCause};
use tt_model::Nanos;
use tt_os::clock::unix_now;
use tt_status::market::Incident;
use tt_venue::BookLevel;
use tt_venue::rules::JoinRule;

use super::Feed;
use crate::format::level_text;

/// Incidents of a feed that are kept for show.
const INCIDENTS_MAX: usize = 32;

impl Feed {
    /// Keeps what the engine says of its last input.
    #[cold]
    pub(super) fn note_incident(&mut self) {
        let Some(found) = self.intake.next_incident() else { return };
        let Some(spec) = self.intake.engine().instrument(found.instrument) else { return };
        let steps = (spec.tick_size, spec.lot_size);
        let best = |levels: [BookLevel; 2]| {
            let [bid, ask] = levels.map(|level| {
                let (px, qty) = level_text(level, steps.0, steps.1);
                format!("{qty} at {px}")
            });
            format!("{bid} / {ask}")
        };
        let (cause, expected, received) = match found.cause {
            IncidentCause::Gap { expected, received } => ("gap", expected.to_string(), received.to_string()),
            IncidentCause::Duplicate { received } => ("duplicate", String::new(), received.to_string()),
            IncidentCause::Checksum { expected, received } => ("checksum", expected.to_string(), received.to_string()),
            IncidentCause::BestLevels { expected, received } => ("best_levels", best(expected), best(received)),
            IncidentCause::Behind { expected, received } => ("behind", expected.0.to_string(), received.0.to_string()),
            IncidentCause::Other => ("other", String::new(), String::new()),
        };
        let is_ignored = matches!(found.cause, IncidentCause::Duplicate { .. });
        // Each message of such a venue is the whole book: the next one comes unasked.
        let waits = spec.venue.rules().join == JoinRule::Whole
            && matches!(found.cause, IncidentCause::Behind { .. } | IncidentCause::BestLevels { .. });
        let reaction = match (is_ignored, waits) {
            (true, _) => "ignored",
            (false, true) => "waiting",
            (false, false) => "snapshot_requested",
        };
        let symbol = self.symbol(found.instrument).unwrap_or_default().to_owned();
        if waits {
            let venue = self.config.venue.name();
            tracing::warn!(venue, symbol, cause, expected, received, "market: the book is stale until the next one");
        }
        let update_id = found.update_id;
        self.keep(Incident { symbol, cause, expected, received, reaction, update_id, ..Incident::default() });
        self.has_open_incidents |= !is_ignored;
    }

    /// Keeps the end of a connection: all of its books were lost.
    pub(super) fn note_lost_connection(&mut self, reason: &str) {
        let (cause, reaction, received) = ("connection", "reconnecting", reason.to_owned());
        self.keep(Incident { cause, reaction, received, ..Incident::default() });
        self.has_open_incidents = true;
    }

    fn keep(&mut self, mut incident: Incident) {
        incident.at_unix_ns = unix_now().0;
        incident.count = 1;
        let kept = Arc::make_mut(&mut self.status.incidents);
        incident.number = kept.last().map_or(1, |last| last.number + 1);
        // What repeats is counted: a venue that sends everything twice fills no list.
        if let Some(last) = kept.last_mut()
            && (&last.symbol, last.cause, last.reaction) == (&incident.symbol, incident.cause, incident.reaction)
            && (last.reaction == "ignored" || last.proven_unix_ns.is_none())
        {
            last.count += 1;
            last.received = incident.received;
            return;
        }
        if kept.len() == INCIDENTS_MAX {
            kept.remove(0);
        }
        kept.push(incident);
    }

    /// Ends the incidents of a book that its last update proved.
    #[cold]
    pub(super) fn end_incidents(&mut self, applied: Applied) {
        let Applied::Book { instrument, .. } = applied else { return };
        if self.intake.is_restored(instrument)
            && let Some(symbol) = self.symbol(instrument).map(str::to_owned)
        {
            self.end_where(|incident| incident.symbol == symbol, unix_now());
        }
    }

    /// Ends the incidents of a connection when every book is proved again.
    pub(super) fn end_lost_connection(&mut self, now: Nanos) {
        if self.has_open_incidents && self.instruments.iter().all(|of| self.intake.is_restored(*of)) {
            self.end_where(|_| true, now);
        }
    }

    fn end_where(&mut self, is_meant: impl Fn(&Incident) -> bool, now: Nanos) {
        let is_open = |incident: &Incident| incident.proven_unix_ns.is_none() && incident.reaction != "ignored";
        let kept = Arc::make_mut(&mut self.status.incidents);
        for incident in kept.iter_mut().filter(|incident| is_open(incident) && is_meant(incident)) {
            incident.proven_unix_ns = Some(now.0);
        }
        self.has_open_incidents = kept.iter().any(is_open);
    }
}
