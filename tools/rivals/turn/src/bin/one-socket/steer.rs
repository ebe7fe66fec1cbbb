//! The two BPF programs: which socket gets a datagram, and which port it leaves from.

use std::fs::File;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::bpf::{self, Instruction};

/// Program types.
const SCHED_CLS: u32 = 3;
const SK_LOOKUP: u32 = 30;
/// Attach types.
const AT_SK_LOOKUP: u32 = 36;
const AT_TCX_EGRESS: u32 = 47;

/// Upper half of the mark of a datagram whose source port is the lower half.
const MARK: u32 = 0x7454;
/// Bytes in front of a UDP header: Ethernet, and IPv4 without options.
const UDP_AT: i16 = 14 + 20;

/// Operations of the instruction set.
const LOAD_U32: u8 = 0x61;
const STORE_U32: u8 = 0x63;
const STORE_U16: u8 = 0x6b;
const STORE_CONSTANT_U32: u8 = 0x62;
const MOVE: u8 = 0xbf;
const MOVE_CONSTANT: u8 = 0xb7;
const ADD_CONSTANT: u8 = 0x07;
const AND_CONSTANT: u8 = 0x57;
const SHIFT_RIGHT: u8 = 0x77;
const BIG_ENDIAN: u8 = 0xdc;
const JUMP: u8 = 0x05;
const IF_EQUAL: u8 = 0x15;
const IF_NOT_EQUAL: u8 = 0x55;
const IF_GREATER: u8 = 0x25;
const IF_LESS: u8 = 0xa5;
const IF_GREATER_REGISTER: u8 = 0x2d;
const IF_EQUAL_32: u8 = 0x16;
const LOAD_U64: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// The source register of a [`LOAD_U64`] that names a map.
const MAP_DESCRIPTOR: u8 = 1;

/// Helper functions.
const MAP_LOOKUP_ELEM: i32 = 1;
const SK_RELEASE: i32 = 86;
const SK_ASSIGN: i32 = 124;
/// The socket alone is its group.
const NO_REUSEPORT: i32 = 2;

/// Keeps the programs attached.
pub(crate) struct Steering {
    _links: Vec<OwnedFd>,
}

fn at(code: u8, to: u8, from: u8, offset: i16, constant: i32) -> Instruction {
    Instruction { code, registers: to | from << 4, offset, constant }
}

/// Gives `socket` every datagram to a port of `ports` of one of `ips`.
pub(crate) fn receive(socket: &impl AsRawFd, ips: &[Ipv4Addr], ports: RangeInclusive<u16>) -> anyhow::Result<Steering> {
    let map = bpf::socket_map(socket)?;
    let (low, high) = (i32::from(*ports.start()), i32::from(*ports.end()));
    // `struct bpf_sk_lookup`: family 8, protocol 12, local_ip4 40, local_port 60.
    let mut program = vec![
        at(MOVE, 6, 1, 0, 0),
        at(LOAD_U32, 2, 1, 60, 0),
        at(IF_LESS, 2, 0, 0, low),
        at(IF_GREATER, 2, 0, 0, high),
        at(LOAD_U32, 2, 1, 12, 0),
        at(IF_NOT_EQUAL, 2, 0, 0, libc::IPPROTO_UDP),
        at(LOAD_U32, 2, 1, 8, 0),
        at(IF_NOT_EQUAL, 2, 0, 0, libc::AF_INET),
        at(LOAD_U32, 2, 1, 40, 0),
    ];
    for (index, ip) in ips.iter().enumerate() {
        let to_lookup = (ips.len() - index) as i16;
        program.push(at(IF_EQUAL_32, 2, 0, to_lookup, ip.to_bits().to_be().cast_signed()));
    }
    program.push(at(JUMP, 0, 0, 0, 0));
    program.extend([
        at(STORE_CONSTANT_U32, 10, 0, -4, 0),
        at(MOVE, 2, 10, 0, 0),
        at(ADD_CONSTANT, 2, 0, 0, -4),
        at(LOAD_U64, 1, MAP_DESCRIPTOR, 0, map.as_raw_fd()),
        at(0, 0, 0, 0, 0),
        at(CALL, 0, 0, 0, MAP_LOOKUP_ELEM),
        at(IF_EQUAL, 0, 0, 0, 0),
        at(MOVE, 7, 0, 0, 0),
        at(MOVE, 1, 6, 0, 0),
        at(MOVE, 2, 7, 0, 0),
        at(MOVE_CONSTANT, 3, 0, 0, NO_REUSEPORT),
        at(CALL, 0, 0, 0, SK_ASSIGN),
        at(MOVE, 1, 7, 0, 0),
        at(CALL, 0, 0, 0, SK_RELEASE),
        at(MOVE_CONSTANT, 0, 0, 0, 1),
        at(EXIT, 0, 0, 0, 0),
    ]);
    // What is not ours passes: every jump without a target goes to the last two instructions.
    let pass = program.len() - 2;
    let is_open = |one: &Instruction| {
        one.offset == 0 && matches!(one.code, JUMP | IF_EQUAL | IF_NOT_EQUAL | IF_GREATER | IF_LESS)
    };
    for (index, one) in program.iter_mut().enumerate() {
        if is_open(one) {
            one.offset = (pass - index - 1) as i16;
        }
    }
    let program = bpf::load(SK_LOOKUP, AT_SK_LOOKUP, &program)?;
    let namespace = File::open("/proc/self/ns/net")?;
    let link = bpf::attach(&program, namespace.as_raw_fd().cast_unsigned(), AT_SK_LOOKUP)?;
    Ok(Steering { _links: vec![link] })
}

/// The mark of a datagram that leaves from `port`.
pub(crate) const fn mark(port: u16) -> u32 {
    MARK << 16 | port as u32
}

/// Has datagrams with a [`mark`] leave `device` from the port that it names.
///
/// The kernel leaves the UDP checksum to the device or computes it later, over the port that it finds then; the sum of
/// the pseudo header, which it has written already, has no port.
pub(crate) fn send(device: u32) -> anyhow::Result<Steering> {
    // `struct __sk_buff`: mark 8, data 76, data_end 80.
    let program = [
        at(LOAD_U32, 2, 1, 8, 0),
        at(MOVE, 3, 2, 0, 0),
        at(SHIFT_RIGHT, 3, 0, 0, 16),
        at(IF_NOT_EQUAL, 3, 0, 10, MARK.cast_signed()),
        at(LOAD_U32, 3, 1, 76, 0),
        at(LOAD_U32, 4, 1, 80, 0),
        at(MOVE, 5, 3, 0, 0),
        at(ADD_CONSTANT, 5, 0, 0, i32::from(UDP_AT) + 8),
        at(IF_GREATER_REGISTER, 5, 4, 5, 0),
        at(AND_CONSTANT, 2, 0, 0, 0xffff),
        at(BIG_ENDIAN, 2, 0, 0, 16),
        at(STORE_U16, 3, 2, UDP_AT, 0),
        // The mark is cleared, so that nothing later takes it for its own.
        at(MOVE_CONSTANT, 0, 0, 0, 0),
        at(STORE_U32, 1, 0, 8, 0),
        at(MOVE_CONSTANT, 0, 0, 0, -1),
        at(EXIT, 0, 0, 0, 0),
    ];
    let program = bpf::load(SCHED_CLS, AT_TCX_EGRESS, &program)?;
    let link = bpf::attach(&program, device, AT_TCX_EGRESS)?;
    Ok(Steering { _links: vec![link] })
}
