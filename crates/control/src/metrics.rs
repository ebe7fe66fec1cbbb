//! `/metrics`: Prometheus' text format.
//!
//! Labels come from closed lists in the code and from the configured venues: never a user's name or an address.

mod coturn;

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::section::MetricsNames;
use crate::state::{App, Shared};
use tt_model::sort_short_by_key;
use tt_status::accounting::{Accounting, Count, Quantiles, Stages};
use tt_status::allocation_messages::MessageStatus;
use tt_status::machine::MachineStatus;
use tt_status::market::{Feed, MarketStatus};
use tt_status::market_streams::StreamCounts;
use tt_status::risk::{ModeRow, RiskStatus};
use tt_status::turn::{DatabaseStatus, EndedTraffic, KernelPath, RealmTraffic, Streams, TurnStatus};

/// The text format's version, as Prometheus asks for it.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn metrics(app: App) -> Response {
    ([(CONTENT_TYPE, TEXT_FORMAT)], exposition(&app)).into_response()
}

fn exposition(shared: &Shared) -> String {
    let mut text = Exposition::default();
    if let Some(machine) = &shared.state.machine {
        text.machine(&machine());
    }
    if let Some(turn) = &shared.state.turn {
        let turn = turn();
        text.turn(&turn);
        if shared.state.metrics_names == MetricsNames::Coturn {
            text.coturn(&turn);
        }
    }
    if let Some(database) = &shared.state.database {
        text.database(&database());
    }
    if let Some(market) = &shared.state.market {
        let help = "1 if the market data come from the built-in simulator.";
        text.single("truetick_market_simulated", "gauge", help, f64::from(shared.state.simulated));
        text.is_simulated = shared.state.simulated;
        text.market(&market());
        if let Some(streams) = &shared.state.market_streams {
            text.market_streams(&streams.counts(), shared.readers.load(Relaxed));
        }
        text.is_simulated = false;
    }
    if let Some(risk) = &shared.state.risk {
        text.risk(&risk());
    }
    if let Some(gate) = &shared.state.gate {
        text.modes(&gate.modes());
    }
    text.text
}

/// Text under construction: each family is written at once, as the format demands.
#[derive(Default)]
pub(crate) struct Exposition {
    text: String,
    /// Whether the samples to come have the label `simulated`.
    is_simulated: bool,
}

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        let simulated = self.is_simulated.then_some(&("simulated", "true"));
        let mut separator = '{';
        for (label, text) in labels.iter().chain(simulated) {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{separator}{label}=\"{escaped}\"");
            separator = ',';
        }
        let _ = writeln!(self.text, "{} {value}", if separator == '{' { "" } else { "}" });
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn counts(&mut self, name: &str, label: &str, help: &str, counts: &[Count]) {
        self.family(name, "counter", help);
        for count in counts {
            self.sample(name, &[(label, count.name)], count.count as f64);
        }
    }

    fn ledger(&mut self, engine: &str, ledger: &Accounting) {
        let unit = ledger.unit;
        let name = |rest: &str| format!("truetick_{engine}_{unit}_{rest}_total");
        let in_help = format!("{unit} that came in; equals the sum of outcomes and drops.");
        self.single(&name("in"), "counter", &in_help, ledger.input as f64);
        self.counts(&name("out"), "outcome", &format!("{unit} by what became of them."), &ledger.outcomes);
        self.counts(&name("dropped"), "reason", &format!("{unit} dropped, by reason."), &ledger.drops);
    }

    fn stages(&mut self, engine: &str, stages: &Stages) {
        let name = format!("truetick_{engine}_stage_seconds");
        self.family(
            &name,
            "summary",
            "Sampled time of each stage of a pass, of the rest after them and of the probe: the parts of the stamped \
             passes.",
        );
        let parts = stages.stages.iter().map(|stage| (stage.stage, stage.n, stage.mean_ns));
        let others = stages.stamped.map(|all| [("rest", all.n, all.rest_ns), ("probe", all.n, all.probe_ns)]);
        for (part, n, mean_ns) in parts.chain(others.into_iter().flatten()) {
            let labels = [("stage", part)];
            self.sample(&format!("{name}_sum"), &labels, seconds(mean_ns) * n as f64);
            self.sample(&format!("{name}_count"), &labels, n as f64);
        }
        if let Some(stamped) = &stages.stamped {
            let name = format!("truetick_{engine}_stamped_pass_seconds");
            self.family(&name, "summary", "Sampled time of the passes whose stages were stamped, with the stamps.");
            self.sample(&format!("{name}_sum"), &[], seconds(stamped.mean_ns) * stamped.n as f64);
            self.sample(&format!("{name}_count"), &[], stamped.n as f64);
        }
        if let Some(pass) = &stages.pass {
            let name = format!("truetick_{engine}_pass_seconds");
            self.family(&name, "summary", "Sampled time of a whole pass without stamps.");
            self.summary(&name, &[], pass);
        }
    }

    fn summary(&mut self, name: &str, labels: &[(&str, &str)], times: &Quantiles) {
        let quantiles =
            [("0.5", Some(times.p50_ns)), ("0.95", times.p95_ns), ("0.99", times.p99_ns), ("0.999", times.p999_ns)];
        for (quantile, ns) in quantiles {
            let Some(ns) = ns else { continue };
            let labels: Vec<_> = labels.iter().copied().chain([("quantile", quantile)]).collect();
            self.sample(name, &labels, seconds(ns as f64));
        }
        self.sample(&format!("{name}_sum"), labels, seconds(times.mean_ns) * times.n as f64);
        self.sample(&format!("{name}_count"), labels, times.n as f64);
    }

    fn machine(&mut self, machine: &MachineStatus) {
        let uptime = Duration::from_millis(machine.uptime_ms).as_secs_f64();
        let cpu = Duration::from_millis(machine.cpu_ms).as_secs_f64();
        self.family("truetick_build", "gauge", "The running build; always 1.");
        self.sample("truetick_build", &[("version", machine.version), ("profile", machine.build)], 1.0);
        self.single("truetick_uptime_seconds", "gauge", "Since the control plane started.", uptime);
        self.single("process_cpu_seconds_total", "counter", "Processor time, user and system.", cpu);
        self.single("process_resident_memory_bytes", "gauge", "Memory in use.", machine.rss_bytes as f64);
    }

    fn turn(&mut self, turn: &TurnStatus) {
        self.ledger("turn", &turn.ledger);
        self.stages("turn", &turn.stages);
        let of = &turn.allocations;
        self.single("truetick_turn_allocations", "gauge", "Live allocations.", of.live as f64);
        self.single("truetick_turn_allocations_max", "gauge", "Live allocations at most.", of.capacity as f64);
        self.single("truetick_turn_allocations_created_total", "counter", "Allocations created.", of.created as f64);
        let directions = [
            Count { name: "to_peers", count: of.to_peers_bytes },
            Count { name: "to_clients", count: of.to_clients_bytes },
        ];
        self.counts("truetick_turn_relayed_bytes_total", "direction", "Payload relayed.", &directions);
        self.streams(&turn.streams);
        self.operation(turn);
    }

    fn streams(&mut self, of: &Streams) {
        let name = |rest: &str| format!("truetick_turn_connections{rest}");
        self.single(&name(""), "gauge", "Connections over TCP and TLS.", of.open as f64);
        self.single(&name("_tls"), "gauge", "Connections over TLS.", of.open_tls as f64);
        self.single(&name("_half_open"), "gauge", "Connections without a whole message yet.", of.half_open as f64);
        self.single(&name("_accepted_total"), "counter", "Accepted connections.", of.accepted as f64);
        self.counts(&name("_refused_total"), "bound", "Rejected connections, by limit.", &of.refused);
        self.counts(&name("_ended_total"), "reason", "Connections ended, by reason.", &of.ended);
        self.single(&name("_handshakes_total"), "counter", "TLS handshakes completed.", of.handshakes as f64);
        let (help, resumed) = ("TLS handshakes that resumed an earlier session.", of.handshakes_resumed as f64);
        self.single(&name("_handshakes_resumed_total"), "counter", help, resumed);
        let (help, in_progress) = ("TLS handshakes in progress.", of.handshakes_in_progress as f64);
        self.single(&name("_handshakes_in_progress"), "gauge", help, in_progress);
        self.single(&name("_messages_in_total"), "counter", "Messages over TCP and TLS.", of.messages_in as f64);
        let help = "Unsent bytes of ended connections.";
        self.single(&name("_unsent_bytes_total"), "counter", help, of.unsent_bytes as f64);
    }

    /// Metrics for operators. Labels are codes, names from closed lists, and rules of the configuration.
    fn operation(&mut self, turn: &TurnStatus) {
        self.single("truetick_turn_draining", "gauge", "1 during a drain.", f64::from(turn.draining));
        let down = turn.workers_down as f64;
        self.single("truetick_turn_workers_down", "gauge", "Workers that are down after a panic.", down);
        let panics = turn.panics as f64;
        self.single("truetick_turn_worker_panics_total", "counter", "Panics of workers.", panics);
        let lost = turn.kernel_lost as f64;
        self.single("truetick_turn_kernel_lost_total", "counter", "Datagrams that the kernel dropped.", lost);
        let help = "Times that a listener began to keep its buffer free for clients with an allocation.";
        self.single("truetick_turn_listener_overloads_total", "counter", help, turn.overloads as f64);
        if let Some(path) = &turn.kernel_path {
            self.kernel_path(path);
        }
        let help = "Events missing in the log, by the queue that was full.";
        self.counts("truetick_turn_events_lost_total", "queue", help, &turn.events_lost);
        if let Some(memory) = &turn.memory {
            let max = memory.max_bytes as f64;
            self.single("truetick_turn_memory_max_bytes", "gauge", "Resident memory at most.", max);
            let help = "1 while new allocations are rejected because memory is full.";
            self.single("truetick_turn_memory_full", "gauge", help, f64::from(memory.is_full));
        }
        self.ended_by_realm(&turn.ended_by_realm);
        if let Some(messages) = &turn.messages {
            self.messages(messages);
        }
        if !turn.records.is_empty() {
            let help = "Lines of allocation records, by what became of them.";
            self.counts("truetick_turn_records_total", "outcome", help, &turn.records);
        }
        self.family("truetick_turn_faults_total", "counter", "Failed system calls.");
        for fault in &turn.faults {
            let labels = [("call", fault.call), ("fault", fault.error)];
            self.sample("truetick_turn_faults_total", &labels, fault.count as f64);
        }
        self.family("truetick_turn_errors_total", "counter", "Error replies, by code.");
        for error in &turn.errors {
            self.sample("truetick_turn_errors_total", &[("code", &error.code.to_string())], error.count as f64);
        }
        let help = "Requests rejected with 403, 486 or 508, by reason.";
        self.counts("truetick_turn_refused_total", "reason", help, &turn.refusals);
        self.family("truetick_turn_peers_denied_total", "counter", "Peers denied, by the rule of the peer policy.");
        for rule in &turn.denied {
            self.sample("truetick_turn_peers_denied_total", &[("rule", &rule.rule)], rule.count as f64);
        }
    }

    /// Packets that the kernel relays without a socket.
    fn kernel_path(&mut self, path: &KernelPath) {
        let name = "truetick_turn_path_packets_total";
        self.family(name, "counter", "Payloads that the kernel relayed.");
        for (direction, count) in [("to_peers", path.to_peers), ("to_clients", path.to_clients)] {
            self.sample(name, &[("direction", direction)], count as f64);
        }
        let help = "Packets that the kernel path left to the sockets or dropped (bandwidth, lost), by reason.";
        self.counts("truetick_turn_path_passed_total", "reason", help, &path.passed);
        self.single("truetick_turn_paths", "gauge", "Channels that the kernel relays.", path.open as f64);
        let help = "Failed writes of the kernel path.";
        self.single("truetick_turn_path_write_failed_total", "counter", help, path.write_failed as f64);
        let name = "truetick_turn_path_interface";
        self.family(name, "gauge", "Interfaces of the kernel path; 1 if their checksums are proven.");
        for interface in &path.interfaces {
            let driver = interface.driver.as_deref().unwrap_or("none");
            let labels = [("interface", interface.name.as_str()), ("driver", driver), ("mode", interface.mode)];
            self.sample(name, &labels, f64::from(interface.proof == "proven"));
        }
    }

    /// Traffic of ended allocations. The realms are the configuration's.
    fn ended_by_realm(&mut self, realms: &[RealmTraffic]) {
        type Counter = (&'static str, &'static str, fn(&EndedTraffic) -> [u64; 2]);
        const COUNTERS: [Counter; 2] = [
            ("bytes", "Payload bytes", |of| [of.to_peers_bytes, of.to_clients_bytes]),
            ("packets", "Payloads", |of| [of.to_peers_packets, of.to_clients_packets]),
        ];
        for (unit, what, values) in COUNTERS {
            let name = format!("truetick_turn_ended_relayed_{unit}_total");
            self.family(&name, "counter", &format!("{what} that ended allocations have relayed, by realm."));
            for of in realms {
                for (direction, value) in ["to_peers", "to_clients"].into_iter().zip(values(&of.traffic)) {
                    self.sample(&name, &[("realm", &of.realm), ("direction", direction)], value as f64);
                }
            }
        }
        let name = "truetick_turn_ended_allocations_total";
        self.family(name, "counter", "Ended allocations, by realm.");
        for of in realms {
            self.sample(name, &[("realm", &of.realm)], of.traffic.allocations as f64);
        }
    }

    /// Messages for the database of statistics.
    fn messages(&mut self, messages: &MessageStatus) {
        let name = |rest: &str| format!("truetick_turn_stats_{rest}");
        let help = "1 if the database of statistics answered the last time.";
        self.single(&name("up"), "gauge", help, f64::from(messages.is_up));
        let help = "Messages for the database of statistics; equals published and dropped ones, and those that wait.";
        self.single(&name("messages_in_total"), "counter", help, messages.input as f64);
        let help = "Messages that the database of statistics has taken.";
        self.single(&name("messages_published_total"), "counter", help, messages.published as f64);
        let help = "Messages that are lost, by reason.";
        self.counts(&name("messages_dropped_total"), "reason", help, &messages.dropped);
    }

    /// The database of users. It has no user's name.
    fn database(&mut self, database: &DatabaseStatus) {
        let name = |rest: &str| format!("truetick_turn_database_{rest}");
        let up = f64::from(database.is_up);
        self.family(&name("up"), "gauge", "1 if the last read of the database of users succeeded.");
        self.sample(&name("up"), &[("kind", database.kind)], up);
        if let Some(age_ms) = database.age_ms {
            let help = "Since the last read that succeeded.";
            self.single(&name("age_seconds"), "gauge", help, Duration::from_millis(age_ms).as_secs_f64());
        }
        self.single(&name("users"), "gauge", "Users of the database in force.", database.users as f64);
        self.single(&name("secrets"), "gauge", "Secrets of the database in force.", database.secrets as f64);
        self.single(&name("peers"), "gauge", "Rows of peers of the database in force.", database.peers as f64);
        self.counts(&name("reads_total"), "result", "Reads of the database, by result.", &database.reads);
        self.family(&name("rows_skipped"), "gauge", "Rows that the last read could not use, by reason.");
        for skipped in &database.skipped {
            self.sample(&name("rows_skipped"), &[("reason", skipped.name)], skipped.count as f64);
        }
    }

    fn market(&mut self, market: &MarketStatus) {
        self.ledger("market", &market.ledger);
        self.stages("market", &market.stages);
        self.feeds(market);
        self.family("truetick_market_books", "gauge", "Books by venue and by the proof that they carry.");
        let mut proofs: Vec<_> = market.books.iter().map(|book| (book.venue, book.proof)).collect();
        sort_short_by_key(&mut proofs, |proof| *proof);
        for group in proofs.chunk_by(|a, b| a == b) {
            let labels = [("venue", group[0].0), ("proof", group[0].1)];
            self.sample("truetick_market_books", &labels, group.len() as f64);
        }
        let name = "truetick_market_ingest_seconds";
        self.family(name, "summary", "Ingest, a row of the published result each, from live traffic.");
        for row in &market.ingest {
            if let Some(quantiles) = &row.quantiles {
                self.summary(name, &[("row", row.name)], quantiles);
            }
        }
    }

    /// A venue that several connections serve is one series: connected when all are.
    fn feeds(&mut self, market: &MarketStatus) {
        let mut venues: Vec<Feed> = Vec::new();
        for feed in &market.feeds {
            match venues.iter_mut().find(|venue| venue.venue == feed.venue) {
                Some(venue) => venue.add(feed),
                None => venues.push(feed.clone()),
            }
        }
        let mut each = |name: &str, kind: &str, help: &str, value: fn(&Feed) -> f64| {
            self.family(name, kind, help);
            for feed in &venues {
                self.sample(name, &[("venue", feed.venue)], value(feed));
            }
        };
        each("truetick_market_connected", "gauge", "1 while connected.", |feed| f64::from(feed.connected));
        each(
            "truetick_market_silent_topics",
            "gauge",
            "Topics that the venue accepted and does not send, at most 64.",
            |feed| feed.silent_topics.len() as f64,
        );
        each(
            "truetick_market_refused",
            "gauge",
            "Symbols and topics that the venue does not list or refuses, at most 64.",
            |feed| feed.refused.len() as f64,
        );
        each("truetick_market_feed_frames_total", "counter", "Frames by venue.", |feed| feed.frames as f64);
        each("truetick_market_gaps_total", "counter", "Gaps found.", |feed| feed.gaps as f64);
        each("truetick_market_resyncs_total", "counter", "Books resynchronised.", |feed| feed.resyncs as f64);
        each("truetick_market_reconnects_total", "counter", "Reconnections.", |feed| feed.reconnects as f64);
        each(
            "truetick_market_planned_reconnects_total",
            "counter",
            "Connections replaced before their announced or due end.",
            |feed| feed.planned_reconnects as f64,
        );
    }

    fn market_streams(&mut self, counts: &StreamCounts, readers: u64) {
        let help = "Readers of streams of every update.";
        self.single("truetick_market_stream_readers", "gauge", help, readers as f64);
        let mut each = |name: &str, help: &str, value: u64| {
            self.single(&format!("truetick_market_stream_{name}_total"), "counter", help, value as f64);
        };
        each("messages", "Messages handed to readers of streams.", counts.messages);
        each("gaps", "Marks of lost messages.", counts.gaps);
        each("lost", "Messages that slow readers of streams lost.", counts.lost);
        each("feed_lost", "Updates that found no room between a feed and the streams.", counts.lost_by_feeds);
    }

    fn modes(&mut self, modes: &[ModeRow]) {
        let name = "truetick_risk_restricted_scopes";
        self.family(name, "gauge", "Scopes of the gate that are not active, by mode.");
        for mode in ["kill", "reduce"] {
            let scopes = modes.iter().filter(|row| row.mode == mode).count();
            self.sample(name, &[("mode", mode)], scopes as f64);
        }
    }

    fn risk(&mut self, risk: &RiskStatus) {
        self.ledger("risk", &risk.ledger);
        self.stages("risk", &risk.stages);
        self.counts("truetick_risk_reasons_total", "reason", "Reasons in rejected intents.", &risk.reasons);
        if let Some(journey) = &risk.journey {
            self.family("truetick_risk_journey_seconds", "summary", "From the push into the ring to the verdict.");
            self.summary("truetick_risk_journey_seconds", &[], journey);
        }
        let ring = &risk.ring;
        self.single("truetick_risk_ring_slots", "gauge", "Slots of the ring.", ring.capacity as f64);
        self.single("truetick_risk_ring_pushed_total", "counter", "Intents pushed.", ring.pushed as f64);
        self.single("truetick_risk_ring_popped_total", "counter", "Intents popped.", ring.popped as f64);
        self.single("truetick_risk_ring_full_total", "counter", "Pushes into a full ring.", ring.full as f64);
    }
}

fn seconds(ns: f64) -> f64 {
    ns / 1e9
}
