//! What sites have on their disks; nothing is asked of the actors.

use super::Cluster;
use bytes::Bytes;
use rhumb_commit::placement::Placement;
use rhumb_core::actor::Space;
use rhumb_core::{Key, Load, Loaded, SiteId, Timestamp, Value};

impl Cluster {
    /// The number of records of `space` on the disk of `site`.
    pub fn records(&self, site: SiteId, space: Space) -> usize {
        let load = Load::Records { space, from: Bytes::new(), limit: usize::MAX, bytes: usize::MAX };
        let loaded = self.store(site).load(&load).expect("a store in memory does not fail");
        let Loaded::Records { records, .. } = loaded else { unreachable!("records were asked for") };
        records.len()
    }

    /// The newest value of `key` at `site`, and its version; nothing is asked of the actor.
    pub fn stored(&self, site: SiteId, key: &str) -> (Timestamp, Option<String>) {
        self.stored_at(site, key, Timestamp::MAX)
    }

    /// The newest value of `key` up to `at`, and its version.
    pub fn stored_at(&self, site: SiteId, key: &str, at: Timestamp) -> (Timestamp, Option<String>) {
        let (version, value) = self.stored_row(site, Key::from(key), at);
        (version, value.map(|value| String::from_utf8_lossy(&value.0).into_owned()))
    }

    /// The placement that the row on the disk of `site` shows.
    pub fn stored_placement(&self, site: SiteId) -> Placement {
        let (_, value) = self.stored_row(site, Placement::key(0, self.topology()), Timestamp::MAX);
        Placement::decode(&value.expect("it was changed")).expect("a placement decodes")
    }

    fn stored_row(&self, site: SiteId, key: Key, at: Timestamp) -> (Timestamp, Option<Value>) {
        let load = Load::Get { keys: vec![key], at, bytes: usize::MAX };
        let loaded = self.store(site).load(&load).expect("a store in memory does not fail");
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        (rows[0].version, rows[0].value.clone())
    }
}
