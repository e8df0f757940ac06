//! What two sites say on a TCP connection: a hello from either side, then frames, each bounded and checked.
//!
//! ```text
//!   hello   magic "RHUMBSIT" · version u16 · cluster u64 · region u16 · shard u16 · life u64 · heard: life u64, 4 counts u64
//!           with a CRC-32 of all that                                                                               74 bytes
//!   frame   length u32 · CRC-32 u32 of the body · body = kind u8 · data                  length counts the body
//!   ping    number u64 · 4 counts u64                                                    the pong has the number alone
//! ```
//!
//! All numbers are little-endian. Decoding is a pure function over bytes: it returns what is there, asks for more, or
//! says what is wrong; it allocates nothing and panics on no input. A connection that breaks a rule is closed, nothing
//! else suffers. `life` is the time a site's process began at, so that a connection left over from its life before can be
//! told from one of now; `heard` is the last life of the other side that this one has heard, and how often its stores had synced; the counts
//! of a ping are those of its sender. See [`crate::lives`].

use crate::lives::{Counts, Life, Progress, STORES};
use rhumb_core::SiteId;
use rhumb_core::actor::MESSAGE_BYTES_MAX;
use thiserror::Error;

/// The longest body of a frame: the kind and a message. A longer one is a sign of garbage, and the bound of what a peer can make us keep.
pub const FRAME_BYTES_MAX: usize = 1 + MESSAGE_BYTES_MAX;
/// The version of hello, frames and everything in them. Sites of different versions refuse each other.
pub const VERSION: u16 = 10;
/// The length of a hello.
pub const HELLO_BYTES: usize = HEARD_AT + PROGRESS_BYTES + 4;
/// The length of what precedes a frame's data: length, check sum, kind.
pub const HEADER_BYTES: usize = 9;

/// The length of the data of a ping.
pub const PING_BYTES: usize = 8 + COUNTS_BYTES;

const MAGIC: [u8; 8] = *b"RHUMBSIT";
const HEARD_AT: usize = 30;
const COUNTS_BYTES: usize = 8 * STORES;
const PROGRESS_BYTES: usize = 8 + COUNTS_BYTES;

/// What a site says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The fingerprint of its cluster.
    pub cluster: u64,
    /// Who it is.
    pub site: SiteId,
    /// Its life.
    pub life: Life,
    /// The last life that it has heard of whom it says this to, and how far that had come; zero if none.
    pub heard: Progress,
}

/// What a ping says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// Its number, which the pong has too.
    pub number: u64,
    /// How often the stores of its sender have synced.
    pub counts: Counts,
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
    /// All of them.
    pub const ALL: [Service; 4] = [Service::Commit, Service::Quotas, Service::Catenae, Service::Quad];

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
    /// Asks for a pong with the same number, see [`Ping`].
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
        let services = Service::ALL.map(Kind::Message);
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
        let (data, end) = bytes.split_at_mut(HEARD_AT + PROGRESS_BYTES);
        put_numbers(&mut data[HEARD_AT..], std::iter::once(self.heard.life).chain(self.heard.counts));
        end.copy_from_slice(&crc32fast::hash(data).to_le_bytes());
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
        let life = rest.number();
        let heard = Progress { life: rest.number(), counts: std::array::from_fn(|_| rest.number()) };
        if u32::from_le_bytes(rest.take()) != crc32fast::hash(&bytes[..HEARD_AT + PROGRESS_BYTES]) {
            return Err(FrameError::Hello);
        }
        Ok(Hello { cluster, site, life, heard })
    }
}

impl Ping {
    /// The data of its frame.
    pub fn encode(&self) -> [u8; PING_BYTES] {
        let mut bytes = [0; PING_BYTES];
        put_numbers(&mut bytes, std::iter::once(self.number).chain(self.counts));
        bytes
    }

    /// Reads the data of a frame.
    pub fn decode(bytes: &[u8; PING_BYTES]) -> Ping {
        let mut rest = Reader(bytes);
        Ping { number: rest.number(), counts: std::array::from_fn(|_| rest.number()) }
    }
}

fn put_numbers(bytes: &mut [u8], numbers: impl Iterator<Item = u64>) {
    bytes.chunks_exact_mut(8).zip(numbers).for_each(|(place, number)| place.copy_from_slice(&number.to_le_bytes()));
}

/// Takes fixed-size pieces off a slice that is known to be long enough.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (piece, rest) = self.0.split_first_chunk().expect("the caller checked the length");
        self.0 = rest;
        *piece
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
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
