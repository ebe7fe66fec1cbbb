//! Words of a gate in few bytes: most rows of its tables continue the two before them, and are zeros then.

/// The words of the two rows before, by column: a row is expected to go on as they do.
#[derive(Debug, Default)]
struct Rows(Vec<[u64; 2]>);

impl Rows {
    /// Returns the word that is expected in a column; zero outside tables.
    fn expected(&mut self, column: usize) -> u64 {
        let Some(index) = column.checked_sub(1) else { return 0 };
        if self.0.len() <= index {
            self.0.resize(index + 1, [0; 2]);
        }
        let [last, before] = self.0[index];
        last.wrapping_add(last.wrapping_sub(before))
    }

    fn note(&mut self, column: usize, word: u64) {
        if let Some(row) = column.checked_sub(1).and_then(|index| self.0.get_mut(index)) {
            *row = [word, row[0]];
        }
    }
}

/// A writer of words.
#[derive(Debug)]
pub(super) struct WordWriter<'a> {
    out: &'a mut Vec<u8>,
    rows: Rows,
    /// Words in a row that were as expected.
    expected: u64,
}

impl<'a> WordWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, rows: Rows::default(), expected: 0 }
    }

    pub(super) fn put(&mut self, column: usize, word: u64) {
        let difference = word.wrapping_sub(self.rows.expected(column)).cast_signed();
        self.rows.note(column, word);
        if difference == 0 {
            self.expected += 1;
            return;
        }
        self.put_expected();
        self.put_number(((difference << 1) ^ (difference >> 63)).cast_unsigned());
    }

    fn put_expected(&mut self) {
        let count = std::mem::take(&mut self.expected);
        if count > 0 {
            self.out.push(0);
            self.put_number(count);
        }
    }

    /// Writes seven bits per byte, lowest first.
    fn put_number(&mut self, mut number: u64) {
        while number >= 128 {
            self.out.push(number as u8 | 128);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    pub(super) fn finish(mut self) {
        self.put_expected();
    }
}

/// A reader of words.
#[derive(Debug)]
pub(super) struct WordReader<'a> {
    from: &'a [u8],
    rows: Rows,
    expected: u64,
    is_short: bool,
}

impl<'a> WordReader<'a> {
    pub(super) fn new(from: &'a [u8]) -> Self {
        Self { from, rows: Rows::default(), expected: 0, is_short: false }
    }

    /// Returns the next word; zero behind the end.
    pub(super) fn take(&mut self, column: usize) -> u64 {
        let mut difference = 0;
        if self.expected > 0 {
            self.expected -= 1;
        } else {
            match self.take_number() {
                0 => self.expected = self.take_number().saturating_sub(1),
                number => difference = (number >> 1) ^ (number & 1).wrapping_neg(),
            }
        }
        let word = self.rows.expected(column).wrapping_add(difference);
        self.rows.note(column, word);
        word
    }

    fn take_number(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let Some((byte, rest)) = self.from.split_first() else {
                self.is_short = true;
                return 0;
            };
            self.from = rest;
            number |= u64::from(byte & 127) << shift;
            if byte & 128 == 0 {
                break;
            }
        }
        number
    }

    /// Returns whether every byte was read, and none was missing.
    pub(super) const fn is_at_end(&self) -> bool {
        self.from.is_empty() && self.expected == 0 && !self.is_short
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_model::SplitMix64;

    #[test]
    fn words_are_read_as_written() {
        let mut random = SplitMix64::new(5);
        let edges = [0, 1, 127, 128, u64::from(u32::MAX), 1 << 63, u64::MAX - 1, u64::MAX];
        let words: Vec<(usize, u64)> = (0..20_000)
            .map(|index| {
                let word = match random.below(4) {
                    0 => edges[random.below(8) as usize],
                    1 => random.below(u64::MAX),
                    _ => index as u64 / 7,
                };
                (random.below(8) as usize, word)
            })
            .collect();
        let mut out = Vec::new();
        let mut writer = WordWriter::new(&mut out);
        words.iter().for_each(|(column, word)| writer.put(*column, *word));
        writer.finish();
        let mut reader = WordReader::new(&out);
        for (column, word) in words {
            assert_eq!(reader.take(column), word);
        }
        assert!(reader.is_at_end());
        reader.take(0);
        assert!(!reader.is_at_end());
    }

    /// A free list, and a table of equal rows, take a few bytes.
    #[test]
    fn rows_that_go_on_take_no_room() {
        let mut out = Vec::new();
        let mut writer = WordWriter::new(&mut out);
        for row in 0..100_000 {
            [row + 1, 7, u64::MAX].into_iter().zip(1..).for_each(|(word, column)| writer.put(column, word));
        }
        writer.finish();
        assert!(out.len() < 64, "{}", out.len());
    }
}
