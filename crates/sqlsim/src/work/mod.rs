//! What clients do: a client at a site runs one statement or transaction after the other, each picked at random.
//!
//! | file | tables | what must hold |
//! |---|---|---|
//! | `registers.rs` | `registers`, with an index on what changes | single rows are strictly serializable |
//! | `counters.rs` | `counters`, with an index | what is counted is counted once |
//! | `bank.rs` | `accounts`, with a unique index | money moves, and stays the same altogether |
//! | `items.rs` | `items`, with a unique index, another, and one that comes and goes; large rows | keys are taken once |
//! | `families.rs` | `parents`, and tables that reference it, and itself | no row is left without the one that it references |
//! | `schema.rs` | `scratch`, which comes and goes; the index of `items` | of what was dropped nothing is left |
//! | `audit.rs` | all | each index holds the rows of its table, in each snapshot |
//!
//! What there may be in the tables, by what was acknowledged, is kept in `ledger/`.

pub mod audit;
mod bank;
pub mod counters;
pub mod families;
mod items;
mod registers;
mod schema;
pub mod setup;

use crate::link::{Dialer, Link};
use crate::shared::Shared;
use rhumb_core::{Rng, SiteId, Span, Time};

/// A client thinks for so long at the most.
const THINK_MAX: Span = Span::from_millis(150);
/// How long a client waits before it connects again.
const RECONNECT: Span = Span::from_millis(200);
/// How often a client connects anew though its connection is well.
const LEAVES: f64 = 0.02;
/// How often a session has timeouts.
const IMPATIENT: f64 = 0.2;

/// A client.
pub struct Client {
    number: u32,
    name: String,
    site: SiteId,
    /// It begins nothing from then on.
    until: Time,
    /// The bytes of large transactions; 0 for none.
    bulk: u64,
    dialer: Dialer,
    rng: Rng,
}

impl Client {
    /// The client `number` of `site`, which begins nothing after `until`. Its large transactions have about `bulk` bytes.
    pub fn new(number: u32, site: SiteId, until: Time, bulk: u64, dialer: Dialer, rng: Rng) -> Client {
        Client { number, name: format!("c{number}"), site, until, bulk, dialer, rng }
    }

    fn now(&self) -> Time {
        self.dialer.time.now()
    }

    fn shared(&self) -> &Shared {
        &self.dialer.shared
    }

    /// Works until its time is over.
    pub async fn run(mut self) {
        while self.now() < self.until {
            match self.dialer.connect(&self.name, self.site).await {
                Some(link) => self.work(link).await,
                None => self.dialer.time.sleep(RECONNECT).await,
            }
        }
    }

    /// Works until its time is over or the connection is lost.
    async fn work(&mut self, mut link: Link) {
        if self.rng.chance(IMPATIENT) {
            let timeouts = ["SET statement_timeout = '1500ms'", "SET lock_timeout = '400ms'"];
            // A session without them does as well.
            let _ = link.query(self.rng.pick(&timeouts).expect("two of them")).await;
        }
        while !link.is_lost() && !self.rng.chance(LEAVES) {
            self.dialer.time.sleep(Span::from_micros(self.rng.below(THINK_MAX.as_micros()))).await;
            if self.now() >= self.until {
                return;
            }
            match self.rng.below(100) {
                0..35 => registers::single(self, &mut link).await,
                35..45 => registers::transaction(self, &mut link).await,
                45..55 => counters::work(self, &mut link).await,
                55..63 => bank::work(self, &mut link).await,
                63..78 => items::work(self, &mut link).await,
                78..86 => families::work(self, &mut link).await,
                86..93 => schema::work(self, &mut link).await,
                _ => drop(audit::all(self.shared(), &mut link).await),
            }
            link.leave().await;
        }
    }
}
