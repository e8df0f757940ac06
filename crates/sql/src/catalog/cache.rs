//! A gateway's memory of the descriptors it read.

use crate::catalog::CatalogView;
use std::sync::Arc;

/// The cache. One per gateway, shared by its sessions.
#[derive(Debug, Default)]
pub struct Catalog {}

impl Catalog {
    /// An empty cache.
    pub fn new() -> Arc<Catalog> {
        Arc::new(Catalog::default())
    }

    /// The catalog as one transaction uses it: begin one view with each transaction.
    pub fn view(self: &Arc<Catalog>) -> CatalogView {
        CatalogView { catalog: self.clone() }
    }
}
