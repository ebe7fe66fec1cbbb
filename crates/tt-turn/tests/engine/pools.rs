//! Pools that all users share: what one user takes, and what is left for another.

use std::net::SocketAddr;
use std::sync::Arc;

use tt_turn::config::{CHANNELS_GUARANTEED, Capacity, PERMISSIONS_GUARANTEED};
use tt_turn::event::EndReason;
use tt_turn::relay::{RelayAddress, RelayDemand, RelayId};
use tt_turn::shared::{Budget, Pools, Quotas, Shared};
use tt_turn::{RejectReason, Server};

use super::wire::{self, ALLOCATE, CHANNEL_BIND, CHANNEL_NUMBER, CREATE_PERMISSION, EVEN_PORT, LIFETIME, REFRESH};
use super::world::{self, UDP, World, addr};

const SIZE: u32 = 64;

fn capacity() -> Capacity {
    Capacity {
        allocations: SIZE,
        permissions: SIZE * (PERMISSIONS_GUARANTEED + 4),
        permissions_per_allocation: 256,
        channels: SIZE * (CHANNELS_GUARANTEED + 4),
        channels_per_allocation: 64,
        relays: 2 * SIZE,
    }
}

fn pools() -> Pools {
    Pools { allocations: SIZE, ports: SIZE, reservations: SIZE / 2, permissions: 4 * SIZE, channels: 4 * SIZE }
}

fn bound(id: u32) -> RelayAddress {
    let bound = SocketAddr::new([198, 41, 0, 9].into(), 50_000 + id as u16);
    RelayAddress { bound, external: bound }
}

fn add_relays(server: &mut Server, singles: u32) {
    (0..singles).for_each(|id| server.add_relay(RelayId(id), bound(id)).expect("a relay"));
    for id in (singles..2 * SIZE).step_by(2) {
        let pair = [id, id + 1].map(|id| (RelayId(id), bound(id)));
        server.add_relay_pair(pair[0], pair[1]).expect("a pair");
    }
}

fn shared(quotas: Quotas) -> Arc<Shared> {
    Arc::new(Shared::with_pools(quotas, SIZE, pools(), 7))
}

fn world_with(quotas: Quotas, singles: u32) -> World {
    let mut world = World::sharing(world::config(), capacity(), world::secrets(1), &shared(quotas), 0);
    add_relays(&mut world.server, singles);
    world
}

fn client(number: u16) -> SocketAddr {
    SocketAddr::new([192, 0, 2, 1].into(), number)
}

fn peer(number: u16) -> SocketAddr {
    SocketAddr::new([8, 8, (number / 200) as u8, 1 + (number % 200) as u8].into(), 53)
}

fn allocate(world: &mut World, user: &str, number: u16) -> u16 {
    world.ask_as(user, client(number), ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]).code()
}

fn reserve(world: &mut World, user: &str, number: u16) -> u16 {
    let attrs = [(wire::TRANSPORT, UDP.to_vec()), (EVEN_PORT, vec![0x80])];
    world.ask_as(user, client(number), ALLOCATE, &attrs).code()
}

fn end(world: &mut World, user: &str, number: u16) -> u16 {
    world.ask_as(user, client(number), REFRESH, &[(LIFETIME, vec![0; 4])]).code()
}

fn permit(world: &mut World, user: &str, number: u16, peers: u16) -> u16 {
    let attr = world.peer_attr(peer(peers));
    world.ask_as(user, client(number), CREATE_PERMISSION, &[attr]).code()
}

/// Binds a channel to a port of one peer, which needs one permission.
fn bind(world: &mut World, user: &str, number: u16, channel: u16) -> u16 {
    let attr = world.peer_attr(SocketAddr::new([8, 9, 0, 1].into(), 1_000 + channel));
    let value = [(0x4000 + channel).to_be_bytes(), [0, 0]].concat();
    world.ask_as(user, client(number), CHANNEL_BIND, &[(CHANNEL_NUMBER, value), attr]).code()
}

#[test]
fn allocations_of_one_user_leave_the_first_ten_to_another() {
    let mut world = world_with(world::quotas(), 2 * SIZE);
    let taken = (1..=SIZE as u16).filter(|number| allocate(&mut world, "alice", *number) == 0).count();
    assert_eq!(taken, 48, "three quarters");
    assert_eq!(world.server.counters().rejected(RejectReason::AllocationsShare), 16);
    for number in 101..=110 {
        assert_eq!(allocate(&mut world, "bob", number), 0, "{number}");
    }
    assert_eq!(allocate(&mut world, "alice", 49), 486);
}

#[test]
fn resting_relays_are_the_last_users() {
    let mut world = world_with(world::quotas(), 2 * SIZE);
    let mut retired = Vec::new();
    let made = (1..=200).filter(|number| {
        let made = allocate(&mut world, "alice", *number) == 0;
        assert!(!made || end(&mut world, "alice", *number) == 0);
        retired.extend(std::iter::from_fn(|| world.server.poll_relay()).map(|RelayDemand::Retire(id)| id));
        made
    });
    assert_eq!(made.count(), 48, "three quarters of the ports rest");
    assert_eq!((world.server.allocations(), world.server.counters().rejected(RejectReason::PortsShare)), (0, 152));
    for number in 101..=110 {
        assert_eq!(allocate(&mut world, "bob", number), 0, "{number}");
    }
    // One rest ends with a registration, one with the end of the socket.
    world.server.add_relay(retired[0], bound(retired[0].0)).expect("a relay");
    world.server.end_rest(retired[1]);
    world.server.end_rest(retired[1]);
    for (number, code) in [(301, 486), (302, 486)] {
        assert_eq!(allocate(&mut world, "alice", number), code, "bob has some of the rest now");
    }
    (101..=110).for_each(|number| assert_eq!(end(&mut world, "bob", number), 0));
    while let Some(RelayDemand::Retire(id)) = world.server.poll_relay() {
        world.server.end_rest(id);
    }
    let made = (301..=310).filter(|number| allocate(&mut world, "alice", *number) == 0).count();
    assert_eq!(made, 2);
}

#[test]
fn permissions_and_channels_of_one_user_leave_the_first_ten_to_another() {
    let mut world = world_with(world::quotas(), 2 * SIZE);
    assert_eq!(allocate(&mut world, "bob", 999), 0);
    let mut channels = 0;
    for number in 1..=8 {
        assert_eq!(allocate(&mut world, "alice", number), 0);
        channels += (0..64).filter(|channel| bind(&mut world, "alice", number, *channel) == 0).count();
        for peers in 0..256 {
            let code = permit(&mut world, "alice", number, 1_000 + peers);
            assert!(matches!(code, 0 | 508), "{code}");
        }
    }
    let rejected = |world: &World, reason| world.server.counters().rejected(reason) > 0;
    assert!(rejected(&world, RejectReason::PermissionsShare) && rejected(&world, RejectReason::ChannelsShare));
    assert_eq!(channels, 8 * 8 + 192, "the guaranteed ones and three quarters of the pool");
    assert_eq!(world.server.permissions(), 8 * 16 + 192);
    // Bob has no more than is guaranteed: all of it, and something of the rest.
    for channel in 0..10 {
        assert_eq!(bind(&mut world, "bob", 999, channel), 0, "{channel}");
    }
    for peers in 0..20 {
        assert_eq!(permit(&mut world, "bob", 999, 2_000 + peers), 0, "{peers}");
    }
    // Every new allocation has its guaranteed ones, alice's too.
    for (user, number) in [("alice", 20), ("bob", 21)] {
        assert_eq!(allocate(&mut world, user, number), 0);
        assert!((0..8).all(|channel| bind(&mut world, user, number, channel) == 0));
        assert!((0..8).all(|peers| permit(&mut world, user, number, 3_000 + peers) == 0));
    }
    assert_eq!(bind(&mut world, "alice", 20, 8), 508);
    // What ends goes back to the pool.
    (1..=8).for_each(|number| assert_eq!(end(&mut world, "alice", number), 0));
    assert!((8..20).all(|channel| bind(&mut world, "alice", 20, channel) == 0));
    world.run_s(601);
    assert_eq!((world.server.permissions(), world.server.channels()), (0, 0));
    let mut again = 0;
    for number in 31..=38 {
        assert_eq!(allocate(&mut world, "alice", number), 0);
        again += (0..64).filter(|channel| bind(&mut world, "alice", number, *channel) == 0).count();
    }
    assert_eq!(again, channels, "everything came back");
}

#[test]
fn a_request_for_several_permissions_beyond_the_share_installs_none() {
    let mut world = world_with(world::quotas(), 2 * SIZE);
    let pool = pools().permissions as u16;
    assert_eq!(allocate(&mut world, "alice", 1), 0);
    assert!((0..200).all(|peers| permit(&mut world, "alice", 1, peers) == 0));
    let before = world.server.permissions();
    assert_eq!(before, 200);
    let attrs: Vec<_> = (1_000..1_020).map(|peers| world.peer_attr(peer(peers))).collect();
    assert_eq!(world.ask_as("alice", client(1), CREATE_PERMISSION, &attrs).code(), 508);
    assert_eq!(world.server.permissions(), before);
    assert_eq!(16 + pool * 3 / 4, 208);
    assert_eq!(world.ask_as("alice", client(1), CREATE_PERMISSION, &attrs[..8]).code(), 0, "the rest of the share");
    assert_eq!(permit(&mut world, "alice", 1, 2_000), 508);
}

#[test]
fn reservations_of_one_user_leave_the_first_ten_to_another() {
    let mut world = world_with(world::quotas(), 0);
    let made = (1..=64).filter(|number| reserve(&mut world, "alice", *number) == 0).count();
    assert_eq!(made, 24, "three quarters of 32, and of 64 ports");
    for number in 101..=105 {
        assert_eq!(reserve(&mut world, "bob", number), 0, "{number}");
    }
    // Unclaimed reservations end, and their ports rest.
    world.run_s(61);
    assert_eq!(reserve(&mut world, "alice", 65), 486);
}

#[test]
fn churn_has_a_rate() {
    let rate = Budget { per_second: 5, burst: 20 };
    let mut world = world_with(Quotas { user_allocation_rate: rate, ..world::quotas() }, 2 * SIZE);
    let churn = |world: &mut World, user: &str| {
        let made = (1..=60).filter(|number| {
            let made = allocate(world, user, *number) == 0;
            if made {
                assert_eq!(end(world, user, *number), 0);
            }
            while let Some(RelayDemand::Retire(id)) = world.server.poll_relay() {
                world.server.add_relay(id, bound(id.0)).expect("a relay");
            }
            made
        });
        made.count()
    };
    assert_eq!((churn(&mut world, "alice"), churn(&mut world, "alice")), (20, 0));
    assert_eq!(world.server.counters().rejected(RejectReason::AllocationRate), 100);
    assert_eq!(churn(&mut world, "bob"), 20, "another user's");
    world.pass_s(2);
    assert_eq!(churn(&mut world, "alice"), 10);
}

/// The pools are those of the process: a user has one share over all workers, and a panic returns what a worker held.
#[test]
fn workers_share_the_pools() {
    let shared = shared(world::quotas());
    let mut worlds = [0, 1].map(|worker| {
        let mut world = World::sharing(world::config(), capacity(), world::secrets(1), &shared, worker);
        add_relays(&mut world.server, 2 * SIZE);
        world
    });
    let made = (1..=60).filter(|number| allocate(&mut worlds[usize::from(number % 2)], "alice", *number) == 0).count();
    assert_eq!(made, 48);
    for number in 101..=110 {
        assert_eq!(allocate(&mut worlds[0], "bob", number), 0);
        assert_eq!(end(&mut worlds[0], "bob", number), 0);
    }
    for world in &mut worlds {
        world.server.end_all(world.now, EndReason::Shutdown);
    }
    assert_eq!(shared.allocations(), 0);
    let mut fresh = World::sharing(world::config(), capacity(), world::secrets(1), &shared, 0);
    add_relays(&mut fresh.server, 2 * SIZE);
    let made = (1..=64).filter(|number| allocate(&mut fresh, "alice", *number) == 0).count();
    assert_eq!(made, 48, "nothing was left behind");
    assert_eq!(allocate(&mut fresh, "bob", addr("192.0.2.1:200").port()), 0);
}

#[test]
fn without_a_share_one_user_gets_everything() {
    let mut world = world_with(Quotas { user_share_percent: 100, ..world::quotas() }, 2 * SIZE);
    assert!((1..=SIZE as u16).all(|number| allocate(&mut world, "alice", number) == 0));
    assert_eq!(allocate(&mut world, "bob", 99), 508);
    assert_eq!(world.server.counters().rejected(RejectReason::Allocations), 1);
}
