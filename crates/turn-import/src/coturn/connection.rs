//! The connection to a database, in the words of libpq and of coturn, and its password.

use zeroize::Zeroizing;

/// Names of a password.
const PASSWORDS: [&str; 4] = ["password", "pwd", "passwd", "secret"];

/// A connection without its password.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) text: String,
    pub(super) password: Option<Zeroizing<String>>,
}

impl Connection {
    /// Takes the password out of `NAME=VALUE ..` or a URL.
    /// `None` for a word that is not `NAME=VALUE`.
    pub(super) fn read(text: &str) -> Option<Self> {
        match text.split_once("://") {
            Some((scheme, rest)) => Some(Self::of_url(scheme, rest)),
            None => Self::of_words(text),
        }
    }

    /// Returns the connection as truetick writes it. A URL has its kind already.
    pub(super) fn with_kind(self, kind: &str) -> Self {
        let text = if self.text.contains("://") { self.text } else { format!("{kind}:{}", self.text) };
        Self { text, ..self }
    }

    fn of_url(scheme: &str, rest: &str) -> Self {
        let (authority, path) = rest.find('/').map_or((rest, ""), |end| rest.split_at(end));
        let login = authority.rsplit_once('@').and_then(|(login, host)| Some((login.split_once(':')?, host)));
        match login {
            Some(((user, password), host)) => {
                Self { text: format!("{scheme}://{user}@{host}{path}"), password: Some(percent_decoded(password)) }
            }
            None => Self { text: format!("{scheme}://{rest}"), password: None },
        }
    }

    fn of_words(text: &str) -> Option<Self> {
        let mut read = Self { text: String::new(), password: None };
        for word in words(text) {
            match word.split_once('=')? {
                (name, value) if PASSWORDS.contains(&name) => read.password = Some(unquoted(value)),
                (_, _) => {
                    let separator = if read.text.is_empty() { "" } else { " " };
                    read.text = format!("{}{separator}{}", read.text, word.as_str());
                }
            }
        }
        Some(read)
    }
}

/// Returns the words of libpq: blanks within single quotes belong to a word, and a backslash keeps what follows.
fn words(text: &str) -> Vec<Zeroizing<String>> {
    let (mut words, mut word) = (Vec::new(), Zeroizing::new(String::new()));
    let (mut is_quoted, mut is_kept) = (false, false);
    for c in text.chars() {
        if c.is_whitespace() && !is_quoted && !is_kept {
            words.push(std::mem::take(&mut word));
            continue;
        }
        is_quoted ^= c == '\'' && !is_kept;
        is_kept = c == '\\' && !is_kept;
        word.push(c);
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn unquoted(value: &str) -> Zeroizing<String> {
    let inner = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(value);
    let mut plain = Zeroizing::new(String::new());
    let mut is_kept = false;
    for c in inner.chars() {
        is_kept = c == '\\' && !is_kept;
        if !is_kept {
            plain.push(c);
        }
    }
    plain
}

fn percent_decoded(text: &str) -> Zeroizing<String> {
    let mut bytes = Zeroizing::new(Vec::new());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| *byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    Zeroizing::new(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_password_out_of_every_form() {
        for (text, rest, password) in [
            ("host=a dbname=b", "host=a dbname=b", None),
            ("host=a password=p dbname=b", "host=a dbname=b", Some("p")),
            ("password='a \\'b\\\\' host='c d'", "host='c d'", Some("a 'b\\")),
            ("ip=10.0.0.1 pwd=x=y", "ip=10.0.0.1", Some("x=y")),
            ("postgresql://u:p%40%zz@h:1/d?x=y", "postgresql://u@h:1/d?x=y", Some("p@%zz")),
            ("postgres://u@h/d", "postgres://u@h/d", None),
        ] {
            let read = Connection::read(text).unwrap();
            assert_eq!((read.text.as_str(), read.password.as_ref().map(|p| p.as_str())), (rest, password), "{text}");
        }
        assert_eq!(Connection::read("host=a north"), None);
    }
}
