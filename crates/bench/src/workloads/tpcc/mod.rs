//! TPC-C, after the Standard Specification, Revision 5.11: order entry at a wholesale supplier.
//!
//! The five transactions do what clause 2 asks, in statements chosen for the wide area, where every statement that takes locks may cost a round trip between
//! regions: reads of many rows are one statement, writes of many rows are one statement, and independent statements are sent back to back. Screens are not
//! emulated; what they would show is computed and returned.
//!
//! | transaction  | statements in sequence | clause |
//! |--------------|------------------------|--------|
//! | New-Order    | items · stocks · warehouse, customer, district — stocks, order, lines | 2.4 |
//! | Payment      | (customer by name) — warehouse, district, customer — history | 2.5 |
//! | Order-Status | customer — last order — its lines | 2.6 |
//! | Delivery     | per district: oldest new order — delete it, order, lines — customer | 2.7 |
//! | Stock-Level  | district — recent lines — stocks | 2.8 |

mod check;
mod customer;
mod deck;
mod delivery;
mod home;
mod inputs;
mod load;
mod new_order;
mod order_status;
mod payment;
mod random;
mod scale;
mod schema;
mod stock_level;
mod terminal;

pub use check::check;
pub use load::Load;
pub use random::NuRand;
pub use scale::Scale;
pub use terminal::TpccTerminal;

use std::time::{SystemTime, UNIX_EPOCH};

use rhumb_core::Rng;

use crate::client::postgres::Session;
use crate::driver::ClientSlot;
use crate::error::BenchError;
use crate::tables::ledger;
use crate::transactions::Transactions;
use home::Home;

const NAME: &str = "tpcc";

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The users' keying and think times as a multiple of those specified: 1 conforms, 0 leaves no pause between transactions.
    pub pause: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { pause: 0.0 }
    }
}

/// The workload, its tables loaded.
pub struct Tpcc {
    options: Options,
    scale: Scale,
    nurand: NuRand,
    /// Randomness that differs from run to run whatever the seed: the numbers of history rows must not repeat.
    started_unix_ns: u64,
}

impl Tpcc {
    /// Reads from the server what was loaded. The constants of NURand come from `seed`.
    pub async fn open(session: &mut Session, options: &Options, seed: u64) -> Result<Tpcc, BenchError> {
        if !(0.0..=1.0).contains(&options.pause) {
            return Err(BenchError::Options("the users' pauses are a multiple from 0 to 1 of those specified".to_owned()));
        }
        let scale = Scale::from_parameters(&ledger::read(session, NAME).await?)?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nurand = NuRand::for_run(scale, &mut Rng::seeded(seed));
        Ok(Tpcc { options: *options, scale, nurand, started_unix_ns: since_1970.as_nanos() as u64 })
    }
}

impl Transactions for Tpcc {
    type Terminal = TpccTerminal;

    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        let size = if self.scale.conforms() { "" } else { ", scaled down (non-conforming)" };
        let plural = if self.scale.warehouses == 1 { "" } else { "s" };
        format!("tpcc, {} warehouse{plural}{size}", self.scale.warehouses)
    }

    fn kinds(&self) -> &'static [&'static str] {
        &deck::NAMES
    }

    fn terminal(&self, slot: ClientSlot, mut rng: Rng) -> TpccTerminal {
        let history = Rng::seeded(rng.below(u64::MAX) ^ self.started_unix_ns);
        TpccTerminal::new(Home::of(slot, self.scale.warehouses), self.scale, self.nurand, self.options.pause, rng, history)
    }
}
