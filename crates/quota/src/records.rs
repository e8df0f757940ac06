//! What a quota site keeps on disk. It shares its store with nobody.
//!
//! | space | key | holds |
//! |---|---|---|
//! | [`CATALOG`] | none | [`catalog::State`](crate::catalog::State) |
//! | [`DEFINITIONS`] | quota, big-endian | [`Definition`](crate::catalog::Definition) |
//! | [`ACCOUNTS`] | quota | [`Account`](crate::account::Account) |
//! | [`PROTOCOLS`] | quota | the state of its protocol |
//! | [`LISTS`] | quota | the decided lists that others may lack |
//! | [`ANSWERS`] | sequence number, big-endian | [`Answered`](crate::window::Answered) |
//!
//! Records are encoded with postcard; the version of the data folder covers their format.

use crate::catalog::QuotaId;
use rhumb_core::actor::Space;

/// The log of changes.
pub const CATALOG: Space = Space(16);
/// The quotas.
pub const DEFINITIONS: Space = Space(17);
/// Tokens.
pub const ACCOUNTS: Space = Space(18);
/// Redistributions under way.
pub const PROTOCOLS: Space = Space(19);
/// Redistributions decided.
pub const LISTS: Space = Space(20);
/// Request ids.
pub const ANSWERS: Space = Space(21);

/// All spaces, in the order in which they are read: what later ones refer to comes first.
pub const ALL: [Space; 6] = [CATALOG, DEFINITIONS, ACCOUNTS, PROTOCOLS, LISTS, ANSWERS];

/// The key of a quota's records.
pub fn quota_key(id: QuotaId) -> Vec<u8> {
    id.0.to_be_bytes().to_vec()
}

/// The quota that a key is of.
pub fn quota_of(key: &[u8]) -> Option<QuotaId> {
    Some(QuotaId(u64::from_be_bytes(key.try_into().ok()?)))
}
