//! Maps, programs and links of BPF by `bpf(2)`, for programs of a few instructions.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Commands of `bpf(2)`.
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;

/// Bytes of `union bpf_attr` that are used.
const ATTR_LEN: usize = 128;
const LOG_LEN: usize = 1 << 16;
const LICENSE: &[u8] = b"Dual MIT/GPL\0";

/// `struct bpf_insn`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Instruction {
    /// Operation.
    pub(crate) code: u8,
    /// Destination register in the lower four bits, source in the upper.
    pub(crate) registers: u8,
    /// Offset of memory or of a jump.
    pub(crate) offset: i16,
    /// Constant.
    pub(crate) constant: i32,
}

/// `union bpf_attr`, written field by field.
struct Attr([u8; ATTR_LEN]);

impl Attr {
    fn of(words: &[(usize, u32)], pointers: &[(usize, u64)]) -> Self {
        let mut attr = [0; ATTR_LEN];
        words.iter().for_each(|(at, word)| attr[*at..at + 4].copy_from_slice(&word.to_ne_bytes()));
        pointers.iter().for_each(|(at, pointer)| attr[*at..at + 8].copy_from_slice(&pointer.to_ne_bytes()));
        Self(attr)
    }
}

fn call(command: libc::c_long, attr: &Attr) -> io::Result<i32> {
    // SAFETY: `attr` has `ATTR_LEN` initialised bytes. The pointers in it, if any, are to memory that the callers below
    // keep borrowed over this call, with the lengths that they state.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr.0.as_ptr(), ATTR_LEN) };
    i32::try_from(result).ok().filter(|result| *result >= 0).ok_or_else(io::Error::last_os_error)
}

fn opened(command: libc::c_long, attr: &Attr) -> io::Result<OwnedFd> {
    let descriptor = call(command, attr)?;
    // SAFETY: these commands return a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn word(descriptor: &impl AsRawFd) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

/// Creates a `BPF_MAP_TYPE_SOCKMAP` that holds `socket`. An `sk_lookup` program may look up no other kind but its hash.
pub(crate) fn socket_map(socket: &impl AsRawFd) -> io::Result<OwnedFd> {
    const SOCKMAP: u32 = 15;
    let map = opened(MAP_CREATE, &Attr::of(&[(0, SOCKMAP), (4, 4), (8, 4), (12, 1)], &[]))?;
    let (key, value) = (0_u32, word(socket));
    let (key, value) = (std::ptr::from_ref(&key) as u64, std::ptr::from_ref(&value) as u64);
    call(MAP_UPDATE_ELEM, &Attr::of(&[(0, word(&map))], &[(8, key), (16, value)]))?;
    Ok(map)
}

/// Loads a program; the error has what the verifier says.
pub(crate) fn load(kind: u32, attach: u32, program: &[Instruction]) -> anyhow::Result<OwnedFd> {
    let mut log = vec![0_u8; LOG_LEN];
    let (count, instructions) = (program.len() as u32, program.as_ptr() as u64);
    let words = [(0, kind), (4, count), (24, 1), (28, LOG_LEN as u32), (68, attach)];
    let pointers = [(8, instructions), (16, LICENSE.as_ptr() as u64), (32, log.as_mut_ptr() as u64)];
    opened(PROG_LOAD, &Attr::of(&words, &pointers)).map_err(|error| {
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(LOG_LEN);
        anyhow::anyhow!("the program is not loaded: {error}: {}", String::from_utf8_lossy(&log[..end]))
    })
}

/// Attaches a program to `target`: a network namespace's descriptor or a device's index.
pub(crate) fn attach(program: &OwnedFd, target: u32, kind: u32) -> io::Result<OwnedFd> {
    opened(LINK_CREATE, &Attr::of(&[(0, word(program)), (4, target), (8, kind)], &[]))
}
