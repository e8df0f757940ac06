//! What virtual machines a cloud created and deleted, as demand for tokens.

mod demand;
mod region;
mod series;

pub use demand::{Demand, Want};
pub use region::{REGIONS, Region, stretch_of};
pub use series::{Point, series};
