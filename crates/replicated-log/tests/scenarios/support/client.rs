//! What a client asks of its gateway, and what it was told.

use super::Cluster;
use rhumb_commit::interactive::{Answer, Request};
use rhumb_commit::transaction::{CommitOptions, Committed, ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, SiteId, Timestamp, TxnId, Value};

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

    /// Commits with these writes.
    pub fn commit(&mut self, txn: TxnId, writes: &[(&str, &str)]) -> RequestId {
        let writes = writes.iter().map(|(key, value)| (Key::from(*key), Some(Value::from(*value)))).collect();
        self.request(txn.gateway, Request::Commit { txn, writes, expect: Vec::new(), options: CommitOptions::default() })
    }

    /// Asks for rows to be written at `site`, in a transaction of their own.
    pub fn write(&mut self, site: SiteId, writes: &[(&str, &str)]) -> RequestId {
        let txn = self.begin(site, ReadMode::Locking);
        self.commit(txn, writes)
    }

    /// Writes rows at `site`, with nothing in the way.
    pub fn put(&mut self, site: SiteId, writes: &[(&str, &str)]) -> Committed {
        let id = self.write(site, writes);
        self.settle();
        self.committed(id)
    }

    /// Reads one row at `site` in a transaction of its own.
    pub fn look(&mut self, site: SiteId, mode: ReadMode, key: &str) -> RequestId {
        let txn = self.begin(site, mode);
        self.get(txn, mode, &[key])
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

    /// The request was answered: the transaction has not committed, and may be tried again.
    pub fn assert_conflict(&self, id: RequestId) {
        let error = self.failed(id);
        assert!(matches!(error, TxnError::Conflict(_)), "{error}");
    }

    /// The request was answered with rows: their values, and the moment of the snapshot.
    pub fn values(&self, id: RequestId) -> (Vec<Option<String>>, Timestamp) {
        match self.answer(id) {
            Some(Answer::Rows { rows, at, .. }) => {
                let text = |value: &Value| String::from_utf8_lossy(&value.0).into_owned();
                (rows.iter().map(|row| row.value.as_ref().map(text)).collect(), *at)
            }
            other => panic!("no rows but {other:?}"),
        }
    }

    /// The request was answered with one row of this value.
    pub fn assert_value(&self, id: RequestId, value: Option<&str>) {
        assert_eq!(self.values(id).0, [value.map(str::to_owned)]);
    }
}
