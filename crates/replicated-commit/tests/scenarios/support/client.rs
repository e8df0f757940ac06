//! What a client asks of its gateway, and what it was told.

use super::Cluster;
use rhumb_commit::placement::{Change, Placement};
use rhumb_commit::transaction::{Committed, ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, KeyRange, SiteId, Timestamp, TxnId, Value};
use rhumb_replicated_commit::{Admin, Answer, Request, Status};

/// More rows than any scenario has.
const NO_LIMIT: u32 = 100;

impl Cluster {
    /// Begins a transaction at the gateway `site`.
    pub fn begin(&mut self, site: SiteId, mode: ReadMode) -> TxnId {
        let id = self.request(site, Request::Begin { mode });
        match self.answer(id) {
            Some(Answer::Began { txn }) => *txn,
            other => panic!("the transaction did not begin: {other:?}"),
        }
    }

    /// Reads `keys`.
    pub fn get(&mut self, txn: TxnId, mode: ReadMode, keys: &[&str]) -> RequestId {
        let keys = keys.iter().map(|key| Key::from(*key)).collect();
        self.request(txn.gateway, Request::Get { txn, mode, keys, expect: Vec::new() })
    }

    /// Reads `keys` in a snapshot in which these rows are to have these versions.
    pub fn get_expecting(&mut self, txn: TxnId, keys: &[&str], expect: &[(&str, Timestamp)]) -> RequestId {
        let keys = keys.iter().map(|key| Key::from(*key)).collect();
        let expect = expect.iter().map(|(key, version)| (Key::from(*key), *version)).collect();
        self.request(txn.gateway, Request::Get { txn, mode: ReadMode::Snapshot, keys, expect })
    }

    /// Reads the rows from `start` up to below `end`.
    pub fn scan(&mut self, txn: TxnId, mode: ReadMode, start: &str, end: &str) -> RequestId {
        let range = KeyRange::new(start.into(), end.into());
        self.request(txn.gateway, Request::Scan { txn, mode, range, limit: NO_LIMIT, reverse: false, expect: Vec::new() })
    }

    /// Commits with these writes.
    pub fn commit(&mut self, txn: TxnId, writes: &[(&str, &str)]) -> RequestId {
        let writes = writes.iter().map(|(key, value)| (Key::from(*key), Some(Value::from(*value)))).collect();
        let options = self.options;
        self.request(txn.gateway, Request::Commit { txn, writes, expect: Vec::new(), options })
    }

    /// Writes rows at `site` in a transaction of their own, with nothing in the way.
    pub fn put(&mut self, site: SiteId, writes: &[(&str, &str)]) -> Committed {
        let txn = self.begin(site, ReadMode::Optimistic);
        let id = self.commit(txn, writes);
        self.settle();
        self.committed(id)
    }

    /// Has `site` commit what comes after `placement`, which its row shows or which is the first one.
    pub fn change(&mut self, site: SiteId, placement: &Placement, change: Change) -> (Placement, RequestId) {
        let next = placement.next(change).expect("a placement that may come next");
        let key = Placement::key(0, self.topology());
        let txn = self.begin(site, ReadMode::Locking);
        let mode = ReadMode::Locking;
        self.request(site, Request::Get { txn, mode, keys: vec![key.clone()], expect: Vec::new() });
        self.settle();
        let (writes, options) = (vec![(key, Some(next.encode()))], self.options);
        let id = self.request(site, Request::Commit { txn, writes, expect: Vec::new(), options });
        (next, id)
    }

    fn status(&mut self, site: SiteId) -> Status {
        let id = self.request(site, Request::Admin(Admin::Status));
        match self.answer(id) {
            Some(Answer::Admin(status)) => status.clone(),
            other => panic!("no status but {other:?}"),
        }
    }

    /// The placement that `site` has adopted, and whether it is settled in it.
    pub fn placement_at(&mut self, site: SiteId) -> (Placement, bool) {
        let status = self.status(site);
        (status.placement, status.settled)
    }

    /// The attempts prepared at `site`, and those of them that it reports to wait for a vote out of reach.
    pub fn prepared_and_in_doubt(&mut self, site: SiteId) -> (usize, usize) {
        let status = self.status(site);
        (status.prepared, status.in_doubt)
    }

    /// All of `sites` have this newest value of each of `rows`, and are in doubt about nothing.
    pub fn assert_ended(&mut self, sites: &[SiteId], rows: &[(&str, Option<&str>)]) {
        for site in sites {
            for (key, value) in rows {
                assert_eq!(self.stored(*site, key).1.as_deref(), *value, "{key} at {site}");
            }
            assert_eq!(self.prepared_and_in_doubt(*site), (0, 0), "{site}");
        }
    }

    /// The request was answered: committed.
    pub fn committed(&self, id: RequestId) -> Committed {
        match self.answer(id) {
            Some(Answer::Committed(committed)) => *committed,
            other => panic!("not committed but {other:?}"),
        }
    }

    /// The request was answered: failed.
    pub fn failed(&self, id: RequestId) -> TxnError {
        match self.answer(id) {
            Some(Answer::Failed(error)) => error.clone(),
            other => panic!("not failed but {other:?}"),
        }
    }

    /// The request was answered with rows: their versions and values, and the wide-area trips so far.
    pub fn rows(&self, id: RequestId) -> (Vec<(Timestamp, Option<String>)>, u32) {
        match self.answer(id) {
            Some(Answer::Rows { rows, trips, .. }) => {
                let text = |value: &Value| String::from_utf8_lossy(&value.0).into_owned();
                (rows.iter().map(|row| (row.version, row.value.as_ref().map(text))).collect(), *trips)
            }
            other => panic!("no rows but {other:?}"),
        }
    }

    /// The request was answered with rows: their values.
    pub fn values(&self, id: RequestId) -> Vec<Option<String>> {
        self.rows(id).0.into_iter().map(|(_, value)| value).collect()
    }
}
