//! Shortage: what a site remembers of a quota that is used up, so that it refuses without asking the others, and when it asks them again.
//!
//! ```text
//!   a list in which the sites offer less than they want
//!     │ a shortage begins: what this site cannot serve itself, it refuses at once if that is known to be of no use
//!     ├── half of it is over, and somebody was refused: the site asks the others again, while it goes on refusing
//!     │     │     for what was refused, not for what it expects to need
//!     │     ├── still too few: it begins anew, twice as long
//!     │     └── enough: it is over
//!     └── nobody was refused: it lapses
//! ```
//!
//! So as long as tokens are scarce nobody waits for a redistribution, redistributions are few, and tokens that come back
//! elsewhere still find their way here. Each list that this site is a member of counts, whoever leads it.
//!
//! Invariant: what a refusal says of all sites was true no longer ago than the longest shortage.

use crate::name::Name;
use crate::operation::{Action, Operation};
use crate::refusal::Refusal;

/// A site asks again so many ticks after the one before it in the order of sites: by then it has heard of that one's asking. Sites that
/// ask in step would be busy with each other for good.
pub const STAGGER_TICKS: u32 = 4;

/// Why a site gets no second share during one shortage.
const CONTENDED: &str = "other sites want what is left";

/// What is known of a quota that is used up. Times are in ticks of the site.
#[derive(Debug)]
pub struct Shortage {
    /// How long it lasts still.
    lasts: u32,
    /// How old what is known may be at the most.
    age: u32,
    /// How much longer it may last when this site asks again.
    ask_at: u32,
    /// More than so many were left nowhere, and what was acquired or released here since is accounted for; none: some sites
    /// were not heard.
    left: Option<u64>,
    /// Why fewer cannot be had either, if that is known.
    why: Option<String>,
    /// Somebody was refused since this site last had its say: the most that one asked for which may be there.
    refused: Option<u64>,
    /// How long the next one lasts.
    next: u32,
    first: u32,
    max: u32,
}

impl Shortage {
    /// None yet. The first lasts `first` ticks, each one after it twice as long, and none longer than `max`.
    pub fn none(first: u32, max: u32) -> Shortage {
        Shortage { lasts: 0, age: 0, ask_at: 0, left: None, why: None, refused: None, next: first, first, max }
    }

    /// True while it lasts.
    pub fn is_on(&self) -> bool {
        self.lasts > 0
    }

    /// A list offered too little. This site had its say in it; all sites together had `left` tokens, `age` ticks ago at the
    /// most; none: that is not known. `rank`: this site's place in the order of sites.
    pub fn begin(&mut self, left: Option<u64>, age: u32, rank: u32) {
        self.age = age;
        self.lasts = self.next.min(self.max.saturating_sub(age));
        self.ask_at = (self.lasts / 2).saturating_sub(rank.saturating_mul(STAGGER_TICKS)).max(1);
        self.next = self.next.saturating_mul(2).min(self.max);
        self.left = left;
        // One share per shortage: this site has had its own.
        if left.is_some() {
            self.why = Some(CONTENDED.to_owned());
        }
        self.refused = None;
    }

    /// An operation was refused although all was done for it, for this reason: no use to try the same for another. `may_be_there`: what it
    /// asked for, if enough sites were heard.
    pub fn tried(&mut self, may_be_there: Option<u64>, why: String, rank: u32) {
        if !self.is_on() {
            self.begin(None, 0, rank);
        }
        self.why = Some(why);
        self.refused = self.refused.max(may_be_there);
    }

    /// There are tokens enough, or nobody has asked for a while.
    pub fn end(&mut self) {
        *self = Shortage::none(self.first, self.max);
    }

    /// An operation was carried out with tokens of this site: so many fewer, or more, are left.
    pub fn carried_out(&mut self, action: Action, amount: u64) {
        self.left = self.left.map(|left| match action {
            Action::Acquire => left.saturating_sub(amount),
            Action::Release | Action::Free => left.saturating_add(amount),
        });
    }

    /// Time passes; `asking`: a redistribution is under way, and a shortage does not lapse just before it is decided.
    pub fn tick(&mut self, asking: bool) {
        if self.lasts == 1 && self.refused.is_none() {
            return self.end();
        }
        self.age = self.age.saturating_add(1);
        if self.lasts > 1 || !asking || self.age >= self.max {
            self.lasts = self.lasts.saturating_sub(1);
        }
        if self.lasts == 0 {
            (self.left, self.why) = (None, None);
        }
    }

    /// Why it is no use to ask the others for what `operation` lacks of `quota`, if that is known.
    pub fn refusal(&mut self, operation: &Operation, quota: &Name) -> Option<Refusal> {
        if operation.action != Action::Acquire || !self.is_on() {
            return None;
        }
        let quota = quota.clone();
        let refusal = match &self.why {
            _ if self.left.is_some_and(|left| operation.amount > left) => Refusal::Exceeded { quota, wanted: operation.amount },
            Some(why) => Refusal::Unreachable { quota, why: why.clone() },
            None => return None,
        };
        let may_be_there = if matches!(refusal, Refusal::Unreachable { .. }) { operation.amount } else { 0 };
        self.refused = self.refused.max(Some(may_be_there));
        Some(refusal)
    }

    /// True if it is time to ask the others again.
    pub fn asks_again(&self) -> bool {
        self.refused.is_some() && (1..=self.ask_at).contains(&self.lasts)
    }

    /// What it then asks for, beside what waits: an operation that may fit and was refused, so that it finds its tokens when it is tried again.
    pub fn asks_for(&self) -> u64 {
        if self.asks_again() { self.refused.unwrap_or(0) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm() -> Name {
        Name::new("vm").expect("a name")
    }

    fn acquire(amount: u64) -> Operation {
        Operation::acquire(vm(), amount, None).expect("an amount")
    }

    fn ticks_until_lapse(shortage: &mut Shortage) -> u32 {
        (0..)
            .find(|_| {
                shortage.tick(false);
                !shortage.is_on()
            })
            .expect("it lapses")
            + 1
    }

    #[test]
    fn in_a_shortage_it_is_refused_at_once_what_is_not_to_be_had() {
        let mut shortage = Shortage::none(8, 40);
        assert_eq!(shortage.refusal(&acquire(100), &vm()), None, "nothing is known");
        shortage.begin(Some(5), 2, 0);
        assert_eq!(shortage.refusal(&acquire(6), &vm()), Some(Refusal::Exceeded { quota: vm(), wanted: 6 }));
        assert_eq!(shortage.refusal(&acquire(5), &vm()), Some(Refusal::Unreachable { quota: vm(), why: CONTENDED.to_owned() }));
        let release = Operation::release(vm(), 6, None).expect("an amount");
        assert_eq!(shortage.refusal(&release, &vm()), None);
        shortage.end();
        assert_eq!(shortage.refusal(&acquire(6), &vm()), None);
    }

    #[test]
    fn what_is_acquired_and_released_here_changes_what_is_known_to_be_left() {
        let mut shortage = Shortage::none(8, 40);
        shortage.begin(Some(80), 2, 0);
        shortage.carried_out(Action::Acquire, 80);
        assert_eq!(shortage.refusal(&acquire(1), &vm()), Some(Refusal::Exceeded { quota: vm(), wanted: 1 }), "all are held");
        shortage.carried_out(Action::Release, 3);
        let contended = Refusal::Unreachable { quota: vm(), why: CONTENDED.to_owned() };
        assert_eq!(shortage.refusal(&acquire(3), &vm()), Some(contended));
        assert_eq!(shortage.refusal(&acquire(4), &vm()), Some(Refusal::Exceeded { quota: vm(), wanted: 4 }));
    }

    #[test]
    fn without_the_word_of_all_sites_nothing_is_refused_unless_it_was_tried() {
        let mut shortage = Shortage::none(8, 40);
        shortage.begin(None, 0, 0);
        assert_eq!(shortage.refusal(&acquire(100), &vm()), None);
        shortage.tried(None, "nobody answers".into(), 0);
        assert_eq!(shortage.refusal(&acquire(1), &vm()), Some(Refusal::Unreachable { quota: vm(), why: "nobody answers".into() }));
    }

    #[test]
    fn each_lasts_twice_as_long_and_nothing_known_is_older_than_the_longest() {
        let mut shortage = Shortage::none(8, 40);
        for lasts in [8, 16, 32, 34, 34] {
            shortage.begin(Some(0), 6, 0);
            assert!(shortage.refusal(&acquire(1), &vm()).is_some());
            assert_eq!(ticks_until_lapse(&mut shortage), lasts);
        }
        shortage.begin(Some(0), 6, 0);
        assert_eq!(ticks_until_lapse(&mut shortage), 34, "and nobody was refused in this one, so the next is short again");
        shortage.begin(Some(0), 41, 0);
        assert!(!shortage.is_on(), "too old to be of use");
        shortage.end();
        shortage.begin(Some(0), 6, 0);
        assert_eq!(ticks_until_lapse(&mut shortage), 8);
    }

    #[test]
    fn it_asks_again_for_what_it_refused_if_that_may_be_there() {
        let mut shortage = Shortage::none(10, 100);
        shortage.begin(Some(5), 0, 0);
        shortage.refusal(&acquire(3), &vm()).expect("another one's share");
        shortage.refusal(&acquire(9), &vm()).expect("more than there are");
        assert_eq!(shortage.asks_for(), 0, "not yet");
        while !shortage.asks_again() {
            shortage.tick(false);
        }
        assert_eq!(shortage.asks_for(), 3);
    }

    #[test]
    fn who_refused_somebody_asks_again_in_time_and_one_after_the_other() {
        for (rank, at) in [(0, 5), (1, 8), (9, 8)] {
            let mut shortage = Shortage::none(9, 40);
            shortage.begin(Some(0), 0, rank);
            shortage.tick(false);
            assert!(!shortage.asks_again(), "nobody was refused");
            assert!(shortage.refusal(&acquire(1), &vm()).is_some());
            let asks = (2..9).find(|_| {
                shortage.tick(false);
                shortage.asks_again()
            });
            assert_eq!(asks, Some(at));
        }
    }

    #[test]
    fn it_does_not_lapse_just_before_the_answer_unless_it_is_too_old() {
        let mut shortage = Shortage::none(8, 12);
        shortage.begin(Some(0), 0, 0);
        assert!(shortage.refusal(&acquire(1), &vm()).is_some());
        (0..11).for_each(|_| shortage.tick(true));
        assert!(shortage.is_on());
        shortage.tick(true);
        assert!(!shortage.is_on());
    }
}
