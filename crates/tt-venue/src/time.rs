//! The venues' times as nanoseconds of the Unix epoch.

use crate::error::ParseError;
use tt_model::Nanos;

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_US: u64 = 1000;
/// 2001-01-01, in seconds: a time in seconds or microseconds taken for milliseconds falls outside of the range.
const EARLIEST_S: u64 = 978_307_200;
/// 2200-01-01, in seconds.
const LATEST_S: u64 = 7_258_118_400;

/// Milliseconds since the Unix epoch.
#[inline]
pub(crate) fn from_unix_ms(ms: u64) -> Result<Nanos, ParseError> {
    if !(EARLIEST_S * 1000..LATEST_S * 1000).contains(&ms) {
        return Err(ParseError::Time);
    }
    Ok(Nanos(ms * NS_PER_MS))
}

/// Milliseconds or microseconds since the Unix epoch, by the number of digits: no time of either falls into the other's
/// range.
#[inline]
pub(crate) fn from_unix_ms_or_us(time: u64) -> Result<Nanos, ParseError> {
    if (EARLIEST_S * 1000..LATEST_S * 1000).contains(&time) {
        return Ok(Nanos(time * NS_PER_MS));
    }
    if (EARLIEST_S * 1_000_000..LATEST_S * 1_000_000).contains(&time) {
        return Ok(Nanos(time * NS_PER_US));
    }
    Err(ParseError::Time)
}

/// `YYYY-MM-DDThh:mm:ss[.f]Z`, up to nine digits of a second (RFC 3339 section 5.6 in UTC). A leap second is the first of
/// the next day, as in Unix time.
pub(crate) fn from_rfc3339(text: &[u8]) -> Result<Nanos, ParseError> {
    let (date_time, rest) = text.split_at_checked(19).ok_or(ParseError::Time)?;
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, b'T', h0, h1, b':', n0, n1, b':', s0, s1] = date_time else {
        return Err(ParseError::Time);
    };
    let year = two(*y0, *y1)? * 100 + two(*y2, *y3)?;
    let (month, day) = (two(*m0, *m1)?, two(*d0, *d1)?);
    let (hour, minute, second) = (two(*h0, *h1)?, two(*n0, *n1)?, two(*s0, *s1)?);
    let valid = (2001..2200).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && (second < 60 || (hour, minute, second) == (23, 59, 60));
    if !valid {
        return Err(ParseError::Time);
    }
    let seconds = ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Ok(Nanos(seconds * Nanos::PER_SECOND + fraction_ns(rest)?))
}

fn fraction_ns(text: &[u8]) -> Result<u64, ParseError> {
    match text {
        [b'Z'] => Ok(0),
        [b'.', digits @ .., b'Z'] if (1..=9).contains(&digits.len()) => {
            let mut ns = 0;
            for i in 0..9 {
                ns = ns * 10 + digit(digits.get(i).copied().unwrap_or(b'0'))?;
            }
            Ok(ns)
        }
        _ => Err(ParseError::Time),
    }
}

fn digit(byte: u8) -> Result<u64, ParseError> {
    if byte.is_ascii_digit() { Ok(u64::from(byte - b'0')) } else { Err(ParseError::Time) }
}

fn two(tens: u8, ones: u8) -> Result<u64, ParseError> {
    Ok(digit(tens)? * 10 + digit(ones)?)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + is_leap(year) as u64,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days between 1970-01-01 and a date of the Gregorian calendar, by years that begin in March.
const fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year;
    days - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_agree_with_date_1() {
        // Expected seconds from `date -u -d ... +%s`.
        let cases = [
            ("2026-08-01T02:53:53.646219Z", 1_785_552_833, 646_219_000),
            ("2024-02-29T23:59:59Z", 1_709_251_199, 0),
            ("2100-03-01T00:00:00.5Z", 4_107_542_400, 500_000_000),
            ("2001-01-01T00:00:00.000000001Z", 978_307_200, 1),
            // The last leap second there was.
            ("2016-12-31T23:59:60.5Z", 1_483_228_800, 500_000_000),
        ];
        for (text, seconds, ns) in cases {
            assert_eq!(from_rfc3339(text.as_bytes()), Ok(Nanos(seconds * Nanos::PER_SECOND + ns)), "{text}");
        }
        for text in [
            "2026-08-01T22:59:60Z",
            "2023-02-29T00:00:00Z",
            "2026-08-01T24:00:00Z",
            "2026-08-01T00:00:00",
            "2026-8-01T00:00:00Z",
            "",
        ] {
            assert_eq!(from_rfc3339(text.as_bytes()), Err(ParseError::Time), "{text}");
        }
        assert_eq!(from_unix_ms(1_723_161_256), Err(ParseError::Time));
        assert_eq!(from_unix_ms(1_723_161_256_299_000), Err(ParseError::Time));
    }

    #[test]
    fn microseconds_are_known_by_their_digits() {
        // The latest milliseconds are below the earliest microseconds.
        const { assert!(LATEST_S * 1000 < EARLIEST_S * 1_000_000) };
        let ms = Nanos(1_723_161_256_299 * NS_PER_MS);
        assert_eq!(from_unix_ms_or_us(1_723_161_256_299), Ok(ms));
        assert_eq!(from_unix_ms_or_us(1_723_161_256_299_417), Ok(Nanos(ms.0 + 417_000)));
        for other in [0, 1_723_161_256, EARLIEST_S * 1000 - 1, LATEST_S * 1000, EARLIEST_S * 1_000_000 - 1, u64::MAX] {
            assert_eq!(from_unix_ms_or_us(other), Err(ParseError::Time), "{other}");
        }
        for (time, second) in [(EARLIEST_S * 1000, EARLIEST_S), (EARLIEST_S * 1_000_000, EARLIEST_S)] {
            assert_eq!(from_unix_ms_or_us(time), Ok(Nanos(second * Nanos::PER_SECOND)));
        }
        assert_eq!(from_unix_ms_or_us(LATEST_S * 1_000_000 - 1), Ok(Nanos(LATEST_S * Nanos::PER_SECOND - NS_PER_US)));
    }
}
