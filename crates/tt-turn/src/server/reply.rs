//! Requests decided and answered.

use core::net::SocketAddr;

use tt_meter::{Probe, Stage};

use super::{Request, Server};
use crate::config::{DontFragment, FingerprintUse};
use crate::counters::DropReason;
use crate::credential::{Answer, User};
use crate::emit::Emitter;
use crate::error::ErrorCode;
use crate::event::Event;
use crate::flow::canonical;
use crate::message::{Class, Known, Message, Method, XorAddress, attribute};
use crate::output::Output;
use crate::refusal::{Refusal, Refused};
use crate::relay::Family;

/// Types that UNKNOWN-ATTRIBUTES lists: all of any request that is not made to be answered at length. The list then
/// fits the buffer, and takes half of the bytes that the request had for it.
const UNKNOWN_LISTED_MAX: usize = 512;

/// What a request was granted: what its success response says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Granted {
    /// An allocation.
    Allocation {
        /// Its relayed addresses by family.
        relayed: [Option<SocketAddr>; 2],
        lifetime_s: u32,
        /// The reserved port's.
        token: Option<u64>,
        /// The family that was asked for and is not to be had (RFC 8656 section 7.2, item 9).
        missing: Option<(Family, ErrorCode)>,
    },
    /// An allocation's lifetime in seconds.
    Lifetime(u32),
    /// A permission or a channel; there is nothing to say.
    Done,
}

impl Server {
    /// Authenticates a TURN request, decides it and answers it.
    pub(super) fn request<'a, P: Probe>(
        &mut self,
        request: &Request<'_, '_>,
        out: &'a mut [u8],
        probe: &mut P,
    ) -> Result<Output<'a>, DropReason> {
        if request.method == Method::ChannelBind {
            self.prefetch_channel(request);
        }
        let user = match self.credential_check(request.now, request.from.client, &request.message) {
            Ok(user) => user,
            Err(error) => return self.refuse(request, error, out, probe),
        };
        self.refused = None;
        let decided = if self.unknown_required(&request.message) > 0 {
            Err(ErrorCode::UnknownAttribute)
        } else {
            self.decide(request, &user)
        };
        // Guesses at tokens get no more answers than unauthenticated requests do.
        let guesses = self.refused.is_some_and(|refused| refused.refusal == Refusal::Token);
        if guesses && !self.shared.spend_error_reply(request.now, canonical(request.from.client).ip()) {
            return Err(DropReason::ErrorBudget);
        }
        let class = if decided.is_ok() { Class::Success } else { Class::Error };
        let mut reply = Emitter::begin(out, request.method, class, request.message.transaction_id());
        match decided {
            Ok(granted) => {
                self.put_granted(&mut reply, request, granted);
                self.put_software(&mut reply);
            }
            Err(error) => {
                self.tell_refused(request, error, self.refused);
                self.put_error(&mut reply, request, error);
            }
        }
        probe.mark(Stage::Build);
        let key = self.credentials.key_of(&user).ok_or(DropReason::OutBuffer)?;
        if user.answer != Answer::Sha256 {
            reply.message_integrity(&key.sha1);
        }
        if user.answer != Answer::Sha1 {
            reply.message_integrity_sha256(&key.sha256);
        }
        if self.wants_fingerprint(&request.message) {
            reply.fingerprint();
        }
        reply.finish().map(Output::Reply).ok_or(DropReason::OutBuffer)
    }

    fn decide(&mut self, request: &Request<'_, '_>, user: &User) -> Result<Granted, ErrorCode> {
        match request.method {
            Method::Allocate => self.allocate(request, user),
            Method::Refresh => self.refresh(request, user),
            Method::CreatePermission => self.create_permission(request, user),
            Method::ChannelBind => self.channel_bind(request, user),
            Method::Binding | Method::Send | Method::Data => Err(ErrorCode::BadRequest),
        }
    }

    /// The request's allocation, which must be the user's.
    pub(super) fn owned(&self, request: &Request<'_, '_>, user: &User) -> Result<u32, ErrorCode> {
        let index = request.allocation.ok_or(ErrorCode::AllocationMismatch)?;
        match self.allocations.get(index) {
            Some(allocation) if allocation.user == user.id => Ok(index),
            Some(_) => Err(ErrorCode::WrongCredentials),
            None => Err(ErrorCode::AllocationMismatch),
        }
    }

    /// Answers an error to somebody who is not authenticated, as far as the source's budget goes. 401 and 438 say what
    /// a client needs to try again, whoever it claims to be: REALM, NONCE and PASSWORD-ALGORITHMS, nothing else (RFC
    /// 8489 section 9.2.4).
    pub(super) fn refuse<'a, P: Probe>(
        &mut self,
        request: &Request<'_, '_>,
        error: ErrorCode,
        out: &'a mut [u8],
        probe: &mut P,
    ) -> Result<Output<'a>, DropReason> {
        let client = canonical(request.from.client);
        if !self.shared.spend_error_reply(request.now, client.ip()) {
            return Err(DropReason::ErrorBudget);
        }
        let has_code = request.message.has(Known::Integrity) || request.message.has(Known::IntegritySha256);
        if has_code && error != ErrorCode::StaleNonce {
            self.tell_refused(request, error, None);
        }
        let mut reply = Emitter::begin(out, request.method, Class::Error, request.message.transaction_id());
        self.put_error(&mut reply, request, error);
        if matches!(error, ErrorCode::Unauthenticated | ErrorCode::StaleNonce) {
            reply.attribute(attribute::REALM, self.config.realm.as_bytes());
            let nonce = self.nonces.issue(self.clock.unix_s(request.now), client);
            reply.attribute(attribute::NONCE, &nonce);
            if let Some(offer) = self.config.password_algorithms.offer() {
                reply.attribute(attribute::PASSWORD_ALGORITHMS, offer);
            }
        }
        probe.mark(Stage::Build);
        if self.wants_fingerprint(&request.message) {
            reply.fingerprint();
        }
        reply.finish().map(Output::Reply).ok_or(DropReason::OutBuffer)
    }

    /// Makes an event of a refusal.
    fn tell_refused(&mut self, request: &Request<'_, '_>, error: ErrorCode, refused: Option<Refused>) {
        let message = &request.message;
        let peer = message.value(Known::XorPeerAddress);
        let rule = refused.and_then(|refused| self.config.peer_policy.rules().get(refused.rule?.0));
        self.events.push(Event::Refused {
            method: request.method,
            error,
            client: request.from.client,
            peer: peer.and_then(|value| XorAddress::decode(value, &message.transaction_id())),
            refusal: refused.map(|refused| refused.refusal),
            rule: rule.copied(),
            user: self.user_name(message),
        });
    }

    fn put_granted(&self, reply: &mut Emitter<'_>, request: &Request<'_, '_>, granted: Granted) {
        match granted {
            Granted::Allocation { relayed, lifetime_s, token, missing } => {
                for relayed in relayed.iter().flatten() {
                    reply.xor_address(attribute::XOR_RELAYED_ADDRESS, *relayed);
                }
                reply.xor_address(attribute::XOR_MAPPED_ADDRESS, canonical(request.from.client));
                reply.attribute(attribute::LIFETIME, &lifetime_s.to_be_bytes());
                if let Some(token) = token {
                    reply.attribute(attribute::RESERVATION_TOKEN, &token.to_be_bytes());
                }
                if let Some((family, error)) = missing {
                    let code = error.code();
                    let value = [family.number(), 0, (code / 100) as u8, (code % 100) as u8];
                    reply.attribute(attribute::ADDRESS_ERROR_CODE, &value);
                }
            }
            Granted::Lifetime(lifetime_s) => reply.attribute(attribute::LIFETIME, &lifetime_s.to_be_bytes()),
            Granted::Done => {}
        }
    }

    fn put_error(&mut self, reply: &mut Emitter<'_>, request: &Request<'_, '_>, error: ErrorCode) {
        self.counters.errors[error as usize] += 1;
        reply.error_code(error);
        if error == ErrorCode::UnknownAttribute {
            let dont_fragment = self.is_unknown_dont_fragment(&request.message).then_some(attribute::DONT_FRAGMENT);
            let types = request.message.unknown_types().chain(dont_fragment);
            let count = usize::from(self.unknown_required(&request.message));
            reply.unknown_attributes(types, count.min(UNKNOWN_LISTED_MAX));
        }
    }

    /// How many comprehension-required attributes of `message` are not understood (RFC 8489 section 6.3).
    #[inline]
    pub(super) fn unknown_required(&self, message: &Message<'_>) -> u16 {
        message.unknown_required().saturating_add(u16::from(self.is_unknown_dont_fragment(message)))
    }

    /// RFC 8656 sections 7.2 (item 4) and 11.2: a server that cannot set the DF bit does not know DONT-FRAGMENT.
    fn is_unknown_dont_fragment(&self, message: &Message<'_>) -> bool {
        let asks = matches!(message.method(), Ok(Method::Allocate | Method::Send));
        asks && self.config.dont_fragment == DontFragment::Unknown && message.has(Known::DontFragment)
    }

    #[inline]
    pub(super) fn put_software(&self, reply: &mut Emitter<'_>) {
        if let Some(software) = &self.config.software {
            reply.attribute(attribute::SOFTWARE, software.as_bytes());
        }
    }

    #[inline]
    pub(super) fn wants_fingerprint(&self, message: &Message<'_>) -> bool {
        message.has_fingerprint() || self.config.fingerprint == FingerprintUse::Always
    }
}
