//! A client's place among all those of a run.

/// Where a client sits.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    /// Its region, from 0.
    pub region: usize,
    /// How many regions there are.
    pub regions: usize,
    /// Its number among the region's, from 0.
    pub index: usize,
    /// How many clients the region has.
    pub clients: usize,
}

impl Seat {
    /// The client's number among those of all regions, from 0.
    pub fn number(&self) -> usize {
        self.region * self.clients + self.index
    }
}
