//! The messages of rtnetlink that are sent and read. The library knows every attribute of every message; of links, which
//! have most of them, eight are read here, so that a program does not carry the others.

use netlink_packet_core::{
    DecodeError, Emitable as _, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable, NlasIterator, Parseable as _,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::LinkFlags;
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::rule::RuleMessage;

// Types of messages of `linux/rtnetlink.h`.
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWNEIGH: u16 = 28;
const RTM_DELNEIGH: u16 = 29;
const RTM_GETNEIGH: u16 = 30;
const RTM_NEWRULE: u16 = 32;
const RTM_DELRULE: u16 = 33;
const RTM_GETRULE: u16 = 34;

// Attributes of links of `linux/if_link.h`.
pub(crate) const IFLA_ADDRESS: u16 = 1;
pub(crate) const IFLA_IFNAME: u16 = 3;
pub(crate) const IFLA_MTU: u16 = 4;
pub(crate) const IFLA_LINK: u16 = 5;
pub(crate) const IFLA_LINKINFO: u16 = 18;
pub(crate) const IFLA_AF_SPEC: u16 = 26;
const IFLA_EXT_MASK: u16 = 29;
pub(crate) const IFLA_LINK_NETNSID: u16 = 37;
pub(crate) const IFLA_XDP: u16 = 43;
pub(crate) const IFLA_PARENT_DEV_NAME: u16 = 56;
pub(crate) const IFLA_PARENT_DEV_BUS_NAME: u16 = 57;
/// The kernel leaves statistics out.
const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;

/// Length of `struct ifinfomsg` and of the header of an attribute, in bytes.
const LINK_HEADER_LEN: usize = 16;
const ATTRIBUTE_HEADER_LEN: usize = 4;

/// A message.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    GetLink(LinkQuestion),
    NewLink(LinkMessage),
    DelLink(LinkMessage),
    NewAddress,
    /// With its family.
    DelAddress(AddressFamily),
    GetRoute(RouteMessage),
    NewRoute(RouteMessage),
    DelRoute(RouteMessage),
    GetNeighbour(NeighbourMessage),
    NewNeighbour(NeighbourMessage),
    DelNeighbour(NeighbourMessage),
    GetRule(RuleMessage),
    NewRule(RuleMessage),
    DelRule(RuleMessage),
}

/// Which links are asked for.
#[derive(Clone, Debug)]
pub(crate) enum LinkQuestion {
    All,
    Index(u32),
    Name(String),
}

impl LinkQuestion {
    fn bytes(&self) -> Vec<u8> {
        let index = if let Self::Index(index) = self { *index } else { 0 };
        let mut bytes = vec![0; LINK_HEADER_LEN];
        bytes[4..8].copy_from_slice(&index.to_ne_bytes());
        if let Self::Name(name) = self {
            add(&mut bytes, IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
        }
        add(&mut bytes, IFLA_EXT_MASK, &RTEXT_FILTER_SKIP_STATS.to_ne_bytes());
        bytes
    }
}

fn add(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = (ATTRIBUTE_HEADER_LEN + value.len()) as u16;
    bytes.extend([len.to_ne_bytes(), kind.to_ne_bytes()].as_flattened());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(ATTRIBUTE_HEADER_LEN), 0);
}

/// A link as the kernel describes it.
#[derive(Clone, Debug)]
pub(crate) struct LinkMessage {
    pub(crate) index: u32,
    /// Its hardware, as `ARPHRD_..` of `linux/if_arp.h`.
    pub(crate) hardware: u16,
    pub(crate) flags: LinkFlags,
    attributes: Vec<u8>,
}

impl LinkMessage {
    /// Reads `struct ifinfomsg` and keeps the attributes.
    ///
    /// # Errors
    /// The message or an attribute is too short.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Some((header, attributes)) = bytes.split_first_chunk::<LINK_HEADER_LEN>() else {
            return Err(DecodeError::buffer_too_small(bytes.len(), LINK_HEADER_LEN));
        };
        NlasIterator::new(attributes).try_for_each(|attribute| attribute.map(drop))?;
        let [_, _, hardware @ .., _, _, _, _, _, _, _, _, _, _, _, _] = header;
        let (index, flags) = (word(&header[4..8]), word(&header[8..12]));
        Ok(Self {
            index: index.unwrap_or_default(),
            hardware: u16::from_ne_bytes(*hardware),
            flags: LinkFlags::from_bits_retain(flags.unwrap_or_default()),
            attributes: attributes.to_vec(),
        })
    }

    /// Returns the value of an attribute.
    pub(crate) fn attribute(&self, kind: u16) -> Option<&[u8]> {
        attribute(&self.attributes, kind)
    }

    /// Returns an attribute that is a number.
    pub(crate) fn number(&self, kind: u16) -> Option<u32> {
        self.attribute(kind).and_then(word)
    }

    /// Returns an attribute that is a text.
    pub(crate) fn text(&self, kind: u16) -> Option<&str> {
        self.attribute(kind).and_then(text)
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> Option<&str> {
        self.text(IFLA_IFNAME)
    }

    /// Returns its Ethernet address.
    pub(crate) fn mac(&self) -> Option<[u8; 6]> {
        self.attribute(IFLA_ADDRESS)?.try_into().ok()
    }
}

/// Returns the value of the attribute `kind` among `attributes`.
pub(crate) fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    let found = NlasIterator::new(attributes).map_while(Result::ok).find(|attribute| attribute.kind() == kind)?;
    let end = ATTRIBUTE_HEADER_LEN + found.value_length();
    found.into_inner().get(ATTRIBUTE_HEADER_LEN..end)
}

/// Reads a number of 32 bits.
pub(crate) fn word(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_ne_bytes)
}

/// Reads a text that ends in a zero.
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().map(|text| text.trim_end_matches('\0'))
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        Ok(match header.message_type {
            RTM_NEWLINK => Self::NewLink(LinkMessage::parse(payload)?),
            RTM_DELLINK => Self::DelLink(LinkMessage::parse(payload)?),
            RTM_NEWADDR => Self::NewAddress,
            RTM_DELADDR => {
                Self::DelAddress(payload.first().copied().ok_or(DecodeError::buffer_too_small(0, 1))?.into())
            }
            RTM_NEWROUTE => Self::NewRoute(RouteMessage::parse(payload)?),
            RTM_DELROUTE => Self::DelRoute(RouteMessage::parse(payload)?),
            RTM_NEWNEIGH => Self::NewNeighbour(NeighbourMessage::parse(payload)?),
            RTM_DELNEIGH => Self::DelNeighbour(NeighbourMessage::parse(payload)?),
            RTM_NEWRULE => Self::NewRule(RuleMessage::parse(payload)?),
            RTM_DELRULE => Self::DelRule(RuleMessage::parse(payload)?),
            other => return Err(format!("message type {other}").into()),
        })
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        match self {
            Self::GetLink(_) => RTM_GETLINK,
            Self::NewLink(_) => RTM_NEWLINK,
            Self::DelLink(_) => RTM_DELLINK,
            Self::NewAddress => RTM_NEWADDR,
            Self::DelAddress(_) => RTM_DELADDR,
            Self::GetRoute(_) => RTM_GETROUTE,
            Self::NewRoute(_) => RTM_NEWROUTE,
            Self::DelRoute(_) => RTM_DELROUTE,
            Self::GetNeighbour(_) => RTM_GETNEIGH,
            Self::NewNeighbour(_) => RTM_NEWNEIGH,
            Self::DelNeighbour(_) => RTM_DELNEIGH,
            Self::GetRule(_) => RTM_GETRULE,
            Self::NewRule(_) => RTM_NEWRULE,
            Self::DelRule(_) => RTM_DELRULE,
        }
    }

    fn buffer_len(&self) -> usize {
        match self {
            Self::GetLink(question) => question.bytes().len(),
            Self::GetRoute(message) | Self::NewRoute(message) | Self::DelRoute(message) => message.buffer_len(),
            Self::GetNeighbour(message) | Self::NewNeighbour(message) | Self::DelNeighbour(message) => {
                message.buffer_len()
            }
            Self::GetRule(message) | Self::NewRule(message) | Self::DelRule(message) => message.buffer_len(),
            // Only read.
            Self::NewLink(_) | Self::DelLink(_) | Self::NewAddress | Self::DelAddress(_) => 0,
        }
    }

    fn serialize(&self, buffer: &mut [u8]) {
        match self {
            Self::GetLink(question) => buffer.copy_from_slice(&question.bytes()),
            Self::GetRoute(message) | Self::NewRoute(message) | Self::DelRoute(message) => message.emit(buffer),
            Self::GetNeighbour(message) | Self::NewNeighbour(message) | Self::DelNeighbour(message) => {
                message.emit(buffer);
            }
            Self::GetRule(message) | Self::NewRule(message) | Self::DelRule(message) => message.emit(buffer),
            Self::NewLink(_) | Self::DelLink(_) | Self::NewAddress | Self::DelAddress(_) => {}
        }
    }
}
