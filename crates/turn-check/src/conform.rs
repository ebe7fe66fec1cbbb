//! Judges a server by the requirements of RFC 8489 and RFC 8656 that can be seen from outside.
//!
//! One check is one small function in a table. It sends well-formed messages at a bounded rate, holds a bounded number
//! of allocations, and ends them; malformed messages are sent only on request.

mod algorithms;
mod allocate;
mod authentication;
mod binding;
mod channels;
mod check;
mod control;
mod errors;
mod families;
mod framing;
mod hostile;
mod integrity;
mod judge;
mod peer;
mod permissions;
mod ports;
mod probe;
mod refresh;
mod relaying;
mod reply;
mod scoreboard;
mod signature;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustls::RootCertStore;

use crate::client::Login;
use crate::target::{Target, Transport};
pub use check::{Check, Level};
use check::{Needs, Unmet};
use control::Control;
use judge::Judge;
pub use scoreboard::{Judgement, Scoreboard, ScoreboardRow};

/// What a judgement needs besides the server.
pub struct ConformOptions {
    /// The credential; without one only Binding and the first 401 are judged.
    pub login: Option<Login>,
    /// The credential of another user.
    pub other_login: Option<Login>,
    /// Authorities of certificates.
    pub roots: Arc<RootCertStore>,
    /// Whether malformed messages and a small flood are sent, too.
    pub is_hostile: bool,
    /// Ids to judge; all if there are none.
    pub only: Vec<String>,
    /// Set it to stop: the allocations are ended and the other checks are not judged.
    pub stop: Arc<AtomicBool>,
}

/// Returns all checks, in the order of their judgement.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    [
        binding::CHECKS,
        errors::CHECKS,
        authentication::CHECKS,
        integrity::CHECKS,
        algorithms::CHECKS,
        allocate::CHECKS,
        families::CHECKS,
        ports::CHECKS,
        refresh::CHECKS,
        permissions::CHECKS,
        channels::CHECKS,
        relaying::CHECKS,
        framing::CHECKS,
        hostile::CHECKS,
    ]
    .into_iter()
    .flatten()
}

/// The judgement of a server: an iterator that makes a row with each step.
pub struct Conformance<'a> {
    target: &'a Target,
    options: &'a ConformOptions,
    control: Rc<Control>,
    queue: Vec<(Transport, u16, &'static Check)>,
    judge: Option<Judge<'a>>,
}

impl<'a> Conformance<'a> {
    /// Starts the judgement of `target`. Nothing is sent yet.
    #[must_use]
    pub fn new(target: &'a Target, options: &'a ConformOptions) -> Self {
        let mut queue = Vec::new();
        for (transport, port) in &target.transports {
            let chosen = checks().filter(|check| check.is_for(*transport, options));
            queue.extend(chosen.map(|check| (*transport, *port, check)));
        }
        queue.reverse();
        let control = Rc::new(Control::new(Arc::clone(&options.stop)));
        Self { target, options, control, queue, judge: None }
    }

    /// Returns the number of checks that are left.
    #[must_use]
    pub fn checks_left(&self) -> usize {
        self.queue.len()
    }

    /// Connects over a transport, and returns its row if it is not there.
    fn reach(&mut self, transport: Transport, port: u16) -> Option<ScoreboardRow> {
        if self.judge.as_ref().is_some_and(|judge| judge.transport == transport && judge.port == port) {
            return None;
        }
        let judge = Judge::new((self.target, transport, port), self.options, Rc::clone(&self.control));
        let judgement = match judge.reach() {
            Ok(()) => {
                self.judge = Some(judge);
                return None;
            }
            // A UDP port without a listener is silent; whoever accepts a connection should answer on it.
            Err(Unmet::Failed { received, .. }) if transport == Transport::Udp => {
                Judgement::Absent { reason: received }
            }
            Err(Unmet::Failed { expected, received }) => Judgement::Failed { expected, received },
            Err(Unmet::Absent(reason)) => Judgement::Absent { reason },
            Err(Unmet::NotJudged(reason)) => Judgement::NotJudged { reason },
        };
        self.judge = None;
        self.queue.retain(|(other, other_port, _)| *other != transport || *other_port != port);
        Some(ScoreboardRow::of_transport(transport, judgement))
    }
}

impl Iterator for Conformance<'_> {
    type Item = ScoreboardRow;

    fn next(&mut self) -> Option<ScoreboardRow> {
        let (transport, port, check) = *self.queue.last()?;
        if let Some(row) = self.reach(transport, port) {
            return Some(row);
        }
        self.queue.pop();
        let judge = self.judge.as_ref()?;
        let finding = match (check.needs, &self.options.login, &self.options.other_login) {
            (Needs::Nothing, _, _) | (Needs::Login, Some(_), _) | (Needs::TwoLogins, Some(_), Some(_)) => {
                judge.judge(check)
            }
            (Needs::Login | Needs::TwoLogins, None, _) => Err(Unmet::NotJudged("no credential".to_owned())),
            (Needs::TwoLogins, Some(_), None) => Err(Unmet::NotJudged("no credential of another user".to_owned())),
        };
        Some(ScoreboardRow::of_check(transport, check, finding))
    }
}

/// Returns why a transport is not offered, or what keeps it from being judged.
fn unreachable(port: u16, error: &io::Error) -> Unmet {
    let text = format!("port {port}: {error}");
    // rustls reports a certificate that it does not trust as invalid data.
    let is_ours = matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound | io::ErrorKind::Other);
    if is_ours { Unmet::NotJudged(text) } else { Unmet::Absent(text) }
}
