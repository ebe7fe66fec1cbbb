//! Lines of `turnserver.conf` and arguments of `turnserver`.

use std::path::PathBuf;

use zeroize::Zeroizing;

use super::options::{self, Argument, Spec};

/// The most digits of a number that coturn reads.
const DIGITS_MAX: usize = 18;

/// An option that was set, or a line that coturn does not know.
#[derive(Debug)]
pub struct Setting {
    /// `line 3` or `argument`.
    pub(crate) place: String,
    /// The name as it was written; the long name for a letter.
    pub(crate) name: String,
    /// The value; `None` without one.
    pub(crate) value: Option<Zeroizing<String>>,
    /// The option; `None` if coturn has none of this name.
    pub(crate) spec: Option<&'static Spec>,
}

/// Arguments of `turnserver`.
#[derive(Debug, Default)]
pub struct Arguments {
    /// The file of `-c`.
    pub file: Option<PathBuf>,
    /// Whether `-n` forbids a configuration file.
    pub no_file: bool,
    /// Whether `-h` asks for help.
    pub help: bool,
    /// Whether `--version` asks for the version.
    pub version: bool,
    /// The other options. They count after those of the file.
    pub settings: Vec<Setting>,
}

/// Reads the lines of a `turnserver.conf`: `KEY`, `KEY VALUE` or `KEY=VALUE`, and comments with `#`.
#[must_use]
pub fn lines(text: &str) -> Vec<Setting> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let settings = numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    settings.map(|(number, line)| setting(format!("line {number}"), line)).collect()
}

fn setting(place: String, line: &str) -> Setting {
    let is_separator = |c: char| matches!(c, ' ' | '=' | '\t');
    let (name, value) = match line.split_once(is_separator) {
        Some((name, rest)) => (name, Some(unquoted(rest.trim_start_matches(is_separator)))),
        None => (line, None),
    };
    let value = value.filter(|value| !value.is_empty()).map(|value| Zeroizing::new(value.to_owned()));
    Setting { place, name: name.to_owned(), value, spec: options::find(name) }
}

/// Returns `value` without one pair of double quotes.
fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').map_or(value, |rest| rest.strip_suffix('"').unwrap_or(rest))
}

/// Reads the arguments of `turnserver`, without the name of the program.
///
/// # Errors
/// An unknown option, an option without its value, or an argument that is no option; the text names it.
pub fn arguments(arguments: &[String]) -> Result<Arguments, String> {
    let mut read = Arguments::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if let Some(long) = argument.strip_prefix("--") {
            read_long(long, &mut rest, &mut read)?;
        } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            read_letters(letters, &mut rest, &mut read)?;
        } else {
            return Err(format!("`{}` is no option", argument.escape_default()));
        }
    }
    Ok(read)
}

type Rest<'a> = std::slice::Iter<'a, String>;

fn read_long(text: &str, rest: &mut Rest<'_>, read: &mut Arguments) -> Result<(), String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value.to_owned())));
    let spec = options::find(name).ok_or_else(|| format!("--{} is unknown", name.escape_default()))?;
    let value = match (value, spec.argument) {
        (None, Argument::Value) => Some(next(rest, || format!("--{name}"))?),
        (value, Argument::Value | Argument::Switch) => value,
    };
    read.version |= spec.name == "version";
    push(spec, value, read);
    Ok(())
}

fn read_letters(letters: &str, rest: &mut Rest<'_>, read: &mut Arguments) -> Result<(), String> {
    for (index, letter) in letters.char_indices() {
        let behind = &letters[index + letter.len_utf8()..];
        let value = |rest: &mut Rest<'_>| match behind {
            "" => next(rest, || format!("-{letter}")),
            value => Ok(value.to_owned()),
        };
        match letter {
            'n' => read.no_file = true,
            'h' => read.help = true,
            'c' => {
                read.file = Some(value(rest)?.into());
                return Ok(());
            }
            _ => {
                let spec = options::find_letter(letter);
                let spec = spec.ok_or_else(|| format!("-{} is unknown", letter.escape_default()))?;
                // With a letter, coturn requires a value of -K, which is a switch in the file.
                if spec.argument == Argument::Value || letter == 'K' {
                    let value = value(rest)?;
                    push(spec, Some(value), read);
                    return Ok(());
                }
                push(spec, None, read);
            }
        }
    }
    Ok(())
}

fn next(rest: &mut Rest<'_>, name: impl Fn() -> String) -> Result<String, String> {
    rest.next().cloned().ok_or_else(|| format!("{} needs a value", name()))
}

fn push(spec: &'static Spec, value: Option<String>, read: &mut Arguments) {
    let value = value.filter(|value| !value.is_empty()).map(Zeroizing::new);
    read.settings.push(Setting { place: "argument".to_owned(), name: spec.name.to_owned(), value, spec: Some(spec) });
}

impl Setting {
    /// Returns whether the value is a credential.
    #[must_use]
    pub fn is_credential(&self) -> bool {
        self.spec.is_some_and(|spec| spec.is_secret) && self.value.is_some()
    }

    /// Returns the value as text; empty without one.
    pub(crate) fn text(&self) -> &str {
        self.value.as_ref().map_or("", |value| value.as_str())
    }

    /// Returns the first word of the value: what follows a blank is a comment to coturn's numbers and addresses.
    pub(crate) fn word(&self) -> &str {
        self.text().split_whitespace().next().unwrap_or("")
    }

    /// Returns whether a switch is on; without a value it is. `None` if coturn rejects the value.
    pub(crate) fn is_on(&self) -> Option<bool> {
        let word = self.word();
        match word.bytes().next() {
            None | Some(b'1'..=b'9' | b'y' | b'Y' | b't' | b'T' | b'#') => Some(true),
            Some(b'0' | b'n' | b'N' | b'f' | b'F') => Some(false),
            Some(_) if word.eq_ignore_ascii_case("on") => Some(true),
            Some(_) if word.eq_ignore_ascii_case("off") => Some(false),
            Some(_) => None,
        }
    }

    /// Returns the number at the start of the value; `None` without one.
    pub(crate) fn number(&self) -> Option<u64> {
        let word = self.word();
        let end = word.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(word.len());
        word.get(..end).filter(|digits| digits.len() <= DIGITS_MAX)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_as_coturn_does() {
        let settings = lines(
            "# comment\n\n  realm = \"a b\"  \r\nuser-quota=12 # streams\nlt-cred-mech\nuser ann:a=b\nsurprise\n",
        );
        let read: Vec<_> = settings.iter().map(|s| (s.place.as_str(), s.name.as_str(), s.text())).collect();
        assert_eq!(
            read,
            [
                ("line 3", "realm", "a b"),
                ("line 4", "user-quota", "12 # streams"),
                ("line 5", "lt-cred-mech", ""),
                ("line 6", "user", "ann:a=b"),
                ("line 7", "surprise", ""),
            ]
        );
        assert_eq!(
            (settings[1].number(), settings[2].is_on(), settings[4].spec.is_none()),
            (Some(12), Some(true), true)
        );
    }

    #[test]
    fn switches_have_the_words_of_coturn() {
        let is_on = |value: &str| lines(&format!("no-tcp={value}"))[0].is_on();
        for (value, on) in [("", true), ("1", true), ("yes", true), ("t", true), ("on", true), ("# why", true)] {
            assert_eq!(is_on(value), Some(on), "{value}");
        }
        for value in ["0", "off", "no", "false", "f", "OFF"] {
            assert_eq!(is_on(value), Some(false), "{value}");
        }
        assert_eq!(is_on("perhaps"), None);
    }

    #[test]
    fn reads_arguments_as_getopt_does() {
        let text = ["-c", "a.conf", "-nov", "-p3479", "-L", "::1", "--realm=x=y", "--min-port", "40000", "--no-tcp"];
        let read = arguments(&text.map(str::to_owned)).unwrap();
        assert_eq!((read.file, read.no_file, read.help), (Some("a.conf".into()), true, false));
        let settings: Vec<_> = read.settings.iter().map(|s| (s.name.as_str(), s.text())).collect();
        assert_eq!(
            settings,
            [
                ("daemon", ""),
                ("verbose", ""),
                ("listening-port", "3479"),
                ("listening-ip", "::1"),
                ("realm", "x=y"),
                ("min-port", "40000"),
                ("no-tcp", ""),
            ]
        );
        for (argument, error) in [
            ("--what", "--what is unknown"),
            ("-W", "-W is unknown"),
            ("x", "`x` is no option"),
            ("-p", "-p needs a value"),
        ] {
            assert_eq!(arguments(&[argument.to_owned()]).unwrap_err(), error);
        }
    }
}
