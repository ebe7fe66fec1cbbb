//! Faults put in on purpose, one for each invariant: they show that each can fail.

use tt_model::FiveTuple;

use super::clients::{Ask, Proof};
use super::credentials::Credential;
use super::host::Done;
use super::wire::{self, Reading};

/// A fault of a server that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// (1) Relays to peers that have no permission.
    IgnoresPermission,
    /// (2) Gives one relayed address to two allocations.
    SharedAddress,
    /// (3) Forgets to count a drop.
    LosesCount,
    /// (4) Answers some requests twice.
    AnswersTwice,
    /// (5) Makes an allocation for somebody who has shown no credentials.
    TrustsAnybody,
    /// (6) Changes a byte of a payload.
    LeaksPayload,
    /// (7) Ends allocations three seconds late.
    LateTimers,
    /// (8) Keeps permissions and channels in its tables when they have expired.
    HoardsPermissions,
    /// (9) Answers 400 where it should answer 401.
    WrongCode,
    /// (10) Loses every answer to one client.
    LosesAnswers,
}

impl Planted {
    /// Every one, with the number of the invariant that it breaks.
    pub const ALL: [(Self, u8); 10] = [
        (Self::IgnoresPermission, 1),
        (Self::SharedAddress, 2),
        (Self::LosesCount, 3),
        (Self::AnswersTwice, 4),
        (Self::TrustsAnybody, 5),
        (Self::LeaksPayload, 6),
        (Self::LateTimers, 7),
        (Self::HoardsPermissions, 8),
        (Self::WrongCode, 9),
        (Self::LosesAnswers, 10),
    ];
}

/// An Allocate of the first user on a five-tuple that asked for one without credentials.
pub(super) fn forge(flow: &FiveTuple, bytes: &[u8], mut ask: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let request =
        Reading::of(bytes).filter(|request| request.method == wire::ALLOCATE && !request.has(wire::INTEGRITY))?;
    let credential = Credential::lasting(0);
    let allocate = Ask::allocate(flow.client.is_ipv4());
    let refusal = ask(&allocate.write(request.tid, &Proof::legacy(&credential, &[])))?;
    let nonce = Reading::of(&refusal)?.get(wire::NONCE)?.to_vec();
    Some(allocate.write(request.tid, &Proof::legacy(&credential, &nonce)))
}

/// What a server with the fault does in place of `done`; `count` goes up with each datagram.
pub(super) fn mar(planted: Planted, count: u64, (flow, bytes): (&FiveTuple, &[u8]), mut done: Vec<Done>) -> Vec<Done> {
    match (planted, &mut done[0]) {
        (Planted::IgnoresPermission, Done::Drop(tt_turn::DropReason::NoPermission)) => {
            let forged = Reading::of(bytes).and_then(|send| {
                let (peer, payload) = (send.address(wire::PEER_ADDRESS)?, send.get(wire::DATA)?.to_vec());
                Some(Done::ToPeer { relay: (0, 0), peer, payload })
            });
            done = forged.map_or(done, |forged| vec![forged]);
        }
        (Planted::AnswersTwice, Done::Reply { .. }) if count.is_multiple_of(16) => done.push(done[0].clone()),
        (Planted::LeaksPayload, Done::ToPeer { payload, .. }) if count.is_multiple_of(4) => {
            if let Some(last) = payload.last_mut() {
                *last ^= 1;
            }
        }
        (Planted::LeaksPayload, Done::ToClient { client, .. }) if count.is_multiple_of(4) => {
            client.client.set_port(flow.client.port());
        }
        (Planted::WrongCode, Done::Reply { bytes, .. }) if count.is_multiple_of(16) => {
            if let Some(at) = bytes.windows(6).position(|at| at == [0, 9, 0, 0x10, 0, 0] || at == [0, 9, 0, 4, 0, 0]) {
                bytes[at + 7] = 0;
            }
        }
        _ => {}
    }
    done
}
