//! The decoders of what peers send: exact bytes, every refusal, and 100,000 damaged inputs.

use rhumb_core::actor::Body;
use rhumb_core::{Rng, SiteId, Time};
use rhumb_node::incarnation::Progress;
use rhumb_node::runtime::decode_message;
use rhumb_node::secret::Secret;
use rhumb_node::service::Service;
use rhumb_node::transport::frame::{
    self, FRAME_BYTES_MAX, Frame, FrameError, GREETING_BYTES, Greeting, Greetings, HEADER_BYTES, HELLO_BYTES, Hello, Kind, NONCE_BYTES,
    Ping, Side, VERSION,
};
use std::convert::Infallible;

const MESSAGE: Kind = Kind::Message(Service::Commit);
const HELLO: Hello = Hello {
    cluster: 7,
    site: SiteId::new(2, 1),
    to: SiteId::new(3, 0),
    incarnation: 99,
    heard: Progress { incarnation: 98, counts: [1, 2, 3, 4] },
};
const GREETINGS: Greetings =
    Greetings { connecting: Greeting { nonce: [1; NONCE_BYTES] }, accepting: Greeting { nonce: [2; NONCE_BYTES] } };
const SENT: Time = Time::from_micros(258);

fn secret() -> Secret {
    Secret::of([3; 32])
}

fn framed(kind: Kind, data: &[u8]) -> Vec<u8> {
    let written: Result<Vec<u8>, Infallible> = frame::encode(kind, SENT, |mut bytes| {
        bytes.extend_from_slice(data);
        Ok(bytes)
    });
    written.expect("infallible")
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let checksum = crc32fast::hash(b"\x03\x02\x01\0\0\0\0\0\0ab").to_le_bytes();
    assert_eq!(framed(MESSAGE, b"ab"), [&b"\x0b\x00\x00\x00"[..], &checksum, b"\x03\x02\x01\0\0\0\0\0\0ab"].concat());
    assert_eq!(framed(Kind::Message(Service::Quotas), b"ab")[8..], *b"\x04\x02\x01\0\0\0\0\0\0ab");
    assert_eq!(GREETINGS.connecting.encode()[..], [&b"RHUMBSIT\x11\x00"[..], &[1; 32]].concat());
    let fields = b"\x07\0\0\0\0\0\0\0\x02\x00\x01\x00\x03\x00\x00\x00\x63\0\0\0\0\0\0\0\x62\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0";
    let proof = |side: u8| secret().prove(&[b"rhumb: hello of a site", b"\x11\x00", &[side], &[1; 32], &[2; 32], fields]);
    assert_eq!(HELLO.seal(&secret(), &GREETINGS, Side::Connecting)[..], [&fields[..], &proof(1)].concat());
    assert_eq!(HELLO.seal(&secret(), &GREETINGS, Side::Accepting)[..], [&fields[..], &proof(2)].concat());
    let ping = Ping { number: 5, counts: [1, 2, 3, 4] };
    assert_eq!(ping.encode(), *b"\x05\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0");
    assert_eq!(Ping::decode(&ping.encode()), ping);
}

#[test]
fn a_greeting_of_this_version_is_read_back() {
    let bytes = GREETINGS.connecting.encode();
    assert_eq!(Greeting::decode(&bytes), Ok(GREETINGS.connecting));
    assert!((0..=GREETING_BYTES).all(|length| frame::may_be_greeting(&bytes[..length])));
    for bit in 0..10 * 8 {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let expected = if bit < 64 { FrameError::Magic } else { FrameError::Version(VERSION ^ (1 << (bit - 64))) };
        assert_eq!(Greeting::decode(&damaged), Err(expected), "bit {bit}");
    }
}

#[test]
fn a_hello_is_read_only_with_the_secret_on_its_connection_from_its_side() {
    let bytes = HELLO.seal(&secret(), &GREETINGS, Side::Connecting);
    let open = |bytes: &[u8; HELLO_BYTES], secret: &Secret, greetings: &Greetings, side| Hello::open(bytes, secret, greetings, side);
    assert_eq!(open(&bytes, &secret(), &GREETINGS, Side::Connecting), Ok(HELLO));
    assert_eq!(open(&bytes, &secret(), &GREETINGS, Side::Accepting), Err(FrameError::Proof));
    assert_eq!(open(&bytes, &Secret::of([4; 32]), &GREETINGS, Side::Connecting), Err(FrameError::Proof));
    let (connecting, accepting) = (GREETINGS.accepting, GREETINGS.connecting);
    for other in [Greetings { connecting, ..GREETINGS }, Greetings { accepting, ..GREETINGS }, Greetings { connecting, accepting }] {
        assert_eq!(open(&bytes, &secret(), &other, Side::Connecting), Err(FrameError::Proof));
    }
    for bit in 0..HELLO_BYTES * 8 {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(open(&damaged, &secret(), &GREETINGS, Side::Connecting), Err(FrameError::Proof), "bit {bit}");
    }
}

#[test]
fn frames_are_read_one_by_one_and_only_when_they_are_all_there() {
    let mut bytes = framed(Kind::Ping, b"12345678");
    let first = bytes.len();
    bytes.extend(framed(MESSAGE, b""));
    for length in 0..first {
        assert_eq!(frame::decode(&bytes[..length]), Ok(None), "{length} bytes");
    }
    assert_eq!(frame::decode(&bytes), Ok(Some((Frame { kind: Kind::Ping, sent: SENT, data: b"12345678" }, first))));
    assert_eq!(frame::decode(&bytes[first..]), Ok(Some((Frame { kind: MESSAGE, sent: SENT, data: b"" }, HEADER_BYTES))));
}

#[test]
fn what_is_no_frame_is_refused() {
    let length = |length: u32| frame::decode(&length.to_le_bytes()).map(|frame| frame.is_some());
    assert_eq!([length(0), length(8)], [0, 8].map(|length| Err(FrameError::Length(length))));
    assert_eq!(length(FRAME_BYTES_MAX as u32), Ok(false), "the longest is waited for");
    assert_eq!(length(FRAME_BYTES_MAX as u32 + 1), Err(FrameError::Length(FRAME_BYTES_MAX + 1)));
    assert_eq!(frame::decode(b"GET / HTTP/1.1\r\n"), Err(FrameError::Length(0x2054_4547)));

    let mut damaged = framed(MESSAGE, b"ab");
    *damaged.last_mut().expect("not empty") ^= 1;
    assert_eq!(frame::decode(&damaged), Err(FrameError::Checksum));

    let mut unknown = vec![9, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0];
    let checksum = crc32fast::hash(&unknown[8..]);
    unknown[4..8].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(frame::decode(&unknown), Err(FrameError::Kind(9)));
}

type Message = Body<Vec<(u64, String)>, Option<Vec<u8>>>;

#[test]
fn a_message_with_something_left_over_is_refused() {
    let message: Message = Body::Note(vec![(1, "a".into())]);
    let mut bytes = postcard::to_allocvec(&message).expect("plain data");
    assert_eq!(decode_message(&bytes), Ok(message));
    bytes.push(0);
    let decoded: Result<Message, FrameError> = decode_message(&bytes);
    assert_eq!(decoded, Err(FrameError::Message("1 bytes are left over".into())));
}

#[test]
fn no_damage_makes_a_decoder_panic_or_find_more_than_there_is() {
    let mut rng = Rng::seeded(1);
    let message: Message = Body::Note((0..20).map(|n| (n, "x".repeat(n as usize))).collect());
    let data = postcard::to_allocvec(&message).expect("plain data");
    let whole = framed(MESSAGE, &data);
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..100_000 {
        let mut bytes = whole.clone();
        for _ in 0..rng.between(1, 4) {
            match rng.below(4) {
                0 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
                1 => bytes.extend((0..rng.below(40)).map(|n| n as u8)),
                2 => bytes = (0..rng.below(80)).map(|_| rng.below(256) as u8).collect(),
                _ => {
                    let place = rng.below(bytes.len() as u64) as usize;
                    if let Some(byte) = bytes.get_mut(place) {
                        *byte = rng.below(256) as u8;
                    }
                }
            }
        }
        match frame::decode(&bytes) {
            Ok(Some((frame, length))) => {
                assert_eq!(length, frame.data.len() + HEADER_BYTES);
                assert!(length <= bytes.len());
                taken += 1;
            }
            Ok(None) => {}
            Err(_) => refused += 1,
        }
        // A sender's mistake passes the check sum: the message decoder meets the damage itself.
        let _: Result<Message, FrameError> = decode_message(&bytes[HEADER_BYTES.min(bytes.len())..]);
        if let Some(hello) = bytes.first_chunk::<HELLO_BYTES>() {
            assert_eq!(Hello::open(hello, &secret(), &GREETINGS, Side::Connecting), Err(FrameError::Proof));
        }
    }
    assert!(refused > 10_000 && taken > 1_000, "both ways are exercised: {refused} refused, {taken} taken");
}
