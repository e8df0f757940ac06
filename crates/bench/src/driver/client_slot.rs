//! The number of a client among all clients of a run.

/// Which of all clients of a run one is.
#[derive(Clone, Copy, Debug)]
pub struct ClientSlot {
    /// Its region, from 0.
    pub region: usize,
    /// How many regions there are.
    pub regions: usize,
    /// Its number among the region's, from 0.
    pub index: usize,
    /// How many clients the region has.
    pub clients: usize,
}

impl ClientSlot {
    /// The client's number among those of all regions, from 0.
    pub fn number(&self) -> usize {
        self.region * self.clients + self.index
    }
}
