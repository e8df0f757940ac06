//! The mix of transactions (clause 5.2.3), and the times that users take (clause 5.2.5).
//!
//! A deck of a hundred cards is shuffled, dealt, and shuffled again, so the shares are exact per deck and the order is random.

use std::time::Duration;

use rhumb_core::Rng;

use crate::driver::exponential;

/// A kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Card {
    /// Clause 2.4.
    NewOrder,
    /// Clause 2.5.
    Payment,
    /// Clause 2.6.
    OrderStatus,
    /// Clause 2.7.
    Delivery,
    /// Clause 2.8.
    StockLevel,
}

/// The names of the kinds, in the order of [`Card`].
pub const NAMES: [&str; 5] = ["new order", "payment", "order status", "delivery", "stock level"];

/// Cards of a deck, by kind: at least 43 % payments and 4 % of each of the last three.
const WEIGHTS: [(Card, usize); 5] =
    [(Card::NewOrder, 45), (Card::Payment, 43), (Card::OrderStatus, 4), (Card::Delivery, 4), (Card::StockLevel, 4)];

/// A think time is cut off at this many times its mean.
const THINK_MEANS_MAX: f64 = 10.0;

impl Card {
    /// How long the user types.
    pub fn keying(self) -> Duration {
        Duration::from_secs(match self {
            Card::NewOrder => 18,
            Card::Payment => 3,
            Card::OrderStatus | Card::Delivery | Card::StockLevel => 2,
        })
    }

    /// How long the user thinks: exponential, cut off at ten times the mean.
    pub fn thinking(self, rng: &mut Rng) -> Duration {
        let mean = Duration::from_secs(match self {
            Card::NewOrder | Card::Payment => 12,
            Card::OrderStatus => 10,
            Card::Delivery | Card::StockLevel => 5,
        });
        mean.mul_f64(exponential(rng).min(THINK_MEANS_MAX))
    }
}

/// The cards left of a terminal's deck.
#[derive(Clone, Debug, Default)]
pub struct Deck {
    cards: Vec<Card>,
}

impl Deck {
    /// Deals a card.
    pub fn deal(&mut self, rng: &mut Rng) -> Card {
        loop {
            if let Some(card) = self.cards.pop() {
                return card;
            }
            self.cards = WEIGHTS.iter().flat_map(|(card, count)| std::iter::repeat_n(*card, *count)).collect();
            rng.shuffle(&mut self.cards);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deck_holds_the_exact_mix() {
        let (mut deck, mut rng) = (Deck::default(), Rng::seeded(7));
        for _ in 0..3 {
            let mut dealt: Vec<Card> = (0..100).map(|_| deck.deal(&mut rng)).collect();
            assert!(dealt[..50].contains(&Card::Payment) && dealt[..50].contains(&Card::NewOrder));
            dealt.sort();
            let count = |card| dealt.iter().filter(|dealt| **dealt == card).count();
            let all = [Card::NewOrder, Card::Payment, Card::OrderStatus, Card::Delivery, Card::StockLevel];
            assert_eq!(all.map(count), [45, 43, 4, 4, 4]);
        }
    }

    #[test]
    fn think_times_have_their_mean_and_their_bound() {
        let mut rng = Rng::seeded(7);
        let times: Vec<f64> = (0..50_000).map(|_| Card::NewOrder.thinking(&mut rng).as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((mean - 12.0).abs() < 0.2, "{mean}");
        assert!(times.iter().all(|time| *time <= 120.0));
    }
}
