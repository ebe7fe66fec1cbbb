//! Refresh (RFC 8656 section 8.2).

use tt_model::Nanos;

use super::allocate::{family, lifetime};
use super::reply::Granted;
use super::{Request, Server};
use crate::credential::User;
use crate::error::ErrorCode;
use crate::message::Known;

impl Server {
    pub(super) fn refresh(&mut self, request: &Request<'_, '_>, user: &User) -> Result<Granted, ErrorCode> {
        let index = self.owned(request, user)?;
        let requested = family(request.message.value(Known::RequestedAddressFamily))?;
        let relayed_v4 = self.allocations.get(index).is_some_and(|allocation| allocation.relayed.external.is_ipv4());
        if requested.is_some_and(|family| family != if relayed_v4 { 1 } else { 2 }) {
            return Err(ErrorCode::PeerAddressFamilyMismatch);
        }
        let asked_s = lifetime(&request.message)?;
        if asked_s == Some(0) {
            self.end_allocation(index);
            return Ok(Granted::Lifetime(0));
        }
        let lifetime_s = self.lifetime_s(asked_s);
        let expires = request.now.saturating_add(Nanos::from_secs(u64::from(lifetime_s)));
        self.allocations.refresh(index, request.now, expires);
        Ok(Granted::Lifetime(lifetime_s))
    }
}
