//! Files that operators write: users of the TURN server and limits of the gate.

use std::fmt::Write as _;

use risk_gate::LimitsFile;
use tt_model::{InstrumentId, Qty};
use turn_server::{Password, User};

use crate::choices::Choices;

const NAME_LEN_MAX: usize = 508;
/// The largest position that is tried: the gate rejects what is near the end of its range.
const POSITION_MAX: i128 = 1 << 40;

/// Reads `data` as a user, as limits, or as choices of limits.
///
/// # Panics
/// A reading differs from the rules of the files.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 3 {
        0 => user(&String::from_utf8_lossy(rest)),
        1 => limits_text(&String::from_utf8_lossy(rest)),
        _ => position(&mut Choices(rest)),
    }
}

/// Printable ASCII is its own OpaqueString (RFC 8265 section 4.2); whatever is accepted reads the same again.
fn user(text: &str) {
    let parsed = User::parse(text);
    if text.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
        let expected = text.split_once(':').filter(|(name, password)| {
            !name.is_empty() && name.len() <= NAME_LEN_MAX && !password.is_empty() && *password != "<masked>"
        });
        let expected = expected.and_then(|(name, password)| Some((name, password_or_key(password)?)));
        let read = parsed.as_ref().ok().map(|user| (user.name.as_str(), written(&user.password)));
        assert_eq!(read, expected, "{text}");
    }
    if let Ok(user) = parsed {
        let password = written(&user.password);
        assert!(!user.name.is_empty() && user.name.len() <= NAME_LEN_MAX && !password.is_empty());
        let again = User::parse(&format!("{}:{password}", user.name));
        assert!(again.is_ok_and(|again| again == user), "{text}");
    }
}

/// What begins with `0x` is a key of 32 hexadecimal digits, in either case, or an error.
fn password_or_key(text: &str) -> Option<String> {
    let Some(digits) = text.strip_prefix("0x") else { return Some(text.to_owned()) };
    let is_key = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_key.then(|| text.to_lowercase())
}

fn written(password: &Password) -> String {
    match password {
        Password::Text(text) => text.to_string(),
        Password::Md5Key(key) => key.iter().fold("0x".to_owned(), |digits, byte| format!("{digits}{byte:02x}")),
    }
}

/// What is accepted is written as text that means the same.
fn limits_text(text: &str) {
    let Ok(limits) = LimitsFile::parse(text) else { return };
    let written = limits.text();
    let again = LimitsFile::parse(written).expect("written limits");
    assert_eq!(again.text(), written);
    assert_eq!(limits.gate().is_ok(), again.gate().is_ok());
}

/// A position in decimal text is a whole number of lots, exactly, or an error.
fn position(choices: &mut Choices) {
    let decimals = choices.byte() % 12;
    let len = usize::from(choices.byte() % 20);
    let text: String = (0..len).map(|_| *choices.of(&['0', '1', '5', '9', '0', '7', '.', '-', '+', ' '])).collect();
    let file = limits(decimals, &text);
    LimitsFile::parse(&limits(decimals, "0")).expect("it has every key");
    let expected = lots(&text, decimals);
    match LimitsFile::parse(&file).and_then(|limits| limits.gate()) {
        Ok(gate) => {
            let position = gate.exposure(3, InstrumentId(0)).expect("the account").position;
            assert_eq!(Some(i128::from(position.0)), expected, "`{text}` with {decimals} decimals");
            assert_ne!(position, Qty(i64::MIN));
        }
        Err(error) => {
            let is_small = expected.is_some_and(|lots| lots.abs() <= POSITION_MAX);
            assert!(!is_small, "`{text}` with {decimals} decimals: {error:#}");
        }
    }
}

fn limits(qty_decimals: u8, position: &str) -> String {
    let rate = "rate = { per_second = 2, burst = 2 }";
    let mut file = "id_window_ms = 1000\nglobal_rate = { per_second = 9, burst = 9 }\n[[instrument]]\n".to_owned();
    writeln!(file, "symbol = \"A/B\"\npx_decimals = 2\nqty_decimals = {qty_decimals}").expect("memory");
    writeln!(file, "collar_bps = 100\nmark_age_max_ms = 2000\n{rate}\n[[account]]\naccount = 3\n{rate}")
        .expect("memory");
    writeln!(file, "[[account.limits]]\nsymbol = \"A/B\"\npx_step = \"0.10\"\nqty_step = \"1\"").expect("memory");
    for (key, value) in [("qty_min", "1"), ("qty_max", "3"), ("notional_min", "0"), ("notional_max", "50")] {
        writeln!(file, "{key} = \"{value}\"").expect("memory");
    }
    for key in ["position_long_max", "position_short_max", "open_qty_max"] {
        writeln!(file, "{key} = \"2\"").expect("memory");
    }
    writeln!(file, "open_orders_max = 4\nposition = \"{position}\"").expect("memory");
    file
}

/// Decimal text in units of the last decimal: an optional sign, digits, and at most `decimals` digits behind a point.
fn lots(text: &str, decimals: u8) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, fraction) = match digits.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (digits, ""),
    };
    let all = format!("{whole}{fraction:0<width$}", width = usize::from(decimals));
    let is_number = !whole.is_empty() && all.bytes().all(|byte| byte.is_ascii_digit());
    let lots = all.parse::<i128>().ok().filter(|_| is_number && fraction.len() <= usize::from(decimals))?;
    i64::try_from(sign * lots).ok().map(i128::from)
}
