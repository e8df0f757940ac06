//! A terminal: it has a home warehouse and district, deals cards from its deck, and attempts the transaction drawn until the driver lets go of it.

use std::time::Duration;

use chrono::Utc;
use rhumb_core::Rng;

use super::deck::{Card, Deck};
use super::delivery::Delivery;
use super::home::Home;
use super::inputs::Inputs;
use super::new_order::{self, NewOrder};
use super::order_status::{self, OrderStatus};
use super::payment::{self, Payment};
use super::random::NuRand;
use super::scale::Scale;
use super::stock_level::{self, StockLevel};
use crate::client::postgres::{Failure, Session};
use crate::transactions::{Drawn, Terminal, Verdict};

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
