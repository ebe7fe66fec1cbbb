//! The rate of a currency is that of the first instrument `NAME/..` in the currency of limits (docs/limits-file.md).

use gate_limits::LimitsFile;
use tt_model::{InstrumentId, Price};
use tt_risk::Mark;
use tt_risk::money::{Conversion, Ratio};

/// The example with these instruments in place of `BTC/USDT`, by number.
fn limits(symbols: &[&str]) -> LimitsFile {
    let text = include_str!("../../../deploy/gate-limits.toml").replace("instruments = 2", "instruments = 5");
    let repeated = ["[instrument.", "[firm.limits."].iter().fold(text, |text, head| {
        let (before, rest) = text.split_at(text.find(head).expect("it has an instrument"));
        let (block, after) = rest.split_at(rest[1..].find("\n[").expect("other tables follow") + 2);
        let of = |(number, symbol): (usize, &&str)| {
            block.replace("BTC/USDT", symbol).replace("number = 0", &format!("number = {number}"))
        };
        let blocks: String = symbols.iter().enumerate().map(of).collect();
        format!("{before}{blocks}{after}")
    });
    LimitsFile::parse(&repeated).expect("the limits are valid")
}

#[test]
fn the_first_instrument_of_a_base_in_the_currency_of_limits_sets_its_rate() {
    let mark = Mark { ref_px: Price(6_000_000), ts_ns: 77, is_verified: true, ..Mark::default() };
    let limits = limits(&["BTC/EUR", "DOGE/USDT", "okx:BTC/USDT", "BTC/USDT"]);
    // 60,000 USDT for one BTC, which have eight decimals each.
    let expected = (1, Conversion { rate: Ratio { num: 60_000, den: 1 }, ts_ns: 77 });
    let rates: Vec<_> = (0..6).map(|number| limits.rate_of(InstrumentId(number), &mark)).collect();
    assert_eq!(rates, [None, None, Some(expected), None, None, None]);
    for unusable in [Mark { is_verified: false, ..mark }, Mark { ref_px: Price(0), ..mark }] {
        assert_eq!(limits.rate_of(InstrumentId(2), &unusable), None);
    }
}
