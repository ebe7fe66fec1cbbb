//! Refresh (RFC 8656 section 8.2).

use tt_model::{IpFamily, Nanos};

use super::allocate::{family, lifetime};
use super::reply::Granted;
use super::{Request, Server};
use crate::config::GrantReports;
use crate::credential::User;
use crate::error::ErrorCode;
use crate::event::{AllocationGrant, GrantRequest};
use crate::message::{Known, family_number};
use crate::rejection::Rejection;

impl Server {
    pub(super) fn refresh(&mut self, request: &Request<'_, '_>, user: &User) -> Result<Granted, Rejection> {
        let index = self.owned(request, user)?;
        let requested = family(request.message.value(Known::RequestedAddressFamily))?;
        let families = self.refreshed(request.now, index, requested)?;
        let asked_s = lifetime(&request.message)?;
        if asked_s == Some(0) {
            for family in families.into_iter().flatten() {
                self.end_family(index, family, request.now);
            }
            return Ok(Granted::Lifetime(0));
        }
        let lifetime_s = self.lifetime_s(asked_s);
        let expires = request.now.saturating_add(Nanos::from_secs(u64::from(lifetime_s)));
        for family in families.into_iter().flatten() {
            if let Some(leg) = self.allocations.leg_mut(index, family) {
                leg.expires = expires;
                self.relays.fronts.set_expiry(leg.relay, expires);
            }
        }
        self.allocations.settle(index, request.now);
        self.touch_paths(index);
        self.report_grant(index, GrantRequest::Refresh, lifetime_s);
        Ok(Granted::Lifetime(lifetime_s))
    }

    /// Queues a lifetime for the driver if it wants to know.
    pub(super) fn report_grant(&mut self, index: u32, request: GrantRequest, lifetime_s: u32) {
        if self.events.grant_reports == GrantReports::Kept
            && let Some(start) = self.origins.start(index)
        {
            self.events.push_grant(AllocationGrant { start, request, lifetime_s });
        }
    }

    /// Returns the families that a Refresh applies to: the one that it names, or all (RFC 8656 section 8.1).
    ///
    /// # Errors
    /// `PeerAddressFamilyMismatch` (443) if the allocation has no address of the named family (section 8.2).
    fn refreshed(&self, now: Nanos, index: u32, named: Option<u8>) -> Result<[Option<IpFamily>; 2], ErrorCode> {
        let allocation = self.allocations.get(index).ok_or(ErrorCode::AllocationMismatch)?;
        let is_meant = |family: IpFamily| named.is_none_or(|number| number == family_number(family));
        let meant = [IpFamily::V4, IpFamily::V6].map(|family| {
            let leg = allocation.leg(family, now).filter(|_| is_meant(family));
            leg.map(|_| family)
        });
        if meant == [None, None] { Err(ErrorCode::PeerAddressFamilyMismatch) } else { Ok(meant) }
    }
}
