//! Memory, processor time and threads of this process.

use std::fs::File;
use std::io::Read as _;

use crate::machine::value_of;

/// Resource usage of this process. A value that `/proc` does not contain is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Processor time of all threads, user and system, milliseconds.
    pub cpu_ms: u64,
    /// Threads.
    pub threads: u64,
}

impl ProcessUsage {
    /// Reads `/proc/self`.
    #[must_use]
    pub fn read() -> Self {
        let (status, stat) = (read("/proc/self/status"), read("/proc/self/stat"));
        Self {
            resident_bytes: kibibytes(&status, "VmRSS").saturating_mul(1024),
            cpu_ms: cpu_ms(&stat),
            threads: value_of(&status, "Threads").and_then(|count| count.parse().ok()).unwrap_or(0),
        }
    }
}

/// Returns the resident memory of this process; 0 if `/proc` does not contain it.
#[must_use]
pub fn resident_bytes() -> u64 {
    kibibytes(&read("/proc/self/status"), "VmRSS").saturating_mul(1024)
}

/// Reads a file of `/proc`, which has no length, at once: it is read each second.
fn read(path: &str) -> String {
    let mut text = String::with_capacity(4096);
    let _ = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    text
}

fn kibibytes(status: &str, name: &str) -> u64 {
    value_of(status, name).and_then(|value| value.strip_suffix(" kB")).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Linux counts processor time in hundredths of a second here on every machine (`USER_HZ`).
fn cpu_ms(stat: &str) -> u64 {
    // The second field is the program's name in parentheses, which may hold spaces; utime and stime are 14 and 15.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return 0 };
    rest.split(' ').skip(11).take(2).filter_map(|count| count.parse::<u64>().ok()).sum::<u64>() * 10
}

#[cfg(test)]
mod tests {
    use super::{ProcessUsage, cpu_ms, kibibytes, resident_bytes};

    #[test]
    fn finds_a_field_by_its_whole_name() {
        let text = "VmRSSx:\t1 kB\nVmRSS:\t  5120 kB\nName:\tA: B\n";
        assert_eq!((kibibytes(text, "VmRSS"), kibibytes(text, "absent")), (5120, 0));
    }

    #[test]
    fn adds_user_and_system_time_after_a_name_with_parentheses() {
        assert_eq!(cpu_ms("7 (a) b) R 3 4 5 6 7 8 9 10 11 12 13 14 15 16"), 270);
    }

    #[test]
    fn reads_this_process() {
        let usage = ProcessUsage::read();
        assert!(usage.resident_bytes > 100_000 && usage.threads >= 1, "{usage:?}");
        assert!(resident_bytes() > 100_000);
    }
}
