//! Transactions over a region whose answers end where the test says.

use super::*;
use crate::runtime::{Rejected, Undo};
use rhumb_catenae::{Answer, Request};
use rhumb_commit::transaction::Gateway as _;
use rhumb_core::{RegionId, SiteId, Span, Time};

const MIB: usize = 1 << 20;

/// A region of these rows, which ends an answer as soon as it has so many bytes.
#[derive(Clone)]
struct Region {
    rows: Arc<BTreeMap<Key, Row>>,
    bytes_max: usize,
}

impl Region {
    /// Rows `000`, `001`, … with values of so many bytes.
    fn of(sizes: impl IntoIterator<Item = usize>, bytes_max: usize) -> Region {
        let row = |(place, bytes)| {
            let (key, version) = (key(place), Timestamp::from_bits(1));
            (key.clone(), Row { key, version, value: Some(Value::new(vec![b'x'; bytes])) })
        };
        Region { rows: Arc::new(sizes.into_iter().enumerate().map(row).collect()), bytes_max }
    }

    async fn begin(&self, mode: ReadMode) -> Box<dyn transaction::Transaction> {
        Gateway::over(self.clone()).begin(mode).await.expect("begun")
    }
}

impl Reach<Site> for Region {
    async fn ask(&self, request: Request) -> Result<Answer, Rejected> {
        let Request::Read { keys, ranges, reverse, .. } = request else { panic!("only rows are asked for: {request:?}") };
        let (mut left, mut more) = (self.bytes_max, false);
        let mut fits = |row: &Row| {
            more |= left == 0;
            left = left.saturating_sub(row.bytes());
            !more
        };
        let missing = |key: &Key| Row { key: key.clone(), version: Timestamp::ZERO, value: None };
        let found = keys.iter().map(|key| self.rows.get(key).cloned().unwrap_or_else(|| missing(key)));
        let rows = found.take_while(&mut fits).collect();
        let of_range = |(range, limit): (KeyRange, u32)| {
            let within: Vec<Row> = self.rows.range(range.start..range.end).map(|(_, row)| row.clone()).collect();
            let in_order: Box<dyn Iterator<Item = Row>> =
                if reverse { Box::new(within.into_iter().rev()) } else { Box::new(within.into_iter()) };
            in_order.take(limit as usize).take_while(&mut fits).collect()
        };
        let ranges = ranges.into_iter().map(of_range).collect();
        Ok(Answer::Rows { at: Timestamp::from_bits(9), rows, ranges, more })
    }

    async fn begin(&self, request: Request, _undo: Undo<Site>) -> Result<Answer, Rejected> {
        self.ask(request).await
    }

    fn end(&self, _request: Request) {}

    fn now(&self) -> Time {
        Time::ZERO
    }

    async fn sleep(&self, _span: Span) {}

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

fn key(place: usize) -> Key {
    Key::new(format!("{place:03}").into_bytes())
}

/// The rows of a scan page by page, and the most bytes of a page.
async fn scanned(txn: &mut dyn transaction::Transaction, reverse: bool) -> (Vec<Key>, usize) {
    let (mut rest, mut keys, mut most) = (Some(KeyRange::new(key(0), key(999))), Vec::new(), 0);
    while let Some(range) = rest.take() {
        let found = txn.scan(range, 2_048, reverse).await.expect("rows");
        assert!(!found.rows.is_empty() || found.rest.is_none(), "one row at least, if there is any");
        most = most.max(bytes_of(&found.rows));
        keys.extend(found.rows.into_iter().map(|row| row.key));
        rest = found.rest;
    }
    (keys, most)
}

#[tokio::test]
async fn a_scan_goes_on_past_rows_that_its_transaction_deleted() {
    for (reverse, deleted, left) in [(false, 0..20, 20..60), (true, 40..60, 0..40)] {
        let region = Region::of([MIB; 60], READ_BYTES_MAX);
        let mut txn = region.begin(ReadMode::Locking).await;
        deleted.map(key).for_each(|key| txn.delete(key).expect("buffered"));
        let mut wanted: Vec<Key> = left.map(key).collect();
        if reverse {
            wanted.reverse();
        }
        let (keys, most) = scanned(&mut *txn, reverse).await;
        assert_eq!(keys, wanted);
        assert!(most < 2 * READ_BYTES_MAX + 2 * MIB, "{most}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_early_is_not_taken_for_the_end() {
    let sizes = || (0..300).map(|place| if place < 240 { 10 } else { MIB });
    for bytes_max in [MIB, READ_BYTES_MAX] {
        let region = Region::of(sizes(), bytes_max);
        let all: Vec<Key> = (0..300).map(key).collect();
        for reverse in [false, true] {
            let mut txn = region.begin(ReadMode::Snapshot).await;
            let (mut keys, _) = scanned(&mut *txn, reverse).await;
            if reverse {
                keys.reverse();
            }
            assert_eq!(keys, all);
        }
        // What an earlier transaction read may fill an answer by itself.
        let mut txn = region.begin(ReadMode::Optimistic).await;
        all[240..].iter().for_each(|key| txn.expect(key.clone(), Timestamp::from_bits(1)));
        assert_eq!(scanned(&mut *txn, false).await.0, all);
        let rows = txn.get(&all).await.expect("rows");
        assert!(rows.iter().map(|row| &row.key).eq(&all));
        // It moves on to a newer snapshot, which holds the same.
        txn.set_mode(ReadMode::Locking).expect("it may");
        assert!(txn.get(&[key(0)]).await.is_ok());
        let mut txn = region.begin(ReadMode::Optimistic).await;
        all.iter().for_each(|key| txn.expect(key.clone(), Timestamp::from_bits(1)));
        txn.commit().await.expect("all that was expected is there");
    }
}
