//! The sites by region.

use crate::client::redis::Endpoint;
use crate::error::BenchError;

/// A region and its sites.
pub(super) struct Place {
    pub(super) name: String,
    pub(super) addresses: Vec<String>,
}

/// Gathers the addresses by region.
pub(super) fn group_by_region(endpoints: &[Endpoint]) -> Result<Vec<Place>, BenchError> {
    let mut places: Vec<Place> = Vec::new();
    for Endpoint { region, address, .. } in endpoints {
        match places.iter_mut().find(|place| place.name == *region) {
            Some(place) => place.addresses.push(address.clone()),
            None => places.push(Place { name: region.clone(), addresses: vec![address.clone()] }),
        }
    }
    if places.is_empty() { Err(BenchError::Options("no address was given".to_owned())) } else { Ok(places) }
}
