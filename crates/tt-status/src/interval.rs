//! Intervals in configuration, flags and requests.

use std::time::Duration;

/// Reads `100ms`, `60s`, `5m` or `1h`; `None` for anything else.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    let (number, ms) = units.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, *ms)))?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let count: u64 = number.parse().ok().filter(|_| is_number)?;
    count.checked_mul(ms).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_a_unit_is_an_interval() {
        let known = [("100ms", 100), ("60s", 60_000), ("5m", 300_000), ("2h", 7_200_000), ("0s", 0)];
        for (text, ms) in known {
            assert_eq!(parse(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "60", "s", "-1s", "+1s", "1.5s", " 1s", "1d", "99999999999999999999s", "18446744073709551615h"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
