//! A stream whose reading end is unpacked.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Unpacker;

/// Bytes that one `read(2)` asks for while something may be packed. They become at most 1,032 times as many.
const PACKED_BYTES: usize = 16 << 10;

/// What a venue sends, unpacked; what the client sends, as it is.
#[derive(Debug)]
pub(crate) struct Unpacking<S> {
    stream: S,
    unpacker: Unpacker,
    packed: Box<[u8]>,
    unpacked: Vec<u8>,
    read: usize,
}

impl<S> Unpacking<S> {
    pub(crate) fn new(stream: S, unpacker: Unpacker) -> Self {
        Self { stream, unpacker, packed: vec![0; PACKED_BYTES].into(), unpacked: Vec::new(), read: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unpacking<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let left = &this.unpacked[this.read..];
            if !left.is_empty() {
                let len = left.len().min(buffer.remaining());
                buffer.put_slice(&left[..len]);
                this.read += len;
                return Poll::Ready(Ok(()));
            }
            if this.unpacker.is_plain() {
                return Pin::new(&mut this.stream).poll_read(cx, buffer);
            }
            let mut packed = ReadBuf::new(&mut this.packed);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut packed))?;
            if packed.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.unpacked.clear();
            this.read = 0;
            let taken = this.unpacker.take(packed.filled(), &mut this.unpacked);
            taken.map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unpacking<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
