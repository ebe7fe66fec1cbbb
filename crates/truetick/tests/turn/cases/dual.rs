//! Allocations with an address of each family, over UDP: cases A46 and A59, requirements R082 to R084, R090 and R094.

use std::net::SocketAddr;

use super::stage::{Caller, Stage, UDP};
use crate::server::Server;
use crate::wire::{
    self, ADDITIONAL_FAMILY, ADDRESS_ERROR_CODE, ADDRESS_FAMILY, ALLOCATE, LIFETIME, MAPPED_ADDRESS, REFRESH,
    RELAYED_ADDRESS, Reading, TRANSPORT,
};

const V4: [u8; 4] = [1, 0, 0, 0];
const V6: [u8; 4] = [2, 0, 0, 0];

fn allocate_both(caller: &mut Caller) -> Reading {
    let request = caller.request(ALLOCATE).attr(TRANSPORT, &UDP).attr(ADDITIONAL_FAMILY, &V6);
    caller.ask(request)
}

fn relayed(reply: &Reading) -> Vec<SocketAddr> {
    let each = reply.attrs.iter().filter(|(kind, _)| *kind == RELAYED_ADDRESS);
    let each = each.map(|attribute| Reading { attrs: vec![attribute.clone()], ..reply.clone() });
    each.filter_map(|alone| alone.address(RELAYED_ADDRESS)).collect()
}

fn refresh(caller: &mut Caller, family: [u8; 4], lifetime_s: u32) -> u16 {
    let request = caller.request(REFRESH).attr(LIFETIME, &lifetime_s.to_be_bytes());
    caller.ask(request.attr(ADDRESS_FAMILY, &family)).code()
}

#[test]
pub(super) fn rfc_r084_r090_r094_case_a59_both_families_and_then_one() {
    let stage = Stage::new();
    let mut caller = stage.caller();
    let reply = allocate_both(&mut caller);
    assert_eq!((reply.code(), reply.lifetime()), (0, Some(600)));
    assert_eq!(reply.address(MAPPED_ADDRESS), caller.socket.local_addr().ok());
    let [v4, v6] = relayed(&reply)[..] else { panic!("{reply:?}") };
    assert!(v4.is_ipv4() && v6.is_ipv6(), "{v4} {v6}");
    let peers = [stage.peer(), stage.peer_v6()];
    let both = caller.request(wire::CREATE_PERMISSION).address(wire::PEER_ADDRESS, peers[0].addr());
    assert_eq!(caller.ask(both.address(wire::PEER_ADDRESS, peers[1].addr())).code(), 0);
    for (peer, relayed) in peers.iter().zip([v4, v6]) {
        caller.send_to(peer.addr(), b"out");
        assert_eq!(peer.receive(), (b"out".to_vec(), relayed));
        peer.send(relayed, b"back");
        assert_eq!(Reading::of(&caller.receive()).get(wire::DATA), Some(&b"back"[..]));
    }
    assert_eq!(refresh(&mut caller, V4, 0), 0);
    assert_eq!((refresh(&mut caller, V4, 600), caller.permit(peers[0].addr())), (443, 443));
    caller.send_to(peers[1].addr(), b"the other family has lost nothing");
    assert_eq!(peers[1].receive(), (b"the other family has lost nothing".to_vec(), v6));
    assert_eq!((refresh(&mut caller, V6, 0), caller.refresh(600)), (0, 437));
    stage.probe();
}

#[test]
fn rfc_r082_r083_what_is_only_half_to_be_had() {
    let flags =
        ["--listen", "127.0.0.1:0", "--workers", "4", "--http", "127.0.0.1:0", "--allow-own-host", "127.0.0.0/8"];
    let stage = Stage::of(Server::start(&flags));
    let mut caller = stage.caller();
    let request = caller.request(ALLOCATE).attr(TRANSPORT, &UDP).attr(ADDITIONAL_FAMILY, &V4);
    assert_eq!(caller.ask(request).code(), 400);
    let reply = allocate_both(&mut caller);
    assert_eq!((reply.code(), reply.get(ADDRESS_ERROR_CODE)), (0, Some(&[2, 0, 4, 40][..])));
    assert!(matches!(relayed(&reply)[..], [SocketAddr::V4(_)]));
    stage.probe();
}
