//! Peer policies of several realms in one engine: each allocation goes by that of its realm.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use tt_turn::config::{Config, RealmConfig, RealmId};
use tt_turn::credential::Secrets;
use tt_turn::policy::{PeerPolicy, PeerRange, RealmPolicies};
use tt_turn::relay::{RelayAddress, RelayId};
use tt_turn::shared::{Pools, RealmQuotas, Shared};

use super::wire::{self, ALLOCATE, CHANNEL_BIND, CREATE_PERMISSION, TRANSPORT, Writer};
use super::world::{self, Out, UDP, World, addr};

const REALMS: [&str; 4] = [world::REALM, "a.example", "b.example", "c.example"];

fn id(realm: usize) -> RealmId {
    realm.checked_sub(1).map_or(RealmId::DEFAULT, RealmId::further)
}

fn client(realm: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, realm as u8 + 1], 1))
}

fn start() -> World {
    let realm = |name: &&str| RealmConfig {
        name: (*name).into(),
        origins: vec![format!("https://{name}")],
        listeners: Vec::new(),
    };
    let config = Config { realms: REALMS[1..].iter().map(realm).collect(), ..world::config() };
    let mut secrets = Secrets::new([1; 32], [77; 32]);
    for (realm, name) in REALMS.into_iter().enumerate() {
        secrets.add_user_of(id(realm), b"ann", name, b"password");
    }
    let quotas = (world::quotas(), &[RealmQuotas::default(); 3][..]);
    let shared = Arc::new(Shared::with_realms(quotas, world::capacity().allocations, Pools::UNLIMITED, 42));
    let mut world = World::sharing(config, world::capacity(), secrets, &shared, 0);
    for relay in 0..REALMS.len() as u32 {
        let bound = SocketAddr::new([198, 41, 0, 9].into(), 50_000 + relay as u16);
        world.server.add_relay(RelayId(relay), RelayAddress { bound, external: bound }).expect("a relay");
    }
    for realm in 0..REALMS.len() {
        assert_eq!(ask(&mut world, realm, ALLOCATE, |writer| writer.attr(TRANSPORT, &UDP)), 0);
    }
    world
}

/// A signed request of the user of a realm on the flow of its client.
fn ask(world: &mut World, realm: usize, method: u16, with: impl Fn(Writer) -> Writer) -> u16 {
    let (nonce, tid) = (world.nonce(client(realm)), world.tid());
    let request = with(Writer::new(method, 0, tid)).attr(wire::USERNAME, b"ann");
    let request = request.attr(wire::REALM, REALMS[realm].as_bytes()).attr(wire::NONCE, &nonce);
    let key = wire::md5_key("ann", REALMS[realm], "password");
    world.client(client(realm), &request.integrity(&key).0).reply().code()
}

fn permit(world: &mut World, realm: usize, peer: SocketAddr) -> u16 {
    ask(world, realm, CREATE_PERMISSION, |writer| writer.address(wire::PEER_ADDRESS, peer))
}

fn bind(world: &mut World, realm: usize, number: u16, peer: SocketAddr) -> u16 {
    let number = [number.to_be_bytes(), [0, 0]].concat();
    ask(world, realm, CHANNEL_BIND, |writer| {
        writer.attr(wire::CHANNEL_NUMBER, &number).address(wire::PEER_ADDRESS, peer)
    })
}

const IPS: usize = 5;
const PORTS: [u16; 2] = [7, 9];

fn peer(ip: usize, port: usize) -> SocketAddr {
    SocketAddr::from(([8, 8, 8, ip as u8 + 1], PORTS[port]))
}

/// What a realm denies of a peer's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denied {
    Nothing,
    FirstPort,
    All,
}

/// What each realm denies of each address; without a row a realm has the policy of the default realm.
type Rows = Vec<Option<[Denied; IPS]>>;

fn policy(row: &[Denied; IPS]) -> PeerPolicy {
    let mut policy = PeerPolicy::new();
    for (ip, denied) in row.iter().enumerate() {
        let ports = match denied {
            Denied::Nothing => continue,
            Denied::FirstPort => format!(":{}", PORTS[0]),
            Denied::All => String::new(),
        };
        policy.deny(format!("{}/32{ports}", peer(ip, 0).ip()).parse::<PeerRange>().expect("a range"));
    }
    policy
}

#[derive(Clone, Debug)]
enum Step {
    Replace([Denied; IPS], Rows),
    Permit { realm: usize, ip: usize },
    Bind { realm: usize, ip: usize, port: usize },
    Relay { realm: usize, ip: usize, port: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let denied = prop_oneof![3 => Just(Denied::Nothing), 1 => Just(Denied::FirstPort), 1 => Just(Denied::All)];
    let row = proptest::array::uniform5(denied);
    let rows = vec(proptest::option::of(row.clone()), REALMS.len() - 1);
    let (realm, ip, port) = (0..REALMS.len(), 0..IPS, 0..PORTS.len());
    let step = prop_oneof![
        1 => (row, rows).prop_map(|(default, rows)| Step::Replace(default, rows)),
        4 => (realm.clone(), ip.clone()).prop_map(|(realm, ip)| Step::Permit { realm, ip }),
        2 => (realm.clone(), ip.clone(), port.clone()).prop_map(|(realm, ip, port)| Step::Bind { realm, ip, port }),
        4 => (realm, ip, port).prop_map(|(realm, ip, port)| Step::Relay { realm, ip, port }),
    ];
    vec(step, 1..80)
}

/// The model: what is denied, permitted and bound, by realm.
struct Model {
    denied: [[Denied; IPS]; REALMS.len()],
    permitted: BTreeSet<(usize, usize)>,
    bound: BTreeSet<(usize, usize, usize)>,
}

impl Model {
    fn is_denied(&self, realm: usize, ip: usize, port: usize) -> bool {
        match self.denied[realm][ip] {
            Denied::Nothing => false,
            Denied::FirstPort => port == 0,
            Denied::All => true,
        }
    }
}

fn run(steps: &[Step]) {
    let mut world = start();
    let relays: Vec<RelayId> = (0..REALMS.len())
        .map(|realm| {
            assert_eq!(permit(&mut world, realm, addr("9.9.9.9:9")), 0);
            let Out::ToPeer { relay, .. } = world.send(client(realm), addr("9.9.9.9:9"), b"x") else {
                panic!("denied")
            };
            relay
        })
        .collect();
    let mut model = Model { denied: [[Denied::Nothing; IPS]; 4], permitted: BTreeSet::new(), bound: BTreeSet::new() };
    for step in steps {
        let hits = |world: &World| world.server.policy_hits().map(|(_, hits)| hits).sum::<u64>();
        let before = hits(&world);
        match step {
            Step::Replace(default, rows) => {
                let mut further = RealmPolicies::default();
                model.denied = [*default; REALMS.len()];
                for (index, row) in rows.iter().enumerate() {
                    let Some(row) = row else { continue };
                    model.denied[index + 1] = *row;
                    // Realms with one row share a policy.
                    let same = |other: &usize| rows[*other] == Some(*row);
                    if (0..index).any(|other| same(&other)) {
                        continue;
                    }
                    let realms: Vec<_> = (index..rows.len()).filter(same).map(RealmId::further).collect();
                    further.set(&realms, policy(row));
                }
                world.server.replace_policies(policy(default), Arc::new(further));
                let denied = model.denied;
                model.permitted.retain(|(realm, ip)| denied[*realm][*ip] != Denied::All);
                assert!(hits(&world) <= before);
            }
            Step::Permit { realm, ip } => {
                let is_denied = model.denied[*realm][*ip] == Denied::All;
                assert_eq!(permit(&mut world, *realm, peer(*ip, 1)), if is_denied { 403 } else { 0 }, "{step:?}");
                assert_eq!(hits(&world) - before, u64::from(is_denied));
                if is_denied {
                    let rule = world.server.poll_rejected().and_then(|rejected| rejected.rule).expect("a rule");
                    assert_eq!(rule.to_string(), format!("deny {}/32", peer(*ip, 0).ip()));
                } else {
                    model.permitted.insert((*realm, *ip));
                }
            }
            Step::Bind { realm, ip, port } => {
                let is_denied = model.is_denied(*realm, *ip, *port);
                let code = bind(&mut world, *realm, number(*ip, *port), peer(*ip, *port));
                assert_eq!(code, if is_denied { 403 } else { 0 }, "{step:?}");
                assert_eq!(hits(&world) - before, u64::from(is_denied));
                if is_denied {
                    assert!(world.server.poll_rejected().is_some_and(|rejected| rejected.rule.is_some()));
                } else {
                    model.permitted.insert((*realm, *ip));
                    model.bound.insert((*realm, *ip, *port));
                }
            }
            Step::Relay { realm, ip, port } => relay(&mut world, &model, (*realm, *ip, *port), relays[*realm]),
        }
    }
}

fn number(ip: usize, port: usize) -> u16 {
    0x4000 + (ip * PORTS.len() + port) as u16
}

/// A Send indication, ChannelData and a packet of the peer pass if they are permitted and not denied.
fn relay(world: &mut World, model: &Model, (realm, ip, port): (usize, usize, usize), relay: RelayId) {
    let (is_permitted, is_denied) = (model.permitted.contains(&(realm, ip)), model.is_denied(realm, ip, port));
    let passes = is_permitted && !is_denied;
    let at = peer(ip, port);
    assert_eq!(matches!(world.send(client(realm), at, b"x"), Out::ToPeer { .. }), passes, "{realm} {at}");
    // A channel whose permission has ended relays again once nothing denies its peer.
    let is_bound = model.bound.contains(&(realm, ip, port));
    let passes = passes || is_bound && !is_denied;
    assert_eq!(matches!(world.peer(relay, at, b"x"), Out::ToClient { .. }), passes, "{realm} {at}");
    let out = world.channel_data(client(realm), number(ip, port), b"x");
    assert_eq!(matches!(out, Out::ToPeer { .. }), is_bound && !is_denied, "{realm} {at}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_allocation_goes_by_the_policy_of_its_realm(steps in steps()) {
        run(&steps);
    }
}

#[test]
fn a_denial_of_one_realm_ends_its_permission_and_no_other() {
    let mut world = start();
    let at = addr("8.8.8.8:9");
    for realm in 0..REALMS.len() {
        assert_eq!((permit(&mut world, realm, at), bind(&mut world, realm, 0x4000, at)), (0, 0));
    }
    let permissions = |world: &World| {
        let mut live: Vec<_> =
            world.server.live_allocations().map(|live| (live.realm.to_owned(), live.permissions)).collect();
        live.sort();
        live.into_iter().map(|(_, permissions)| permissions).collect::<Vec<_>>()
    };
    assert_eq!(permissions(&world), [1; 4]);
    let mut denying = PeerPolicy::new();
    denying.deny("8.8.8.8".parse::<PeerRange>().expect("a range"));
    let mut further = RealmPolicies::default();
    further.set(&[RealmId::further(1)], denying);
    world.server.replace_policies(PeerPolicy::new(), Arc::new(further.clone()));
    assert_eq!(permissions(&world), [1, 0, 1, 1], "a.example, b.example, c.example, example.org");
    let passes =
        |world: &mut World, realm| matches!(world.channel_data(client(realm), 0x4000, b"x"), Out::ToPeer { .. });
    assert_eq!([0, 1, 2, 3].map(|realm| passes(&mut world, realm)), [true, true, false, true]);
    // A replaced configuration keeps them, and a policy for all ends them.
    world.server.replace_config(world::config());
    assert_eq!([1, 2].map(|realm| permit(&mut world, realm, at)), [0, 403]);
    world.server.replace_policy(PeerPolicy::new());
    assert_eq!([1, 2].map(|realm| permit(&mut world, realm, at)), [0, 0]);
}
