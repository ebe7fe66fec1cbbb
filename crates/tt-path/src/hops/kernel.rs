//! Questions to the kernel about next hops.

use std::io::Error;
use std::net::IpAddr;

use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage};
use netlink_packet_route::route::{RouteAttribute, RouteFlags, RouteMessage, RouteType};
use netlink_packet_route::rule::RuleMessage;
use tt_model::IpFamily;

use super::facts::{Link, Neighbour, Route, are_standard, bits, code, standard_rule};
use super::judge::{Census, Target, judge, judge_kind};
use super::message::{LinkQuestion, Message};
use super::refusal::Refusal;
use super::socket::{Failure, Questions};

/// Sources that are remembered.
const SOURCES_MAX: usize = 64;

const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
const ENETUNREACH: i32 = 101;
const EHOSTUNREACH: i32 = 113;

/// What was asked of a family's rules and routes; `None` until it is needed again.
#[derive(Debug, Default)]
struct Tables {
    are_rules_standard: Option<bool>,
    census: Option<Census>,
    /// Addresses of the host from which packets leave.
    sources: Vec<IpAddr>,
}

/// The kernel's routing, as questions. It keeps rules and a census of the routes until they are forgotten.
#[derive(Debug)]
pub(crate) struct Kernel {
    questions: Questions,
    tables: [Tables; 2],
}

impl Kernel {
    pub(crate) fn open() -> Result<Self, Error> {
        Ok(Self { questions: Questions::open()?, tables: Default::default() })
    }

    pub(crate) fn forget_rules(&mut self, family: IpFamily) {
        self.tables[family as usize].are_rules_standard = None;
    }

    /// Takes a new census before the next decision. One that is too large is kept: it takes long.
    pub(crate) fn forget_routes(&mut self, family: IpFamily) {
        let tables = &mut self.tables[family as usize];
        tables.census = tables.census.take().filter(Census::is_too_large);
        tables.sources.clear();
    }

    /// Takes every census again, the large ones too.
    pub(crate) fn forget_all(&mut self) {
        self.tables = Default::default();
    }

    /// Decides where packets from `source` to `destination` leave.
    pub(crate) fn target(
        &mut self,
        source: IpAddr,
        destination: IpAddr,
        interfaces: &[u32],
    ) -> Result<Target, Refusal> {
        let family = IpFamily::of(destination);
        if IpFamily::of(source) != family {
            return Err(Refusal::Family);
        }
        if is_link_local(destination) || is_link_local(source) {
            return Err(Refusal::LinkLocal);
        }
        let target = self.ask(source, destination, interfaces);
        if target != Err(Refusal::Changing) {
            return target;
        }
        // The route is newer than the census.
        self.forget_routes(family);
        self.ask(source, destination, interfaces)
    }

    fn ask(&mut self, source: IpAddr, destination: IpAddr, interfaces: &[u32]) -> Result<Target, Refusal> {
        let family = IpFamily::of(destination);
        self.take_tables(family).map_err(|_| Refusal::Unknown)?;
        if self.tables[family as usize].are_rules_standard != Some(true) {
            return Err(Refusal::Rules);
        }
        self.check_source(source)?;
        let answer = self.lookup(Some(source), destination, RouteFlags::empty())?;
        judge_kind(answer.kind)?;
        let matched = self.lookup(Some(source), destination, RouteFlags::FibMatch)?;
        let census = self.tables[family as usize].census.as_ref().ok_or(Refusal::Unknown)?;
        judge(destination, &answer, &matched, census, interfaces)
    }

    /// Refuses a source that is not the host's, for which the kernel's error is that of a missing route.
    fn check_source(&mut self, source: IpAddr) -> Result<(), Refusal> {
        let family = IpFamily::of(source);
        if self.tables[family as usize].sources.contains(&source) {
            return Ok(());
        }
        let found = self.lookup(None, source, RouteFlags::empty()).and_then(|route| judge_kind(route.kind));
        if found != Err(Refusal::Local) {
            return Err(Refusal::Source);
        }
        let sources = &mut self.tables[family as usize].sources;
        if sources.len() < SOURCES_MAX {
            sources.push(source);
        }
        Ok(())
    }

    /// Reads rules and routes that are not known.
    fn take_tables(&mut self, family: IpFamily) -> Result<(), Failure> {
        let tables = &mut self.tables[family as usize];
        if tables.are_rules_standard.is_none() {
            let mut question = RuleMessage::default();
            question.header.family = code(family);
            let rules = self.questions.dump(&Message::GetRule(question), Vec::new, |rules, message| {
                if let Message::NewRule(rule) = message {
                    rules.push(standard_rule(&rule));
                }
            })?;
            tables.are_rules_standard = Some(are_standard(family, &rules));
        }
        if tables.census.is_none() {
            let mut question = RouteMessage::default();
            question.header.address_family = code(family);
            let question = Message::GetRoute(question);
            let census = self.questions.dump(&question, Census::default, |census, message| {
                if let Message::NewRoute(message) = message
                    && let Some(route) = Route::read(&message)
                {
                    census.add(&route);
                }
            })?;
            tables.census = Some(census);
        }
        Ok(())
    }

    fn lookup(&mut self, source: Option<IpAddr>, destination: IpAddr, flags: RouteFlags) -> Result<Route, Refusal> {
        match self.get_route(source, destination, flags) {
            Ok(Message::NewRoute(message)) => Route::read(&message).ok_or(Refusal::Unknown),
            Ok(_) => Err(Refusal::Unknown),
            // No route, `unreachable`, `prohibit`, `blackhole`.
            Err(Failure::Os(ENETUNREACH | EHOSTUNREACH | EACCES | EINVAL)) => Err(Refusal::Unreachable),
            Err(Failure::Os(_) | Failure::Malformed) => Err(Refusal::Unknown),
        }
    }

    fn get_route(
        &mut self,
        source: Option<IpAddr>,
        destination: IpAddr,
        flags: RouteFlags,
    ) -> Result<Message, Failure> {
        let family = IpFamily::of(destination);
        let mut question = RouteMessage::default();
        question.header.address_family = code(family);
        question.header.flags = flags;
        question.header.destination_prefix_length = bits(family);
        question.attributes.push(RouteAttribute::Destination(destination.into()));
        if let Some(source) = source {
            question.header.source_prefix_length = bits(family);
            question.attributes.push(RouteAttribute::Source(source.into()));
        }
        self.questions.get(Message::GetRoute(question))
    }

    /// Reads an interface; `None` if there is none with this index.
    pub(crate) fn link(&mut self, ifindex: u32) -> Result<Option<Link>, Failure> {
        match self.questions.get(Message::GetLink(LinkQuestion::Index(ifindex))) {
            Ok(Message::NewLink(message)) => Ok(Some(Link::read(&message))),
            Ok(_) => Err(Failure::Malformed),
            Err(Failure::Os(ENODEV)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads an entry of the neighbour table; `None` if there is none.
    pub(crate) fn neighbour(&mut self, ifindex: u32, address: IpAddr) -> Result<Option<Neighbour>, Failure> {
        let question = neighbour_message(ifindex, address);
        match self.questions.get(Message::GetNeighbour(question)) {
            Ok(Message::NewNeighbour(message)) => match Neighbour::read(&message) {
                Some((_, found, neighbour)) if found == address => Ok(Some(neighbour)),
                Some(_) | None => Err(Failure::Malformed),
            },
            Ok(_) => Err(Failure::Malformed),
            Err(Failure::Os(ENOENT | ENODEV)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Says that an entry is in use (`NTF_USE`): the kernel confirms a stale one.
    pub(crate) fn use_neighbour(&mut self, ifindex: u32, address: IpAddr) -> Result<(), Failure> {
        let mut command = neighbour_message(ifindex, address);
        command.header.flags = NeighbourFlags::Use;
        self.questions.command(Message::NewNeighbour(command))
    }
}

fn neighbour_message(ifindex: u32, address: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = code(IpFamily::of(address));
    message.header.ifindex = ifindex;
    message.header.kind = RouteType::Unspec;
    message.attributes.push(NeighbourAttribute::Destination(match address {
        IpAddr::V4(address) => NeighbourAddress::Inet(address),
        IpAddr::V6(address) => NeighbourAddress::Inet6(address),
    }));
    message
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}
