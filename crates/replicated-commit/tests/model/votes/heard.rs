//! What a member has said itself, and what may have arrived there: whatever others have said.

use super::word::{Cast, REGIONS, Word, Words};

/// The network, as one member sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heard {
    /// The member's own votes.
    pub own: Words,
    /// The votes of each other region.
    pub votes: [Words; REGIONS],
    /// All but votes, whoever said it.
    pub shared: Words,
}

/// At most one vote of each region, in ascending order: which region has cast which makes no difference.
pub type Casts<const N: usize> = [Option<Cast>; N];

impl Heard {
    /// What is nothing new if the member says it.
    pub fn known(&self) -> Words {
        self.own.or(self.shared)
    }

    /// True if different regions have cast these votes on `txn`.
    pub fn has_votes(&self, txn: usize, casts: &[Option<Cast>]) -> bool {
        self.has_votes_beside(txn, casts, [false; REGIONS])
    }

    /// The same of regions that are not `taken`.
    fn has_votes_beside(&self, txn: usize, casts: &[Option<Cast>], taken: [bool; REGIONS]) -> bool {
        let Some((first, rest)) = casts.split_first() else { return true };
        let Some(cast) = *first else { return self.has_votes_beside(txn, rest, taken) };
        let has_cast = |region: &usize| !taken[*region] && self.votes[*region].has(Word::Vote(txn, cast));
        (0..REGIONS).filter(has_cast).any(|region| {
            let mut taken = taken;
            taken[region] = true;
            self.has_votes_beside(txn, rest, taken)
        })
    }
}

/// All such votes of `N` regions, but for none at all.
pub fn all_casts<const N: usize>() -> Vec<Casts<N>> {
    let mut all = vec![[None; N]];
    for place in 0..N {
        for casts in all.clone() {
            all.extend(Cast::ALL.map(|cast| {
                let mut casts = casts;
                casts[place] = Some(cast);
                casts
            }));
        }
    }
    all.retain(|casts| casts.is_sorted() && casts[N - 1].is_some());
    all
}
