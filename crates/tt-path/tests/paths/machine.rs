//! A machine for the instructions of BPF (RFC 9669), in safe code: memory is a few regions with addresses of their own,
//! and an access outside of them ends the run with an error. rbpf 0.4.1 has no atomic instructions and checks host
//! addresses, which do not fit the 32-bit pointers of `xdp_md`.

/// Address of the first byte of headroom; pointers into the packet have 32 bits.
const PACKET: u64 = 0x1000_0000;
const STACK: u64 = 0x1_0000_0000;
const FRAME_LEN: usize = 512;
const FRAMES: usize = 8;
const CONTEXT: u64 = 0x2_0000_0000;
const VALUES: u64 = 0x10_0000_0000;
/// Addresses of the values of one map begin at a multiple of this.
const VALUES_STEP: u64 = 0x1_0000_0000;
const MAPS: u64 = 0xff00_0000_0000_0000;
/// Headroom of a frame in bytes, as drivers give it.
pub(crate) const HEADROOM: usize = 256;
const STEPS_MAX: usize = 100_000;

/// One instruction.
#[derive(Clone, Copy, Debug)]
struct Instruction {
    opcode: u8,
    dst: usize,
    src: usize,
    offset: i16,
    imm: i32,
}

/// A map: values back to back, and the keys of a hash.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) value_len: usize,
    pub(crate) values: Vec<u8>,
    /// `None` for an array.
    pub(crate) keys: Option<Vec<Vec<u8>>>,
}

/// The machine with its program and maps.
#[derive(Debug)]
pub(crate) struct Machine {
    code: Vec<Instruction>,
    pub(crate) tables: Vec<Table>,
    pub(crate) now: u64,
    pub(crate) ifindex: u32,
    /// Bytes before the frame.
    pub(crate) headroom: usize,
    /// Another CPU changes the word before each compare-and-exchange.
    pub(crate) is_contended: bool,
    random: u32,
    packet: Vec<u8>,
    start: usize,
    stack: Vec<u8>,
    /// Where the last call of `bpf_redirect` sends.
    pub(crate) redirected: u32,
}

/// The handle of map `index` in a register.
pub(crate) const fn handle(index: usize) -> u64 {
    MAPS + index as u64
}

impl Machine {
    /// Creates a machine for a program whose map references are [`handle`]s already.
    pub(crate) fn new(bytes: &[u8], tables: Vec<Table>) -> Self {
        let code = bytes.chunks_exact(8).map(|bytes| Instruction {
            opcode: bytes[0],
            dst: usize::from(bytes[1] & 15),
            src: usize::from(bytes[1] >> 4),
            offset: i16::from_le_bytes([bytes[2], bytes[3]]),
            imm: i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        });
        Self {
            code: code.collect(),
            tables,
            now: 0,
            ifindex: 1,
            headroom: HEADROOM,
            is_contended: false,
            random: 1,
            packet: Vec::new(),
            start: 0,
            stack: vec![0; FRAMES * FRAME_LEN],
            redirected: 0,
        }
    }

    pub(crate) fn table(&mut self, name: &str) -> &mut Table {
        self.tables.iter_mut().find(|table| table.name == name).unwrap()
    }

    /// Runs the program on a frame; returns its result and the frame.
    pub(crate) fn run(&mut self, frame: &[u8]) -> Result<(u32, Vec<u8>), String> {
        self.start = self.headroom;
        self.packet = [&vec![0; self.headroom], frame].concat();
        self.stack.fill(0xa5);
        self.redirected = 0;
        let mut registers = [0_u64; 11];
        registers[1] = CONTEXT;
        registers[10] = STACK + FRAME_LEN as u64;
        let mut calls: Vec<(usize, [u64; 4])> = Vec::new();
        let mut at = 0;
        for _ in 0..STEPS_MAX {
            let step = *self.code.get(at).ok_or("the end of the code")?;
            at += 1;
            let wrong = || format!("instruction {}: {step:?}", at - 1);
            match step.opcode & 7 {
                0 => {
                    let high = self.code.get(at).ok_or("the end of the code")?.imm;
                    registers[step.dst] = u64::from(step.imm as u32) | u64::from(high as u32) << 32;
                    at += 1;
                }
                1 => {
                    let address = registers[step.src].wrapping_add_signed(step.offset.into());
                    registers[step.dst] = self.load(address, width(step.opcode)).ok_or_else(wrong)?;
                }
                2 | 3 => {
                    let address = registers[step.dst].wrapping_add_signed(step.offset.into());
                    let value = if step.opcode & 7 == 2 { step.imm as i64 as u64 } else { registers[step.src] };
                    if step.opcode >> 5 == 6 {
                        self.atomic(step, address, &mut registers).ok_or_else(wrong)?;
                    } else {
                        self.store(address, width(step.opcode), value).ok_or_else(wrong)?;
                    }
                }
                4 | 7 => {
                    let operand = if step.opcode & 8 == 0 { step.imm as i64 as u64 } else { registers[step.src] };
                    registers[step.dst] = calculate(step, registers[step.dst], operand).ok_or_else(wrong)?;
                }
                _ if step.opcode == 0x95 => match calls.pop() {
                    None => return Ok((registers[0] as u32, self.packet[self.start..].to_vec())),
                    Some((back, saved)) => {
                        at = back;
                        registers[6..10].copy_from_slice(&saved);
                        registers[10] -= FRAME_LEN as u64;
                    }
                },
                _ if step.opcode == 0x85 && step.src == 1 => {
                    calls.push((at, registers[6..10].try_into().map_err(|_| wrong())?));
                    registers[10] += FRAME_LEN as u64;
                    at = at.wrapping_add_signed(step.imm as isize);
                }
                _ if step.opcode == 0x85 => {
                    registers[0] = self.call(step.imm, &registers).ok_or_else(wrong)?;
                    // A program that reads these again has a defect.
                    registers[1..6].fill(0xdead_dead_dead_dead);
                }
                class => {
                    let operand = if step.opcode & 8 == 0 { step.imm as i64 as u64 } else { registers[step.src] };
                    if jumps(step.opcode >> 4, class == 5, registers[step.dst], operand).ok_or_else(wrong)? {
                        at = at.wrapping_add_signed(step.offset.into());
                    }
                }
            }
        }
        Err("the program does not end".to_owned())
    }

    fn atomic(&mut self, step: Instruction, address: u64, registers: &mut [u64; 11]) -> Option<()> {
        let len = width(step.opcode);
        let mut old = self.load(address, len)?;
        if self.is_contended && step.imm == 0xf1 {
            old += 1;
            self.store(address, len, old)?;
        }
        let operand = registers[step.src];
        match step.imm {
            0x00 => self.store(address, len, old.wrapping_add(operand)),
            0x01 => {
                registers[step.src] = old;
                self.store(address, len, old.wrapping_add(operand))
            }
            // Compare r0 and exchange.
            0xf1 => {
                let is_equal = old == registers[0];
                registers[0] = old;
                if is_equal { self.store(address, len, operand) } else { Some(()) }
            }
            _ => None,
        }
    }

    fn call(&mut self, helper: i32, registers: &[u64; 11]) -> Option<u64> {
        let [_, r1, r2, r3, r4, r5, ..] = *registers;
        Some(match helper {
            1 => self.look_up(usize::try_from(r1.checked_sub(MAPS)?).ok()?, r2)?,
            7 => {
                self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                self.random.into()
            }
            23 => {
                self.redirected = r1 as u32;
                4
            }
            // The sum of RFC 1071 of `to`, less that of `from`.
            28 => {
                let mut sum = u64::from(r5 as u32);
                for (address, len, mask) in [(r3, r4, 0), (r1, r2, u32::MAX)] {
                    if len % 4 != 0 || len > 512 {
                        return None;
                    }
                    for at in (0..len).step_by(4) {
                        sum += u64::from(self.load(address + at, 4)? as u32 ^ mask);
                    }
                }
                while sum > u64::from(u32::MAX) {
                    sum = (sum & u64::from(u32::MAX)) + (sum >> 32);
                }
                sum
            }
            44 => {
                let start = self.start.checked_add_signed(r2 as i32 as isize);
                match start.filter(|start| start + 14 <= self.packet.len()) {
                    Some(start) => {
                        self.start = start;
                        0
                    }
                    None => -22_i64 as u64,
                }
            }
            160 => self.now,
            188 => (self.packet.len() - self.start) as u64,
            189 => {
                let end = usize::try_from(r2 + r4).ok()?;
                let from = self.start + r2 as usize;
                let Some(bytes) = self.packet.get(from..self.start + end).map(<[u8]>::to_vec) else {
                    return Some(-22_i64 as u64);
                };
                self.region(r3, bytes.len())?.copy_from_slice(&bytes);
                0
            }
            _ => return None,
        })
    }

    fn look_up(&self, index: usize, key: u64) -> Option<u64> {
        let table = self.tables.get(index)?;
        let count = table.values.len() / table.value_len;
        let found = match &table.keys {
            None => usize::try_from(self.load(key, 4)?).ok().filter(|at| *at < count),
            Some(keys) => {
                let len = keys.first().map_or(0, Vec::len);
                let wanted: Option<Vec<u8>> = (0..len).map(|at| Some(self.load(key + at as u64, 1)? as u8)).collect();
                let wanted = wanted?;
                keys.iter().position(|key| *key == wanted)
            }
        };
        let address = |at: usize| VALUES + index as u64 * VALUES_STEP + (at * table.value_len) as u64;
        Some(found.map_or(0, address))
    }

    /// The bytes of a region behind an address.
    fn region(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let part = |region: &'_ mut Vec<u8>, base: u64, first: usize| -> Option<std::ops::Range<usize>> {
            let at = usize::try_from(address.checked_sub(base)?).ok()?;
            (at >= first && at + len <= region.len()).then_some(at..at + len)
        };
        if address >= VALUES {
            let index = usize::try_from((address - VALUES) / VALUES_STEP).ok()?;
            let values = &mut self.tables.get_mut(index)?.values;
            let range = part(values, VALUES + index as u64 * VALUES_STEP, 0)?;
            return values.get_mut(range);
        }
        if address >= STACK {
            let range = part(&mut self.stack, STACK, 0)?;
            return self.stack.get_mut(range);
        }
        let range = part(&mut self.packet, PACKET, self.start)?;
        self.packet.get_mut(range)
    }

    fn load(&self, address: u64, len: usize) -> Option<u64> {
        if (CONTEXT..CONTEXT + 24).contains(&address) {
            let pointer = |at: usize| PACKET + at as u64;
            return (len == 4).then_some(match address - CONTEXT {
                0 | 8 => pointer(self.start),
                4 => pointer(self.packet.len()),
                12 => self.ifindex.into(),
                _ => 0,
            });
        }
        let part = |region: &[u8], base: u64, first: usize| -> Option<u64> {
            let at = usize::try_from(address.checked_sub(base)?).ok()?;
            let bytes = region.get(at..at + len).filter(|_| at >= first)?;
            Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
        };
        match address {
            VALUES.. => {
                let index = usize::try_from((address - VALUES) / VALUES_STEP).ok()?;
                part(&self.tables.get(index)?.values, VALUES + index as u64 * VALUES_STEP, 0)
            }
            STACK.. => part(&self.stack, STACK, 0),
            _ => part(&self.packet, PACKET, self.start),
        }
    }

    fn store(&mut self, address: u64, len: usize, value: u64) -> Option<()> {
        let bytes = value.to_le_bytes();
        self.region(address, len)?.copy_from_slice(&bytes[..len]);
        Some(())
    }
}

/// Bytes that a load or store accesses.
const fn width(opcode: u8) -> usize {
    match opcode & 0x18 {
        0x00 => 4,
        0x08 => 2,
        0x10 => 1,
        _ => 8,
    }
}

fn calculate(step: Instruction, old: u64, operand: u64) -> Option<u64> {
    let is_wide = step.opcode & 7 == 7;
    if step.opcode >> 4 == 13 {
        let is_to_big = step.opcode & 8 != 0;
        return Some(match (step.imm, is_to_big) {
            (16, false) => u64::from(old as u16),
            (32, false) => u64::from(old as u32),
            (64, false) => old,
            (16, true) => u64::from((old as u16).swap_bytes()),
            (32, true) => u64::from((old as u32).swap_bytes()),
            (64, true) => old.swap_bytes(),
            _ => return None,
        });
    }
    if !is_wide {
        let (old, operand) = (old as u32, operand as u32);
        return Some(u64::from(match step.opcode >> 4 {
            0 => old.wrapping_add(operand),
            1 => old.wrapping_sub(operand),
            2 => old.wrapping_mul(operand),
            3 => old.checked_div(operand).unwrap_or(0),
            4 => old | operand,
            5 => old & operand,
            6 => old << (operand & 31),
            7 => old >> (operand & 31),
            8 => old.wrapping_neg(),
            9 => old.checked_rem(operand).unwrap_or(old),
            10 => old ^ operand,
            11 => operand,
            12 => (old as i32 >> (operand & 31)) as u32,
            _ => return None,
        }));
    }
    Some(match step.opcode >> 4 {
        0 => old.wrapping_add(operand),
        1 => old.wrapping_sub(operand),
        2 => old.wrapping_mul(operand),
        3 => old.checked_div(operand).unwrap_or(0),
        4 => old | operand,
        5 => old & operand,
        6 => old << (operand & 63),
        7 => old >> (operand & 63),
        8 => old.wrapping_neg(),
        9 => old.checked_rem(operand).unwrap_or(old),
        10 => old ^ operand,
        11 => operand,
        12 => (old as i64 >> (operand & 63)) as u64,
        _ => return None,
    })
}

fn jumps(operation: u8, is_wide: bool, left: u64, right: u64) -> Option<bool> {
    let (left, right) = if is_wide { (left, right) } else { (left as i32 as i64 as u64, right as i32 as i64 as u64) };
    // Sign extension keeps the order of unsigned numbers of 32 bits.
    let (signed_left, signed_right) = (left as i64, right as i64);
    Some(match operation {
        0 => true,
        1 => left == right,
        2 => left > right,
        3 => left >= right,
        4 => left & right != 0,
        5 => left != right,
        6 => signed_left > signed_right,
        7 => signed_left >= signed_right,
        10 => left < right,
        11 => left <= right,
        12 => signed_left < signed_right,
        13 => signed_left <= signed_right,
        _ => return None,
    })
}
