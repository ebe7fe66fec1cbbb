//! Who may relay, from flags and files.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use precis_core::profile::PrecisFastInvocation as _;
use precis_profiles::OpaqueString;
use zeroize::Zeroizing;

/// RFC 8489 section 14.3: USERNAME has fewer than 509 bytes.
const NAME_LEN_MAX: usize = 508;

/// What stands in the place of a password where a configuration is printed.
pub(super) const MASK: &str = "<masked>";

/// A user of the long-term credentials. Its `Debug` shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name, as in USERNAME: an OpaqueString of RFC 8265.
    pub name: String,
    /// The password, likewise.
    pub password: Zeroizing<String>,
}

/// A secret of time-limited credentials (the TURN REST API). Its `Debug` shows nothing.
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
    /// Reads `NAME:PASSWORD` and prepares both as clients do, by RFC 8265's OpaqueString (RFC 8489 section 14.3).
    ///
    /// # Errors
    /// No colon, an empty part, a character that the profile refuses, or a name of more than 508 bytes; the error
    /// quotes the name at most.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let Some((name, password)) = text.split_once(':') else { bail!("a user is NAME:PASSWORD") };
        ensure!(!name.is_empty() && !password.is_empty(), "a user's name and password are not empty");
        ensure!(password != MASK, "user {name}: the password is masked; write the real one, or use a file");
        let refused = "a character that names and passwords must not hold (RFC 8265, OpaqueString)";
        let name = opaque_string(name).with_context(|| format!("a user's name has {refused}"))?;
        ensure!(name.len() <= NAME_LEN_MAX, "a user's name has at most {NAME_LEN_MAX} bytes");
        let password =
            opaque_string(password).with_context(|| format!("user {}: the password has {refused}", *name))?;
        Ok(Self { name: name.to_string(), password })
    }
}

/// `text` as the profile OpaqueString makes it: other blanks are plain ones, composed characters in one form, nothing
/// else is changed (RFC 8265 section 4.2). `None` where it refuses a character, or nothing is left.
pub(super) fn opaque_string(text: &str) -> Option<Zeroizing<String>> {
    OpaqueString::enforce(text).ok().map(|prepared| Zeroizing::new(prepared.into_owned()))
}

/// The users in the file at `path`: one `NAME:PASSWORD` a line; blank lines and lines that start with `#` are skipped.
///
/// # Errors
/// The file cannot be read, others than its owner may read it, or a line is no user; the error names file and line.
pub(super) fn users_in(path: &Path) -> anyhow::Result<Vec<User>> {
    let text = secret_text(path)?;
    let users = lines(&text)
        .map(|(number, line)| User::parse(line).with_context(|| format!("{}, line {number}", path.display())));
    users.collect()
}

/// The secrets in the file at `path`, one a line.
///
/// # Errors
/// The file cannot be read, others than its owner may read it, or it holds no secret; the error names the file.
pub(super) fn auth_secrets_in(path: &Path) -> anyhow::Result<Vec<AuthSecret>> {
    let text = secret_text(path)?;
    let secrets: Vec<_> = lines(&text).map(|(_, line)| AuthSecret(Zeroizing::new(line.into()))).collect();
    ensure!(!secrets.is_empty(), "{} holds no secret", path.display());
    Ok(secrets)
}

/// What nonces are made with and checked by. Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct NonceKeys {
    /// Nonces are made with this one.
    pub current: Zeroizing<[u8; 32]>,
    /// Nonces made with this one are accepted too: the key before a rotation, or the one after it.
    pub previous: Option<Zeroizing<[u8; 32]>>,
}

impl fmt::Debug for NonceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NonceKeys(..)")
    }
}

/// The nonce keys in the file at `path`: 64 hexadecimal digits a line, one line or two.
///
/// # Errors
/// The file cannot be read, others than its owner may read it, or a line is no key; the error names file and line.
pub(super) fn nonce_keys_in(path: &Path) -> anyhow::Result<NonceKeys> {
    let text = secret_text(path)?;
    let mut keys = Vec::new();
    for (number, line) in lines(&text) {
        let key = nonce_key(line).map(Zeroizing::new);
        keys.push(key.with_context(|| format!("{}, line {number}: no 64 hexadecimal digits", path.display()))?);
    }
    let mut keys = keys.into_iter();
    match (keys.next(), keys.next(), keys.next()) {
        (Some(current), previous, None) => Ok(NonceKeys { current, previous }),
        (_, _, _) => bail!("{} holds no nonce key, or more than two", path.display()),
    }
}

fn nonce_key(line: &str) -> Option<[u8; 32]> {
    let digits = line.trim().as_bytes();
    let mut key = [0; 32];
    if digits.len() != 2 * key.len() {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        *byte = (high? << 4 | low?) as u8;
    }
    Some(key)
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end_matches('\r')));
    numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

/// The secret in the file at `path`, on the first line that holds one.
///
/// # Errors
/// The file cannot be read, others than its owner may read it, or it holds none; the error names the file.
pub(crate) fn secret_in(path: &Path) -> anyhow::Result<Zeroizing<String>> {
    let text = secret_text(path)?;
    let secret = lines(&text).next().map(|(_, line)| Zeroizing::new(line.to_owned()));
    secret.with_context(|| format!("{} holds no secret", path.display()))
}

/// The text of the file at `path`.
///
/// # Errors
/// The file cannot be read, or others than its owner may read it; the error names the file.
pub(crate) fn secret_text(path: &Path) -> anyhow::Result<Zeroizing<String>> {
    let cannot_read = || format!("cannot read {}", path.display());
    let mode = fs::metadata(path).with_context(cannot_read)?.permissions().mode();
    ensure!(
        mode & 0o077 == 0,
        "{} holds secrets and others than its owner may use it (mode {:03o}); chmod 600 it",
        path.display(),
        mode & 0o777
    );
    Ok(Zeroizing::new(fs::read_to_string(path).with_context(cannot_read)?))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file_of(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_password_may_hold_colons_and_spaces() {
        let user = User::parse("ann:a: b").unwrap();
        assert_eq!((user.name.as_str(), user.password.as_str()), ("ann", "a: b"));
    }

    #[test]
    fn what_is_no_user_is_refused_without_its_password() {
        let long = format!("{}:secret", "\u{e9}".repeat(255));
        for text in
            ["ann", ":secret", "ann:", "ann:se\tcret", "a\0nn:secret", "ann:\u{AD}secret", "a\u{7F}:secret", &long]
        {
            let told = format!("{:#}", User::parse(text).unwrap_err());
            assert!(!told.contains("cret"), "{told}");
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
            assert_eq!((&*user.name, user.password.as_str()), (same, same));
        }
        for (written, prepared) in [("foo\u{1680}bar", "foo bar"), ("e\u{301}te\u{301}", "\u{E9}t\u{E9}")] {
            let user = User::parse(&format!("{written}:{written}")).unwrap();
            assert_eq!((&*user.name, user.password.as_str()), (prepared, prepared));
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
        let file = file_of("# users\n\nann:one\r\nbob:two\n", 0o600);
        let names: Vec<_> = users_in(file.path()).unwrap().into_iter().map(|user| user.name).collect();
        assert_eq!(names, ["ann", "bob"]);
        let file = file_of("ann:one\nbob\n", 0o400);
        let told = format!("{:#}", users_in(file.path()).unwrap_err());
        assert!(told.ends_with(", line 2: a user is NAME:PASSWORD"), "{told}");
    }

    #[test]
    fn nonce_keys_are_one_or_two_lines_of_64_digits() {
        let (first, second) = ("00112233445566778899aabbccddeeff".repeat(2), "fF".repeat(32));
        let keys = nonce_keys_in(file_of(&format!("# fleet\n{first}\n{second}\n"), 0o600).path()).unwrap();
        assert_eq!((keys.current[1], keys.current[31], keys.previous.map(|key| key[7])), (0x11, 0xff, Some(0xff)));
        assert!(nonce_keys_in(file_of(&first, 0o600).path()).unwrap().previous.is_none());
        for (text, told) in [
            ("", "holds no nonce key"),
            (&format!("{first}\n{first}\n{first}"), "more than two"),
            (&first[1..], "line 1: no 64 hexadecimal digits"),
            (&format!("{first}\n{}", second.replace('f', "g")), "line 2: no 64 hexadecimal digits"),
        ] {
            let error = format!("{:#}", nonce_keys_in(file_of(text, 0o600).path()).unwrap_err());
            assert!(error.contains(told) && !error.contains("00112233"), "{error}");
        }
        assert!(nonce_keys_in(file_of(&first, 0o640).path()).is_err());
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        for mode in [0o640, 0o604, 0o620, 0o611] {
            let file = file_of("north\n", mode);
            let told = format!("{:#}", auth_secrets_in(file.path()).unwrap_err());
            assert!(told.contains("chmod 600"), "{told}");
        }
        assert_eq!(auth_secrets_in(file_of("north\nsouth\n", 0o600).path()).unwrap().len(), 2);
        assert!(auth_secrets_in(file_of("# none\n", 0o600).path()).is_err());
    }
}
