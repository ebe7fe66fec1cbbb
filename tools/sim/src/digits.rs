//! Text as the venues print it: decimals with a fixed number of places, and times in RFC 3339.

use std::fmt::Write;

/// Appends `mantissa` x 10^-`decimals`, padded with zeros to `places` decimals.
///
/// Digits beyond `places` are cut off.
pub(crate) fn decimal(out: &mut String, mantissa: impl Into<i128>, decimals: u32, places: u32) {
    let kept = decimals.min(places);
    let mantissa = mantissa.into() / 10_i128.pow(decimals - kept);
    let scale = 10_i128.pow(kept);
    let (whole, fraction) = (mantissa / scale, mantissa % scale);
    // Writing to a String cannot fail.
    let _ = write!(out, "{whole}");
    if places == 0 {
        return;
    }
    out.push('.');
    if kept > 0 {
        let _ = write!(out, "{fraction:0width$}", width = kept as usize);
    }
    for _ in kept..places {
        out.push('0');
    }
}

/// Appends microseconds since the Unix epoch as `2026-08-02T03:35:50.983359Z`.
pub(crate) fn rfc3339(out: &mut String, unix_us: u64) {
    let (seconds, micros) = (unix_us / 1_000_000, unix_us % 1_000_000);
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days as i64);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z");
}

/// The Gregorian date of a day counted from 1970-01-01, by eras of 400 years that begin in March.
const fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + (month <= 2) as i64, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_padded_as_the_venues_pad_them() {
        for (mantissa, decimals, places, text) in [
            (6_173_763, 2, 8, "61737.63000000"),
            (5, 8, 8, "0.00000005"),
            (633_887, 1, 1, "63388.7"),
            (12, 0, 0, "12"),
            (12, 0, 2, "12.00"),
            (123_456, 5, 2, "1.23"),
        ] {
            let mut out = String::new();
            decimal(&mut out, mantissa, decimals, places);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn times_of_a_capture_and_of_a_leap_day() {
        // `date -u -d @1785641750` and `date -u -d @1709164800`.
        for (unix_us, text) in [
            (1_785_641_750_983_359, "2026-08-02T03:35:50.983359Z"),
            (1_709_164_800_000_001, "2024-02-29T00:00:00.000001Z"),
            (0, "1970-01-01T00:00:00.000000Z"),
        ] {
            let mut out = String::new();
            rfc3339(&mut out, unix_us);
            assert_eq!(out, text);
        }
    }
}
