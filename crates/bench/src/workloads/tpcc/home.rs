//! Where a terminal is.

use super::scale::DISTRICTS;
use crate::driver::ClientSlot;

/// A terminal's place: a warehouse and a district.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Home {
    /// Its warehouse, from 1.
    pub w_id: i32,
    /// Its district, from 1.
    pub d_id: i32,
}

impl Home {
    /// The home of the terminal of `slot`: warehouses are dealt out to the regions in turn, a region's terminals to its warehouses in turn, and those of a
    /// warehouse to its districts. With fewer warehouses than regions some are shared.
    pub fn of(slot: ClientSlot, warehouses: u32) -> Home {
        let (warehouses, region, regions) = (warehouses as usize, slot.region, slot.regions);
        let first = region % warehouses;
        let in_region = if region < warehouses { (warehouses - region).div_ceil(regions) } else { 1 };
        let w_id = first + (slot.index % in_region) * regions + 1;
        Home { w_id: w_id as i32, d_id: (slot.index / in_region) as i32 % DISTRICTS + 1 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn homes(regions: usize, clients: usize, warehouses: u32) -> Vec<Vec<Home>> {
        let slot = |region, index| ClientSlot { region, regions, index, clients };
        (0..regions).map(|region| (0..clients).map(|index| Home::of(slot(region, index), warehouses)).collect()).collect()
    }

    #[test]
    fn every_warehouse_has_its_ten_terminals_in_one_region() {
        let homes = homes(5, 20, 10);
        let all: BTreeSet<Home> = homes.iter().flatten().copied().collect();
        assert_eq!(all.len(), 100);
        let warehouses = |region: &[Home]| region.iter().map(|home| home.w_id).collect::<BTreeSet<_>>();
        assert_eq!(
            homes.iter().map(|region| warehouses(region)).collect::<Vec<_>>(),
            [[1, 6], [2, 7], [3, 8], [4, 9], [5, 10]].map(BTreeSet::from)
        );
    }

    #[test]
    fn uneven_shares_leave_no_warehouse_out() {
        let all: BTreeSet<i32> = homes(3, 8, 7).iter().flatten().map(|home| home.w_id).collect();
        assert_eq!(all, (1..=7).collect());
        assert!(homes(5, 2, 2).iter().flatten().all(|home| (1..=2).contains(&home.w_id)));
    }
}
