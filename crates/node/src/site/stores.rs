//! The data folder of a site: a store for each service, opened together with what says that they belong together.

use super::error::RunError;
use super::owner::Owner;
use crate::incarnation::{Incarnations, Past};
use crate::service::Service;
use rhumb_config::Setup;
use rhumb_store::{DiskEngine, DiskOptions, Store};
use std::path::{Path, PathBuf};

/// Where in the data folder the quotas are kept.
pub const QUOTAS_FOLDER: &str = "quotas";
/// Where in the data folder the databases of protocol `catenae` are kept.
pub const CATENAE_FOLDER: &str = "catenae";
/// Where in the data folder the databases of protocol `quad` are kept.
pub const QUAD_FOLDER: &str = "quad";

/// Quotas are read from disk at the start only, and are few: nearly nothing is cached, and write buffers and journals are short.
const QUOTAS_STORE: DiskOptions = DiskOptions { cache_bytes: 1 << 20, write_buffer_bytes: 8 << 20, open_files: 16, unmerged_files: 4 };

/// What a site has on disk.
pub(super) struct Stores {
    pub(super) incarnations: Incarnations,
    pub(super) commits: Store<DiskEngine>,
    pub(super) quotas: Store<DiskEngine>,
    pub(super) catenae: Option<Store<DiskEngine>>,
    pub(super) quad: Option<Store<DiskEngine>>,
}

/// The folder of each store of the site.
pub(super) fn store_folders(setup: &Setup, with_catenae: bool, with_quad: bool) -> Vec<(Service, PathBuf)> {
    let folder = &setup.data_dir;
    let mut folders = vec![(Service::Commit, folder.clone()), (Service::Quotas, folder.join(QUOTAS_FOLDER))];
    folders.extend(with_catenae.then(|| (Service::Catenae, folder.join(CATENAE_FOLDER))));
    folders.extend(with_quad.then(|| (Service::Quad, folder.join(QUAD_FOLDER))));
    folders
}

/// Opens the stores, and begins an incarnation; reads journals, so off the runtime's threads.
pub(super) async fn open(setup: &Setup, with_catenae: bool, with_quad: bool) -> Result<Stores, RunError> {
    let (folder, owner) = (setup.data_dir.clone(), Owner::new(setup));
    let options = DiskOptions { cache_bytes: u64::from(setup.storage.cache_mib) << 20, ..DiskOptions::DEFAULT };
    let folders = store_folders(setup, with_catenae, with_quad);
    let store = |folder: &Path, options| Store::open(DiskEngine::open(folder, options)?);
    let opened = tokio::task::spawn_blocking(move || -> Result<Stores, RunError> {
        // In this order: a folder is taken for a new one only while it is empty, and nobody else opens it from now on.
        let commits = store(&folder, options)?;
        owner.check(&folder)?;
        let past = Past::read(&folder, &folders)?;
        let quotas = store(&folder.join(QUOTAS_FOLDER), QUOTAS_STORE)?;
        let catenae = with_catenae.then(|| store(&folder.join(CATENAE_FOLDER), options)).transpose()?;
        let quad = with_quad.then(|| store(&folder.join(QUAD_FOLDER), options)).transpose()?;
        let stores = [(Service::Commit, Some(&commits)), (Service::Quotas, Some(&quotas))];
        let stores = stores.into_iter().chain([(Service::Catenae, catenae.as_ref()), (Service::Quad, quad.as_ref())]);
        let engines: Vec<_> = stores.filter_map(|(service, store)| Some((service, store?.engine()))).collect();
        let incarnations = past.begin(&engines)?;
        Ok(Stores { incarnations, commits, quotas, catenae, quad })
    });
    match opened.await {
        Ok(opened) => opened,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
