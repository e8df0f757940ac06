//! What clients do with tokens: acquire them and release them, each exactly once by request id.

use crate::name::Name;
use crate::refusal::Refusal;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most tokens of a quota, and of one operation: the largest whole number that JSON clients hold exactly.
pub const AMOUNT_MAX: u64 = (1 << 53) - 1;
/// The longest request id, in bytes.
pub const REQUEST_ID_BYTES_MAX: usize = 128;
/// Operations in one call at the most.
pub const OPERATIONS_MAX: usize = 1_024;

/// What is done with tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// Take tokens from the quota and from all above it, or from none.
    Acquire,
    /// Give tokens back, to the quota and to all above it.
    Release,
    /// Take back, in this quota alone, tokens booked for a lost site that no client holds: an operator's request, decided in the catalog
    /// ([`lost`](crate::lost)).
    Free,
}

/// A client's name for one operation: asked again under the same id, it is answered again and not done again. Known at
/// the site that was asked; of a request to free tokens, at all sites.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestKey(Bytes);

/// One operation of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Acquire or release.
    pub action: Action,
    /// Of which quota.
    pub quota: Name,
    /// How many tokens, 1 to [`AMOUNT_MAX`].
    pub amount: u64,
    /// Makes a retry harmless.
    pub id: Option<RequestKey>,
}

/// An operation was done, durably.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Tokens of the quota left at this site right after.
    pub left: u64,
}

impl RequestKey {
    /// The id of these bytes: 1 to [`REQUEST_ID_BYTES_MAX`].
    pub fn new(bytes: impl Into<Bytes>) -> Result<RequestKey, Refusal> {
        let bytes = bytes.into();
        match bytes.len() {
            1..=REQUEST_ID_BYTES_MAX => Ok(RequestKey(bytes)),
            length => {
                Err(Refusal::Invalid(format!("a request id of {length} bytes; give it 1 to {REQUEST_ID_BYTES_MAX}, or leave it out")))
            }
        }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl Operation {
    /// Acquires `amount` tokens of `quota`.
    pub fn acquire(quota: Name, amount: u64, id: Option<RequestKey>) -> Result<Operation, Refusal> {
        Ok(Operation { action: Action::Acquire, quota, amount: check_amount(amount)?, id })
    }

    /// Releases `amount` tokens of `quota`.
    pub fn release(quota: Name, amount: u64, id: Option<RequestKey>) -> Result<Operation, Refusal> {
        Ok(Operation { action: Action::Release, quota, amount: check_amount(amount)?, id })
    }

    /// Frees `amount` tokens of `quota`.
    pub fn free(quota: Name, amount: u64, id: Option<RequestKey>) -> Result<Operation, Refusal> {
        Ok(Operation { action: Action::Free, quota, amount: check_amount(amount)?, id })
    }
}

fn check_amount(amount: u64) -> Result<u64, Refusal> {
    match amount {
        1..=AMOUNT_MAX => Ok(amount),
        _ => Err(Refusal::Invalid(format!("an amount of {amount} tokens; allowed are 1 to {AMOUNT_MAX}"))),
    }
}

/// An amount written in decimal, as clients of text protocols send it.
pub fn parse_amount(text: &[u8]) -> Result<u64, Refusal> {
    let digits = std::str::from_utf8(text).ok().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    let amount = digits.and_then(|digits| digits.parse::<u64>().ok()).filter(|amount| (1..=AMOUNT_MAX).contains(amount));
    amount.ok_or_else(|| {
        let shown: String = text.iter().take(32).flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
        Refusal::Invalid(format!("an amount of `{shown}` tokens; allowed are whole numbers from 1 to {AMOUNT_MAX}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_positive_and_bounded() {
        assert_eq!(parse_amount(b"1"), Ok(1));
        assert_eq!(parse_amount(b"9007199254740991"), Ok(AMOUNT_MAX));
        for bad in [&b""[..], b"0", b"-1", b"+1", b"1.5", b"9007199254740992", b"99999999999999999999999", b"x", b"\xff"] {
            assert!(matches!(parse_amount(bad), Err(Refusal::Invalid(_))), "{bad:?}");
        }
        let vm = Name::new("vm").expect("a name");
        assert!(Operation::acquire(vm.clone(), 0, None).is_err());
        assert!(Operation::release(vm, AMOUNT_MAX + 1, None).is_err());
    }

    #[test]
    fn a_request_id_has_some_bytes_but_not_many() {
        assert!(RequestKey::new(Bytes::new()).is_err());
        assert!(RequestKey::new(vec![7; REQUEST_ID_BYTES_MAX]).is_ok());
        assert!(RequestKey::new(vec![7; REQUEST_ID_BYTES_MAX + 1]).is_err());
    }
}
