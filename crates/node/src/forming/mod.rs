//! A cluster that is about to open: its first site waits for the others, then all write their configurations and start.
//!
//! ```text
//!   first site                                              another
//!     │ found: CA, register, tokens, own certificate           │
//!     │◀── POST /join: token, request for a certificate ───────┤ by the fingerprint of the CA in the token
//!     ├─── certificate, authorities, secret of the cluster ───▶│
//!     │◀── GET /forming, again and again ──────────────────────┤ by its certificate
//!     ├─── where all sites are, once none is missing ─────────▶│
//!     ▼                                                        ▼
//!   site.toml, start                                         site.toml, start
//! ```
//! Regions are what the protocols count majorities among, and stay what they were when a cluster opened; so nobody joins afterwards
//! (docs/decisions/0042-tls.md).
//!
//! Invariants: each step can be taken again after a crash, with the same outcome; no configuration is written before all sites are known.

mod first;
mod folder;
mod joiner;

pub use first::{First, Founding, Invitation, create_token};
pub use folder::{ADMIN_FILE, AUTHORITIES_FILE, CA_FOLDER, CONFIG_FILE, FormingError, IDENTITY_FILE, Place, certificates};
pub use joiner::join;

use std::time::Duration;

/// How often it is looked whether a site is still missing.
const LOOK_EVERY: Duration = Duration::from_millis(500);
