//! Quotas, lifetimes and the protocol's switches.

use super::Reader;
use crate::import::Outcome;

/// Lifetimes of an allocation that truetick accepts, seconds.
const LIFETIME_MIN_S: u64 = 60;
const LIFETIME_MAX_S: u64 = 86_400;
/// The default lifetime of an allocation, RFC 8656 section 3.2.
const LIFETIME_S: u64 = 600;
/// The longest lifetime of a nonce, RFC 8656 section 5.
const NONCE_LIFETIME_S: u64 = 3_600;
const ALLOCATIONS_MAX: u64 = 1 << 20;
const WORKERS_MAX: u64 = 256;
/// Relay ports by default, 49152 to 65535.
const RELAY_PORTS: u64 = 16_384;

impl Reader<'_> {
    /// Maps quotas, lifetimes and switches.
    pub(super) fn limits(&mut self) {
        self.counts();
        self.bandwidth();
        self.lifetimes();
        self.switches();
        let threads = self.number("relay-threads");
        if let Some(threads) = threads {
            self.document.turn("workers", int(threads.clamp(1, WORKERS_MAX)));
        }
        self.rows_of("relay-threads", Outcome::Same, "workers", "");
    }

    fn counts(&mut self) {
        match self.number("user-quota") {
            Some(0) | None => self.rows_of("user-quota", Outcome::Same, "", "no limit, as by default"),
            Some(quota) => {
                self.document.quota("user_allocations", int(quota.min(u32::MAX.into())));
                self.rows_of("user-quota", Outcome::Same, "quotas.user_allocations", "");
            }
        }
        let ports =
            self.number("max-port").unwrap_or(65_535).saturating_sub(self.number("min-port").unwrap_or(49_152)) + 1;
        let by_ports = if self.has("min-port") || self.has("max-port") { ports } else { RELAY_PORTS };
        let total = self.number("total-quota").filter(|total| *total > 0);
        // The tables of all allocations are made at the start.
        let allocations = total.unwrap_or(by_ports).clamp(1, ALLOCATIONS_MAX);
        self.document.turn("allocations_max", int(allocations));
        let reason = if total.is_some() { "" } else { "no limit but the number of relay ports" };
        self.rows_of("total-quota", Outcome::Same, "allocations_max", reason);
        let keys = "quotas.user_share_percent, quotas.user_allocations_per_second";
        if self.import.users.is_empty() {
            let reason = "one user alone gets 75 % of ports and allocations, and 50 allocations a second";
            self.default_row("user-quota", Outcome::Better, keys, reason.to_owned());
        } else {
            // Clients of static users often share one name.
            self.document.quota("user_share_percent", 100);
            self.document.quota("user_allocations_per_second", 0);
            let reason = "clients of static users may share a name: the limits of one user's share are off";
            self.default_row("user-quota", Outcome::Same, keys, reason.to_owned());
        }
    }

    fn bandwidth(&mut self) {
        let options = [
            ("max-bps", "allocation_bytes_per_second", "each direction of an allocation"),
            ("bps-capacity", "bytes_per_second", "each direction of the process; allocations beyond it get 486"),
        ];
        for (name, key, counted) in options {
            match self.number(name) {
                Some(0) | None => self.rows_of(name, Outcome::Same, "", "no limit, as by default"),
                Some(limit) => {
                    self.document.quota(key, int(limit.saturating_mul(2)));
                    let reason = format!(
                        "coturn counts payload bytes of {counted}; truetick counts bytes on the wire, 28 or 48 more for each \
                         packet, of both directions together, and drops the excess: check the doubled value"
                    );
                    self.rows_of(name, Outcome::Differs, &format!("quotas.{key}"), &reason);
                }
            }
        }
    }

    fn lifetimes(&mut self) {
        if let Some(longest) = self.number("max-allocate-lifetime") {
            let used = longest.clamp(LIFETIME_MIN_S, LIFETIME_MAX_S);
            self.document.turn("lifetime_max_s", int(used));
            if used < LIFETIME_S {
                self.document.turn("lifetime_s", int(used));
            }
            let (outcome, reason) = match used == longest {
                true => (Outcome::Same, ""),
                false => (Outcome::Differs, "truetick takes lifetimes from 60 s to a day"),
            };
            self.rows_of("max-allocate-lifetime", outcome, "lifetime_max_s", reason);
        } else {
            self.rows_of("max-allocate-lifetime", Outcome::Same, "", "3600 s, as by default");
        }
        let nonce = self.number("stale-nonce");
        let has_word = self.last("stale-nonce").is_some_and(|setting| !setting.word().is_empty());
        let (outcome, seconds, reason) = match nonce {
            None if has_word => (Outcome::Same, 600, "600 s"),
            None => (Outcome::Same, 600, "600 s, coturn's value without one"),
            Some(0) => (Outcome::Better, NONCE_LIFETIME_S, "coturn's nonces live for ever; truetick's at most 3600 s"),
            Some(seconds) if seconds > NONCE_LIFETIME_S => {
                (Outcome::Better, NONCE_LIFETIME_S, "at most 3600 s (RFC 8656 section 5)")
            }
            Some(seconds) => (Outcome::Same, seconds, ""),
        };
        if self.has("stale-nonce") {
            self.document.turn("nonce_lifetime_s", int(seconds));
        }
        self.rows_of("stale-nonce", outcome, "nonce_lifetime_s", reason);
        for (name, standard) in [("channel-lifetime", 600), ("permission-lifetime", 300)] {
            let (outcome, reason) = match self.number(name) {
                Some(seconds) if seconds != standard => (Outcome::Differs, format!("{standard} s, fixed by RFC 8656")),
                Some(_) | None => (Outcome::Same, format!("{standard} s, fixed by RFC 8656")),
            };
            self.rows_of(name, outcome, "", &reason);
        }
    }

    fn switches(&mut self) {
        if self.is_on("fingerprint") {
            self.document.turn("fingerprint_always", true);
        }
        self.rows_of("fingerprint", Outcome::Same, "fingerprint_always", "");
        if self.is_on("software-attribute") {
            self.document.turn("software", "truetick");
        }
        self.rows_of("software-attribute", Outcome::Same, "software", "");
        if self.is_on("rfc5766-channel-numbers") {
            self.document.turn("rfc5766_channel_numbers", true);
        }
        self.rows_of("rfc5766-channel-numbers", Outcome::Same, "rfc5766_channel_numbers", "");
        for name in ["verbose", "Verbose"] {
            self.rows_of(name, Outcome::Ignored, "", "see --log-level; each rejected request is logged by default");
        }
        if self.is_on("no-tcp-relay") {
            self.rows_of("no-tcp-relay", Outcome::Same, "", "no TCP relay (RFC 6062)");
        } else {
            let reason = "not yet: RFC 6062; coturn relays TCP unless no-tcp-relay is set, which browsers do not use";
            if self.has("no-tcp-relay") {
                self.rows_of("no-tcp-relay", Outcome::Differs, "", reason);
            } else {
                self.default_row("no-tcp-relay", Outcome::Differs, "", reason.to_owned());
            }
        }
    }
}

/// Returns `value` as TOML's integer.
fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
