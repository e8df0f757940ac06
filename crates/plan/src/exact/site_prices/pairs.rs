//! Pairs of clients, whose majorities meet: see [`intersection`](crate::exact::intersection).

use super::lanes::{Block, LANES};

/// Pairs of clients, each with a share of their weight.
pub(in crate::exact) struct Pairs {
    /// The group of the clients' own order statistics.
    pub of: usize,
    /// What the replicas' majority is.
    pub order: usize,
    /// Both clients, and what of each one's weighted length counts in this pair.
    pub members: Vec<[(usize, f32); 2]>,
}

impl Pairs {
    /// The levels p(|P| + 1 − N) for N from 1 on, and the caps p(|P| + 1), from the ranked lengths of the clients' own group.
    pub fn levels(&self, ranks: &[Vec<Block>], levels: &mut [Vec<Block>], caps: &mut [Block]) {
        let chosen = ranks.len();
        let ranked = |client: usize, rank: usize| match rank {
            0 => 0.0,
            _ => ranks[rank - 1][client / LANES][client % LANES],
        };
        let rank_max = chosen.min(self.order);
        for (index, [first, second]) in self.members.iter().enumerate() {
            let least = |together: usize| {
                let splits = together.saturating_sub(rank_max)..=together.min(rank_max);
                splits
                    .map(|rank| first.1 * ranked(first.0, rank) + second.1 * ranked(second.0, together - rank))
                    .fold(f32::INFINITY, f32::min)
            };
            caps[index / LANES][index % LANES] = least(chosen + 1);
            for (place, level) in levels.iter_mut().enumerate() {
                level[index / LANES][index % LANES] = least(chosen - place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two clients, one with two thirds of its weight in the pair, and three sites chosen.
    #[test]
    fn levels_and_caps_are_the_best_splits_of_so_many_chosen_sites() {
        let pairs = Pairs { of: 0, order: 2, members: vec![[(0, 2.0 / 3.0), (9, 1.0)]] };
        let ranked = |first: f32, second: f32| {
            let mut blocks = vec![[f32::NAN; LANES]; 2];
            (blocks[0][0], blocks[1][1]) = (first, second);
            blocks
        };
        let ranks = [ranked(3.0, 10.0), ranked(30.0, 11.0), ranked(33.0, 12.0)];
        let mut levels = vec![vec![[0.0; LANES]; 1]; 4];
        let mut caps = vec![[0.0; LANES]; 1];
        pairs.levels(&ranks, &mut levels, &mut caps);
        // All four within: majorities are of two, so there is one split. Three: 2 + 11 for one and two of them, or 20 + 10.
        let splits = [caps[0][0], levels[0][0][0], levels[1][0][0], levels[2][0][0], levels[3][0][0]];
        assert_eq!(splits, [20.0 + 11.0, 2.0 + 11.0, 11.0, 2.0, 0.0]);
    }
}
