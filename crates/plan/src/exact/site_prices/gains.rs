//! What a site gains at targets, and how that changes with them.

use super::lanes::{Block, LANES};

/// What the gains of a group are computed from, at a node.
#[derive(Default)]
pub(super) struct Levels {
    /// The numbers N of picks that may be needed, ascending.
    pub picks: Vec<usize>,
    /// p(q − N) by N and block; a picked site gains nothing below.
    pub lowest: Vec<Vec<Block>>,
    /// μ − p(q − N), which is the most that N picks gain, by N and block.
    pub most: Vec<Vec<Block>>,
    /// p(q), or infinity.
    pub caps: Vec<Block>,
}

impl Levels {
    /// Makes room for all numbers of picks.
    pub fn resize(&mut self, blocks: usize) {
        for room in [&mut self.lowest, &mut self.most] {
            room.resize_with(self.picks.len(), Vec::new);
            room.iter_mut().for_each(|room| room.resize(blocks, [0.0; LANES]));
        }
    }

    /// The levels of order statistics of clients.
    pub fn of_clients(&mut self, blocks: usize, order: usize, ranks: &[Vec<Block>], missing: usize) {
        let chosen = ranks.len();
        self.picks = (order.saturating_sub(chosen).max(1)..=order.min(missing)).collect();
        self.resize(blocks);
        for (picks, lowest) in self.picks.iter().zip(&mut self.lowest) {
            match order - picks {
                0 => lowest.fill([0.0; LANES]),
                rank => lowest.copy_from_slice(&ranks[rank - 1]),
            }
        }
        self.caps.clear();
        if order <= chosen {
            self.caps.extend_from_slice(&ranks[order - 1]);
        } else {
            self.caps.resize(blocks, [f32::INFINITY; LANES]);
        }
    }

    /// Computes what picks gain at the most, at `targets`.
    pub fn aim(&mut self, targets: &[Block]) {
        for (lowest, most) in self.lowest.iter().zip(&mut self.most) {
            for ((most, lowest), target) in most.iter_mut().flatten().zip(lowest.iter().flatten()).zip(targets.iter().flatten()) {
                *most = target - lowest;
            }
        }
    }
}

/// Φ of a site: (μ − max(x, p)) / N is the lesser of μ − x and μ − p, divided by N.
pub(super) fn gain_of(row: &[Block], targets: &[Block], levels: &Levels) -> f32 {
    let first = levels.picks.first().copied().unwrap_or(1);
    match &levels.most[..] {
        [] => 0.0,
        [a] => gain_at(row, targets, first, [a]),
        [a, b] => gain_at(row, targets, first, [a, b]),
        [a, b, c] => gain_at(row, targets, first, [a, b, c]),
        [a, b, c, d] => gain_at(row, targets, first, [a, b, c, d]),
        most => {
            let at = |block: usize, lane: usize| {
                let to_target = targets[block][lane] - row[block][lane];
                let gain = |(most, picks): (&Vec<Block>, &usize)| to_target.min(most[block][lane]) / *picks as f32;
                most.iter().zip(&levels.picks).map(gain).fold(0.0, f32::max)
            };
            (0..row.len()).map(|block| (0..LANES).map(|lane| at(block, lane)).sum::<f32>()).sum()
        }
    }
}

/// Φ of a site, given how many numbers of picks there are, from `first` on.
#[inline]
fn gain_at<const LEVELS: usize>(row: &[Block], targets: &[Block], first: usize, most: [&Vec<Block>; LEVELS]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let mut share = [0.0f32; LEVELS];
    share.iter_mut().enumerate().for_each(|(index, share)| *share = 1.0 / (first + index) as f32);
    let most = most.map(|most| &most[..row.len()]);
    for (block, (lengths, targets)) in row.iter().zip(targets).enumerate() {
        let mut gains = [0.0f32; LANES];
        for (most, share) in most.iter().zip(share) {
            let most = &most[block];
            for lane in 0..LANES {
                let to_target = targets[lane] - lengths[lane];
                let gain = share * if to_target < most[lane] { to_target } else { most[lane] };
                gains[lane] = if gain > gains[lane] { gain } else { gains[lane] };
            }
        }
        for (sum, gain) in sums.iter_mut().zip(gains) {
            *sum += gain;
        }
    }
    sums.iter().sum()
}

/// Takes the slope of a site's gain off the slopes.
pub(super) fn descend(slopes: &mut [Block], row: &[Block], targets: &[Block], levels: &Levels) {
    for (block, ((slopes, lengths), targets)) in slopes.iter_mut().zip(row).zip(targets).enumerate() {
        let (mut gains, mut falls) = ([0.0f32; LANES], [0.0f32; LANES]);
        for (most, picks) in levels.most.iter().zip(&levels.picks) {
            let (most, share) = (&most[block], 1.0 / *picks as f32);
            for lane in 0..LANES {
                let to_target = targets[lane] - lengths[lane];
                let gain = share * if to_target < most[lane] { to_target } else { most[lane] };
                falls[lane] = if gain > gains[lane] { share } else { falls[lane] };
                gains[lane] = if gain > gains[lane] { gain } else { gains[lane] };
            }
        }
        for (slope, falls) in slopes.iter_mut().zip(falls) {
            *slope -= falls;
        }
    }
}
