//! Who may relay, from flags and files.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use zeroize::Zeroizing;

/// A user of the long-term credentials. Its `Debug` shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name, as in USERNAME.
    pub name: String,
    /// The password.
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
    /// Reads `NAME:PASSWORD`.
    ///
    /// # Errors
    /// No colon, an empty part, or a character that RFC 8265's OpaqueString would change or refuse; the error quotes
    /// the name at most.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let Some((name, password)) = text.split_once(':') else { bail!("a user is NAME:PASSWORD") };
        ensure!(!name.is_empty() && !password.is_empty(), "a user's name and password are not empty");
        // Printable ASCII is what the profile leaves as it is. The rest needs tables that are not here.
        let is_plain = |part: &str| part.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        ensure!(is_plain(name), "a user's name is printable ASCII");
        ensure!(is_plain(password), "user {name}: the password is printable ASCII");
        Ok(Self { name: name.into(), password: Zeroizing::new(password.into()) })
    }
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

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end_matches('\r')));
    numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

fn secret_text(path: &Path) -> anyhow::Result<Zeroizing<String>> {
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
        for text in ["ann", ":secret", "ann:", "ann:s\u{e9}cret", "\u{e9}:secret", "ann:se\tcret"] {
            let told = format!("{:#}", User::parse(text).unwrap_err());
            assert!(!told.contains("cret"), "{told}");
        }
        assert!(!format!("{:?}", User::parse("ann:secret").unwrap()).contains("secret"));
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
