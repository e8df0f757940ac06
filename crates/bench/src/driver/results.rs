//! What a run measured.

use super::meter::Meter;

/// What a run measured.
pub struct Results<M> {
    /// One entry per region.
    pub regions: Vec<RegionResults<M>>,
    /// Seconds of the measured window.
    pub measured_s: f64,
}

/// What a run measured in one region.
pub struct RegionResults<M> {
    /// One meter per kind of operation.
    pub meters: Vec<M>,
    /// Operations that were due in an open loop and not begun when the run ended.
    pub overdue: u64,
}

impl<M: Meter> Results<M> {
    /// All regions and kinds together.
    pub fn total(&self) -> M {
        sum(self.regions.iter().flat_map(|region| &region.meters))
    }

    /// One kind in all regions together.
    pub fn kind(&self, kind: usize) -> M {
        sum(self.regions.iter().map(|region| &region.meters[kind]))
    }
}

impl<M: Meter> RegionResults<M> {
    /// All kinds together.
    pub fn total(&self) -> M {
        sum(self.meters.iter())
    }
}

fn sum<'a, M: Meter>(meters: impl Iterator<Item = &'a M>) -> M {
    meters.fold(M::default(), |mut total, meter| {
        total.add(meter);
        total
    })
}
