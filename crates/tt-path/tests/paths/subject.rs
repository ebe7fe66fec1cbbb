//! The program under test: in the [`Machine`], and in the kernel.

use nix::time::{ClockId, clock_gettime};
use tt_model::Nanos;
use tt_path::{
    Board, Capacity, Key, Meter, NextHop, PathError, PathKey, PathSpec, Paths, PortKind, Proof, Reason, Tally, Writer,
};

use crate::machine::Machine;
use crate::object;

/// Index of the interface at which every frame arrives: the loopback's, as `BPF_PROG_TEST_RUN` has it.
pub(crate) const IFINDEX: u32 = 1;
pub(crate) const MAC: [u8; 6] = [0; 6];
pub(crate) const CAPACITY: Capacity = Capacity { paths: 64, meters: 16 };

/// What the program did with a frame.
#[derive(Debug)]
pub(crate) struct Done {
    /// `XDP_DROP` 1, `XDP_PASS` 2, `XDP_TX` 3, `XDP_REDIRECT` 4.
    pub(crate) action: u32,
    pub(crate) frame: Vec<u8>,
    /// `None` where the kernel does not say.
    pub(crate) redirected: Option<u32>,
}

pub(crate) trait Subject {
    fn now(&self) -> u64;
    fn open(&mut self, spec: &PathSpec);
    fn close(&mut self, key: &PathKey) -> bool;
    fn set_hop(&mut self, index: u16, hop: Option<NextHop>);
    fn set_port(&mut self, port: u16, kind: PortKind);
    fn set_meta(&mut self, is_on: bool, epoch: u32, heartbeat: u64);
    fn set_dscp(&mut self, allowed: u64);
    fn set_meter(&mut self, index: u32, meter: Meter);
    fn meter_full_at(&self, index: u32) -> u64;
    fn tally(&self, path: u32) -> Tally;
    fn prove_again(&mut self);
    fn proof(&self) -> Proof;
    fn reasons(&self) -> Vec<u64>;
    fn run(&mut self, frame: &[u8]) -> Done;
}

/// The object's bytes in the machine, with a clock of the test.
pub(crate) struct InMachine(pub(crate) Machine);

impl InMachine {
    pub(crate) fn new() -> Self {
        let mut machine = object::machine();
        machine.ifindex = IFINDEX;
        machine.now = 1_000_000_000_000;
        let start = IFINDEX as usize * 32;
        let iface = &mut machine.table("ifaces").values[start..start + 32];
        iface[..4].copy_from_slice(&IFINDEX.to_le_bytes());
        iface[8..14].copy_from_slice(&MAC);
        let mut machine = Self(machine);
        machine.prove_again();
        machine
    }

    fn word(&self, table: &str, at: usize) -> u64 {
        let table = self.0.tables.iter().find(|found| found.name == table).unwrap();
        u64::from_le_bytes(table.values[at..at + 8].try_into().unwrap())
    }

    fn set_words(&mut self, table: &str, at: usize, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.0.table(table).values[at..at + bytes.len()].copy_from_slice(&bytes);
    }
}

fn key_bytes(key: &PathKey) -> (&'static str, Vec<u8>) {
    match key.to_key().unwrap() {
        Key::V4(key) => ("flows4", key.to_vec()),
        Key::V6(key) => ("flows6", key.to_vec()),
    }
}

impl Subject for InMachine {
    fn now(&self) -> u64 {
        self.0.now
    }

    fn open(&mut self, spec: &PathSpec) {
        let (table, key) = key_bytes(&spec.key);
        self.close(&spec.key);
        let table = self.0.table(table);
        table.keys.as_mut().unwrap().push(key);
        table.values.extend(spec.to_value().unwrap());
    }

    fn close(&mut self, key: &PathKey) -> bool {
        let (table, key) = key_bytes(key);
        let table = self.0.table(table);
        let keys = table.keys.as_mut().unwrap();
        let Some(at) = keys.iter().position(|found| *found == key) else { return false };
        keys.remove(at);
        table.values.drain(at * 64..(at + 1) * 64);
        true
    }

    fn set_hop(&mut self, index: u16, hop: Option<NextHop>) {
        let value = hop.map_or([0; 24], NextHop::to_value);
        let at = usize::from(index) * 24;
        self.0.table("hops").values[at..at + 24].copy_from_slice(&value);
    }

    fn set_port(&mut self, port: u16, kind: PortKind) {
        self.0.table("port_kind").values[usize::from(port)] = kind as u8;
    }

    fn set_meta(&mut self, is_on: bool, epoch: u32, heartbeat: u64) {
        self.set_words("meta", 0, &[is_on.into(), epoch.into(), heartbeat]);
    }

    fn set_dscp(&mut self, allowed: u64) {
        self.set_words("meta", 24, &[allowed]);
    }

    fn set_meter(&mut self, index: u32, meter: Meter) {
        self.set_words("meters", index as usize * 16, &[meter.full_at, meter.byte_ns_fp24]);
    }

    fn meter_full_at(&self, index: u32) -> u64 {
        self.word("meters", index as usize * 16)
    }

    fn tally(&self, path: u32) -> Tally {
        let [packets, bytes, dropped_meter] = [0, 8, 16].map(|at| self.word("tallies", path as usize * 32 + at));
        let mut tally = Tally::default();
        (tally.packets, tally.bytes, tally.dropped_meter) = (packets, bytes, dropped_meter);
        tally
    }

    fn prove_again(&mut self) {
        let at = IFINDEX as usize * 32;
        let values = &mut self.0.table("ifaces").values;
        values[at + 4..at + 8].copy_from_slice(&1_u32.to_le_bytes());
        values[at + 20..at + 24].fill(0);
    }

    fn proof(&self) -> Proof {
        match self.word("ifaces", IFINDEX as usize * 32) >> 32 {
            1 => Proof::Proving,
            2 => Proof::Proven,
            3 => Proof::Unproven,
            _ => Proof::Off,
        }
    }

    fn reasons(&self) -> Vec<u64> {
        Reason::ALL.iter().map(|reason| self.word("reasons", *reason as usize * 8)).collect()
    }

    fn run(&mut self, frame: &[u8]) -> Done {
        let (action, frame) = self.0.run(frame).unwrap();
        Done { action, frame, redirected: Some(self.0.redirected) }
    }
}

/// The program that the kernel has loaded.
pub(crate) struct InKernel {
    pub(crate) paths: Paths,
    writer: Writer,
}

impl InKernel {
    /// # Errors
    /// The kernel denies BPF.
    pub(crate) fn new() -> Result<Self, PathError> {
        let paths = Paths::load(CAPACITY)?;
        paths.prepare_runs();
        let writer = paths.writer()?;
        Ok(Self { paths, writer })
    }

    fn board(&self) -> &Board {
        self.paths.board()
    }
}

impl Subject for InKernel {
    fn now(&self) -> u64 {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
        u64::try_from(now.tv_sec()).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec()).unwrap()
    }

    fn open(&mut self, spec: &PathSpec) {
        self.writer.open(spec).unwrap();
    }

    fn close(&mut self, key: &PathKey) -> bool {
        self.writer.close(key).unwrap()
    }

    fn set_hop(&mut self, index: u16, hop: Option<NextHop>) {
        self.writer.set_hop(index, hop).unwrap();
    }

    fn set_port(&mut self, port: u16, kind: PortKind) {
        self.board().set_port(port, kind);
    }

    fn set_meta(&mut self, is_on: bool, epoch: u32, heartbeat: u64) {
        self.board().switch(is_on);
        self.board().set_epoch(epoch);
        self.board().beat(Nanos(heartbeat));
    }

    fn set_dscp(&mut self, allowed: u64) {
        self.board().set_dscp(allowed);
    }

    fn set_meter(&mut self, index: u32, meter: Meter) {
        assert!(self.board().set_meter(index, meter));
    }

    fn meter_full_at(&self, index: u32) -> u64 {
        self.board().meter_full_at(index).unwrap().load(std::sync::atomic::Ordering::Acquire)
    }

    fn tally(&self, path: u32) -> Tally {
        self.board().tally(path).unwrap()
    }

    fn prove_again(&mut self) {
        self.board().prove_again(IFINDEX);
    }

    fn proof(&self) -> Proof {
        self.board().proof(IFINDEX).proof
    }

    fn reasons(&self) -> Vec<u64> {
        let counts = self.paths.reasons().unwrap();
        Reason::ALL.iter().map(|reason| counts.of(*reason)).collect()
    }

    fn run(&mut self, frame: &[u8]) -> Done {
        let mut out = vec![0; frame.len() + 64];
        let run = self.paths.run(frame, &mut out, 1).unwrap();
        out.truncate(run.len);
        Done { action: run.action, frame: out, redirected: None }
    }
}
