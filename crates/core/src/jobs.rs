//! Loads and persists under way, with what each is for.
//!
//! Invariant: a token names one load or persist of an actor's incarnation, and is answered once.

use crate::actor::Token;
use std::collections::BTreeMap;

/// Loads and persists of an actor that its driver has not answered yet. `J` says what one is for.
#[derive(Clone, Debug)]
pub struct Jobs<J> {
    under_way: BTreeMap<Token, J>,
    /// The token given last.
    last: Token,
}

impl<J> Default for Jobs<J> {
    fn default() -> Jobs<J> {
        Jobs { under_way: BTreeMap::new(), last: 0 }
    }
}

impl<J> Jobs<J> {
    /// A token that nothing had before, for a load or a persist that is for `job`.
    pub fn begin(&mut self, job: J) -> Token {
        let token = self.fresh_token();
        self.under_way.insert(token, job);
        token
    }

    /// What the load or persist of `token` was for, now that it is answered.
    ///
    /// # Panics
    /// If none of that token is under way: a driver answers only loads and persists of this incarnation, each once.
    pub fn end(&mut self, token: Token) -> J {
        self.under_way.remove(&token).expect("every load and persist that is answered was asked for by this incarnation")
    }

    /// A token that nothing had before, for something else than a load or a persist.
    pub fn fresh_token(&mut self) -> Token {
        self.last += 1;
        self.last
    }

    /// Later tokens lie above `token`.
    pub fn skip_to(&mut self, token: Token) {
        self.last = self.last.max(token);
    }

    /// How many are under way.
    pub fn count(&self) -> usize {
        self.under_way.len()
    }

    /// How many of those under way are for what `which` picks.
    pub fn count_of(&self, which: impl Fn(&J) -> bool) -> usize {
        self.under_way.values().filter(|job| which(job)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_answered_once_by_its_own_token() {
        let mut jobs = Jobs::default();
        let (first, second) = (jobs.begin("first"), jobs.begin("second"));
        assert_ne!(first, jobs.fresh_token());
        assert_eq!((jobs.count(), jobs.count_of(|job| *job == "first")), (2, 1));
        assert_eq!((jobs.end(second), jobs.end(first), jobs.count()), ("second", "first", 0));
    }

    #[test]
    fn tokens_lie_above_what_is_skipped() {
        let mut jobs = Jobs::default();
        jobs.skip_to(7);
        assert_eq!(jobs.begin(()), 8);
        jobs.skip_to(3);
        assert_eq!(jobs.begin(()), 9);
    }

    #[test]
    #[should_panic(expected = "asked for by this incarnation")]
    fn an_answer_that_nobody_waits_for_is_a_fault_of_the_driver() {
        Jobs::<()>::default().end(1);
    }
}
