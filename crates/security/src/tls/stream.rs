//! A connection, encrypted or on the loopback without it.
//!
//! An encrypted one ends when the certificate of the other end does, or is no longer believed ([`Lease`]): reading it fails then.
//!
//! What was written to an encrypted one may lie in its buffers until it is flushed: who writes flushes before it waits.

use super::lease::Lease;
use crate::certificate::Certificate;
use crate::name::SiteName;
use rustls_pki_types::CertificateDer;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_rustls::TlsStream;

/// What reading says then.
const ENDED: &str = "the certificate of the other end has ended, or is no longer believed";

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// In plain text.
    Plain(TcpStream),
    /// Encrypted.
    Tls(Box<TlsStream<TcpStream>>, Lease),
}

/// The half of a connection that is read.
#[derive(Debug)]
pub enum Reader {
    /// In plain text.
    Plain(OwnedReadHalf),
    /// Encrypted.
    Tls(ReadHalf<TlsStream<TcpStream>>, Lease),
}

/// The half of a connection that is written.
#[derive(Debug)]
pub enum Writer {
    /// In plain text.
    Plain(OwnedWriteHalf),
    /// Encrypted.
    Tls(WriteHalf<TlsStream<TcpStream>>),
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Stream {
        Stream::Plain(stream)
    }
}

impl Stream {
    /// An encrypted one whose other end is who it is for as long as `lease` lets it.
    pub(super) fn encrypted(stream: impl Into<TlsStream<TcpStream>>, lease: impl FnOnce(Vec<CertificateDer<'static>>) -> Lease) -> Stream {
        let stream = stream.into();
        let lease = match stream.get_ref().1.peer_certificates() {
            Some(chain) => lease(chain.to_vec()),
            None => Lease::unlimited(),
        };
        Stream::Tls(Box::new(stream), lease)
    }

    /// Its two halves.
    pub fn into_split(self) -> (Reader, Writer) {
        match self {
            Stream::Plain(stream) => {
                let (reader, writer) = stream.into_split();
                (Reader::Plain(reader), Writer::Plain(writer))
            }
            Stream::Tls(stream, lease) => {
                let (reader, writer) = tokio::io::split(*stream);
                (Reader::Tls(reader, lease), Writer::Tls(writer))
            }
        }
    }

    /// Writes what the system takes at once. An encrypted connection takes nothing so: it is written to by [`AsyncWrite`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.try_write(bytes),
            Stream::Tls(..) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// The certificate that the other end has shown and proved to be its own, if any.
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(stream, _) => stream.get_ref().1.peer_certificates()?.first(),
        }
    }

    /// What that certificate says.
    pub fn peer(&self) -> Option<Certificate> {
        Certificate::read(self.peer_certificate()?).ok()
    }

    /// True if the other end has the certificate of the site `name`: one that bears just this name, not a pattern for many, and may serve.
    pub fn is_of(&self, name: &SiteName) -> bool {
        self.peer().is_some_and(|certificate| certificate.serves && certificate.sites().contains(name))
    }

    /// The protocol that both ends have agreed on, if they named any.
    pub fn protocol(&self) -> Option<&[u8]> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(stream, _) => stream.get_ref().1.alpn_protocol(),
        }
    }

    /// The address of the other end.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Stream::Plain(stream) => stream.peer_addr(),
            Stream::Tls(stream, _) => stream.get_ref().0.peer_addr(),
        }
    }
}

/// Reads and writes by whichever variant it is.
macro_rules! either {
    (read $name:ident) => {
        impl AsyncRead for $name {
            fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $name::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
                    $name::Tls(stream, lease) => {
                        if lease.has_ended(cx) {
                            return Poll::Ready(Err(io::Error::other(ENDED)));
                        }
                        match ready!(Pin::new(stream).poll_read(cx, buffer)) {
                            // The other end has closed its socket without taking leave, as many do. What came before was whole, message by message.
                            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                            read => Poll::Ready(read),
                        }
                    }
                }
            }
        }
    };
    (write $name:ident) => {
        impl AsyncWrite for $name {
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    $name::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
                    $name::Tls(stream, ..) => Pin::new(stream).poll_write(cx, bytes),
                }
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $name::Plain(stream) => Pin::new(stream).poll_flush(cx),
                    $name::Tls(stream, ..) => Pin::new(stream).poll_flush(cx),
                }
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $name::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
                    $name::Tls(stream, ..) => Pin::new(stream).poll_shutdown(cx),
                }
            }
        }
    };
}

either!(read Stream);
either!(read Reader);
either!(write Stream);
either!(write Writer);
