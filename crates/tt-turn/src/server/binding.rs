//! Binding (RFC 8489 section 12).

use tt_meter::{Probe, Stage};

use super::{Request, Server};
use crate::drop_reason::DropReason;
use crate::emit::Emitter;
use crate::flow::canonical;
use crate::message::{Class, Method, attribute};

impl Server {
    /// Responds with the source address of the request (RFC 8489 section 6.3.1.1). Returns the length of the response.
    #[inline]
    pub(super) fn binding<P: Probe>(
        &mut self,
        request: &Request<'_, '_>,
        out: &mut [u8],
        probe: &mut P,
    ) -> Result<usize, DropReason> {
        self.counters.bindings += 1;
        let client = canonical(request.from.client);
        if !self.shared.spend_binding_reply(request.now, client.ip()) {
            return Err(DropReason::BindingBudget);
        }
        let mut reply = Emitter::begin(out, Method::Binding, Class::Success, request.message.transaction_id());
        reply.xor_address(attribute::XOR_MAPPED_ADDRESS, client);
        self.put_software(&mut reply);
        probe.mark(Stage::Build);
        if self.wants_fingerprint(&request.message) {
            reply.fingerprint();
        }
        let len = reply.finish().ok_or(DropReason::OutBuffer)?.len();
        self.counters.bindings_answered += 1;
        Ok(len)
    }
}
