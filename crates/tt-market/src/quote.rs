//! What the tickers of an instrument need, apart from its book: one cache line, so that those of thousands of
//! instruments stay near.

use crate::candle::CandleSource;
use crate::drop_reason::DropReason;
use crate::instrument::Instrument;
use crate::scale::Divider;
use tt_model::{Decimal, Price, Qty};
use tt_venue::{BookLevel, Venue};

/// The line. What was last published of tickers and candles is read from where it is published.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Quote {
    /// Of the instrument's price step, for the decimals that its tickers had last.
    px: Divider,
    /// The same of its quantity step.
    qty: Divider,
    /// The price of the last trade; zero before the first one.
    pub(crate) last_px: Price,
    pub(crate) venue: Venue,
    pub(crate) candles: CandleSource,
    /// Whether the instrument's book is subscribed, for which its tickers are witnesses.
    pub(crate) has_book: bool,
}

const _: () = assert!(size_of::<Quote>() == 64);

impl Quote {
    pub(crate) const fn new(instrument: &Instrument) -> Self {
        Self {
            px: instrument.px.usual(),
            qty: instrument.qty.usual(),
            last_px: Price(0),
            venue: instrument.spec.venue,
            candles: instrument.spec.candles,
            has_book: false,
        }
    }

    /// Takes the instrument's steps as they are.
    pub(crate) const fn follow_steps(&mut self, instrument: &Instrument) {
        (self.px, self.qty) = (instrument.px.usual(), instrument.qty.usual());
    }

    /// A level in whole steps; `None` where its numbers have other decimals than the last ones.
    #[inline]
    pub(crate) fn level(&self, px: Decimal, qty: Decimal) -> Option<Result<BookLevel, DropReason>> {
        let is_usual = self.px.takes(px.decimals) && self.qty.takes(qty.decimals);
        is_usual.then(|| {
            let px = self.px.steps(px.mantissa).map(Price).ok_or(DropReason::OffTickSize)?;
            let qty = self.qty.steps(qty.mantissa).map(Qty).ok_or(DropReason::OffLotSize)?;
            Ok(BookLevel { px, qty })
        })
    }
}
