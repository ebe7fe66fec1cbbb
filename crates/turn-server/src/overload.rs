//! What a listener's socket takes while more arrives than its worker can read.
//!
//! A full receive buffer drops whatever comes next, so that a flood of strangers would take the place of live calls. From
//! half a buffer on, the kernel drops datagrams before they are queued ([`SourceFilter`]): those of clients with an
//! allocation here pass, and of all others a share. It becomes a quarter while the worker does not catch up, and grows
//! while it does: fast up to half of what was too much, then slowly, until the socket takes everything again.

use std::net::SocketAddr;

use tt_model::{IpFamily, Nanos};
use tt_net::{SourceFilter, UdpSocket};

/// Interval at which a socket that is not read to its end is looked at.
const LOOK_EVERY: Nanos = Nanos(2_000_000);
/// The same while it takes a share. The kernel gives back room in steps of a quarter of the buffer, which take less.
const LOOK_AT_SHARE_EVERY: Nanos = Nanos(40_000_000);
/// Interval at which the share grows.
const GROW_EVERY: Nanos = Nanos(50_000_000);
/// Interval at which new allocations are let in.
const RENEW_EVERY: Nanos = Nanos(100_000_000);
/// What passes of unknown sources at first, and at least, in 2^32.
const FIRST_SHARE: u32 = u32::MAX / 4;
const LEAST_SHARE: u32 = u32::MAX / 4_096;
/// Interval at which a filter that could not be attached is tried again, and at which a new overload is logged.
const RETRY_EVERY: Nanos = Nanos::from_secs(1);
const LOG_EVERY: Nanos = Nanos::from_secs(60);
/// A filter in which more of the unknown sources than this are taken for known ones keeps nothing free.
const CONFUSED_MAX: f64 = 0.5;

/// What is known of the clients of a listener.
pub(crate) struct KnownClients<'a> {
    /// Allocations made so far: another number means other addresses.
    pub(crate) made: u64,
    /// Returns the addresses of the clients that have an allocation.
    pub(crate) addresses: &'a dyn Fn() -> Vec<SocketAddr>,
}

/// The state of one listener's socket.
#[derive(Debug, Default)]
pub(crate) struct Overload {
    look_at: Nanos,
    /// It was read to its end since the last look.
    was_drained: bool,
    /// `None`: it takes everything.
    share: Option<Share>,
    logged_at: Option<Nanos>,
}

/// What is let in while the socket does not take everything.
#[derive(Debug)]
struct Share {
    /// Of unknown sources, in 2^32.
    others: u32,
    /// The last share that was too much.
    too_much: u32,
    /// Bytes of the buffer in use at the last look.
    used: u32,
    changed_at: Nanos,
    attached_at: Nanos,
    /// Allocations made when the filter was attached.
    made: u64,
}

impl Share {
    fn new(now: Nanos, others: u32, too_much: u32, used: u32, known: &KnownClients<'_>) -> Self {
        Self { others, too_much, used, changed_at: now, attached_at: now, made: known.made }
    }
}

impl Overload {
    /// Takes note of a read. Returns whether [`Overload::look`] has to be called.
    pub(crate) const fn note_read(&mut self, now: Nanos, drained: bool) -> bool {
        self.was_drained |= drained;
        self.share.is_none() && !drained && now.0 >= self.look_at.0
    }

    /// Returns when to look at it next although nothing is read; `None` while it takes everything.
    pub(crate) fn next_look(&self) -> Option<Nanos> {
        self.share.is_some().then_some(self.look_at)
    }

    /// Looks at the socket's queue, and changes what it takes. Returns whether it began to take a share only.
    pub(crate) fn look(&mut self, now: Nanos, socket: &UdpSocket, known: &KnownClients<'_>) -> bool {
        self.look_at = now.saturating_add(if self.share.is_some() { LOOK_AT_SHARE_EVERY } else { LOOK_EVERY });
        let drained = std::mem::take(&mut self.was_drained);
        let Ok(fill) = socket.queue_fill() else { return false };
        let is_above = |eighths: u64| u64::from(fill.used) * 8 > u64::from(fill.size) * eighths;
        let Some(share) = &mut self.share else {
            if is_above(4) && !drained {
                self.attach(now, socket, known, Share::new(now, FIRST_SHARE, u32::MAX, fill.used, known));
                self.log_begun(now, socket);
            }
            return self.share.is_some();
        };
        let is_old = |since: Nanos, interval: Nanos| now.saturating_sub(since) >= interval;
        let (before, too_much) = (share.others, share.too_much);
        let still_fills = !drained && is_above(3) && fill.used >= std::mem::replace(&mut share.used, fill.used);
        let (others, too_much) = if still_fills && before > LEAST_SHARE {
            ((before / 4).max(LEAST_SHARE), before)
        } else if drained && is_old(share.changed_at, GROW_EVERY) {
            let growth = if before <= too_much / 4 { before } else { before / 4 };
            (before.saturating_add(growth), too_much)
        } else {
            (before, too_much)
        };
        if others == u32::MAX {
            self.take_everything(socket);
        } else if others != before {
            self.attach(now, socket, known, Share::new(now, others, too_much, fill.used, known));
        } else if share.made != known.made && is_old(share.attached_at, RENEW_EVERY) {
            let renewed = Share { changed_at: share.changed_at, ..Share::new(now, others, too_much, fill.used, known) };
            self.attach(now, socket, known, renewed);
        }
        false
    }

    /// Lets the socket take everything.
    fn take_everything(&mut self, socket: &UdpSocket) {
        // Without it a share of strangers is lost, until the socket is closed.
        let _ = socket.set_source_filter(None);
        self.share = None;
    }

    fn log_begun(&mut self, now: Nanos, socket: &UdpSocket) {
        if self.share.is_some() && self.logged_at.is_none_or(|logged_at| now.saturating_sub(logged_at) >= LOG_EVERY) {
            self.logged_at = Some(now);
            let listener = socket.local_addr();
            tracing::warn!(%listener, "more arrives than can be read: only clients with an allocation get all through");
        }
    }

    fn attach(&mut self, now: Nanos, socket: &UdpSocket, known: &KnownClients<'_>, share: Share) {
        let mut key = [[0; 4]; 5];
        let drawn = getrandom::fill(key.as_flattened_mut());
        let family = IpFamily::of(socket.local_addr().ip());
        let filter = SourceFilter::new(family, key.map(u32::from_ne_bytes), (known.addresses)(), share.others);
        let is_of_use = drawn.is_ok() && filter.confused() <= CONFUSED_MAX;
        if is_of_use && socket.set_source_filter(Some(&filter)).is_ok() {
            self.share = Some(share);
            self.look_at = now.saturating_add(LOOK_AT_SHARE_EVERY);
        } else {
            self.take_everything(socket);
            self.look_at = now.saturating_add(RETRY_EVERY);
        }
    }
}

#[cfg(test)]
mod tests;
