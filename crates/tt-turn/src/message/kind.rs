//! Method and class: the 14 bits of the message type (RFC 8489 section 5, figure 3).

/// The method of a message. The numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Method {
    /// Binding, RFC 8489.
    Binding = 0x001,
    /// Allocate, RFC 8656 section 7.
    Allocate = 0x003,
    /// Refresh, RFC 8656 section 8.
    Refresh = 0x004,
    /// Send, RFC 8656 section 11.1; an indication only.
    Send = 0x006,
    /// Data, RFC 8656 section 11.3; an indication that only the server sends.
    Data = 0x007,
    /// CreatePermission, RFC 8656 section 10.
    CreatePermission = 0x008,
    /// ChannelBind, RFC 8656 section 12.
    ChannelBind = 0x009,
}

/// The class of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Class {
    /// A request, which gets a response.
    Request = 0b00,
    /// An indication, which gets none.
    Indication = 0b01,
    /// A success response.
    Success = 0b10,
    /// An error response.
    Error = 0b11,
}

impl Method {
    #[inline]
    pub(crate) fn from_type_bits(bits: u16) -> Result<Self, u16> {
        let number = (bits & 0x000F) | ((bits >> 1) & 0x0070) | ((bits >> 2) & 0x0F80);
        match number {
            0x001 => Ok(Self::Binding),
            0x003 => Ok(Self::Allocate),
            0x004 => Ok(Self::Refresh),
            0x006 => Ok(Self::Send),
            0x007 => Ok(Self::Data),
            0x008 => Ok(Self::CreatePermission),
            0x009 => Ok(Self::ChannelBind),
            other => Err(other),
        }
    }
}

impl Class {
    #[inline]
    pub(crate) fn from_type_bits(bits: u16) -> Self {
        match (bits >> 7 & 0b10) | (bits >> 4 & 0b01) {
            0b00 => Self::Request,
            0b01 => Self::Indication,
            0b10 => Self::Success,
            _ => Self::Error,
        }
    }
}

/// The message type's 14 bits.
#[inline]
pub(crate) const fn type_bits(method: Method, class: Class) -> u16 {
    let (m, c) = (method as u16, class as u16);
    (m & 0x000F) | ((m & 0x0070) << 1) | ((m & 0x0F80) << 2) | ((c & 0b01) << 4) | ((c & 0b10) << 7)
}
