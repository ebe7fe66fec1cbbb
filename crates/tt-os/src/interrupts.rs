//! Interrupts of one CPU, from `/proc/interrupts`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes asked for at once; the kernel hands out a page at a time.
const PART: usize = 16 * 1024;
/// Lines beyond this many are not counted.
const LINES_MAX: usize = 4096;

/// A reader of the interrupt counts of one CPU. It keeps the file open and its buffer, so that reading it again is
/// cheap: some ten microseconds on a small machine, much more on one with many CPUs.
#[derive(Debug)]
pub struct Interrupts {
    file: File,
    text: Vec<u8>,
    /// Numbers before ours on a line.
    column: usize,
}

impl Interrupts {
    /// Those of `cpu`.
    ///
    /// # Errors
    /// The file cannot be read, or has no column for `cpu` (`NotFound`).
    pub fn open(cpu: usize) -> io::Result<Self> {
        let mut interrupts = Self { file: File::open("/proc/interrupts")?, text: vec![0; PART], column: 0 };
        let length = interrupts.fill()?;
        interrupts.column = column_of(&interrupts.text[..length], cpu).ok_or(io::ErrorKind::NotFound)?;
        Ok(interrupts)
    }

    /// All interrupts that the CPU has had.
    ///
    /// # Errors
    /// Those of reading.
    pub fn total(&mut self) -> io::Result<u64> {
        let length = self.fill()?;
        let column = self.column;
        // Plain loops: a build without optimisation asks as often, and must not take much longer.
        let mut total = 0_u64;
        for (_, rest) in lines(&self.text[..length]) {
            total = total.wrapping_add(number_in(rest, column).unwrap_or(0));
        }
        Ok(total)
    }

    /// Each line's name (`LOC`, `CAL`, a device's number with what it is) and count.
    ///
    /// # Errors
    /// Those of reading.
    pub fn named(&mut self) -> io::Result<Vec<(String, u64)>> {
        let length = self.fill()?;
        let column = self.column;
        let named = lines(&self.text[..length]).filter_map(|(name, rest)| {
            let name = String::from_utf8_lossy(name).into_owned();
            let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
            let device = is_number.then(|| String::from_utf8_lossy(rest).split_whitespace().last().map(str::to_owned));
            let name = device.flatten().map_or(name.clone(), |device| format!("{name} {device}"));
            Some((name, number_in(rest, column)?))
        });
        Ok(named.collect())
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut length = 0;
        loop {
            if self.text.len() - length < PART / 2 {
                self.text.resize(self.text.len() * 2, 0);
            }
            match self.file.read_at(&mut self.text[length..], length as u64)? {
                0 => return Ok(length),
                more => length += more,
            }
        }
    }
}

/// The column of `cpu` in the first line, `CPU0 CPU1 ...`, which omits offline CPUs.
fn column_of(text: &[u8], cpu: usize) -> Option<usize> {
    let first = text.split(|byte| *byte == b'\n').next()?;
    let wanted = format!("CPU{cpu}");
    String::from_utf8_lossy(first).split_whitespace().position(|name| name == wanted)
}

/// The parts of each line before and after its first colon, without the first line.
fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|byte| *byte == b'\n').skip(1).take(LINES_MAX).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((line[..colon].trim_ascii(), &line[colon + 1..]))
    })
}

/// The number in `column`; `None` if the line has fewer columns (`ERR` and `MIS` count for all CPUs).
fn number_in(rest: &[u8], column: usize) -> Option<u64> {
    let mut at = 0;
    for _ in 0..column {
        at = end_of_word(rest, at)?;
    }
    while *rest.get(at)? == b' ' {
        at += 1;
    }
    let mut number = 0_u64;
    let first = at;
    while at < rest.len() && rest[at].is_ascii_digit() {
        number = number.wrapping_mul(10).wrapping_add(u64::from(rest[at] - b'0'));
        at += 1;
    }
    (at > first && rest.get(at).is_none_or(|byte| *byte == b' ')).then_some(number)
}

/// Returns the end of the word at `at`, after leading spaces.
fn end_of_word(rest: &[u8], mut at: usize) -> Option<usize> {
    while *rest.get(at)? == b' ' {
        at += 1;
    }
    while at < rest.len() && rest[at] != b' ' {
        at += 1;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::{Interrupts, column_of, lines, number_in};

    const TEXT: &[u8] =
        b"           CPU0       CPU2       \n 24:          1         20  IO-APIC   5-edge      ACPI:Ged\n\
        LOC:    3641534    4264471   Local timer interrupts\nERR:          7\n";

    #[test]
    fn a_cpu_that_is_off_has_no_column() {
        assert_eq!((column_of(TEXT, 0), column_of(TEXT, 1), column_of(TEXT, 2)), (Some(0), None, Some(1)));
    }

    #[test]
    fn numbers_are_read_by_column_and_totals_of_all_cpus_left_out() {
        let counts: Vec<_> = lines(TEXT).map(|(name, rest)| (name, number_in(rest, 1))).collect();
        assert_eq!(counts, [(&b"24"[..], Some(20)), (b"LOC", Some(4_264_471)), (b"ERR", None)]);
    }

    #[test]
    fn this_machine_has_had_interrupts_and_they_only_grow() {
        let cpu = crate::cpu::available().unwrap()[0];
        let mut interrupts = Interrupts::open(cpu).unwrap();
        let named: u64 = interrupts.named().unwrap().iter().map(|(_, count)| count).sum();
        let total = interrupts.total().unwrap();
        assert!(named > 0 && total >= named, "{named} {total}");
        assert!(Interrupts::open(1 << 20).is_err());
    }
}
