//! Lists of everything that is open, in which an absence says something too.

use tt_venue::Venue;
use tt_venue::event::Coverage;

/// A venue's list of everything of one kind, which may come in parts.
#[derive(Clone, Copy, Debug, Default)]
struct Listing {
    number: u32,
    is_open: bool,
}

/// The lists of all venues.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listings([Listing; Venue::COUNT]);

impl Listings {
    /// The number of the venue's list that came last, or is coming. Entries that arrive from then on have it.
    #[inline]
    pub(crate) const fn number(&self, venue: Venue) -> u32 {
        self.0[venue as usize].number
    }

    /// Before a message's entries are applied: a list, or its first part, begins.
    pub(crate) fn begin(&mut self, venue: Venue, coverage: Coverage) {
        let listing = &mut self.0[venue as usize];
        if coverage != Coverage::Changed && !listing.is_open {
            listing.number = listing.number.wrapping_add(1);
            listing.is_open = true;
        }
    }

    /// After they were applied: whether the list is complete, so that what bears an older number is gone.
    pub(crate) fn end(&mut self, venue: Venue, coverage: Coverage) -> bool {
        let is_complete = coverage == Coverage::All;
        if is_complete {
            self.0[venue as usize].is_open = false;
        }
        is_complete
    }
}
