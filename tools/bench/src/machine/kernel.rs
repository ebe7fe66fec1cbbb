//! Costs of kernel and libc: calls, faults, switches, locks, memory, a datagram's round trip.

use crate::machine::chase::errno_of;
use crate::machine::measurement::{Block, Measurement, chunks, mean_ns};
use crate::machine::pair::pinned;
use nix::errno::Errno;
use std::hint::black_box;
use std::io::{self, Read as _, Write as _};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tt_meter::Calibration;
use tt_os::pages::{HUGE, PageSize, Pages, SMALL};

/// Small pages that are touched between two stamps.
const FAULTS: u32 = 64;
/// Round trips between two stamps.
const ROUND_TRIPS: u32 = 32;
/// Acquisitions of one thread between two stamps.
const CONTENDED: u32 = 1_000;
/// Bytes of a datagram's payload.
const DATAGRAM: usize = 64;
/// A datagram that does not come back in this time is lost.
const LOST: Duration = Duration::from_secs(2);

/// Everything here. `cpus` are the one that most is timed on, and another; without another, what needs two threads shares one.
/// `huge` where there are huge pages.
#[must_use]
pub fn kernel(calibration: &Calibration, cpus: [usize; 2], huge: bool) -> Vec<Measurement<'_>> {
    let [here, there] = cpus;
    let mut rows = alone(calibration);
    if huge {
        rows.push(Measurement::new("page_fault_huge", "the first touch of 2 MiB, which the kernel clears", 1, || {
            let mut pages = Pages::map(4 * HUGE, PageSize::Huge).map_err(|error| errno_of(&error))?;
            let mut fresh = pages.bytes_mut().chunks_mut(HUGE);
            Ok(chunks(calibration, 4, 1, || fresh.by_ref().take(1).for_each(|page| page[0] = 1)))
        }));
    }
    rows.push(Measurement::new(
        "context_switch",
        "to the other of two threads of one core: half a round trip of a byte through two pipes",
        2 * ROUND_TRIPS,
        move || pipes(calibration, [here, here]),
    ));
    if here != there {
        rows.push(Measurement::new(
            "wake_other_core",
            "the same between two cores, each asleep while the other runs",
            2 * ROUND_TRIPS,
            move || pipes(calibration, cpus),
        ));
        rows.push(Measurement::new(
            "mutex_contended",
            "lock, add 1, unlock while a thread on another core does the same; whoever has the line takes it many times in a row",
            CONTENDED,
            move || contended(calibration, cpus),
        ));
    }
    rows.push(Measurement::new(
        "udp_round_trip",
        format!("{DATAGRAM} bytes over loopback and back, {}", if here == there { "one core" } else { "two cores" }),
        ROUND_TRIPS,
        move || udp(calibration, cpus),
    ));
    rows
}

/// Costs of one thread.
fn alone(calibration: &Calibration) -> Vec<Measurement<'_>> {
    let free = Mutex::new(0_u64);
    let allocated = |bytes: usize| {
        move || {
            black_box(Vec::<u8>::with_capacity(black_box(bytes)));
        }
    };
    vec![
        Measurement::new("system_call", "getppid, which does nothing else", 256, || {
            Ok(chunks(calibration, 16, 256, || {
                black_box(nix::unistd::getppid());
            }))
        }),
        Measurement::new("page_fault", "the first touch of a page of 4 KiB", FAULTS, || {
            let mut pages =
                Pages::map(FAULTS as usize * SMALL * 8, PageSize::Small).map_err(|error| errno_of(&error))?;
            let mut fresh = pages.bytes_mut().chunks_mut(SMALL);
            Ok(chunks(calibration, 8, FAULTS, || fresh.by_ref().take(1).for_each(|page| page[0] = 1)))
        }),
        Measurement::new("mutex_free", "lock, add 1, unlock, without contention", 1_024, move || {
            Ok(chunks(calibration, 16, 1_024, || *free.lock().unwrap_or_else(PoisonError::into_inner) += 1))
        }),
        Measurement::new("malloc_64", "allocate and free 64 bytes", 1_024, move || {
            Ok(chunks(calibration, 16, 1_024, allocated(64)))
        }),
        Measurement::new("malloc_64k", "allocate and free 64 KiB", 256, move || {
            Ok(chunks(calibration, 16, 256, allocated(64 << 10)))
        }),
    ]
}

/// Two threads at once, `first` on the first CPU; the CPUs may be one.
fn on_both<A: Send, B: Send>(
    cpus: [usize; 2],
    first: impl FnOnce() -> Result<A, Errno> + Send,
    second: impl FnOnce() -> Result<B, Errno> + Send,
) -> Result<A, Errno> {
    let in_place = Barrier::new(2);
    thread::scope(|scope| {
        let first = scope.spawn(|| pinned(cpus[0], &in_place, first));
        let second = scope.spawn(|| pinned(cpus[1], &in_place, second));
        let first = first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let second = second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        first.and_then(|first| second.map(|_| first))
    })
}

fn pipes(calibration: &Calibration, cpus: [usize; 2]) -> Block {
    let (mut asked, mut ask) = io::pipe().map_err(|error| errno_of(&error))?;
    let (mut answered, mut answer) = io::pipe().map_err(|error| errno_of(&error))?;
    let rounds = 8;
    // Each end belongs to one thread: when one gives up, the other reads the end of its pipe.
    let first = move || {
        let mut round_trip = || -> io::Result<()> {
            ask.write_all(&[1])?;
            answered.read_exact(&mut [0])
        };
        round_trip().map_err(|error| errno_of(&error))?;
        let mut failed = Ok(());
        let means = chunks(calibration, rounds, ROUND_TRIPS, || {
            failed = std::mem::replace(&mut failed, Ok(())).and(round_trip())
        });
        failed.map_err(|error| errno_of(&error))?;
        Ok(means.into_iter().map(|round_trip| round_trip / 2.0).collect())
    };
    let second = move || {
        while asked.read(&mut [0]).map_err(|error| errno_of(&error))? == 1 {
            answer.write_all(&[1]).map_err(|error| errno_of(&error))?;
        }
        Ok(())
    };
    on_both(cpus, first, second)
}

fn contended(calibration: &Calibration, cpus: [usize; 2]) -> Block {
    let (count, over, begun) = (Mutex::new(0_u64), AtomicBool::new(false), Barrier::new(2));
    let add = || *count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    let first = || {
        begun.wait();
        let means = chunks(calibration, 8, CONTENDED, add);
        over.store(true, Ordering::Relaxed);
        Ok(means)
    };
    let second = || {
        begun.wait();
        while !over.load(Ordering::Relaxed) {
            add();
        }
        Ok(())
    };
    on_both(cpus, first, second)
}

fn udp(calibration: &Calibration, cpus: [usize; 2]) -> Block {
    let sockets = || -> io::Result<(UdpSocket, UdpSocket)> {
        let (asking, answering) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        asking.connect(answering.local_addr()?)?;
        answering.connect(asking.local_addr()?)?;
        asking.set_read_timeout(Some(LOST))?;
        answering.set_read_timeout(Some(LOST))?;
        Ok((asking, answering))
    };
    let (asking, answering) = sockets().map_err(|error| errno_of(&error))?;
    let first = move || {
        let mut payload = [7; DATAGRAM];
        let clock = calibration.clock;
        let mut round_trip = || -> io::Result<()> {
            asking.send(&payload)?;
            asking.recv(&mut payload).map(drop)
        };
        let mut blocks = || -> io::Result<Vec<f64>> {
            round_trip()?;
            let mut means = Vec::new();
            for _ in 0..8 {
                let start = clock.end();
                for _ in 0..ROUND_TRIPS {
                    round_trip()?;
                }
                means.push(mean_ns(calibration, clock.end().since(start), ROUND_TRIPS));
            }
            Ok(means)
        };
        let means = blocks();
        // An empty datagram ends the other side, which would give up by itself too.
        let _ = asking.send(&[]);
        means.map_err(|error| errno_of(&error))
    };
    let second = move || {
        let mut payload = [0; DATAGRAM];
        loop {
            match answering.recv(&mut payload).map_err(|error| errno_of(&error))? {
                0 => return Ok(()),
                length => answering.send(&payload[..length]).map(drop).map_err(|error| errno_of(&error))?,
            }
        }
    };
    on_both(cpus, first, second)
}

#[cfg(test)]
mod tests {
    use super::kernel;
    use tt_meter::{Calibration, Clock};

    /// Every row gives times, and those that contain another one take longer than it.
    #[test]
    fn what_contains_a_system_call_takes_longer_than_one() {
        let origin = std::time::Instant::now();
        let mut os_ns = || u64::try_from(origin.elapsed().as_nanos()).unwrap();
        let calibration = Calibration::measure(Clock::new(|| 0), &mut os_ns, 20_000_000);
        let cpus = tt_os::cpu::available().unwrap();
        let mut least = std::collections::HashMap::new();
        for mut row in kernel(&calibration, [cpus[0], *cpus.last().unwrap()], true) {
            let block = row.block().unwrap_or_else(|errno| panic!("{}: {errno}", row.name));
            least.insert(row.name, block.into_iter().fold(f64::INFINITY, f64::min));
        }
        let call = least["system_call"];
        for name in ["context_switch", "udp_round_trip", "page_fault_huge"] {
            assert!(least[name] > call, "{least:?}");
        }
        assert!(least["page_fault_huge"] > least["page_fault"], "{least:?}");
    }
}
