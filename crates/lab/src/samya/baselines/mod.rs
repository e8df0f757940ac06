//! The systems that the evaluation holds Samya against, on the same actor contract and with the same requests and answers.
//!
//! | system | where |
//! |---|---|
//! | MultiPaxSys: every transaction through one replicated log | [`multipaxsys`] |
//! | Demarcation/Escrow: shares per site, borrowed one site after another | [`escrow`], [`Shortage::Borrow`](escrow::Shortage::Borrow) |
//! | Samya without redistribution | [`escrow`], [`Shortage::Reject`](escrow::Shortage::Reject) |
//! | Samya without constraint | [`escrow`], [`Shortage::Allow`](escrow::Shortage::Allow) |
//!
//! They are baselines, not products: they know neither parents nor clients' request ids.

pub mod escrow;
pub mod multipaxsys;
