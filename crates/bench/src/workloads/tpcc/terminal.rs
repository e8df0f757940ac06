//! A terminal: it has a home warehouse and district, deals cards from its deck, and attempts the transaction drawn until the driver lets go of it.

use std::time::Duration;

use chrono::{NaiveDateTime, Utc};
use rhumb_core::Rng;

use super::deck::{Card, Deck};
use super::delivery::Delivery;
use super::new_order::{self, NewOrder};
use super::order_status::{self, OrderStatus};
use super::payment::{self, Payment};
use super::random::NuRand;
use super::scale::{DISTRICTS, Scale};
use super::stock_level::{self, StockLevel};
use crate::client::postgres::{Failure, Session};
use crate::transactions::{Drawn, Seat, Terminal, Verdict};

/// A terminal's place: a warehouse and a district.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Home {
    /// Its warehouse, from 1.
    pub w_id: i32,
    /// Its district, from 1.
    pub d_id: i32,
}

/// The home of the terminal at `seat`: warehouses are dealt out to the regions in turn, a region's terminals to its warehouses in turn, and those of a
/// warehouse to its districts. With fewer warehouses than regions some are shared.
pub fn home(seat: Seat, warehouses: u32) -> Home {
    let (warehouses, region, regions) = (warehouses as usize, seat.region, seat.regions);
    let first = region % warehouses;
    let in_region = if region < warehouses { (warehouses - region).div_ceil(regions) } else { 1 };
    let w_id = first + (seat.index % in_region) * regions + 1;
    Home { w_id: w_id as i32, d_id: (seat.index / in_region) as i32 % DISTRICTS + 1 }
}

/// What a terminal draws its transactions from.
pub struct Inputs<'a> {
    /// Its place.
    pub home: Home,
    /// The sizes of the database.
    pub scale: Scale,
    /// The popularity of customers and items.
    pub nurand: NuRand,
    /// Its randomness.
    pub rng: &'a mut Rng,
    /// Now.
    pub now: NaiveDateTime,
}

impl Inputs<'_> {
    /// A warehouse other than home; home if it is the only one.
    pub fn remote_warehouse(&mut self) -> i32 {
        let others = self.scale.warehouses as u64 - 1;
        let drawn = self.rng.between(1, others.max(1)) as i32;
        if others == 0 { self.home.w_id } else { drawn + i32::from(drawn >= self.home.w_id) }
    }

    /// A district.
    pub fn district(&mut self) -> i32 {
        self.rng.between(1, DISTRICTS as u64) as i32
    }

    /// A customer: six times of ten by last name, else by number (clauses 2.5.1.2 and 2.6.1.2).
    pub fn customer(&mut self) -> CustomerChoice {
        match self.rng.chance(0.6) {
            true => CustomerChoice::ByLastName(self.nurand.last_name(self.rng)),
            false => CustomerChoice::ById(self.nurand.customer(self.rng)),
        }
    }
}

/// How a user names a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomerChoice {
    /// By number.
    ById(i32),
    /// By last name, which several share.
    ByLastName(String),
}

enum Task {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

/// A client of TPC-C.
pub struct TpccTerminal {
    home: Home,
    scale: Scale,
    nurand: NuRand,
    pause: f64,
    rng: Rng,
    history_rng: Rng,
    deck: Deck,
    task: Option<Task>,
}

impl TpccTerminal {
    /// A terminal at `home`; `history_rng` numbers the history rows and differs from run to run.
    pub fn new(home: Home, scale: Scale, nurand: NuRand, pause: f64, rng: Rng, history_rng: Rng) -> TpccTerminal {
        TpccTerminal { home, scale, nurand, pause, rng, history_rng, deck: Deck::default(), task: None }
    }

    fn draw_task(&mut self, card: Card) -> Task {
        let now = Utc::now().naive_utc();
        let mut inputs = Inputs { home: self.home, scale: self.scale, nurand: self.nurand, rng: &mut self.rng, now };
        match card {
            Card::NewOrder => Task::NewOrder(NewOrder::draw(&mut inputs)),
            Card::Payment => Task::Payment(Payment::draw(&mut inputs, self.history_rng.below(i64::MAX as u64) as i64)),
            Card::OrderStatus => Task::OrderStatus(OrderStatus::draw(&mut inputs)),
            Card::Delivery => Task::Delivery(Delivery::draw(&mut inputs)),
            Card::StockLevel => Task::StockLevel(StockLevel::draw(&mut inputs)),
        }
    }
}

impl Terminal for TpccTerminal {
    fn draw(&mut self) -> Drawn {
        let card = self.deck.deal(&mut self.rng);
        self.task = Some(self.draw_task(card));
        let scaled = |time: Duration| time.mul_f64(self.pause);
        Drawn { kind: card as usize, keying: scaled(card.keying()), thinking: scaled(card.thinking(&mut self.rng)) }
    }

    async fn attempt(&mut self, session: &mut Session) -> Result<Verdict, Failure> {
        match self.task.as_mut().expect("a transaction is drawn before it is attempted") {
            Task::NewOrder(task) => Ok(match new_order::attempt(session, task).await? {
                Some(_) => Verdict::Committed,
                None => Verdict::RolledBack,
            }),
            Task::Payment(task) => payment::attempt(session, task).await.map(|_| Verdict::Committed),
            Task::OrderStatus(task) => order_status::attempt(session, task).await.map(|_| Verdict::Committed),
            Task::Delivery(task) => task.attempt(session).await.map(|()| Verdict::Committed),
            Task::StockLevel(task) => stock_level::attempt(session, task).await.map(|_| Verdict::Committed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn homes(regions: usize, clients: usize, warehouses: u32) -> Vec<Vec<Home>> {
        let seat = |region, index| Seat { region, regions, index, clients };
        (0..regions).map(|region| (0..clients).map(|index| home(seat(region, index), warehouses)).collect()).collect()
    }

    #[test]
    fn every_warehouse_has_its_ten_terminals_in_one_region() {
        let homes = homes(5, 20, 10);
        let all: BTreeSet<Home> = homes.iter().flatten().copied().collect();
        assert_eq!(all.len(), 100);
        let warehouses = |region: &[Home]| region.iter().map(|home| home.w_id).collect::<BTreeSet<_>>();
        assert_eq!(
            homes.iter().map(|region| warehouses(region)).collect::<Vec<_>>(),
            [[1, 6], [2, 7], [3, 8], [4, 9], [5, 10]].map(BTreeSet::from)
        );
    }

    #[test]
    fn uneven_shares_leave_no_warehouse_out() {
        let all: BTreeSet<i32> = homes(3, 8, 7).iter().flatten().map(|home| home.w_id).collect();
        assert_eq!(all, (1..=7).collect());
        assert!(homes(5, 2, 2).iter().flatten().all(|home| (1..=2).contains(&home.w_id)));
    }

    #[test]
    fn a_remote_warehouse_is_any_but_home() {
        let mut rng = Rng::seeded(7);
        let scale = Scale::small(3);
        let nurand = NuRand::for_load(scale);
        let mut inputs = Inputs { home: Home { w_id: 2, d_id: 1 }, scale, nurand, rng: &mut rng, now: NaiveDateTime::default() };
        let drawn: BTreeSet<i32> = (0..100).map(|_| inputs.remote_warehouse()).collect();
        assert_eq!(drawn, BTreeSet::from([1, 3]));
    }
}
