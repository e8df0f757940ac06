//! Value partitioning: each site holds a share of the limit and serves from it (Samya, section 5, baseline ii).
//!
//! ```text
//!   client ──▶ site A (left 0)          sites B, C … in A's order
//!                 │── Borrow(need) ──────▶ B: lends what its policy says, durably
//!                 │◀── Lend(0) ────────────┘
//!                 │── Borrow(need) ──────▶ C                                   one site after another
//!                 │◀── Lend(n) ────────────┘
//!   client ◀── answered once A's own record is durable; refused when all were asked in vain
//! ```
//!
//! What a site does when it is short is its [`Shortage`]: borrow (the Demarcation protocol over more than two sites, with
//! site escrows), reject, or allow. The last two bound what redistribution can win: with none of it, and with no limit.
//!
//! Invariants: a token is at one site, held by a client, or in one `Lend` under way; a lender writes the loan down before
//! the loan leaves; every request is answered, as long as no message is lost.
//! Simplified, as the originals are: the network is reliable. A lost message blocks the borrower, a doubled loan would
//! mint tokens.

mod account;
mod message;
mod site;
#[cfg(test)]
mod tests;

pub use message::{Note, Promise};
pub use site::{Escrow, Lending, Shortage};
