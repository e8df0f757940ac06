//! What an operator carries from the first machine of a cluster to the next: where to ask, whom to believe there, and a secret that lets one
//! site in, once.
//!
//! ```text
//!   rhumb1.BASE64URL( postcard of the token, then the first 4 bytes of its SHA-256 )
//! ```
//! The sum tells a token that was cut or mistyped from one that is refused; what keeps strangers out is the secret.
//!
//! Invariant: `Debug` and errors show no secret.

use crate::certificate::Fingerprint;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use thiserror::Error;

const PREFIX: &str = "rhumb1.";
const SUM_BYTES: usize = 4;
/// The longest token, in characters.
pub const TOKEN_CHARS_MAX: usize = 512;

/// What a register knows a token by.
pub type TokenId = [u8; 6];

/// The secret of a token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSecret(pub [u8; 32]);

impl TokenSecret {
    /// What is kept of it: enough to know it again, too little to have it.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret")
    }
}

/// A join token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Where to ask: the HTTP address of the site that holds the CA.
    pub address: SocketAddr,
    /// The name of that site in its certificate.
    pub site: String,
    /// The CA's certificate, by which it is known.
    pub authority: Fingerprint,
    /// What the register knows it by.
    pub id: TokenId,
    /// What lets in.
    pub secret: TokenSecret,
    /// Until when, in seconds since the Unix epoch.
    pub expires: u64,
}

/// A text that is no token.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TokenError {
    #[error("it is no join token: expected `{PREFIX}` and letters, as `rhumb init` and `rhumb token create` print them")]
    Shape,
    #[error("it is not as it was made: a part of it is missing or altered; copy it again, whole")]
    Sum,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = postcard::to_stdvec(self).map_err(|_| fmt::Error)?;
        let sum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&sum[..SUM_BYTES]);
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Token, TokenError> {
        let text = text.trim();
        if text.len() > TOKEN_CHARS_MAX {
            return Err(TokenError::Shape);
        }
        let encoded = text.strip_prefix(PREFIX).ok_or(TokenError::Shape)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| TokenError::Sum)?;
        let (body, sum) = bytes.split_last_chunk::<SUM_BYTES>().ok_or(TokenError::Sum)?;
        if Sha256::digest(body)[..SUM_BYTES] != sum[..] {
            return Err(TokenError::Sum);
        }
        match postcard::take_from_bytes::<Token>(body) {
            Ok((token, [])) => Ok(token),
            _ => Err(TokenError::Shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        Token {
            address: "10.0.0.1:8080".parse().expect("an address"),
            site: "california-0.shop.rhumb.internal".into(),
            authority: [7; 32],
            id: [1, 2, 3, 4, 5, 6],
            secret: TokenSecret([9; 32]),
            expires: 1_800_000_000,
        }
    }

    #[test]
    fn a_token_is_read_back_and_shows_its_secret_to_nobody_else() {
        let text = token().to_string();
        assert!(text.starts_with(PREFIX) && text.len() < 220, "{text}");
        assert_eq!(format!(" {text}\n").parse(), Ok(token()));
        let shown = format!("{:?}", token());
        assert!(!shown.contains("9, 9") && shown.contains("TokenSecret"), "{shown}");
    }

    #[test]
    fn every_token_that_is_cut_or_altered_is_refused() {
        let text = token().to_string();
        for length in 0..text.len() {
            assert!(text[..length].parse::<Token>().is_err(), "{length} characters");
        }
        for at in PREFIX.len()..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).expect("ASCII");
            assert_ne!(altered.parse::<Token>(), Ok(token()), "at {at}");
            assert!(altered.parse::<Token>().is_err(), "at {at}");
        }
        assert_eq!("A".repeat(TOKEN_CHARS_MAX + 1).parse::<Token>(), Err(TokenError::Shape));
        assert_eq!(format!("{text}A").parse::<Token>(), Err(TokenError::Sum));
    }
}
