//! The password of a user, or the key that follows from it.

use std::fmt;

use anyhow::{Context as _, bail};
use tt_turn::credential::UserSecret;
use zeroize::Zeroizing;

use super::{hex, opaque_string};

/// Begins a key in place of a password, as in coturn.
const KEY_PREFIX: &str = "0x";

/// The password of a user, or the key that follows from it. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// The password, prepared with OpaqueString of RFC 8265.
    Text(Zeroizing<String>),
    /// MD5 of `NAME:REALM:PASSWORD` (RFC 8489 section 9.2.2), which serves one name in one realm. No key for SHA-256
    /// follows from it: see [`TurnConfig::set_password_algorithms`](crate::TurnConfig::set_password_algorithms).
    Md5Key(Zeroizing<[u8; 16]>),
}

impl Password {
    /// Parses the password of user `name`: `0x` and 32 hexadecimal digits are a key, everything else is text.
    ///
    /// # Errors
    /// Other digits after `0x`, or a character that OpaqueString disallows. The error does not contain the password.
    pub(super) fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        if let Some(digits) = text.strip_prefix(KEY_PREFIX) {
            let Some(key) = hex(digits).map(Zeroizing::new) else {
                bail!("user {name}: a password that begins with 0x is a key and must have 32 hexadecimal digits");
            };
            return Ok(Self::Md5Key(key));
        }
        let disallowed =
            || format!("user {name}: the password contains a character that RFC 8265 (OpaqueString) disallows");
        Ok(Self::Text(opaque_string(text).with_context(disallowed)?))
    }

    pub(super) fn as_secret(&self) -> UserSecret<'_> {
        match self {
            Self::Text(text) => UserSecret::Password(text.as_bytes()),
            Self::Md5Key(key) => UserSecret::Md5Key(key),
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_secret(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::User;
    use super::*;

    /// The key of coturn's schema.userdb.redis.
    const KEY: &str = "7da2270ccfa49786e0115366d3a3d14d";

    #[test]
    fn thirty_two_digits_after_0x_are_a_key() {
        for digits in [KEY.to_owned(), KEY.to_uppercase()] {
            let user = User::parse(&format!("gorst:0x{digits}")).unwrap();
            let Password::Md5Key(key) = &user.password else { panic!("no key") };
            let bytes =
                [0x7d, 0xa2, 0x27, 0x0c, 0xcf, 0xa4, 0x97, 0x86, 0xe0, 0x11, 0x53, 0x66, 0xd3, 0xa3, 0xd1, 0x4d];
            assert_eq!((user.name.as_str(), **key), ("gorst", bytes));
        }
    }

    #[test]
    fn rejects_other_digits_after_0x_and_names_the_user_only() {
        let long = format!("{KEY}0");
        let wrong =
            [KEY.replace('c', "g"), KEY.replace('2', " "), KEY.replace("7d", "\u{e9}"), format!("0x{}", &KEY[2..])];
        let shorter = (0..KEY.len()).map(|len| KEY[..len].to_owned());
        for digits in shorter.chain([long]).chain(wrong) {
            let message = format!("{:#}", User::parse(&format!("gorst:0x{digits}")).unwrap_err());
            let expected = "user gorst: a password that begins with 0x is a key and must have 32 hexadecimal digits";
            assert_eq!(message, expected, "{digits}");
        }
    }

    #[test]
    fn other_passwords_are_text() {
        for password in [format!("0X{KEY}"), format!(" 0x{KEY}"), KEY.to_owned(), format!("00x{KEY}"), "0".to_owned()] {
            let user = User::parse(&format!("gorst:{password}")).unwrap();
            assert_eq!(user.password, Password::Text(Zeroizing::new(password)));
        }
    }

    #[test]
    fn debug_shows_neither_password_nor_key() {
        let debug = |text: &str| format!("{:?}", User::parse(text).unwrap().password);
        assert_eq!((debug("ann:secret"), debug(&format!("ann:0x{KEY}"))), ("Password(..)".into(), "Md5Key(..)".into()));
    }
}
