//! Opens and closes paths, and sets next hops.

use std::error::Error;

use aya::maps::{Array, HashMap, Map, MapData, MapError};

use crate::PathError;
use crate::capacity::Capacity;
use crate::error::os_error;
use crate::layout::Hop;
use crate::spec::{Key, PathKey, PathSpec};

const ENOENT: i32 = 2;
/// Slots of the table of next hops.
pub(crate) const HOPS: u32 = 256;

/// Where packets leave: Ethernet addresses, interface and MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Ethernet address of the gateway or neighbour.
    pub to: [u8; 6],
    /// Ethernet address of the interface.
    pub from: [u8; 6],
    /// Index of the interface.
    pub ifindex: u32,
    /// Largest IP packet, in bytes.
    pub mtu: u16,
}

impl NextHop {
    /// Returns the value of the kernel's table.
    #[must_use]
    pub fn to_value(self) -> [u8; 24] {
        let Self { to, from, ifindex, mtu } = self;
        zerocopy::transmute!(Hop { dst: to, src: from, ifindex, mtu, valid: 1, pad: [0; 5] })
    }
}

/// The kernel's tables of paths and next hops, for one thread. A call is one or two system calls of about 3 us.
pub struct Writer {
    flows4: HashMap<MapData, [u8; 16], [u8; 64]>,
    flows6: HashMap<MapData, [u8; 40], [u8; 64]>,
    hops: Array<MapData, [u8; 24]>,
    capacity: Capacity,
}

/// Descriptors of the tables, from which writers are made.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) flows4: MapData,
    pub(crate) flows6: MapData,
    pub(crate) hops: MapData,
}

impl Writer {
    pub(crate) fn new(tables: &Tables, capacity: Capacity) -> Result<Self, PathError> {
        let copy = |map: &MapData, name| -> Result<MapData, PathError> {
            let fd = std::os::fd::AsFd::as_fd(map.fd()).try_clone_to_owned();
            let fd = fd.map_err(|error| PathError::Map { map: name, os: error.raw_os_error() })?;
            MapData::from_fd(fd).map_err(|error| map_error(name, &error))
        };
        let flows4 = HashMap::try_from(Map::HashMap(copy(&tables.flows4, "flows4")?));
        let flows6 = HashMap::try_from(Map::HashMap(copy(&tables.flows6, "flows6")?));
        let hops = Array::try_from(Map::Array(copy(&tables.hops, "hops")?));
        Ok(Self {
            flows4: flows4.map_err(|error| map_error("flows4", &error))?,
            flows6: flows6.map_err(|error| map_error("flows6", &error))?,
            hops: hops.map_err(|error| map_error("hops", &error))?,
            capacity,
        })
    }

    /// Opens a path, or replaces its lease as a whole: a packet sees the old one or the new one.
    ///
    /// # Errors
    /// `Family` if the addresses are not of one family; `Index` if path, meter or hop have no entry; `Map` if the table
    /// is full or the kernel denies access.
    pub fn open(&mut self, spec: &PathSpec) -> Result<(), PathError> {
        if spec.path >= self.capacity.paths {
            return Err(PathError::Index { map: "tallies", index: spec.path });
        }
        if let Some(index) = spec.meter.filter(|meter| *meter >= self.capacity.meters) {
            return Err(PathError::Index { map: "meters", index });
        }
        if u32::from(spec.hop) >= HOPS {
            return Err(PathError::Index { map: "hops", index: spec.hop.into() });
        }
        let value = spec.to_value()?;
        match spec.key.to_key()? {
            Key::V4(key) => self.flows4.insert(key, value, 0).map_err(|error| map_error("flows4", &error)),
            Key::V6(key) => self.flows6.insert(key, value, 0).map_err(|error| map_error("flows6", &error)),
        }
    }

    /// Closes a path, and returns whether it was open. Packets that the program has already looked up may still leave;
    /// none does one RCU period later, some milliseconds.
    ///
    /// # Errors
    /// `Family` if the addresses are not of one family; `Map` if the kernel denies access.
    pub fn close(&mut self, key: &PathKey) -> Result<bool, PathError> {
        let (removed, map) = match key.to_key()? {
            Key::V4(key) => (self.flows4.remove(&key), "flows4"),
            Key::V6(key) => (self.flows6.remove(&key), "flows6"),
        };
        match removed.map_err(|error| map_error(map, &error)) {
            Ok(()) => Ok(true),
            Err(error) if error.os_error() == Some(ENOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sets a next hop, or marks it as unresolved: its packets go to the sockets.
    ///
    /// # Errors
    /// `Index` if `index` is 256 or more; `Map` if the kernel denies access.
    pub fn set_hop(&mut self, index: u16, hop: Option<NextHop>) -> Result<(), PathError> {
        if u32::from(index) >= HOPS {
            return Err(PathError::Index { map: "hops", index: index.into() });
        }
        let value = hop.map_or([0; _], NextHop::to_value);
        self.hops.set(index.into(), value, 0).map_err(|error| map_error("hops", &error))
    }
}

pub(crate) fn map_error(map: &'static str, error: &MapError) -> PathError {
    PathError::Map { map, os: os_error(error as &(dyn Error + 'static)) }
}
