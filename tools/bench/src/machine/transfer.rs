//! A cache line's way between two cores, watched for a while: under a hypervisor the distance changes.

use crate::machine::{PingPong, Placement, on_two_cores};
use nix::errno::Errno;
use std::sync::atomic::{AtomicU64, Ordering};
use tt_meter::Calibration;

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// When it ended, nanoseconds after the first began.
    pub at_ns: u64,
    /// Half a round trip, nanoseconds, the median of many readings.
    pub ns: f64,
}

/// Probes in a row between two cores.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The asking CPU and the answering one.
    pub cpus: [usize; 2],
    /// The probes in order.
    pub probes: Vec<Probe>,
}

impl Transfer {
    /// How often a probe found another placement than the one before it.
    #[must_use]
    pub fn changes(&self) -> usize {
        let classes: Vec<_> = self.probes.iter().map(|probe| Placement::of(probe.ns, probe.ns)).collect();
        classes.windows(2).filter(|two| two[0] != two[1]).count()
    }

    /// Nanoseconds from the first probe to the last.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        self.probes.last().map_or(0, |last| last.at_ns)
    }
}

/// Probes the way between two cores again and again for `span_ns`, once at least.
///
/// # Errors
/// As [`on_two_cores`].
pub fn watch_transfer(cpus: [usize; 2], span_ns: u64, calibration: &Calibration) -> Result<Transfer, Errno> {
    let Calibration { clock, scale, .. } = *calibration;
    let (line, turn) = (PingPong::new(), Turn(AtomicU64::new(0)));
    let asking = || {
        let start = clock.end();
        let mut probes = Vec::new();
        loop {
            turn.0.store(probes.len() as u64 + 1, Ordering::Release);
            let ns = scale.ns_f64(line.ask(clock));
            let at_ns = scale.ns(clock.end().since(start));
            probes.push(Probe { at_ns, ns });
            if at_ns >= span_ns {
                turn.0.store(Turn::OVER, Ordering::Release);
                return probes;
            }
        }
    };
    let answering = || {
        let mut answered = 0;
        loop {
            match turn.0.load(Ordering::Acquire) {
                Turn::OVER => return,
                asked if asked > answered => {
                    line.answer();
                    answered += 1;
                }
                _ => std::hint::spin_loop(),
            }
        }
    };
    let (probes, ()) = on_two_cores(cpus, asking, answering)?;
    Ok(Transfer { cpus, probes })
}

/// The number of the probe that is asked for.
#[repr(align(128))]
struct Turn(AtomicU64);

impl Turn {
    const OVER: u64 = u64::MAX;
}

#[cfg(test)]
mod tests {
    use super::{Probe, Transfer};

    #[test]
    fn a_change_is_one_between_neighbours() {
        let probes = [31.0, 30.0, 47.0, 48.0, 200.0, 31.0].map(|ns| Probe { at_ns: 1, ns });
        let transfer = Transfer { cpus: [0, 1], probes: probes.to_vec() };
        assert_eq!(transfer.changes(), 3);
    }
}
