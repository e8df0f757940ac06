//! What two sites say on a TCP connection: a hello from either side, then frames, each bounded and checked.
//!
//! ```text
//!   hello   magic "RHUMBSIT" · version u16 · cluster u64 · region u16 · shard u16 · life u64 · heard u64   42 bytes
//!           with a CRC-32 of all that
//!   frame   length u32 · CRC-32 u32 of the body · body = kind u8 · data                  length counts the body
//! ```
//!
//! All numbers are little-endian. Decoding is a pure function over bytes: it returns what is there, asks for more, or
//! says what is wrong; it allocates nothing and panics on no input. A connection that breaks a rule is closed, nothing
//! else suffers. `life` is the time a site's process began at, so that a connection left over from its life before can be
//! told from one of now; `heard` is the last life of the other side that this one has heard, see [`crate::lives`].

use crate::lives::Life;
use rhumb_core::SiteId;
use rhumb_core::actor::MESSAGE_BYTES_MAX;
use thiserror::Error;

/// The longest body of a frame: the kind and a message. A longer one is a sign of garbage, and the bound of what a peer can make us keep.
pub const FRAME_BYTES_MAX: usize = 1 + MESSAGE_BYTES_MAX;
/// The version of hello, frames and everything in them. Sites of different versions refuse each other.
pub const VERSION: u16 = 9;
/// The length of a hello.
pub const HELLO_BYTES: usize = 42;
/// The length of what precedes a frame's data: length, check sum, kind.
pub const HEADER_BYTES: usize = 9;

const MAGIC: [u8; 8] = *b"RHUMBSIT";

/// What a site says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The fingerprint of its cluster.
    pub cluster: u64,
    /// Who it is.
    pub site: SiteId,
    /// Its life.
    pub life: Life,
    /// The last life that it has heard of whom it says this to; zero if none.
    pub heard: Life,
}

/// What a site does for its peers, each by an actor of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Commits transactions.
    Commit,
    /// Keeps quotas.
    Quotas,
    /// Runs one-shot transactions by epochs.
    Catenae,
    /// Commits transactions in quorums that follow load and distance.
    Quad,
}

impl Service {
    /// Its name, in metrics and in the names of threads.
    pub fn name(self) -> &'static str {
        match self {
            Service::Commit => "commit",
            Service::Quotas => "quotas",
            Service::Catenae => "catenae",
            Service::Quad => "quad",
        }
    }

    /// Its actor's thread, for people.
    pub fn actor(self) -> &'static str {
        match self {
            Service::Commit => "the thread of the site's transactions",
            Service::Quotas => "the thread of the site's quotas",
            Service::Catenae => "the thread of the site's epochs",
            Service::Quad => "the thread of the site's quorums",
        }
    }
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Asks for a pong with the same data.
    Ping,
    /// Answers a ping.
    Pong,
    /// Carries a message of the protocol of a service.
    Message(Service),
}

impl Kind {
    /// Its number on the wire.
    fn code(self) -> u8 {
        match self {
            Kind::Ping => 1,
            Kind::Pong => 2,
            Kind::Message(Service::Commit) => 3,
            Kind::Message(Service::Quotas) => 4,
            Kind::Message(Service::Catenae) => 5,
            Kind::Message(Service::Quad) => 6,
        }
    }

    fn of(code: u8) -> Option<Kind> {
        let services = [Service::Commit, Service::Quotas, Service::Catenae, Service::Quad].map(Kind::Message);
        [Kind::Ping, Kind::Pong].into_iter().chain(services).find(|kind| kind.code() == code)
    }
}

/// A frame, borrowed from the bytes it was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it is for.
    pub kind: Kind,
    /// What it carries.
    pub data: &'a [u8],
}

/// What is wrong with bytes that a peer sent.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FrameError {
    #[error("it does not speak Rhumb's protocol between sites")]
    Magic,
    #[error("it speaks version {0} of the protocol between sites, this site version {VERSION}; run the same release everywhere")]
    Version(u16),
    #[error("its hello is damaged")]
    Hello,
    #[error("a frame of {0} bytes; expected 1 to {FRAME_BYTES_MAX}")]
    Length(usize),
    #[error("a frame's check sum does not match its bytes")]
    Checksum,
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    #[error("a message that cannot be decoded: {0}")]
    Message(String),
    #[error("a message for {0:?}, which this site does not run")]
    Service(Service),
}

impl Hello {
    /// The bytes of this hello.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..18].copy_from_slice(&self.cluster.to_le_bytes());
        bytes[18..20].copy_from_slice(&self.site.region.0.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.site.shard.to_le_bytes());
        bytes[22..30].copy_from_slice(&self.life.to_le_bytes());
        bytes[30..38].copy_from_slice(&self.heard.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..38]);
        bytes[38..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a hello. Magic and version come first and keep their place in all versions.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Hello, FrameError> {
        let mut rest = Reader(bytes);
        if rest.take::<8>() != MAGIC {
            return Err(FrameError::Magic);
        }
        let version = u16::from_le_bytes(rest.take());
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let cluster = u64::from_le_bytes(rest.take());
        let site = SiteId::new(u16::from_le_bytes(rest.take()), u16::from_le_bytes(rest.take()));
        let (life, heard) = (u64::from_le_bytes(rest.take()), u64::from_le_bytes(rest.take()));
        if u32::from_le_bytes(rest.take()) != crc32fast::hash(&bytes[..38]) {
            return Err(FrameError::Hello);
        }
        Ok(Hello { cluster, site, life, heard })
    }
}

/// Takes fixed-size pieces off a slice that is known to be long enough.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (piece, rest) = self.0.split_first_chunk().expect("the caller checked the length");
        self.0 = rest;
        *piece
    }
}

/// Tells from the first bytes of a connection whether they can be a hello at all, so that a client of another protocol
/// is turned away at once and not when a hello's worth of bytes has come.
pub fn may_be_hello(bytes: &[u8]) -> bool {
    bytes.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic)
}

/// A frame whose data `write` appends, as bytes to be sent. The data must fit [`FRAME_BYTES_MAX`].
pub fn encode<E>(kind: Kind, write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
    let mut header = Vec::with_capacity(256);
    header.resize(HEADER_BYTES, 0);
    let mut bytes = write(header)?;
    bytes[HEADER_BYTES - 1] = kind.code();
    let body = &bytes[HEADER_BYTES - 1..];
    let (length, checksum) = (body.len() as u32, crc32fast::hash(body));
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// The first frame in `bytes` and the number of bytes it takes up; `None` if it is not all there yet.
pub fn decode(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length == 0 || length > FRAME_BYTES_MAX {
        return Err(FrameError::Length(length));
    }
    let Some((checksum, rest)) = rest.split_first_chunk() else { return Ok(None) };
    let Some(body) = rest.get(..length) else { return Ok(None) };
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return Err(FrameError::Checksum);
    }
    let kind = Kind::of(body[0]).ok_or(FrameError::Kind(body[0]))?;
    Ok(Some((Frame { kind, data: &body[1..] }, HEADER_BYTES - 1 + length)))
}
