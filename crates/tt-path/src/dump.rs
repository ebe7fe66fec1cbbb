//! Copies of packets that a running server's program relays: they pass no socket, and tcpdump does not see them.
//!
//! The program copies packets into a ring while a lease in its memory lasts. A process that wants them extends the lease,
//! which ends by itself: a process that is killed leaves nothing behind. Without a lease, a relayed packet pays for one
//! comparison.

use std::collections::HashMap;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aya::maps::{Map, MapData, MapError, MapInfo, PerCpuArray, RingBuf};
use aya::programs::{ProgramInfo, loaded_programs};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tt_model::Nanos;
use tt_os::clock::monotonic;

use crate::error::{DumpError, os_error};
use crate::layout::{self, Meta};
use crate::sys::mapping::Mapping;

/// Name of the program of a server.
const PROGRAM: &str = "paths";
const LEASE: Nanos = Nanos::from_millis(2_000);
const RENEWAL: Duration = Duration::from_millis(100);
const SENT: u32 = 1;

/// The value of the map `dumps`, in words.
type PerCpu = [u64; size_of::<layout::Dump>() / size_of::<u64>()];

/// Which packets are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// One packet in so many of each CPU, at least 1.
    pub every: u64,
    /// Index of the interface where it arrives; `None`: any.
    pub ifindex: Option<u32>,
}

/// A relayed packet: both frames, as received and as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Index of the interface where it arrived.
    pub ifindex: u32,
    /// As it arrived, with the Ethernet addresses of the link where it did.
    pub received: Frame<'a>,
    /// As it leaves.
    pub sent: Frame<'a>,
}

/// An Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// CLOCK_MONOTONIC.
    pub at: Nanos,
    /// Bytes that it had; more than there are in `bytes` if it was larger than 2,048 bytes.
    pub len: u32,
    /// The frame.
    pub bytes: &'a [u8],
}

/// Packets of running servers, copied until it is dropped.
pub struct Dump {
    sources: Vec<Source>,
    lease: Arc<Lease>,
    /// Ends the thread that extends the lease.
    end: Option<Sender<()>>,
    renewal: Option<JoinHandle<()>>,
}

/// The program of a server.
struct Source {
    ring: RingBuf<MapData>,
    counts: PerCpuArray<MapData, PerCpu>,
    lost_before: u64,
    /// What is older was copied for somebody else.
    begun: Nanos,
    /// Frames as received, by CPU, whose other form is still to come.
    halves: HashMap<u32, Half>,
}

struct Half {
    number: u64,
    at: Nanos,
    len: u32,
    bytes: Vec<u8>,
}

/// A frame in the ring.
struct Copied<'a> {
    number: u64,
    cpu: u32,
    ifindex: u32,
    form: u32,
    frame: Frame<'a>,
}

struct Lease {
    memories: Vec<Mapping>,
    /// Time for which it had ended, because this process did not run, nanoseconds.
    paused: AtomicU64,
}

impl Dump {
    /// Begins to copy packets of programs of servers, by the kernel's numbers.
    ///
    /// # Errors
    /// A privilege is missing (`Denied`), another dump runs (`Busy`), or a program is no server's of this build
    /// (`Program`).
    pub fn begin(selection: Selection, programs: &[u32]) -> Result<Self, DumpError> {
        let (mut sources, mut memories) = (Vec::new(), Vec::new());
        for info in infos(programs)? {
            let [meta, counts, ring] = maps(&info)?;
            let (Map::Array(meta), counts, ring) = (meta, PerCpuArray::try_from(counts), RingBuf::try_from(ring))
            else {
                return Err(other_build(info.id()));
            };
            let memory = Mapping::new(meta.fd().as_fd(), size_of::<Meta>());
            memories.push(memory.map_err(|errno| DumpError::Read { what: "meta", os: Some(errno as i32) })?);
            let counts = counts.map_err(|_| other_build(info.id()))?;
            let ring = ring.map_err(|error| DumpError::read("dump_ring", &error))?;
            let lost_before = lost(&counts)?;
            sources.push(Source { ring, counts, lost_before, begun: Nanos(0), halves: HashMap::new() });
        }
        let lease = Arc::new(Lease { memories, paused: AtomicU64::new(0) });
        lease.take()?;
        lease.select(selection);
        let begun = monotonic();
        sources.iter_mut().for_each(|source| source.begun = begun);
        let (end, ended) = mpsc::channel::<()>();
        let kept = Arc::clone(&lease);
        let extend = move || {
            while ended.recv_timeout(RENEWAL) == Err(RecvTimeoutError::Timeout) {
                kept.extend();
            }
        };
        let renewal = thread::Builder::new().name("dump-lease".to_owned()).spawn(extend);
        let renewal = renewal.map_err(|error| {
            lease.give_up();
            DumpError::Read { what: "a thread", os: error.raw_os_error() }
        })?;
        Ok(Self { sources, lease, end: Some(end), renewal: Some(renewal) })
    }

    /// Has no more packets copied; what is in the ring remains.
    pub fn stop(&mut self) {
        self.end = None;
        if let Some(renewal) = self.renewal.take() {
            // It cannot panic.
            let _ = renewal.join();
            self.lease.give_up();
        }
    }

    /// Waits at most `most` until there are packets.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait(&self, most: Duration) -> io::Result<()> {
        let most = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
        let rings = self.sources.iter().map(|source| PollFd::new(source.ring.as_fd(), PollFlags::POLLIN));
        let mut rings: Vec<PollFd<'_>> = rings.collect();
        match poll(&mut rings, most) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Gives the oldest packet of a program to `write`; returns `None` if there is none.
    pub fn take<T>(&mut self, write: impl FnOnce(Packet<'_>) -> T) -> Option<T> {
        let mut write = Some(write);
        self.sources.iter_mut().find_map(|source| source.take(&mut write))
    }

    /// Returns the packets that found no room.
    ///
    /// # Errors
    /// The kernel denies access.
    pub fn lost(&self) -> Result<u64, DumpError> {
        self.sources.iter().map(|source| Ok(lost(&source.counts)? - source.lost_before)).sum()
    }

    /// Returns the time in which nothing was copied because this process did not run.
    #[must_use]
    pub fn paused(&self) -> Duration {
        Duration::from_nanos(self.lease.paused.load(Ordering::Relaxed))
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Dump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dump").field("programs", &self.sources.len()).finish_non_exhaustive()
    }
}

impl Source {
    fn take<T>(&mut self, write: &mut Option<impl FnOnce(Packet<'_>) -> T>) -> Option<T> {
        while let Some(item) = self.ring.next() {
            let Some(Copied { number, cpu, ifindex, form, frame }) = copied(&item) else { continue };
            if frame.at < self.begun {
                continue;
            }
            if form != SENT {
                let half = Half { number, at: frame.at, len: frame.len, bytes: frame.bytes.to_vec() };
                self.halves.insert(cpu, half);
                continue;
            }
            // The other form was lost, or is older than this dump.
            let Some(half) = self.halves.remove(&cpu).filter(|half| half.number == number) else { continue };
            let received = Frame { at: half.at, len: half.len, bytes: &half.bytes };
            return write.take().map(|write| write(Packet { ifindex, received, sent: frame }));
        }
        None
    }
}

impl Lease {
    /// Takes it for every program, or for none.
    fn take(&self) -> Result<(), DumpError> {
        let now = monotonic();
        for (taken, memory) in self.memories.iter().enumerate() {
            let until = word(memory, offset_of!(Meta, dump_until));
            let old = until.load(Ordering::Acquire);
            let new = now.0 + LEASE.0;
            if old > now.0 || until.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                self.memories[..taken].iter().for_each(give_up);
                return Err(DumpError::Busy);
            }
        }
        Ok(())
    }

    fn select(&self, selection: Selection) {
        for memory in &self.memories {
            let ifindex = &memory.words()[offset_of!(Meta, dump_ifindex) / size_of::<u32>()];
            ifindex.store(selection.ifindex.unwrap_or(0), Ordering::Release);
            word(memory, offset_of!(Meta, dump_every)).store(selection.every.max(1), Ordering::Release);
        }
    }

    fn extend(&self) {
        let now = monotonic();
        for (index, memory) in self.memories.iter().enumerate() {
            let old = word(memory, offset_of!(Meta, dump_until)).swap(now.0 + LEASE.0, Ordering::AcqRel);
            if index == 0 {
                self.paused.fetch_add(now.0.saturating_sub(old), Ordering::Relaxed);
            }
        }
    }

    fn give_up(&self) {
        self.memories.iter().for_each(give_up);
    }
}

fn give_up(memory: &Mapping) {
    word(memory, offset_of!(Meta, dump_until)).store(0, Ordering::Release);
}

fn word(memory: &Mapping, offset: usize) -> &AtomicU64 {
    &memory.double_words()[offset / size_of::<u64>()]
}

/// Finds the programs, each once.
fn infos(programs: &[u32]) -> Result<Vec<ProgramInfo>, DumpError> {
    let mut infos = Vec::new();
    for info in loaded_programs() {
        match info {
            Ok(info) if programs.contains(&info.id()) => infos.push(info),
            Err(error) if os_error(&error) == Some(Errno::EPERM as i32) => return Err(DumpError::Denied),
            // Another program, or one that has just ended.
            Ok(_) | Err(_) => {}
        }
    }
    for id in programs {
        match infos.iter().find(|info| info.id() == *id) {
            None => return Err(DumpError::Program { id: *id, is: "is gone" }),
            Some(info) if info.name_as_str() == Some(PROGRAM) => {}
            Some(_) => return Err(DumpError::Program { id: *id, is: "is no server's" }),
        }
    }
    Ok(infos)
}

/// Opens the maps of a program that a dump needs.
fn maps(info: &ProgramInfo) -> Result<[Map; 3], DumpError> {
    let ids = info.map_ids().map_err(|error| DumpError::read("the program's maps", &error))?.unwrap_or_default();
    let open = |name: &'static str| {
        let failed = |error: &MapError| DumpError::read(name, error);
        for id in &ids {
            if MapInfo::from_id(*id).map_err(|error| failed(&error))?.name_as_str() == Some(name) {
                let data = MapData::from_id(*id).map_err(|error| failed(&error))?;
                return Map::from_map_data(data).map_err(|error| failed(&error));
            }
        }
        Err(other_build(info.id()))
    };
    Ok([open("meta")?, open("dumps")?, open("dump_ring")?])
}

const fn other_build(id: u32) -> DumpError {
    DumpError::Program { id, is: "is of another build of the server: dump with that build" }
}

fn lost(counts: &PerCpuArray<MapData, PerCpu>) -> Result<u64, DumpError> {
    let counts = counts.get(&0, 0).map_err(|error| DumpError::read("dumps", &error))?;
    Ok(counts.iter().map(|cpu| cpu[offset_of!(layout::Dump, lost) / size_of::<u64>()]).sum())
}

/// Reads what the program has put into the ring: the struct from `at` on, with as much of the frame as is kept.
fn copied(item: &[u8]) -> Option<Copied<'_>> {
    const START: usize = offset_of!(layout::Dump, at);
    let long = |at: usize| Some(u64::from_ne_bytes(*item.get(at - START..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_ne_bytes(*item.get(at - START..)?.first_chunk()?));
    Some(Copied {
        number: long(offset_of!(layout::Dump, number))?,
        cpu: word(offset_of!(layout::Dump, cpu))?,
        ifindex: word(offset_of!(layout::Dump, ifindex))?,
        form: word(offset_of!(layout::Dump, form))?,
        frame: Frame {
            at: Nanos(long(START)?),
            len: word(offset_of!(layout::Dump, len))?,
            bytes: item.get(offset_of!(layout::Dump, frame) - START..)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_and_a_short_item_is_not() {
        let words = [7_u64, 8].map(u64::to_ne_bytes).concat();
        let more = [1_u32, 2, 900, SENT].map(u32::to_ne_bytes).concat();
        let item = [words, more, b"frame".to_vec()].concat();
        let Copied { number, cpu, ifindex, form, frame } = copied(&item).unwrap();
        assert_eq!((number, cpu, ifindex, form), (8, 1, 2, SENT));
        assert_eq!(frame, Frame { at: Nanos(7), len: 900, bytes: b"frame" });
        assert!(copied(&item[..31]).is_none());
    }

    #[test]
    fn each_error_is_one_line() {
        let errors = [
            (DumpError::Denied, "run as root"),
            (DumpError::Busy, "another dump"),
            (other_build(7), "the XDP program 7 is of another build"),
            (DumpError::Read { what: "meta", os: Some(24) }, "meta: Too many open files"),
        ];
        for (error, text) in errors {
            assert!(error.to_string().contains(text) && !error.to_string().contains('\n'), "{error}");
        }
    }
}
