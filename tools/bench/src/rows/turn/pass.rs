//! One pass through the whole pipeline: a Binding request in, the response's bytes out.

use anyhow::ensure;
use tt_meter::{Off, Sampler, Stage};
use tt_model::SplitMix64;
use tt_turn::config::Capacity;

use super::rig::{Rig, digest_reply, five_tuple};
use super::wire::{self, INPUTS, Packed};
use super::{ENGINE, label};
use crate::harness::operation::{Label, Operation};
use crate::harness::stages::{self, StageRows};

/// Live allocations while a pass is timed.
const LIVE: u32 = 10_000;

/// The variants of a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// The clients that ask have allocations.
    pub(super) hit: bool,
    /// The answer carries SOFTWARE.
    pub(super) software: bool,
    /// The request carries FINGERPRINT, which is checked.
    pub(super) fingerprint: bool,
}

pub(super) const HIT_SOFTWARE: Variant = Variant {
    name: "pipeline_pass",
    what: "Binding request of 20 bytes to response with XOR-MAPPED-ADDRESS, SOFTWARE, FINGERPRINT; 10,000 live \
           allocations, the client has one",
    hit: true,
    software: true,
    fingerprint: false,
};

pub(super) const VARIANTS: [Variant; 4] = [
    Variant {
        name: "pipeline_pass_miss",
        what: "the same from clients without an allocation",
        hit: false,
        ..HIT_SOFTWARE
    },
    Variant { name: "pipeline_pass_plain", what: "the same without SOFTWARE", software: false, ..HIT_SOFTWARE },
    Variant {
        name: "pipeline_pass_plain_miss",
        what: "without SOFTWARE, from clients without an allocation",
        hit: false,
        software: false,
        ..HIT_SOFTWARE
    },
    Variant {
        name: "pipeline_pass_checked",
        what: "the request carries FINGERPRINT, which is checked; without SOFTWARE",
        software: false,
        fingerprint: true,
        ..HIT_SOFTWARE
    },
];

pub(super) fn label_of(variant: &Variant) -> Label {
    label(variant.name, variant.what, 263.1, "the whole pass")
}

/// `Server::handle_client` on Binding requests.
pub(super) struct Pass {
    rig: Rig,
    variant: Variant,
    clients: Vec<u32>,
    datagrams: Packed,
}

impl Pass {
    pub(super) fn new(variant: Variant) -> anyhow::Result<Self> {
        let rig = Rig::with_allocations(Capacity::for_allocations(LIVE), variant.software, LIVE)?;
        let mut random = SplitMix64::new(263);
        let mut datagrams = Packed::default();
        let clients = (0..INPUTS).map(|_| random.index(LIVE as usize) as u32 + if variant.hit { 0 } else { LIVE });
        let clients = clients.collect();
        for _ in 0..INPUTS {
            let request = wire::message(0x0001, &random.bytes(), &[]);
            datagrams.push(&if variant.fingerprint { wire::with_fingerprint(request) } else { request });
        }
        Ok(Self { rig, variant, clients, datagrams })
    }
}

impl Operation for Pass {
    fn inputs(&self) -> usize {
        INPUTS
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        self.rig.pass(&five_tuple(self.clients[index]), self.datagrams.get(index), &mut Off)
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let (client, request) = (self.clients[index], self.datagrams.get(index));
        let reply = self.rig.reply_to(client, request)?;
        ensure!(reply[..2] == [0x01, 0x01] && reply[4..20] == request[4..20], "not the answer: {reply:x?}");
        let mapped = wire::xor_value(five_tuple(client).client, request[8..20].first_chunk().expect("12 bytes"));
        ensure!(wire::attribute(&reply, 0x0020) == Some(&mapped), "wrong XOR-MAPPED-ADDRESS: {reply:x?}");
        let software: Option<&[u8]> = self.variant.software.then_some(b"truetick");
        ensure!(wire::attribute(&reply, 0x8022) == software, "wrong SOFTWARE: {reply:x?}");
        ensure!(wire::fingerprint_is_right(&reply), "wrong FINGERPRINT: {reply:x?}");
        Ok(digest_reply(&reply))
    }
}

/// The stages of [`HIT_SOFTWARE`]'s pass.
pub(super) const STAGES: StageRows = StageRows {
    name: "stages",
    engine: ENGINE,
    prefix: "stage_",
    what: "Server::handle_client on a Binding request, as pipeline_pass",
    published: |stage| {
        let ns = match stage {
            Stage::Parse => 68.0,
            Stage::Validate | Stage::Serialize => 35.0,
            Stage::LookUp => 40.0,
            Stage::Build => 85.0,
        };
        label("", "", ns, "stage of one pass").published.pop()
    },
};

impl stages::Pass for Pass {
    #[inline(always)]
    fn run_watched(&mut self, index: usize, probe: &mut Sampler) -> u64 {
        self.rig.pass(&five_tuple(self.clients[index]), self.datagrams.get(index), probe)
    }
}
