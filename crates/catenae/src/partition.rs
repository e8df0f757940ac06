//! Partitions of keys: the chain server of each key. `stream_id.rs` says which coordinator a namespace belongs to.
//!
//! Source: sections IV and VI.B.

use rhumb_core::Key;

/// The partition that a key belongs to, of so many: FNV-1a of its bytes.
pub fn server_of(key: &Key, servers: u16) -> u16 {
    let hash = key.0.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    // FNV's low bits are weak for short keys; fold the high half in.
    ((hash ^ (hash >> 32)) % u64::from(servers)) as u16
}
