//! What prices are found for: order statistics of one kind, with the lengths that they are of.

use super::lanes::{Block, LANES};
use super::pairs::Pairs;

/// What the order statistics of a group are of.
pub(in crate::exact) enum Kind {
    /// The lengths to one client.
    Client {
        /// Which order statistic.
        order: usize,
    },
    /// The majorities of two clients, which meet.
    Pair(Pairs),
}

/// Order statistics of one kind, weighted as the objective weights them.
pub(in crate::exact) struct Group {
    pub kind: Kind,
    pub blocks: usize,
    /// By site, then by block: the lengths, each times its weight.
    lengths: Vec<Block>,
    /// The largest length of each.
    pub longest: Vec<Block>,
}

impl Group {
    /// The group of `count` order statistics with these weighted lengths.
    pub fn new(kind: Kind, count: usize, sites: usize, length: impl Fn(usize, usize) -> f32) -> Group {
        let blocks = count.div_ceil(LANES);
        let mut lengths = vec![[0.0; LANES]; blocks * sites];
        let mut longest = vec![[0.0f32; LANES]; blocks];
        for (site, row) in lengths.chunks_exact_mut(blocks.max(1)).enumerate() {
            for index in 0..count {
                let length = length(index, site);
                row[index / LANES][index % LANES] = length;
                longest[index / LANES][index % LANES] = longest[index / LANES][index % LANES].max(length);
            }
        }
        Group { kind, blocks, lengths, longest }
    }

    pub fn row(&self, site: usize) -> &[Block] {
        &self.lengths[site * self.blocks..][..self.blocks]
    }
}

/// The shortest length of each order statistic of a block.
pub(super) fn shortest(group: &Group, block: usize) -> Block {
    let mut least = group.longest[block];
    for row in group.lengths.chunks_exact(group.blocks) {
        for (least, length) in least.iter_mut().zip(&row[block]) {
            *least = least.min(*length);
        }
    }
    least
}
