//! Requests: authentication, decision and response.

use core::net::SocketAddr;

use tt_meter::{Probe, Stage};

use super::{Request, Server};
use tt_model::{IpFamily, Transport};

use crate::channel::Binding;
use crate::config::{DontFragment, FingerprintUse};
use crate::credential::{Answer, User};
use crate::drop_reason::DropReason;
use crate::emit::Emitter;
use crate::error::ErrorCode;
use crate::event::RejectedRequest;
use crate::flow::canonical;
use crate::message::{Class, Known, Message, Method, XorAddress, attribute, family_number};
use crate::output::{Output, ReplyStatus};
use crate::rejection::{RejectReason, Rejection};

/// Maximum number of types in UNKNOWN-ATTRIBUTES: all of a normal request. The list fits in the buffer and is half as
/// long as those attributes in the request.
const UNKNOWN_LISTED_MAX: usize = 512;

/// Content of a success response.
#[derive(Clone, Copy, Debug)]
pub(super) enum Granted {
    /// An allocation.
    Allocation {
        /// Its relayed addresses by family.
        relayed: [Option<SocketAddr>; 2],
        lifetime_s: u32,
        /// Token of the reserved port.
        token: Option<u64>,
        /// The requested family that is not available (RFC 8656 section 7.2, item 9).
        missing: Option<(IpFamily, ErrorCode)>,
    },
    /// An allocation's lifetime in seconds.
    Lifetime(u32),
    /// A permission or a channel; the response has no content.
    Done,
}

impl Server {
    /// Responds to a request other than a plain Binding, or relays an indication.
    pub(super) fn answer<P: Probe>(
        &mut self,
        request: &Request<'_, '_>,
        out: &mut [u8],
        probe: &mut P,
    ) -> Result<Output, DropReason> {
        if request.method == Method::Binding {
            self.counters.bindings += 1;
            return self.refuse(request, ErrorCode::UnknownAttribute, out, probe);
        }
        if let Some(owner) = self.other_owner(&request.flow, request.allocation) {
            return Ok(Output::HandOff(owner));
        }
        if let Some(index) = request.allocation {
            self.allocations.prefetch_whole(index);
            self.kept_keys.prefetch(index);
        }
        match request.method {
            Method::Send => self.send(request, out, probe),
            Method::Binding
            | Method::Allocate
            | Method::Refresh
            | Method::Data
            | Method::CreatePermission
            | Method::ChannelBind => self.request(request, out, probe),
        }
    }

    /// Authenticates a TURN request, decides it and writes the response.
    fn request<P: Probe>(
        &mut self,
        request: &Request<'_, '_>,
        out: &mut [u8],
        probe: &mut P,
    ) -> Result<Output, DropReason> {
        let binding = if request.method == Method::ChannelBind { self.prefetch_channel(request) } else { None };
        let user = match self.authenticate(request) {
            Ok(user) => user,
            Err(error) => return self.refuse(request, error, out, probe),
        };
        let decided = if self.unknown_required(&request.message) > 0 {
            Err(ErrorCode::UnknownAttribute.into())
        } else {
            self.decide(request, &user, binding)
        };
        // A user that guesses tokens has a budget of responses.
        let guesses = decided.as_ref().is_err_and(|rejection| rejection.reason == Some(RejectReason::Token));
        if guesses && !self.shared.spend_token_guess(request.now, user.quota_key) {
            return Err(DropReason::TokenBudget);
        }
        let class = if decided.is_ok() { Class::Success } else { Class::Error };
        let mut reply = Emitter::begin(out, request.method, class, request.message.transaction_id());
        let status = match decided {
            Ok(granted) => {
                self.put_granted(&mut reply, request, granted);
                self.put_software(&mut reply);
                ReplyStatus::Success
            }
            Err(rejection) => {
                self.push_rejected(request, rejection);
                self.put_error(&mut reply, request, rejection.code);
                rejection.into()
            }
        };
        probe.mark(Stage::Build);
        let key = self.response_key(&user).ok_or(DropReason::OutBuffer)?;
        if user.answer != Answer::Sha256 {
            reply.message_integrity(&key.sha1);
        }
        if user.answer != Answer::Sha1 {
            reply.message_integrity_sha256(&key.sha256);
        }
        if self.wants_fingerprint(&request.message) {
            reply.fingerprint();
        }
        close(reply, status)
    }

    fn decide(
        &mut self,
        request: &Request<'_, '_>,
        user: &User,
        binding: Option<Binding>,
    ) -> Result<Granted, Rejection> {
        match request.method {
            Method::Allocate => self.allocate(request, user),
            Method::Refresh => self.refresh(request, user),
            Method::CreatePermission => self.create_permission(request, user),
            Method::ChannelBind => self.channel_bind(request, user, binding),
            Method::Binding | Method::Send | Method::Data => Err(ErrorCode::BadRequest.into()),
        }
    }

    /// Returns the request's allocation, which must belong to the user.
    pub(super) fn owned(&self, request: &Request<'_, '_>, user: &User) -> Result<u32, ErrorCode> {
        let index = request.allocation.ok_or(ErrorCode::AllocationMismatch)?;
        match self.allocations.get(index) {
            Some(allocation) if allocation.is_of(user) => Ok(index),
            Some(_) => Err(ErrorCode::WrongCredentials),
            None => Err(ErrorCode::AllocationMismatch),
        }
    }

    /// Writes an error response to a client that is not authenticated.
    ///
    /// Over TCP and TLS, and on a flow with a live allocation, it always does: the client is known to receive it. Over
    /// UDP the source may be forged, so that what exceeds three times the request has a budget.
    ///
    /// A 401 or 438 contains what a client needs to try again: REALM, NONCE and PASSWORD-ALGORITHMS, nothing else (RFC
    /// 8489 section 9.2.4).
    pub(super) fn refuse<P: Probe>(
        &mut self,
        request: &Request<'_, '_>,
        error: ErrorCode,
        out: &mut [u8],
        probe: &mut P,
    ) -> Result<Output, DropReason> {
        let client = canonical(request.from.client);
        let mut reply = Emitter::begin(out, request.method, Class::Error, request.message.transaction_id());
        self.put_error(&mut reply, request, error);
        if matches!(error, ErrorCode::Unauthenticated | ErrorCode::StaleNonce) {
            reply.attribute(attribute::REALM, self.realm_name(self.selected_realm(request)).as_bytes());
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
        let reply = reply.finish().ok_or(DropReason::OutBuffer)?;
        let (len, request_len) = (reply.len(), request.message.bytes().len());
        let is_proven = request.from.transport != Transport::Udp || request.allocation.is_some();
        if !is_proven && !self.shared.spend_error_reply(request.now, client.ip(), len, request_len) {
            return Err(DropReason::ErrorBudget);
        }
        let has_code = request.message.has(Known::Integrity) || request.message.has(Known::IntegritySha256);
        if has_code && error != ErrorCode::StaleNonce {
            self.push_rejected(request, error.into());
        }
        Ok(Output::Reply { len, status: Rejection::from(error).into() })
    }

    /// Queues an event for a rejected request.
    fn push_rejected(&mut self, request: &Request<'_, '_>, rejection: Rejection) {
        let message = &request.message;
        let peer = message.value(Known::XorPeerAddress);
        let rule = rejection.rule.zip(request.allocation);
        let rule = rule.and_then(|(rule, index)| self.policy_of(index).0.rules().get(rule.0));
        self.events.push_rejected(RejectedRequest {
            method: request.method,
            code: rejection.code,
            client: request.from.client,
            peer: peer.and_then(|value| XorAddress::decode(value, &message.transaction_id())),
            reason: rejection.reason,
            rule: rule.copied(),
            realm: self.named_realm(message),
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
                    let value = [family_number(family), 0, (code / 100) as u8, (code % 100) as u8];
                    reply.attribute(attribute::ADDRESS_ERROR_CODE, &value);
                }
            }
            Granted::Lifetime(lifetime_s) => reply.attribute(attribute::LIFETIME, &lifetime_s.to_be_bytes()),
            Granted::Done => {}
        }
    }

    fn put_error(&self, reply: &mut Emitter<'_>, request: &Request<'_, '_>, error: ErrorCode) {
        reply.error_code(error);
        if error == ErrorCode::TryAlternate
            && let Some(alternate) = self.alternate(request.from)
        {
            reply.address(attribute::ALTERNATE_SERVER, alternate);
        }
        if error == ErrorCode::UnknownAttribute {
            let dont_fragment = self.is_unknown_dont_fragment(&request.message).then_some(attribute::DONT_FRAGMENT);
            let types = request.message.unknown_types().chain(dont_fragment);
            let count = usize::from(self.unknown_required(&request.message));
            reply.unknown_attributes(types, count.min(UNKNOWN_LISTED_MAX));
        }
    }

    /// Returns the number of unknown comprehension-required attributes of `message` (RFC 8489 section 6.3).
    #[inline]
    pub(super) fn unknown_required(&self, message: &Message<'_>) -> u16 {
        message.unknown_required().saturating_add(u16::from(self.is_unknown_dont_fragment(message)))
    }

    /// Returns whether DONT-FRAGMENT is unknown: on a server that cannot set the DF bit (RFC 8656 sections 7.2, item
    /// 4, and 11.2).
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

/// Ends a response.
#[inline]
pub(super) fn close(reply: Emitter<'_>, status: ReplyStatus) -> Result<Output, DropReason> {
    reply.finish().map(|message| Output::Reply { len: message.len(), status }).ok_or(DropReason::OutBuffer)
}
