use super::*;

const DESTINATION: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 200, 1, 2));

/// The route to 10.200.0.0/16 by a gateway on interface 13.
fn matched() -> Route {
    Route {
        family: IpFamily::V4,
        kind: RouteType::Unicast,
        prefix: Prefix { address: [10, 200, 0, 0].into(), len: 16 },
        table: 254,
        metric: 5,
        tos: 0,
        ifindex: Some(13),
        gateway: Some([10, 92, 0, 1].into()),
        mtu: None,
        refusal: None,
        is_cloned: false,
    }
}

/// The kernel's answer for the address.
fn answer() -> Route {
    Route { prefix: Prefix { address: DESTINATION, len: 32 }, metric: 0, is_cloned: true, ..matched() }
}

fn census(routes: &[Route]) -> Census {
    let mut census = Census::default();
    routes.iter().for_each(|route| census.add(route));
    census
}

fn judged(answer: &Route, matched: &Route) -> Result<Target, Refusal> {
    judge(DESTINATION, answer, matched, &census(std::slice::from_ref(matched)), &[11, 13])
}

const TARGET: Target = Target {
    ifindex: 13,
    neighbour: IpAddr::V4(std::net::Ipv4Addr::new(10, 92, 0, 1)),
    family: IpFamily::V4,
    mtu: None,
};

#[test]
fn gateway_interface_and_mtu_are_those_of_the_answer() {
    assert_eq!(judged(&answer(), &matched()), Ok(TARGET));
    let on_link = Route { gateway: None, ..answer() };
    assert_eq!(judged(&on_link, &matched()), Ok(Target { neighbour: DESTINATION, ..TARGET }));
    // A learned path MTU and a redirect are in the answer only.
    let learned = Route { mtu: Some(1300), gateway: Some([10, 92, 0, 9].into()), ..answer() };
    let expected = Target { mtu: Some(1300), neighbour: [10, 92, 0, 9].into(), ..TARGET };
    assert_eq!(judged(&learned, &matched()), Ok(expected));
}

#[test]
fn each_uncertain_answer_is_refused_by_name() {
    let with_kind = |kind| judged(&Route { kind, ..answer() }, &Route { kind, ..matched() });
    for (kind, refusal) in [
        (RouteType::Local, Refusal::Local),
        (RouteType::Broadcast, Refusal::NotUnicast),
        (RouteType::Multicast, Refusal::NotUnicast),
        (RouteType::Anycast, Refusal::NotUnicast),
        (RouteType::BlackHole, Refusal::Unreachable),
        (RouteType::Unreachable, Refusal::Unreachable),
        (RouteType::Prohibit, Refusal::Unreachable),
        (RouteType::Throw, Refusal::Unreachable),
        (RouteType::Nat, Refusal::Unknown),
        (RouteType::Unspec, Refusal::Unknown),
    ] {
        assert_eq!(with_kind(kind), Err(refusal), "{kind:?}");
    }
    for refusal in [Refusal::Multipath, Refusal::NexthopObject, Refusal::Encapsulated] {
        let refused = Some(refusal);
        assert_eq!(judged(&Route { refusal: refused, ..answer() }, &matched()), Err(refusal));
        assert_eq!(judged(&answer(), &Route { refusal: refused, ..matched() }), Err(refusal));
    }
    assert_eq!(judged(&answer(), &Route { table: 100, ..matched() }), Err(Refusal::Rules));
    assert_eq!(judged(&Route { ifindex: None, ..answer() }, &matched()), Err(Refusal::Unknown));
    assert_eq!(judged(&Route { ifindex: Some(11), ..answer() }, &matched()), Err(Refusal::Unknown));
    let elsewhere = Some(12);
    let (answer, matched) = (Route { ifindex: elsewhere, ..answer() }, Route { ifindex: elsewhere, ..matched() });
    assert_eq!(judged(&answer, &matched), Err(Refusal::NotAttached));
}

#[test]
fn a_second_route_of_the_same_prefix_and_metric_is_ambiguous() {
    let judged = |others: &[Route]| judge(DESTINATION, &answer(), &matched(), &census(others), &[13]);
    let second = Route { gateway: Some([10, 92, 0, 7].into()), ..matched() };
    assert_eq!(judged(&[matched(), second.clone()]), Err(Refusal::Ambiguous));
    // Other metrics, prefixes and tables, and entries for single destinations, are no alternatives.
    let others = [
        Route { metric: 6, ..second.clone() },
        Route { prefix: Prefix { len: 15, ..second.prefix }, ..second.clone() },
        Route { table: 100, ..second.clone() },
        Route { is_cloned: true, ..second.clone() },
    ];
    assert_eq!(judged(&[&[matched()][..], &others].concat()), Ok(TARGET));
    assert_eq!(judged(&[matched(), Route { tos: 8, metric: 6, ..second.clone() }]), Err(Refusal::Ambiguous));
    assert_eq!(judged(&[]), Err(Refusal::Changing));
}

#[test]
fn a_large_table_is_not_compared() {
    let route = |at: usize| Route { metric: u32::try_from(at).unwrap() + 5, ..matched() };
    let routes: Vec<Route> = (0..ROUTES_MAX).map(route).collect();
    assert_eq!(judge(DESTINATION, &answer(), &matched(), &census(&routes), &[13]), Ok(TARGET));
    let more = [routes, vec![route(ROUTES_MAX)]].concat();
    assert_eq!(judge(DESTINATION, &answer(), &matched(), &census(&more), &[13]), Err(Refusal::TooManyRoutes));
}
