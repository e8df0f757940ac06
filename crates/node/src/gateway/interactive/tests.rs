//! What a transaction asks its site, and what it leaves there.

use super::*;
use crate::runtime::Undo;
use rhumb_commit::interactive::Answer;
use rhumb_commit::transaction::Gateway as _;
use rhumb_core::{RegionId, SiteId, Time};
use rhumb_replicated_commit::{Answer as Told, Request as Asked};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A site of no rows, at which every snapshot is of this moment. It writes down what it is asked, and what is ended.
#[derive(Clone, Default)]
struct Empty {
    heard: Arc<Mutex<Vec<&'static str>>>,
}

const MOMENT: Timestamp = Timestamp::from_bits(7);

impl Empty {
    fn hear(&self, what: &'static str) {
        self.heard.lock().expect("no panic").push(what);
    }

    fn heard(&self) -> Vec<&'static str> {
        self.heard.lock().expect("no panic").clone()
    }

    async fn begin(&self, mode: ReadMode) -> Box<dyn transaction::Transaction> {
        Gateway::<Site, Empty>::over(self.clone()).begin(mode).await.expect("begun")
    }
}

impl Reach<Site> for Empty {
    async fn ask(&self, request: Asked) -> Result<Told, Rejected> {
        match request {
            Request::Begin { .. } => {
                self.hear("begin");
                let gateway = SiteId::new(0, 0);
                Ok(Answer::Began { txn: TxnId { began: Timestamp::from_bits(5), gateway } })
            }
            Request::Get { mode, keys, .. } => {
                self.hear("get");
                let row = |key| Row { key, version: Timestamp::ZERO, value: None };
                let at = if mode.is_read_only() { MOMENT } else { Timestamp::ZERO };
                Ok(Answer::Rows { rows: keys.into_iter().map(row).collect(), covered: None, more: false, trips: 1, at })
            }
            Request::Commit { .. } => {
                self.hear("commit");
                Ok(Answer::Committed(Committed { at: Timestamp::from_bits(9), trips: 2 }))
            }
            other => panic!("nobody asks that here: {other:?}"),
        }
    }

    async fn begin(&self, request: Asked, _undo: Undo<Site>) -> Result<Told, Rejected> {
        self.ask(request).await
    }

    fn end(&self, _request: Asked) {
        self.hear("end");
    }

    fn now(&self) -> Time {
        Time::ZERO
    }

    async fn sleep(&self, _span: Span) {
        std::future::pending().await
    }

    fn regions(&self) -> Vec<RegionStatus> {
        Vec::new()
    }

    fn region_name(&self, region: RegionId) -> String {
        region.to_string()
    }

    fn site_names(&self) -> BTreeMap<SiteId, String> {
        BTreeMap::new()
    }
}

#[tokio::test]
async fn who_has_only_read_one_moment_waits_for_no_commit() {
    let site = Empty::default();
    let mut snapshot = site.begin(ReadMode::Snapshot).await;
    snapshot.get_some(&["k".into()]).await.expect("read");
    assert_eq!(snapshot.commit().await, Ok(Committed { at: MOMENT, trips: 1 }));
    assert_eq!(site.heard(), ["begin", "get", "end"]);
}

#[tokio::test]
async fn who_has_read_the_newest_rows_has_them_validated() {
    let site = Empty::default();
    let mut optimistic = site.begin(ReadMode::Optimistic).await;
    optimistic.get_some(&["k".into()]).await.expect("read");
    assert_eq!(optimistic.commit().await, Ok(Committed { at: Timestamp::from_bits(9), trips: 2 }));
    assert_eq!(site.heard(), ["begin", "get", "commit"]);
}

#[tokio::test]
async fn a_snapshot_that_has_read_nothing_is_told_its_moment_by_the_commit() {
    let site = Empty::default();
    let snapshot = site.begin(ReadMode::Snapshot).await;
    assert_eq!(snapshot.commit().await, Ok(Committed { at: Timestamp::from_bits(9), trips: 2 }));
    assert_eq!(site.heard(), ["begin", "commit"]);
}

#[test]
fn a_scan_that_finds_only_deleted_rows_passes_more_of_them_with_each_page() {
    let mut least = 0;
    let pages: Vec<usize> = std::iter::repeat_with(|| {
        least = least_of_next(least, true);
        least
    })
    .take(9)
    .collect();
    assert_eq!(pages, [64, 128, 256, 512, 1_024, 2_048, 4_096, SCAN_PAGE, SCAN_PAGE]);
    assert_eq!(least_of_next(256, false), 256, "there may be more of them behind the rows that it found");
}
