//! Who a site or a person is, and how both prove it: certificates of the cluster's own CA, join tokens, TLS.
//!
//! ```text
//!   tls         what listeners and clients use: configurations read anew, streams, bounds of handshakes
//!   authority   the cluster's CA, and its register: who may join, who has joined
//!   token       what an operator carries from the first machine to the next
//!   identity    a private key with its certificate, in one file
//!   certificate what a certificate says
//!   name        what a site is called in certificates
//!   crowd       who has proved nothing yet, and who of them leaves when there are too many
//!   files       private files, replaced whole
//! ```
//! Each uses only those below it.
//!
//! Invariants: a private key never leaves the machine that made it, is in no error and in no text for people, and a file of one is its owner's
//! alone. A certificate names a site, never an address.

pub mod authority;
pub mod certificate;
pub mod crowd;
pub mod files;
pub mod identity;
pub mod name;
pub mod tls;
pub mod token;
