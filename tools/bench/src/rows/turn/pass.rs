//! One pass through the whole pipeline: a Binding request in, the response's bytes out.

use crate::report::{Bootstrap, Row, RowText, Samples, Unit};
use anyhow::ensure;
use tt_meter::{Calibration, Off, Sampler, Stage};
use tt_model::SplitMix64;
use tt_turn::config::Capacity;

use super::rig::{Rig, digest_reply, five_tuple};
use super::wire::{self, INPUTS, Packed};
use super::{ENGINE, label};
use crate::harness::operation::{Bench, Finished, Label, Operation};
use crate::harness::plan::Plan;

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

/// The five stages of [`HIT_SOFTWARE`]'s pass, by the shipped sampler.
pub(super) struct StagesOfPass {
    pass: Pass,
    next: usize,
    samples: [Samples; 5],
}

impl StagesOfPass {
    /// Passes a sample; the sampler stamps the stages of every second one.
    const PASSES: usize = 512;

    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self { pass: Pass::new(HIT_SOFTWARE)?, next: 0, samples: Default::default() })
    }

    fn sample(&mut self, calibration: &Calibration) -> anyhow::Result<[f64; 5]> {
        let mut sampler = Sampler::new(calibration.clock, 1);
        for index in self.next..self.next + Self::PASSES {
            let (client, request) = (self.pass.clients[index], self.pass.datagrams.get(index));
            self.pass.rig.pass(&five_tuple(client), request, &mut sampler);
        }
        self.next = (self.next + Self::PASSES) % INPUTS;
        let mut means = [0.0; 5];
        for (stage, mean) in Stage::ALL.into_iter().zip(&mut means) {
            let found = sampler.stages().mean_ns(stage, calibration);
            *mean = found.ok_or_else(|| anyhow::anyhow!("the pass never marks {}", stage.name()))?;
        }
        Ok(means)
    }

    fn run_for(
        &mut self,
        calibration: &Calibration,
        span_ns: u64,
        mut keep: impl FnMut([f64; 5]) -> bool,
    ) -> anyhow::Result<()> {
        let begin = calibration.clock.end();
        while calibration.scale.ns(calibration.clock.end().since(begin)) < span_ns {
            let means = self.sample(calibration)?;
            if !keep(means) {
                break;
            }
        }
        Ok(())
    }
}

impl Bench for StagesOfPass {
    fn name(&self) -> &'static str {
        "stages"
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        (0..INPUTS).try_for_each(|index| self.pass.verify(index).map(drop))
    }

    fn warm_up(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        self.run_for(calibration, plan.warmup_ns, |_| true)
    }

    fn block(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        self.run_for(calibration, plan.block_ns / 10, |_| true)?;
        let mut blocks: [Vec<f64>; 5] = Default::default();
        self.run_for(calibration, plan.block_ns, |means| {
            blocks.iter_mut().zip(means).for_each(|(block, mean)| block.push(mean));
            blocks[0].len() < plan.samples_per_block
        })?;
        self.samples.iter_mut().zip(blocks).for_each(|(samples, block)| samples.push_block(block));
        Ok(())
    }

    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        const NAMES: [(&str, f64); 5] = [
            ("stage_parse", 68.0),
            ("stage_validate", 35.0),
            ("stage_look_up", 40.0),
            ("stage_build", 85.0),
            ("stage_serialize", 35.0),
        ];
        let row = |((name, published), samples): ((&'static str, f64), &Samples)| {
            let what = "between two stamps inside the pass, one read of the clock taken off; the stamps keep stages \
                        from overlapping, as they do in a pass";
            let label = label(name, what, published, "stage of one pass");
            let text = RowText { name, engine: ENGINE, what, unit: Unit::Ns };
            let mut row = Row::of(text, samples, Self::PASSES as u32 / 2, bootstrap)?;
            row.published = label.published;
            Some(Finished { row, samples: samples.clone() })
        };
        NAMES.into_iter().zip(&self.samples).filter_map(row).collect()
    }
}
