//! A program that the kernel runs for each datagram before it is queued: listed sources pass, of all others a share.
//!
//! It is classic BPF (`SO_ATTACH_FILTER`), which needs no privilege, and keeps no state. The sources are a set of bits:
//! a datagram's source address and port are hashed to one of them. So some others pass, too: as many as the share of
//! bits that are set. The hash has a random key, so that a sender cannot choose such an address.
//!
//! A program cannot index a table. The words of the set are constants in it, which a binary search finds.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::SockFilter;
use tt_model::IpFamily;

/// Bits of the set for each source: at most one in so many of the others is taken for one of them.
const BITS_PER_SOURCE: usize = 16;
/// Logarithms of the least and the greatest number of bits. With more, the program would be longer than the kernel
/// allows (`BPF_MAXINSNS`, 4,096 instructions).
const BITS_LOG_MIN: u32 = 10;
const BITS_LOG_MAX: u32 = 15;
const WORD_LOG: u32 = u32::BITS.trailing_zeros();

/// Ends of the program, as targets of jumps whose lengths are not known yet.
const TO_TEST: u32 = u32::MAX;
const TO_OTHERS: u32 = u32::MAX - 1;

/// Places in the program's scratch memory: the source's bit in its word, and its hash.
const BIT: u32 = 0;
const HASH: u32 = 1;

/// Offsets of the source address in the headers of IPv4 and IPv6.
const SOURCE_V4: u32 = 12;
const SOURCE_V6: u32 = 8;

/// The sources that a socket's queue is kept free for, and what passes of the others.
#[derive(Debug)]
pub struct SourceFilter {
    family: IpFamily,
    /// Odd multipliers: one for each word of an address, and one for the port.
    key: [u32; 5],
    sources: Vec<SocketAddr>,
    others: u32,
}

impl SourceFilter {
    /// Lets `sources` pass and, of the datagrams of all others, `others` in 2^32. Addresses of another family than
    /// `family`, the socket's, are left out. `key` is random.
    #[must_use]
    pub fn new(family: IpFamily, key: [u32; 5], sources: impl IntoIterator<Item = SocketAddr>, others: u32) -> Self {
        let sources = sources.into_iter().filter(|source| IpFamily::of(source.ip()) == family).collect();
        Self { family, key: key.map(|word| word | 1), sources, others }
    }

    /// The share of other sources that are taken for listed ones, with as many bits as the kernel allows.
    #[must_use]
    pub fn confused(&self) -> f64 {
        let bits = f64::from(1_u32 << self.bits_log());
        1.0 - (-(self.sources.len() as f64) / bits).exp()
    }

    /// Attaches the program to `socket`. The kernel may allow less memory than the longest one takes (`net.core.optmem_max`):
    /// then the set has fewer bits.
    pub(crate) fn attach(&self, socket: &socket2::Socket) -> io::Result<()> {
        let mut bits_log = self.bits_log();
        loop {
            // The one before counts until it is gone.
            let _ = socket.detach_filter();
            match socket.attach_filter(&self.program(bits_log)) {
                Err(error) if error.raw_os_error() == Some(libc::ENOMEM) && bits_log > BITS_LOG_MIN => bits_log -= 1,
                done => return done,
            }
        }
    }

    fn bits_log(&self) -> u32 {
        let bits = (self.sources.len() * BITS_PER_SOURCE).next_power_of_two();
        bits.trailing_zeros().clamp(BITS_LOG_MIN, BITS_LOG_MAX)
    }

    /// The hash of a source: its upper bits select the word of the set, the next ones the bit in it.
    fn hash(&self, source: SocketAddr) -> u32 {
        let words = match source.ip() {
            IpAddr::V4(ip) => [ip.to_bits(), 0, 0, 0],
            IpAddr::V6(ip) => [96, 64, 32, 0].map(|shift| (ip.to_bits() >> shift) as u32),
        };
        let port = u32::from(source.port());
        let terms = words.into_iter().chain([port]).zip(self.key).map(|(word, key)| word.wrapping_mul(key));
        terms.fold(0, u32::wrapping_add)
    }

    fn set(&self, bits_log: u32) -> Vec<u32> {
        let mut words = vec![0; 1 << (bits_log - WORD_LOG)];
        for source in &self.sources {
            let bit = self.hash(*source) >> (u32::BITS - bits_log);
            words[(bit >> WORD_LOG) as usize] |= 1 << (bit % u32::BITS);
        }
        words
    }

    fn program(&self, bits_log: u32) -> Vec<SockFilter> {
        let mut program = self.hashing();
        program.extend([
            Step::store(HASH),
            Step::plain(libc::BPF_ALU | libc::BPF_RSH, u32::BITS - bits_log),
            Step::plain(libc::BPF_ALU | libc::BPF_AND, u32::BITS - 1),
            Step::plain(libc::BPF_MISC | libc::BPF_TAX, 0),
            Step::plain(libc::BPF_LD | libc::BPF_IMM, 1),
            Step::plain(libc::BPF_ALU | libc::BPF_LSH | libc::BPF_X, 0),
            Step::store(BIT),
            Step::plain(libc::BPF_LD | libc::BPF_MEM, HASH),
        ]);
        program.extend(search(&self.set(bits_log), 0, u32::BITS - bits_log + WORD_LOG));
        let test = program.len();
        program.extend([
            Step::plain(libc::BPF_LDX | libc::BPF_MEM, BIT),
            Step { jump_true: 2, ..Step::plain(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_X, 0) },
            Step::load(libc::BPF_W, (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32),
            Step { jump_true: 1, ..Step::plain(libc::BPF_JMP | libc::BPF_JGE, self.others) },
            Step::plain(libc::BPF_RET, u32::MAX),
            Step::plain(libc::BPF_RET, 0),
        ]);
        let others = test + 2;
        let resolve = |(place, step): (usize, Step)| match step {
            Step { code, value: TO_TEST, .. } if code == JUMP => step.to(test - place - 1),
            Step { code, value: TO_OTHERS, .. } if code == JUMP => step.to(others - place - 1),
            step => step.instruction(),
        };
        program.into_iter().enumerate().map(resolve).collect()
    }

    /// Leaves the hash of the datagram's source. The program's data begin at the UDP header.
    fn hashing(&self) -> Vec<Step> {
        let (first, words) = match self.family {
            IpFamily::V4 => (SOURCE_V4, 1),
            IpFamily::V6 => (SOURCE_V6, 4),
        };
        let address = (0..words).map(|word| Step::load(libc::BPF_W, libc::SKF_NET_OFF as u32 + first + 4 * word));
        let loads = address.chain([Step::load(libc::BPF_H, 0)]);
        let keys = self.key[..words as usize].iter().chain([&self.key[4]]);
        let mut steps = vec![Step::plain(libc::BPF_LDX | libc::BPF_IMM, 0)];
        for (load, key) in loads.zip(keys) {
            steps.extend([
                load,
                Step::plain(libc::BPF_ALU | libc::BPF_MUL, *key),
                Step::plain(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0),
                Step::plain(libc::BPF_MISC | libc::BPF_TAX, 0),
            ]);
        }
        steps
    }
}

/// Loads the word of `words` that the hash selects: word `first + n` has the hashes from `(first + n) << shift`.
fn search(words: &[u32], first: u32, shift: u32) -> Vec<Step> {
    if words.iter().all(|word| *word == 0) {
        return vec![Step::jump(TO_OTHERS)];
    }
    if let [word] = words {
        return vec![Step::plain(libc::BPF_LD | libc::BPF_IMM, *word), Step::jump(TO_TEST)];
    }
    let (below, above) = words.split_at(words.len() / 2);
    let middle = first + below.len() as u32;
    let (below, above) = (search(below, first, shift), search(above, middle, shift));
    let is_above = Step::plain(libc::BPF_JMP | libc::BPF_JGE, middle << shift);
    // A condition jumps over 255 instructions at most.
    let mut steps = match u8::try_from(below.len()) {
        Ok(len) => vec![Step { jump_true: len, ..is_above }],
        Err(_) => vec![Step { jump_false: 1, ..is_above }, Step::jump(below.len() as u32)],
    };
    steps.extend(below);
    steps.extend(above);
    steps
}

const JUMP: u32 = libc::BPF_JMP | libc::BPF_JA;

/// An instruction.
#[derive(Clone, Copy, Debug)]
struct Step {
    code: u32,
    jump_true: u8,
    jump_false: u8,
    value: u32,
}

impl Step {
    const fn plain(code: u32, value: u32) -> Self {
        Self { code, jump_true: 0, jump_false: 0, value }
    }

    const fn load(size: u32, at: u32) -> Self {
        Self::plain(libc::BPF_LD | libc::BPF_ABS | size, at)
    }

    const fn store(place: u32) -> Self {
        Self::plain(libc::BPF_ST, place)
    }

    const fn jump(over: u32) -> Self {
        Self::plain(JUMP, over)
    }

    const fn to(self, over: usize) -> SockFilter {
        Self { value: over as u32, ..self }.instruction()
    }

    const fn instruction(self) -> SockFilter {
        SockFilter::new(self.code as u16, self.jump_true, self.jump_false, self.value)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as Sender;

    use super::*;
    use crate::{Inbox, UdpSocket};

    const KEY: [u32; 5] = [0x9E37_79B9, 0x85EB_CA6B, 0xC2B2_AE35, 0x27D4_EB2F, 0x1656_67B1];

    fn senders(ip: &str, count: usize) -> Vec<Sender> {
        (0..count).map(|_| Sender::bind((ip.parse::<IpAddr>().unwrap(), 0)).unwrap()).collect()
    }

    /// Sends one datagram of each, and returns how many of the first `known` and of the others were queued.
    fn queued(socket: &UdpSocket, senders: &[Sender], known: usize) -> (usize, usize) {
        for sender in senders {
            sender.send_to(b"data", socket.local_addr()).unwrap();
        }
        let is_known = |from| senders[..known].iter().any(|sender| sender.local_addr().unwrap() == from);
        let (mut inbox, mut counts) = (Inbox::new(senders.len(), 64), (0, 0));
        while inbox.receive(socket, 0, senders.len()).unwrap().count > 0 {
            for index in 0..inbox.len() {
                if is_known(inbox.datagram(index).from) { counts.0 += 1 } else { counts.1 += 1 }
            }
            inbox.clear();
        }
        counts
    }

    /// The kernel itself runs the program, for both families, from one source to more than the set has room for.
    #[test]
    fn listed_sources_pass_and_others_do_not() {
        for ip in ["127.0.0.1", "::1"] {
            let socket = UdpSocket::bind(SocketAddr::new(ip.parse().unwrap(), 0)).unwrap();
            socket.set_buffers(4 << 20, true).unwrap();
            let senders = senders(ip, 400);
            for known in [0, 1, 40, 200] {
                let sources = senders[..known].iter().map(|sender| sender.local_addr().unwrap());
                let filter = SourceFilter::new(IpFamily::of(ip.parse().unwrap()), KEY, sources, 0);
                socket.set_source_filter(Some(&filter)).unwrap();
                let (passed, confused) = queued(&socket, &senders, known);
                assert_eq!(passed, known, "{ip}");
                let expected = filter.confused() * (senders.len() - known) as f64;
                assert!(confused as f64 <= 3.0 + 2.0 * expected, "{ip} {known}: {confused} of {expected}");
            }
            socket.set_source_filter(None).unwrap();
            assert_eq!(queued(&socket, &senders, 0), (0, senders.len()), "{ip}: without a program all pass");
        }
    }

    #[test]
    fn a_share_of_the_others_passes() {
        let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.set_buffers(4 << 20, true).unwrap();
        let senders = senders("127.0.0.1", 100);
        for (others, least, most) in [(u32::MAX, 2_000, 2_000), (1 << 31, 800, 1_200), (1 << 29, 150, 350)] {
            socket.set_source_filter(Some(&SourceFilter::new(IpFamily::V4, KEY, [], others))).unwrap();
            let passed: usize = (0..20).map(|_| queued(&socket, &senders, 0).1).sum();
            assert!((least..=most).contains(&passed), "{passed} of 2,000 with {others} in 2^32");
        }
    }

    /// The longest program, and no bit of the set in the wrong word: each address is in the set, few others are.
    #[test]
    fn the_longest_program_is_one_that_the_kernel_takes() {
        let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.set_buffers(4 << 20, true).unwrap();
        let senders = senders("127.0.0.1", 300);
        let invented = (0..2_000_u32).map(|n| SocketAddr::new(IpAddr::V4((0x0A00_0000 + n * 77).into()), 9));
        let known = senders[..100].iter().map(|sender| sender.local_addr().unwrap()).chain(invented);
        let filter = SourceFilter::new(IpFamily::V4, KEY, known, 0);
        assert_eq!(filter.bits_log(), BITS_LOG_MAX);
        assert!(filter.program(BITS_LOG_MAX).len() <= 4_096);
        socket.set_source_filter(Some(&filter)).unwrap();
        let (passed, confused) = queued(&socket, &senders, 100);
        assert!(passed == 100 && confused <= 60, "{passed} {confused}");
    }
}
