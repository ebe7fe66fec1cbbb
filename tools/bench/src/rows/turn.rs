//! V100's rows: a STUN/TURN pipeline.

mod channel_bind;
mod codec;
mod credentials;
mod pass;
mod rig;
mod sustained;
mod wire;

use crate::report::{Published, Statistic, Unit};

use crate::harness::entry::Entry;
use crate::harness::operation::{Bench, Chunked, Label};
use crate::harness::stages::Stages;
use channel_bind::ChannelBind;
use credentials::{CredentialCheck, Integrity};
use sustained::Sustained;

const ENGINE: &str = "turn";

/// The rows in the order in which V100 published them.
pub(crate) fn entries() -> Vec<Entry> {
    let entry = |name, make| Entry { engine: ENGINE, name, make, counted: true };
    vec![
        entry("xor_mapped_v4", || Ok(Box::new(Chunked::new(codec::label_v4(), codec::XorMapped::new(false))))),
        entry("xor_mapped_v6", || Ok(Box::new(Chunked::new(codec::label_v6(), codec::XorMapped::new(true))))),
        entry("stun_parse", || Ok(Box::new(Chunked::new(codec::label_parse(), codec::Parse::new(false))))),
        entry("stun_parse_20", || Ok(Box::new(Chunked::new(codec::label_parse_20(), codec::Parse::new(true))))),
        Entry { engine: ENGINE, name: "stages", make: stages, counted: false },
        entry("pipeline_pass", || pass(pass::HIT_SOFTWARE)),
        entry("pipeline_pass_miss", || pass(pass::VARIANTS[0])),
        entry("pipeline_pass_plain", || pass(pass::VARIANTS[1])),
        entry("pipeline_pass_plain_miss", || pass(pass::VARIANTS[2])),
        entry("pipeline_pass_checked", || pass(pass::VARIANTS[3])),
        entry("channel_bind", || Ok(Box::new(Chunked::new(channel_bind::label_bind(), ChannelBind::new()?)))),
        entry("integrity_sha1", || Ok(Box::new(Chunked::new(credentials::label_integrity(), Integrity::new())))),
        entry("credential_check", || Ok(Box::new(Chunked::new(credentials::label_check(), CredentialCheck::new()?)))),
        Entry { engine: ENGINE, name: "sustained", make: || Ok(Box::new(Sustained::new()?)), counted: false },
    ]
}

fn pass(variant: pass::Variant) -> anyhow::Result<Box<dyn Bench>> {
    Ok(Box::new(Chunked::new(pass::label_of(&variant), pass::Pass::new(variant)?)))
}

fn stages() -> anyhow::Result<Box<dyn Bench>> {
    Ok(Box::new(Stages::new(pass::STAGES, pass::Pass::new(pass::HIT_SOFTWARE)?)))
}

fn label(name: &'static str, what: &'static str, published_ns: f64, published_what: &str) -> Label {
    let published = Published {
        value: published_ns,
        unit: Unit::Ns,
        statistic: Statistic::Mean,
        what: format!("V100 on Graviton4: {published_what}"),
    };
    Label { name, engine: ENGINE, what, published: vec![published], rate: None }
}
