//! The servers by region.

use std::collections::BTreeMap;

use crate::client::postgres::{Endpoint, Session, Whereabouts, whereabouts};
use crate::error::BenchError;

/// A region, its floor, and its servers.
pub(super) struct Place {
    pub(super) name: String,
    pub(super) floor_ms: Option<f64>,
    pub(super) endpoints: Vec<Endpoint>,
}

/// Gathers the addresses by region. An address without a region asks its server for the name.
pub(super) async fn group_by_region(endpoints: &[Endpoint], settings: &BTreeMap<String, String>) -> Result<Vec<Place>, BenchError> {
    let mut places: Vec<Place> = Vec::new();
    for endpoint in endpoints {
        let mut session = Session::connect(endpoint, settings).await?;
        let Whereabouts { region, floor_ms } = whereabouts(&mut session)
            .await
            .map_err(|failure| BenchError::Connect { url: endpoint.display_url(), reason: failure.cause().to_owned() })?;
        let name = endpoint.region().map(str::to_owned).or(region).unwrap_or_else(|| endpoint.authority());
        match places.iter_mut().find(|place| place.name == name) {
            Some(place) => place.endpoints.push(endpoint.clone()),
            None => places.push(Place { name, floor_ms, endpoints: vec![endpoint.clone()] }),
        }
    }
    if places.is_empty() { Err(BenchError::Options("no address was given".to_owned())) } else { Ok(places) }
}
