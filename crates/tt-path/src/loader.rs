//! Loads the XDP program and attaches it to interfaces.

use std::error::Error;
use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use aya::maps::{Map, MapData, PerCpuArray};
use aya::programs::links::FdLink;
use aya::programs::xdp::{Xdp, XdpMode};
use aya::programs::{ProgramError, TestRun as _, TestRunOptions};
use aya::{Ebpf, EbpfLoader};

use crate::board::Board;
use crate::capacity::Capacity;
use crate::error::os_error;
use crate::layout::{INTERFACES, Iface, Meta, Meter, Tally};
use crate::reason::ReasonCounts;
use crate::sys::mapping::Mapping;
use crate::writer::{Tables, Writer, map_error};
use crate::{PathError, btf, packed};

const PROGRAM: &str = "paths";
const PORTS: usize = 1 << 16;

/// Returns the compiled program, as `bpf/paths.bpf.c` makes it.
#[must_use]
pub fn object() -> Vec<u8> {
    packed::unpack(packed::PATHS)
}

/// The program on an interface.
struct Attachment {
    ifindex: u32,
    /// What the kernel says of the link, where it does.
    info: Option<PathBuf>,
    /// Detaches when dropped.
    _link: FdLink,
}

/// Finds the file in which the kernel describes a link of this process.
fn info_of(link: u32, ifindex: u32) -> Option<PathBuf> {
    let files = fs::read_dir("/proc/self/fdinfo").ok()?;
    files.map_while(Result::ok).map(|file| file.path()).find(|path| {
        let Ok(info) = fs::read_to_string(path) else { return false };
        number_in(&info, "link_id:") == Some(link) && number_in(&info, "ifindex:") == Some(ifindex)
    })
}

/// Returns the number in the line of `key`.
fn number_in(info: &str, key: &str) -> Option<u32> {
    info.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}

/// An Ethernet interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name, for messages.
    pub name: String,
    /// Index.
    pub index: u32,
    /// Ethernet address.
    pub mac: [u8; 6],
    /// Whether packets that leave by it again are redirected to it. The other end of a veth device reads what is sent
    /// back (`XDP_TX`) only while it has a program, too.
    pub redirects: bool,
}

/// Where the kernel runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before a socket buffer exists.
    Native,
    /// After the socket buffer is made; no faster than sockets.
    Generic,
}

/// Result of [`Paths::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The program's return value: `XDP_DROP` 1, `XDP_PASS` 2, `XDP_TX` 3, `XDP_REDIRECT` 4.
    pub action: u32,
    /// Bytes of `out` that the frame takes.
    pub len: usize,
    /// Average time of a run.
    pub duration: Duration,
}

/// The loaded program. Dropping it detaches the program and frees its maps.
pub struct Paths {
    program: Ebpf,
    links: Vec<Attachment>,
    tables: Tables,
    reasons: PerCpuArray<MapData, u64>,
    board: Board,
    capacity: Capacity,
}

impl Paths {
    /// Loads the program with empty tables, switched off.
    ///
    /// # Errors
    /// `Layout` if object and crate disagree; `Load` if the kernel denies or rejects a map or the program; `Map` if a
    /// map cannot be mapped.
    pub fn load(capacity: Capacity) -> Result<Self, PathError> {
        Self::load_object(&object(), capacity)
    }

    fn load_object(object: &[u8], capacity: Capacity) -> Result<Self, PathError> {
        btf::check(object)?;
        // A table of size 0 cannot be made.
        let (paths, meters) = (capacity.paths.max(1), capacity.meters.max(1));
        let mut loader = EbpfLoader::new();
        loader.btf(None).map_max_entries("flows4", paths).map_max_entries("flows6", paths);
        loader.map_max_entries("tallies", paths).map_max_entries("meters", meters);
        let mut program = loader.load(object).map_err(|error| load_error("maps", &error))?;
        xdp_of(&mut program)?.load().map_err(|error| program_error(&error))?;
        let mut take = |name: &'static str| program.take_map(name).ok_or(PathError::Map { map: name, os: None });
        let array = |map: Map, name| {
            if let Map::Array(data) = map { Ok(data) } else { Err(PathError::Map { map: name, os: None }) }
        };
        let hash = |map: Map, name| {
            if let Map::HashMap(data) = map { Ok(data) } else { Err(PathError::Map { map: name, os: None }) }
        };
        let tables = Tables {
            flows4: hash(take("flows4")?, "flows4")?,
            flows6: hash(take("flows6")?, "flows6")?,
            hops: array(take("hops")?, "hops")?,
        };
        let reasons = PerCpuArray::try_from(take("reasons")?).map_err(|error| map_error("reasons", &error))?;
        let mut shared = |name: &'static str, len: usize| {
            let map = array(take(name)?, name)?;
            Mapping::new(map.fd().as_fd(), len).map_err(|errno| PathError::Map { map: name, os: Some(errno as i32) })
        };
        let board = Board {
            ports: shared("port_kind", PORTS)?,
            tallies: shared("tallies", paths as usize * size_of::<Tally>())?,
            meters: shared("meters", meters as usize * size_of::<Meter>())?,
            ifaces: shared("ifaces", INTERFACES as usize * size_of::<Iface>())?,
            meta: shared("meta", size_of::<Meta>())?,
        };
        Ok(Self { program, links: Vec::new(), tables, reasons, board, capacity })
    }

    /// Attaches the program to an interface. The kernel detaches it when the process ends.
    ///
    /// # Errors
    /// `Slot` if another attached interface has the same index modulo 64; `Attach` if the kernel denies or rejects it.
    pub fn attach(&mut self, interface: &Interface, mode: Mode) -> Result<(), PathError> {
        let taken_by = self.board.slot_holder(interface.index);
        if taken_by != 0 {
            return Err(PathError::Slot { interface: interface.name.clone(), taken_by });
        }
        let failed = |os| PathError::Attach { interface: interface.name.clone(), os };
        let mode = match mode {
            Mode::Native => XdpMode::Driver,
            Mode::Generic => XdpMode::Skb,
        };
        let xdp = xdp_of(&mut self.program)?;
        let link = xdp.attach_to_if_index(interface.index, mode).and_then(|id| xdp.take_link(id));
        let link = link.map_err(|error| failed(os_error(&error)))?;
        // An attachment by netlink would outlive the process. Dropping it detaches the program.
        let link = FdLink::try_from(link).map_err(|_| failed(None))?;
        self.board.set_iface(interface.index, interface.mac, interface.redirects);
        let ifindex = interface.index;
        self.links.push(Attachment {
            ifindex,
            info: link.info().ok().and_then(|info| info_of(info.id(), ifindex)),
            _link: link,
        });
        Ok(())
    }

    /// Detaches the program from an interface; returns `false` if it was not attached.
    pub fn detach(&mut self, ifindex: u32) -> bool {
        let Some(at) = self.links.iter().position(|link| link.ifindex == ifindex) else { return false };
        self.board.clear_iface(ifindex);
        drop(self.links.swap_remove(at));
        true
    }

    /// Returns whether the program is still attached to an interface: it is not after `bpftool link detach`, and not after
    /// the interface has gone. True if the kernel does not say.
    #[must_use]
    pub fn is_attached(&self, ifindex: u32) -> bool {
        let Some(link) = self.links.iter().find(|link| link.ifindex == ifindex) else { return false };
        let info = link.info.as_ref().and_then(|path| fs::read_to_string(path).ok());
        info.is_none_or(|info| number_in(&info, "ifindex:") == Some(ifindex))
    }

    /// Returns a writer of paths and next hops, for one thread.
    ///
    /// # Errors
    /// `Map` if no descriptor is free.
    pub fn writer(&self) -> Result<Writer, PathError> {
        Writer::new(&self.tables, self.capacity)
    }

    /// Returns the memory that process and program share.
    #[must_use]
    pub const fn board(&self) -> &Board {
        &self.board
    }

    /// Reads the packets by reason, summed over the CPUs.
    ///
    /// # Errors
    /// `Map` if the kernel denies access.
    pub fn reasons(&self) -> Result<ReasonCounts, PathError> {
        ReasonCounts::read(|index| {
            let counts = self.reasons.get(&index, 0).map_err(|error| map_error("reasons", &error))?;
            Ok(counts.iter().sum())
        })
    }

    /// Runs the program `repeat` times on a frame that arrives at the loopback interface, for tests and measurements
    /// (`BPF_PROG_TEST_RUN`). Each run gets what the run before has made of the frame; `out` gets the last result.
    ///
    /// # Errors
    /// `Load` if the kernel denies it, or the frame is shorter than 14 bytes or longer than about 3,500.
    pub fn run(&self, frame: &[u8], out: &mut [u8], repeat: u32) -> Result<Run, PathError> {
        let failed = |error: &ProgramError| load_error("test run", error);
        let program = self.program.program(PROGRAM).ok_or_else(|| missing("test run"))?;
        let xdp: &Xdp = program.try_into().map_err(|error| failed(&error))?;
        let options = TestRunOptions { data_in: Some(frame), data_out: Some(out), repeat, ..TestRunOptions::new() };
        let result = xdp.test_run(options).map_err(|error| failed(&error))?;
        Ok(Run { action: result.return_value, len: result.data_size_out as usize, duration: result.duration })
    }

    /// Uses the loopback interface without an attachment, as [`Paths::run`] needs it.
    pub fn prepare_runs(&self) {
        self.board.set_iface(LOOPBACK, [0; 6], false);
    }
}

/// Index of the loopback interface.
const LOOPBACK: u32 = 1;

fn xdp_of(program: &mut Ebpf) -> Result<&mut Xdp, PathError> {
    let found = program.program_mut(PROGRAM).ok_or_else(|| missing("program"))?;
    found.try_into().map_err(|error| load_error("program", &error))
}

fn missing(step: &'static str) -> PathError {
    PathError::Load { step, os: None, detail: format!("the object has no program {PROGRAM}") }
}

fn load_error(step: &'static str, error: &(dyn Error + 'static)) -> PathError {
    let detail = error.to_string().lines().next().unwrap_or_default().to_owned();
    PathError::Load { step, os: os_error(error), detail }
}

/// The last line of the verifier's log before its statistics says what it rejects.
fn program_error(error: &ProgramError) -> PathError {
    let ProgramError::LoadError { io_error, verifier_log } = error else { return load_error("program", error) };
    let detail = last_line(&verifier_log.to_string());
    PathError::Load { step: "program", os: io_error.raw_os_error(), detail }
}

/// Returns the last line of a verifier's log before its statistics.
pub(crate) fn last_line(log: &str) -> String {
    let is_statistics =
        |line: &&str| ["processed ", "verification time ", "stack depth "].iter().any(|start| line.starts_with(start));
    let line = log.lines().rev().find(|line| !line.trim().is_empty() && !is_statistics(line));
    line.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use object::{Object as _, ObjectSection as _};
    use testkit::{Requirement, require};

    use super::*;

    /// `exit` as the first instruction, without a result.
    const EXIT: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn a_rejected_program_is_one_line() {
        let capacity = Capacity { paths: 1, meters: 1 };
        let permitted = match Paths::load(capacity) {
            Err(error) if error.os_error() == Some(1) => Err(error.to_string()),
            loaded => loaded.map(drop).map_err(|error| panic!("{error}")),
        };
        let Some(()) = require(Requirement::Privilege, permitted) else { return };
        let mut object = object();
        let (start, _) = object::File::parse(&*object).unwrap().section_by_name("xdp").unwrap().file_range().unwrap();
        object[start as usize..start as usize + 8].copy_from_slice(&EXIT);
        let error = Paths::load_object(&object, capacity).map(drop).unwrap_err();
        assert!(matches!(&error, PathError::Load { step: "program", os: Some(13 | 22), .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with("the kernel rejects the XDP program: ") && !text.contains('\n'), "{text}");
        assert!(text.ends_with("; Linux 5.18 or later is needed") && text.len() < 200, "{text}");
        println!("{text}");
    }
}
