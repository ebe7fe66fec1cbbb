//! Refresh, and requests without an allocation (RFC 8656 sections 5 and 8).

use tt_turn::codec::{Class, Method, attribute};

use super::check::{Check, Finding, Over, Unmet, expect};
use super::judge::Judge;
use super::probe::{Probe, channel_data, expect_mismatch};
use super::signature::{Signature, compose};
use crate::client::Attribute;

const S: &str = "RFC 8656 section 8.2";
const S5: &str = "RFC 8656 section 5";
const MISMATCH: u16 = 437;
const PEER: ([u8; 4], u16) = ([192, 0, 2, 1], 9);

pub(super) const CHECKS: &[Check] = &[
    Check::must("R067", S5, "a Refresh without an allocation gets 437", refresh_nothing),
    Check::must("R067", S5, "a CreatePermission without an allocation gets 437", permit_nothing),
    Check::must("R067", S5, "a ChannelBind without an allocation gets 437", bind_nothing),
    Check::must("A60", S5, "a Send without an allocation gets no response", send_nothing),
    Check::must("A60", S5, "ChannelData without an allocation get no response", channel_nothing).over(Over::Udp),
    Check::must("R095", S, "a Refresh is answered with LIFETIME", lifetime),
    Check::must("R095", S, "a Refresh grants a lifetime between default and maximum", longer),
    Check::must("R093", S, "a Refresh with lifetime zero ends the allocation", end),
    Check::must("R093", S, "its success response has lifetime zero", end_lifetime).should(),
    Check::must("A58", S, "the same Refresh to zero again gets a success response, 437 or none", end_again)
        .over(Over::Udp),
    Check::must("R022", "RFC 8489 section 14", "of two LIFETIME the first counts", first_lifetime),
    Check::must("A12", "RFC 8489 section 14", "of two USERNAME the first counts", first_username),
    Check::must("R098", "RFC 8656 section 9", "the five-tuple of an ended allocation may allocate again", again),
];

fn peer() -> Attribute<'static> {
    Attribute::Address(attribute::XOR_PEER_ADDRESS, PEER.into())
}

fn refresh_nothing(judge: &Judge<'_>) -> Finding {
    judge.client()?.request(Method::Refresh, &[])?.expect_code(MISMATCH)
}

fn permit_nothing(judge: &Judge<'_>) -> Finding {
    judge.client()?.request(Method::CreatePermission, &[peer()])?.expect_code(MISMATCH)
}

fn bind_nothing(judge: &Judge<'_>) -> Finding {
    judge.client()?.bind(0x4000, PEER.into())?.expect_code(MISMATCH)
}

fn send_nothing(judge: &Judge<'_>) -> Finding {
    let data = [peer(), Attribute::Bytes(attribute::DATA, b"nowhere")];
    let message = compose(Method::Send, Class::Indication, &data, &Signature::default())?;
    judge.stranger()?.expect_silence(&message)
}

fn channel_nothing(judge: &Judge<'_>) -> Finding {
    judge.stranger()?.expect_silence(&channel_data(0x4000, b"nowhere!", true))
}

fn refreshed(probe: &mut Probe, lifetime_s: u32) -> Result<Option<u32>, Unmet> {
    let value = lifetime_s.to_be_bytes();
    let reply = probe.request(Method::Refresh, &[Attribute::Bytes(attribute::LIFETIME, &value)])?;
    reply.expect_success()?;
    Ok(reply.lifetime_s())
}

fn lifetime(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    let reply = probe.request(Method::Refresh, &[])?;
    reply.expect_success()?;
    let lifetime_s = reply.lifetime_s();
    expect(lifetime_s.is_some_and(|s| s > 0), "a LIFETIME above zero", format!("{lifetime_s:?}"))
}

fn longer(judge: &Judge<'_>) -> Finding {
    let (mut probe, reply) = judge.allocated_with(&[])?;
    let default_s = reply.lifetime_s().ok_or_else(|| Unmet::not_judged("Allocate has no LIFETIME"))?;
    let maximum_s = refreshed(&mut probe, u32::MAX)?.unwrap_or(0);
    if maximum_s <= default_s + 1 {
        return Err(Unmet::not_judged(format!("default and maximum are {default_s} and {maximum_s} s")));
    }
    let granted_s = refreshed(&mut probe, default_s + 1)?;
    expect(granted_s == Some(default_s + 1), format!("{} s", default_s + 1), format!("{granted_s:?}"))
}

fn end(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    probe.end()?.expect_success()?;
    probe.expect_no_allocation()
}

fn end_lifetime(judge: &Judge<'_>) -> Finding {
    let lifetime_s = judge.allocated()?.0.end()?.lifetime_s();
    expect(lifetime_s == Some(0), "a LIFETIME of 0", format!("{lifetime_s:?}"))
}

fn end_again(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    let zero = [Attribute::Bytes(attribute::LIFETIME, &[0; 4])];
    let message = compose(Method::Refresh, Class::Request, &zero, &probe.signature())?;
    probe.exchange(&message)?.expect_success()?;
    match probe.exchange(&message) {
        Ok(reply) if reply.is_success() => Ok(()),
        reply => expect_mismatch(reply),
    }
}

fn first_lifetime(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    let values = [900_u32.to_be_bytes(), 0_u32.to_be_bytes()];
    let attributes = values.each_ref().map(|value| Attribute::Bytes(attribute::LIFETIME, value));
    probe.request(Method::Refresh, &attributes)?.expect_success()?;
    probe.expect_allocation()
}

/// The first name is the user's, the second no user's.
fn first_username(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.client()?;
    let signature = Signature { name: Some(b"no-such-user".to_vec()), ..probe.signature() };
    let own = probe.signature().name.unwrap_or_default();
    let names = [super::probe::UDP, Attribute::Bytes(attribute::USERNAME, &own)];
    probe.signed(Method::Allocate, &names, &signature)?.expect_success()
}

fn again(judge: &Judge<'_>) -> Finding {
    let (mut probe, _) = judge.allocated()?;
    probe.end()?.expect_success()?;
    let reply = probe.allocate(&[])?;
    // A server may let a five-tuple rest.
    expect(reply.is_success(), "a success response", reply.text())
}
