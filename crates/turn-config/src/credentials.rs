//! Users, shared secrets and nonce keys, from the configuration and from files.

mod external;
mod password;
mod users;

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use precis_core::profile::PrecisFastInvocation as _;
use precis_profiles::OpaqueString;
use tt_os::secret_file;
use zeroize::Zeroizing;

pub use external::{ExternalCredentials, ExternalLimits, ExternalPeers, ExternalRealm, ExternalUsers, KeyedUsers};
pub use password::Password;
pub use users::Users;

/// RFC 8489 section 14.3: USERNAME has fewer than 509 bytes.
const NAME_LEN_MAX: usize = 508;

/// Replaces passwords in a printed configuration.
pub(crate) const MASK: &str = "<masked>";

/// A user with long-term credentials. `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name as in USERNAME, prepared with OpaqueString of RFC 8265.
    pub name: String,
    /// The password or key.
    pub password: Password,
}

/// A secret of time-limited credentials (TURN REST API). `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthSecret(pub Zeroizing<String>);

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for AuthSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthSecret(..)")
    }
}

impl User {
    /// Parses `NAME:PASSWORD` and prepares both with OpaqueString of RFC 8265, as clients do (RFC 8489 section 14.3); or
    /// `NAME:0x` and the 32 hexadecimal digits of a key.
    ///
    /// # Errors
    /// No colon, an empty part, a character that OpaqueString disallows, a name of more than 508 bytes, or other digits
    /// after `0x`. The error does not contain the password.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let Some((name, password)) = text.split_once(':') else { bail!("a user must be NAME:PASSWORD") };
        ensure!(!name.is_empty() && !password.is_empty(), "name and password of a user must not be empty");
        ensure!(password != MASK, "user {name}: the password is masked; insert the real one, or use a file");
        let name = opaque_string(name)
            .context("the name of a user contains a character that RFC 8265 (OpaqueString) disallows")?;
        ensure!(name.len() <= NAME_LEN_MAX, "the name of a user must have at most {NAME_LEN_MAX} bytes");
        let password = Password::parse(&name, password)?;
        Ok(Self { name: name.to_string(), password })
    }
}

/// Prepares `text` with OpaqueString: spaces become U+0020, and the result is in NFC (RFC 8265 section 4.2). Returns
/// `None` for a disallowed character or an empty result.
pub(crate) fn opaque_string(text: &str) -> Option<Zeroizing<String>> {
    OpaqueString::enforce(text).ok().map(|prepared| Zeroizing::new(prepared.into_owned()))
}

/// Adds the users of a file with one `NAME:PASSWORD` or `NAME:0xKEY` per line to `users`. Empty lines and lines that start with `#` are skipped.
///
/// # Errors
/// The file cannot be read, has permissions for others than its owner, or has an invalid line; the error names it.
pub(crate) fn read_users(path: &Path, users: &mut Users) -> anyhow::Result<()> {
    let text = secret_file::read(path)?;
    users.reserve(text.len());
    for (number, line) in secret_file::lines(&text) {
        users.push(User::parse(line).with_context(|| format!("{}, line {number}", path.display()))?);
    }
    Ok(())
}

/// Reads secrets from a file with one secret per line.
///
/// # Errors
/// The file cannot be read, has permissions for others than its owner, or is empty; the error names it.
pub(crate) fn auth_secrets_in(path: &Path) -> anyhow::Result<Vec<AuthSecret>> {
    let text = secret_file::read(path)?;
    let secrets: Vec<_> = secret_file::lines(&text).map(|(_, line)| AuthSecret(Zeroizing::new(line.into()))).collect();
    ensure!(!secrets.is_empty(), "{} holds no secret", path.display());
    Ok(secrets)
}

/// Keys of nonces. `Debug` does not show them.
#[derive(Clone, PartialEq, Eq)]
pub struct NonceKeys {
    /// The key of new nonces.
    pub current: Zeroizing<[u8; 32]>,
    /// A further key whose nonces are accepted: the one before a rotation, or the next one.
    pub previous: Option<Zeroizing<[u8; 32]>>,
}

impl fmt::Debug for NonceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NonceKeys(..)")
    }
}

/// Reads one or two nonce keys from a file with 64 hexadecimal digits per line.
///
/// # Errors
/// The file cannot be read, has permissions for others than its owner, or has an invalid line; the error names it.
pub(crate) fn nonce_keys_in(path: &Path) -> anyhow::Result<NonceKeys> {
    let text = secret_file::read(path)?;
    let mut keys = Vec::new();
    for (number, line) in secret_file::lines(&text) {
        let key = hex(line.trim()).map(Zeroizing::new);
        keys.push(key.with_context(|| format!("{}, line {number}: not 64 hexadecimal digits", path.display()))?);
    }
    let mut keys = keys.into_iter();
    match (keys.next(), keys.next(), keys.next()) {
        (Some(current), previous, None) => Ok(NonceKeys { current, previous }),
        (_, _, _) => bail!("{} must hold one or two nonce keys", path.display()),
    }
}

/// Returns the `N` bytes of twice as many hexadecimal digits.
fn hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let digits = digits.as_bytes();
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        *byte = (high? << 4 | low?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn text(password: &str) -> Password {
        Password::Text(Zeroizing::new(password.to_owned()))
    }

    fn file_of(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_password_may_hold_colons_and_spaces() {
        let user = User::parse("ann:a: b").unwrap();
        assert_eq!((user.name.as_str(), user.password), ("ann", text("a: b")));
    }

    #[test]
    fn rejects_an_invalid_user_without_quoting_its_password() {
        let long = format!("{}:secret", "\u{e9}".repeat(255));
        for text in
            ["ann", ":secret", "ann:", "ann:se\tcret", "a\0nn:secret", "ann:\u{AD}secret", "a\u{7F}:secret", &long]
        {
            let message = format!("{:#}", User::parse(text).unwrap_err());
            assert!(!message.contains("cret"), "{message}");
        }
        assert!(!format!("{:?}", User::parse("ann:secret").unwrap()).contains("secret"));
    }

    /// The examples of RFC 8265 section 4.3, tables 6 and 7, and RFC 5769's user.
    #[test]
    fn rfc_r026_names_and_passwords_are_opaque_strings() {
        for same in [
            "correct horse battery staple",
            "Correct Horse Battery Staple",
            "\u{3C0}\u{DF}\u{E5}",
            "Jack of \u{2666}s",
            "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}",
        ] {
            let user = User::parse(&format!("{same}:{same}")).unwrap();
            assert_eq!((&*user.name, user.password), (same, text(same)));
        }
        for (written, prepared) in [("foo\u{1680}bar", "foo bar"), ("e\u{301}te\u{301}", "\u{E9}t\u{E9}")] {
            let user = User::parse(&format!("{written}:{written}")).unwrap();
            assert_eq!((&*user.name, user.password), (prepared, text(prepared)));
        }
        assert!(opaque_string("").is_none() && opaque_string("my cat is a \tby").is_none());
    }

    #[test]
    fn rfc_r025_a_name_has_fewer_than_509_bytes() {
        assert!(User::parse(&format!("{}:secret", "a".repeat(508))).is_ok());
        assert!(User::parse(&format!("{}:secret", "a".repeat(509))).is_err());
    }

    #[test]
    fn files_skip_comments_and_name_the_wrong_line() {
        let lines = ["ann:one", "bob:0x00112233445566778899aabbccddeeff", "cid:two"];
        let [ann, bob, cid] = lines;
        let file = file_of(&format!("# users\n\n{ann}\r\n{bob}\r\n{cid}\n"), 0o600);
        let mut users = Users::default();
        read_users(file.path(), &mut users).unwrap();
        assert_eq!(users, lines.map(|line| User::parse(line).unwrap()).to_vec().into());
        for (file, expected) in [
            ("ann:one\nbob\n", ", line 2: a user must be NAME:PASSWORD"),
            (
                "ann:one\nbob:two\ncid:0x77\n",
                ", line 3: user cid: a password that begins with 0x is a key and must have",
            ),
        ] {
            let message = format!("{:#}", read_users(file_of(file, 0o400).path(), &mut users).unwrap_err());
            assert!(message.contains(expected) && !message.contains("0x77"), "{message}");
        }
    }

    #[test]
    fn nonce_keys_are_one_or_two_lines_of_64_digits() {
        let (first, second) = ("00112233445566778899aabbccddeeff".repeat(2), "fF".repeat(32));
        let keys = nonce_keys_in(file_of(&format!("# fleet\n{first}\n{second}\n"), 0o600).path()).unwrap();
        assert_eq!((keys.current[1], keys.current[31], keys.previous.map(|key| key[7])), (0x11, 0xff, Some(0xff)));
        assert!(nonce_keys_in(file_of(&first, 0o600).path()).unwrap().previous.is_none());
        for (text, message) in [
            ("", "must hold one or two nonce keys"),
            (&format!("{first}\n{first}\n{first}"), "must hold one or two nonce keys"),
            (&first[1..], "line 1: not 64 hexadecimal digits"),
            (&format!("{first}\n{}", second.replace('f', "g")), "line 2: not 64 hexadecimal digits"),
        ] {
            let error = format!("{:#}", nonce_keys_in(file_of(text, 0o600).path()).unwrap_err());
            assert!(error.contains(message) && !error.contains("00112233"), "{error}");
        }
        assert!(nonce_keys_in(file_of(&first, 0o640).path()).is_err());
    }

    #[test]
    fn rejects_a_file_that_others_may_read() {
        for mode in [0o640, 0o604, 0o620, 0o611] {
            let file = file_of("north\n", mode);
            let message = format!("{:#}", auth_secrets_in(file.path()).unwrap_err());
            assert!(message.contains("chmod 600"), "{message}");
        }
        assert_eq!(auth_secrets_in(file_of("north\nsouth\n", 0o600).path()).unwrap().len(), 2);
        assert!(auth_secrets_in(file_of("# none\n", 0o600).path()).is_err());
    }
}
