//! Transfers between accounts: the sum of all balances never changes, whatever fails.
//!
//! Audits among the transfers sum up all accounts in one read-only transaction. A single one that sees another total proves that transactions are not
//! serializable, or that a write was lost or done twice.

mod check;
mod invariant;
mod load;
mod teller;

pub use check::check;
pub use load::Load;
pub use teller::Teller;

use rhumb_core::Rng;

use crate::client::postgres::Session;
use crate::driver::ClientSlot;
use crate::error::BenchError;
use crate::transactions::Transactions;
use invariant::Invariant;

const NAME: &str = "bank";

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The share of audits, from 0 to 1.
    pub audits: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { audits: 0.02 }
    }
}

/// The workload, its table loaded.
pub struct Bank {
    options: Options,
    invariant: Invariant,
}

impl Bank {
    /// Reads from the server what was loaded.
    pub async fn open(session: &mut Session, options: &Options) -> Result<Bank, BenchError> {
        if !(0.0..=1.0).contains(&options.audits) {
            return Err(BenchError::Options("the share of audits lies between 0 and 1".to_owned()));
        }
        Ok(Bank { options: *options, invariant: Invariant::read(session).await? })
    }
}

impl Transactions for Bank {
    type Terminal = Teller;

    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        format!("bank, {} accounts", self.invariant.accounts)
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["transfer", "audit"]
    }

    fn terminal(&self, _: ClientSlot, rng: Rng) -> Teller {
        Teller::new(self.options.audits, self.invariant, rng)
    }
}
