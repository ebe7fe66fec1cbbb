//! DSCP values of relayed datagrams.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The values that WebRTC uses: LE, DF, AF11, AF21, AF31, AF32, AF33, AF41, AF42, AF43 and EF (RFC 8837 section 5).
const WEBRTC: [u8; 11] = [0, 1, 10, 18, 26, 28, 30, 34, 36, 38, 46];
/// Values have six bits (RFC 2474 section 3).
const VALUES: u8 = 64;

/// A set of DSCP values, written as `0,10,46`, `all` or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DscpSet(u64);

impl Default for DscpSet {
    fn default() -> Self {
        Self::of(&WEBRTC)
    }
}

impl DscpSet {
    fn of(values: &[u8]) -> Self {
        Self(values.iter().fold(0, |set, value| set | 1 << value))
    }

    /// Returns a bit for each value in the set, bit 0 for value 0.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns `traffic_class`, with DSCP 0 if its DSCP is not in the set. ECN, the last two bits, stays.
    #[inline]
    #[must_use]
    pub const fn apply(self, traffic_class: u8) -> u8 {
        let is_allowed = self.0 >> (traffic_class >> 2) & 1 == 1;
        if is_allowed { traffic_class } else { traffic_class & 3 }
    }
}

impl fmt::Display for DscpSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("none"),
            u64::MAX => f.write_str("all"),
            set => {
                let values = (0..VALUES).filter(|value| set >> value & 1 == 1);
                f.write_str(&values.map(|value| value.to_string()).collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl FromStr for DscpSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "all" => return Ok(Self(u64::MAX)),
            "none" => return Ok(Self(0)),
            _ => {}
        }
        let value = |text: &str| text.parse().ok().filter(|value| *value < VALUES);
        let values: Option<Vec<u8>> = text.split(',').map(value).collect();
        values.map(|values| Self::of(&values)).ok_or_else(|| format!("`{text}` is not all, none or a list of 0 to 63"))
    }
}

impl From<DscpSet> for String {
    fn from(set: DscpSet) -> Self {
        set.to_string()
    }
}

impl TryFrom<String> for DscpSet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1 of RFC 8837 section 5.
    #[test]
    fn the_default_is_what_webrtc_uses() {
        let passed = (0..VALUES).filter(|dscp| DscpSet::default().apply(dscp << 2 | 1) == dscp << 2 | 1);
        assert_eq!(passed.collect::<Vec<_>>(), [0, 1, 10, 18, 26, 28, 30, 34, 36, 38, 46]);
        assert_eq!(DscpSet::default().apply(56 << 2 | 3), 3, "CS7 is cleared, CE stays");
    }

    #[test]
    fn sets_print_as_they_are_written() {
        for text in ["all", "none", "0", "0,10,46", "63"] {
            assert_eq!(text.parse::<DscpSet>().unwrap().to_string(), text);
        }
        let [all, none] = ["all", "none"].map(|text| text.parse::<DscpSet>().unwrap());
        assert_eq!((all.apply(0xe3), none.apply(0xe3)), (0xe3, 3));
        for text in ["", "64", "-1", "0,", "ef"] {
            assert!(text.parse::<DscpSet>().is_err(), "{text}");
        }
    }
}
