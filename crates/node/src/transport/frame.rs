//! What two sites say on a TCP connection: a greeting and a hello from either side, then frames, each bounded and checked.
//!
//! ```text
//!   greeting  magic "RHUMBSIT" · version u16 · nonce, 32 random bytes                                          42 bytes
//!   hello     cluster u64 · region u16 · shard u16 · the same of whom it is meant for · incarnation u64
//!             heard: incarnation u64, 4 counts u64 · with a proof, HMAC-SHA256 by the secret of the cluster    96 bytes
//!   frame     length u32 · CRC-32 u32 of the body · body = kind u8 · sent u64 · data      length counts the body
//!   ping      number u64 · 4 counts u64                                                    the pong has the number alone
//! ```
//!
//! The proof is over the version, the side that speaks, the nonces of both sides and the hello: a hello is good for one connection, in one
//! direction, between two sites, and said by who has the secret. [`Hello::open`] is the only way to read one, so that nothing of it is
//! believed before that.
//!
//! All numbers are little-endian. Decoding is a pure function over bytes: it returns what is there, asks for more, or
//! says what is wrong; it allocates nothing and panics on no input. A connection that breaks a rule is closed, nothing
//! else suffers. `incarnation` is the time a site's process began at, so that a connection left over from an earlier one can be
//! told from one of now; `heard` is the last incarnation of the other side that this one has heard, and how often its stores had synced; the counts
//! of a ping are those of its sender, see [`crate::incarnation`]. `sent` is the reading of the sender's clock, in microseconds since the Unix epoch.

use crate::incarnation::{Counts, IncarnationId, Progress, STORES};
use crate::secret::{PROOF_BYTES, Secret};
use crate::service::Service;
use rhumb_core::actor::MESSAGE_BYTES_MAX;
use rhumb_core::{SiteId, Time};
use thiserror::Error;

/// The longest body of a frame: the kind, the reading of a clock and a message. A longer one is a sign of garbage, and the bound of what a peer can
/// make us keep.
pub const FRAME_BYTES_MAX: usize = FRAME_BYTES_MIN + MESSAGE_BYTES_MAX;
/// The version of greeting, hello, frames and everything in them. Sites of different versions refuse each other.
pub const VERSION: u16 = 17;
/// The random bytes of a greeting.
pub const NONCE_BYTES: usize = 32;
/// The length of a greeting.
pub const GREETING_BYTES: usize = 10 + NONCE_BYTES;
/// The length of a hello.
pub const HELLO_BYTES: usize = FIELDS_BYTES + PROOF_BYTES;
/// The length of what precedes a frame's data: length, check sum, kind, the reading of a clock.
pub const HEADER_BYTES: usize = 17;

/// The length of the data of a ping.
pub const PING_BYTES: usize = 8 + COUNTS_BYTES;

const MAGIC: [u8; 8] = *b"RHUMBSIT";
const COUNTS_BYTES: usize = 8 * STORES;
const PROGRESS_BYTES: usize = 8 + COUNTS_BYTES;
/// The length of a hello without its proof.
const FIELDS_BYTES: usize = HEARD_AT + PROGRESS_BYTES;
const HEARD_AT: usize = 24;
/// Where the body of a frame begins.
const BODY_AT: usize = 8;
/// The shortest body of a frame: that of an empty message.
const FRAME_BYTES_MIN: usize = HEADER_BYTES - BODY_AT;
/// What proofs are over, besides the secret: other uses of it would name themselves.
const PURPOSE: &[u8] = b"rhumb: hello of a site";

/// What a site says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Random, and never said before.
    pub nonce: [u8; NONCE_BYTES],
}

/// Which side of a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that has connected.
    Connecting,
    /// The one that it has connected to.
    Accepting,
}

/// The greetings of a connection, to which its proofs are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greetings {
    /// Of the side that has connected.
    pub connecting: Greeting,
    /// Of the other.
    pub accepting: Greeting,
}

/// What a site says once both have greeted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The fingerprint of its cluster.
    pub cluster: u64,
    /// Who it is.
    pub site: SiteId,
    /// Whom it means.
    pub to: SiteId,
    /// Its incarnation.
    pub incarnation: IncarnationId,
    /// The last incarnation that it has heard of whom it says this to, and how far that had come; zero if none.
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
    /// What the sender's clock showed.
    pub sent: Time,
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
    #[error("it does not prove that it has the secret of this cluster; compare `secret_file` of the two configurations")]
    Proof,
    #[error("a frame of {0} bytes; expected {FRAME_BYTES_MIN} to {FRAME_BYTES_MAX}")]
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

impl Greeting {
    /// The bytes of this greeting.
    pub fn encode(&self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Reads a greeting. Magic and version come first and keep their place in all versions.
    pub fn decode(bytes: &[u8; GREETING_BYTES]) -> Result<Greeting, FrameError> {
        let mut rest = Reader(bytes);
        if rest.take::<8>() != MAGIC {
            return Err(FrameError::Magic);
        }
        match u16::from_le_bytes(rest.take()) {
            VERSION => Ok(Greeting { nonce: rest.take() }),
            version => Err(FrameError::Version(version)),
        }
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

impl Greetings {
    /// What the proof of `fields` is over, if `side` says them.
    fn parts<'a>(&'a self, side: &'a [u8; 1], fields: &'a [u8]) -> [&'a [u8]; 6] {
        [PURPOSE, &const { VERSION.to_le_bytes() }, side, &self.connecting.nonce, &self.accepting.nonce, fields]
    }
}

impl Side {
    fn code(self) -> [u8; 1] {
        match self {
            Side::Connecting => [1],
            Side::Accepting => [2],
        }
    }
}

impl Hello {
    /// The bytes of this hello, as `side` of the connection says it who has `secret`.
    pub fn seal(&self, secret: &Secret, greetings: &Greetings, side: Side) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        let (fields, proof) = bytes.split_at_mut(FIELDS_BYTES);
        fields[..8].copy_from_slice(&self.cluster.to_le_bytes());
        fields[8..12].copy_from_slice(&site_bytes(self.site));
        fields[12..16].copy_from_slice(&site_bytes(self.to));
        fields[16..HEARD_AT].copy_from_slice(&self.incarnation.to_le_bytes());
        put_numbers(&mut fields[HEARD_AT..], std::iter::once(self.heard.incarnation).chain(self.heard.counts));
        proof.copy_from_slice(&secret.prove(&greetings.parts(&side.code(), fields)));
        bytes
    }

    /// Reads a hello that `side` of the connection says, if it proves that it has `secret`.
    pub fn open(bytes: &[u8; HELLO_BYTES], secret: &Secret, greetings: &Greetings, side: Side) -> Result<Hello, FrameError> {
        let mut rest = Reader(bytes);
        let fields: [u8; FIELDS_BYTES] = rest.take();
        if !secret.proves(&greetings.parts(&side.code(), &fields), &rest.take()) {
            return Err(FrameError::Proof);
        }
        let mut rest = Reader(&fields);
        let cluster = rest.number();
        let (site, to) = (rest.site(), rest.site());
        let incarnation = rest.number();
        let heard = Progress { incarnation: rest.number(), counts: std::array::from_fn(|_| rest.number()) };
        Ok(Hello { cluster, site, to, incarnation, heard })
    }
}

fn site_bytes(site: SiteId) -> [u8; 4] {
    let ([a, b], [c, d]) = (site.region.0.to_le_bytes(), site.shard.to_le_bytes());
    [a, b, c, d]
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

    fn site(&mut self) -> SiteId {
        SiteId::new(u16::from_le_bytes(self.take()), u16::from_le_bytes(self.take()))
    }
}

/// Tells from the first bytes of a connection whether they can be a greeting at all, so that a client of another protocol
/// is turned away at once and not when a greeting's worth of bytes has come.
pub fn may_be_greeting(bytes: &[u8]) -> bool {
    bytes.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic)
}

/// A frame of a site whose clock shows `sent`, and whose data `write` appends, as bytes to be sent. The data must fit [`FRAME_BYTES_MAX`].
pub fn encode<E>(kind: Kind, sent: Time, write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
    let mut header = Vec::with_capacity(256);
    header.resize(HEADER_BYTES, 0);
    let mut bytes = write(header)?;
    bytes[BODY_AT] = kind.code();
    bytes[BODY_AT + 1..HEADER_BYTES].copy_from_slice(&sent.as_micros().to_le_bytes());
    let body = &bytes[BODY_AT..];
    let (length, checksum) = (body.len() as u32, crc32fast::hash(body));
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// The first frame in `bytes` and the number of bytes it takes up; `None` if it is not all there yet.
pub fn decode(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&length) {
        return Err(FrameError::Length(length));
    }
    let Some((checksum, rest)) = rest.split_first_chunk() else { return Ok(None) };
    let Some(body) = rest.get(..length) else { return Ok(None) };
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return Err(FrameError::Checksum);
    }
    let mut header = Reader(body);
    let [code] = header.take();
    let kind = Kind::of(code).ok_or(FrameError::Kind(code))?;
    let sent = Time::from_micros(u64::from_le_bytes(header.take()));
    Ok(Some((Frame { kind, sent, data: header.0 }, BODY_AT + length)))
}
