//! The cursor of the general path: passes whole values and checks that they are JSON.

use crate::error::ParseError;

/// The deepest nesting that is read.
const NESTING_MAX: u32 = 64;

/// The high bit of the first byte that is a quote, a backslash or a control byte; bytes after it may be marked wrongly.
#[inline]
const fn ends_of_text(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (quotes, escapes) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5c));
    let low = word.wrapping_sub(ONES * 0x20) & !word;
    (low | (quotes.wrapping_sub(ONES) & !quotes) | (escapes.wrapping_sub(ONES) & !escapes)) & (ONES << 7)
}

/// A place in a text.
pub(super) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// The beginning of `text`.
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn expect(&mut self, byte: u8, error: ParseError) -> Result<(), ParseError> {
        if self.peek() != Some(byte) {
            return Err(if self.peek().is_none() { ParseError::Syntax } else { error });
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Whether the container ends right here, without any element.
    pub(super) fn closes(&mut self, close: u8) -> bool {
        self.skip_space();
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    /// After an element: whether another one follows.
    pub(super) fn continues(&mut self, close: u8) -> Result<bool, ParseError> {
        self.skip_space();
        let byte = self.peek().ok_or(ParseError::Syntax)?;
        self.at += 1;
        if byte == b',' {
            return Ok(true);
        }
        if byte == close { Ok(false) } else { Err(ParseError::Syntax) }
    }

    pub(super) fn finish(&mut self) -> Result<(), ParseError> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(ParseError::Syntax) }
    }

    /// The raw text of the string that starts here, without its quotes.
    pub(super) fn string(&mut self) -> Result<&'a [u8], ParseError> {
        let start = self.at + 1;
        self.skip_string()?;
        Ok(&self.text[start..self.at - 1])
    }

    /// The raw text of the value that starts here, checked to be JSON.
    pub(super) fn value(&mut self) -> Result<&'a [u8], ParseError> {
        self.skip_space();
        let start = self.at;
        self.skip_value()?;
        Ok(&self.text[start..self.at])
    }

    /// Passes one value without recursion: `open` has a bit for each container around, set for objects.
    fn skip_value(&mut self) -> Result<(), ParseError> {
        let (mut open, mut depth) = (0_u64, 0_u32);
        loop {
            self.skip_space();
            match self.peek().ok_or(ParseError::Syntax)? {
                bracket @ (b'{' | b'[') => {
                    self.at += 1;
                    let is_object = bracket == b'{';
                    if !self.closes(if is_object { b'}' } else { b']' }) {
                        if depth == NESTING_MAX {
                            return Err(ParseError::Nesting);
                        }
                        open = open << 1 | u64::from(is_object);
                        depth += 1;
                        self.skip_key(is_object)?;
                        continue;
                    }
                }
                b'"' => self.skip_string()?,
                b't' => self.skip_word(b"true")?,
                b'f' => self.skip_word(b"false")?,
                b'n' => self.skip_word(b"null")?,
                _ => self.skip_number()?,
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let is_object = open & 1 == 1;
                if self.continues(if is_object { b'}' } else { b']' })? {
                    self.skip_key(is_object)?;
                    break;
                }
                open >>= 1;
                depth -= 1;
            }
        }
    }

    fn skip_key(&mut self, is_object: bool) -> Result<(), ParseError> {
        if is_object {
            self.skip_space();
            self.skip_string()?;
            self.skip_space();
            self.expect(b':', ParseError::Syntax)?;
        }
        Ok(())
    }

    fn skip_word(&mut self, word: &[u8]) -> Result<(), ParseError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(ParseError::Syntax);
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn skip_number(&mut self) -> Result<(), ParseError> {
        self.at += usize::from(self.peek() == Some(b'-'));
        let starts_with_zero = self.peek() == Some(b'0');
        let digits = self.skip_digits();
        if digits == 0 || (starts_with_zero && digits > 1) {
            return Err(ParseError::Syntax);
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.skip_digits() == 0 {
                return Err(ParseError::Syntax);
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.skip_digits() == 0 {
                return Err(ParseError::Syntax);
            }
        }
        Ok(())
    }

    fn skip_string(&mut self) -> Result<(), ParseError> {
        self.expect(b'"', ParseError::Syntax)?;
        loop {
            let byte = self.peek().ok_or(ParseError::Syntax)?;
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => self.skip_escape()?,
                0..=0x1f => return Err(ParseError::Syntax),
                _ => self.skip_plain(),
            }
        }
    }

    /// Passes what needs no look, eight bytes at a time.
    fn skip_plain(&mut self) {
        while let Some(eight) = self.text.get(self.at..).and_then(<[u8]>::first_chunk) {
            let ends = ends_of_text(u64::from_le_bytes(*eight));
            self.at += ends.trailing_zeros() as usize / 8;
            if ends != 0 {
                return;
            }
        }
    }

    fn skip_escape(&mut self) -> Result<(), ParseError> {
        let byte = self.peek().ok_or(ParseError::Syntax)?;
        self.at += 1;
        match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => match self.hex4()? {
                0xd800..=0xdbff => {
                    self.expect(b'\\', ParseError::Syntax)?;
                    self.expect(b'u', ParseError::Syntax)?;
                    if (0xdc00..=0xdfff).contains(&self.hex4()?) { Ok(()) } else { Err(ParseError::Syntax) }
                }
                0xdc00..=0xdfff => Err(ParseError::Syntax),
                _ => Ok(()),
            },
            _ => Err(ParseError::Syntax),
        }
    }

    fn hex4(&mut self) -> Result<u32, ParseError> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(ParseError::Syntax)?;
        self.at += 4;
        digits.iter().try_fold(0, |value, byte| match char::from(*byte).to_digit(16) {
            Some(digit) => Ok(value << 4 | digit),
            None => Err(ParseError::Syntax),
        })
    }
}
