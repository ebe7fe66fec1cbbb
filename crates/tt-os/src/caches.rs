//! The data caches of a CPU, from `/sys/devices/system/cpu`.

use std::fs;

/// Bytes of the data caches of CPU 0, as the kernel sees them: under a hypervisor others may use the last of them, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// The first level's.
    pub l1: usize,
    /// The second level's.
    pub l2: usize,
    /// The third level's; `None` where there is none.
    pub l3: Option<usize>,
}

impl Caches {
    /// Reads the sizes; `None` if the kernel does not report those of the first two levels.
    #[must_use]
    pub fn read() -> Option<Self> {
        let mut levels = [None; 3];
        for index in 0..8 {
            let read =
                |name: &str| fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}"));
            let (Ok(level), Ok(kind), Ok(size)) = (read("level"), read("type"), read("size")) else { continue };
            if kind.trim() != "Instruction"
                && let Some(slot) = level.trim().parse::<usize>().ok().and_then(|level| levels.get_mut(level - 1))
            {
                *slot = bytes(size.trim());
            }
        }
        let [l1, l2, l3] = levels;
        Some(Self { l1: l1?, l2: l2?, l3 })
    }
}

fn bytes(size: &str) -> Option<usize> {
    let (number, unit) = match size.strip_suffix('M') {
        Some(number) => (number, 1 << 20),
        None => (size.trim_end_matches('K'), 1 << 10),
    };
    number.parse::<usize>().ok().map(|number| number * unit)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_have_units() {
        assert_eq!((bytes("48K"), bytes("32M"), bytes("?")), (Some(48 << 10), Some(32 << 20), None));
    }
}
