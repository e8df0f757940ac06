//! Row operations against a database in memory: what they read and write, in how many rounds, and what they refuse.

use crate::catalog::{Catalog, ColumnSpec, IndexSpec, KeySpec, TableSpec};
use crate::error::SqlError;
use crate::schema::{DEFAULT_DATABASE, IndexId, TableDescriptor};
use crate::storage::*;
use crate::types::SqlType;
use rhumb_commit::transaction::{Gateway, ReadMode, Transaction};
use rhumb_sqltestkit::LocalGateway;
use std::ops::Bound;
use std::sync::Arc;

fn int(value: i32) -> Datum {
    Datum::Int32(Some(value))
}

fn text(value: &str) -> Datum {
    Datum::Utf8(Some(value.into()))
}

/// A row of `people`: id, email, age.
fn person(id: i32, email: &str, age: Option<i32>) -> Row {
    vec![int(id), if email.is_empty() { Datum::Utf8(None) } else { text(email) }, Datum::Int32(age)]
}

struct World {
    gateway: LocalGateway,
    people: Arc<TableDescriptor>,
}

const BY_EMAIL: IndexId = IndexId(1);
const BY_AGE: IndexId = IndexId(2);

impl World {
    /// `people (id int primary key, email text unique, age int)` with an index on age.
    async fn new() -> World {
        let gateway = LocalGateway::new();
        let mut view = Catalog::new().view();
        let mut txn = gateway.begin(ReadMode::Optimistic).await.expect("begin");
        let column = |name: &str, ty| ColumnSpec { name: name.into(), ty, nullable: true, default: None, generated: None };
        let key = |column: &str| KeySpec { name: None, columns: vec![column.into()] };
        let spec = TableSpec {
            name: "people".into(),
            columns: vec![column("id", SqlType::Int4), column("email", SqlType::Text), column("age", SqlType::Int4)],
            primary_key: Some(key("id")),
            unique: vec![key("email")],
            checks: Vec::new(),
            foreign_keys: Vec::new(),
        };
        view.create_table(&mut *txn, DEFAULT_DATABASE, &spec, false).await.expect("create table");
        let index = IndexSpec { name: None, table: "people".into(), unique: false, constraint: false, columns: vec!["age".into()] };
        view.create_index(&mut *txn, DEFAULT_DATABASE, &index, false).await.expect("create index");
        let people = view.table(&mut *txn, DEFAULT_DATABASE, "people").await.expect("the table");
        txn.commit().await.expect("commit");
        World { gateway, people }
    }

    async fn begin(&self) -> Box<dyn Transaction> {
        self.gateway.begin(ReadMode::Optimistic).await.expect("begin")
    }

    async fn fill(&self, rows: &[Row]) {
        let mut txn = self.begin().await;
        insert(&mut *txn, &self.people, rows, &OnConflict::Error, &mut Beside::default()).await.expect("insert");
        txn.commit().await.expect("commit");
    }

    /// The ids that a scan returns, page by page.
    async fn scan(&self, spec: ScanSpec) -> Vec<i32> {
        let mut txn = self.begin().await;
        let mut cursor = Cursor::open(self.people.clone(), spec).expect("a scan");
        let mut ids = Vec::new();
        loop {
            let page = cursor.next_page(&mut *txn).await.expect("a page");
            if page.is_empty() {
                return ids;
            }
            ids.extend(page.iter().map(|row| match row[0] {
                Datum::Int32(Some(id)) => id,
                _ => panic!("an id is an integer"),
            }));
        }
    }

    async fn ids_by(&self, index: IndexId) -> Vec<i32> {
        self.scan(ScanSpec::all(SearchedIndex::Secondary(index))).await
    }
}

fn told(error: SqlError) -> (&'static str, String, String) {
    (error.state().code(), error.message().to_string(), error.detail().unwrap_or_default().to_string())
}

#[tokio::test]
async fn an_insert_of_a_hundred_rows_reads_in_one_round() {
    let world = World::new().await;
    let rows: Vec<Row> = (0..100).map(|id| person(id, &format!("{id}@x"), Some(id % 7))).collect();
    let before = world.gateway.rounds();
    world.fill(&rows).await;
    assert_eq!(world.gateway.rounds() - before, 1);
    let mut txn = world.begin().await;
    let keys: Vec<Vec<Datum>> = [5, 500, 7].map(|id| vec![int(id)]).to_vec();
    let found = get_by_primary_key(&mut *txn, &world.people, &keys).await.expect("a read");
    assert_eq!(found, [Some(rows[5].clone()), None, Some(rows[7].clone())]);
    assert_eq!(world.gateway.rounds() - before, 2);
    let index = world.people.index("people_email_key").expect("the index");
    let keys = [vec![text("9@x")], vec![Datum::Utf8(None)], vec![text("none")]];
    let found = get_by_index(&mut *txn, &world.people, index, &keys).await.expect("a read");
    assert_eq!(found, [Some(rows[9].clone()), None, None]);
    assert_eq!(world.gateway.rounds() - before, 4);
}

#[tokio::test]
async fn a_duplicate_key_is_refused_and_writes_nothing() {
    let world = World::new().await;
    world.fill(&[person(1, "a@x", None)]).await;
    let cases = [
        (vec![person(2, "", None), person(1, "b@x", None)], "people_pkey", "Key (id)=(1) already exists."),
        (vec![person(2, "a@x", None)], "people_email_key", "Key (email)=(a@x) already exists."),
        (vec![person(2, "", None), person(2, "", None)], "people_pkey", "Key (id)=(2) already exists."),
    ];
    for (rows, constraint, detail) in cases {
        let mut txn = world.begin().await;
        let error = insert(&mut *txn, &world.people, &rows, &OnConflict::Error, &mut Beside::default()).await.expect_err("a duplicate");
        assert_eq!(error.constraint(), Some(constraint));
        let message = format!("duplicate key value violates unique constraint \"{constraint}\"");
        assert_eq!(told(error), ("23505", message, detail.to_string()));
        txn.commit().await.expect("nothing was written");
    }
    assert_eq!(world.scan(ScanSpec::all(SearchedIndex::Primary)).await, [1]);
    world.fill(&[person(2, "", None), person(3, "", None)]).await;
}

#[tokio::test]
async fn null_in_a_key_column_is_refused() {
    let world = World::new().await;
    let mut txn = world.begin().await;
    let row = vec![Datum::Int32(None), text("a@x"), int(3)];
    let error = insert(&mut *txn, &world.people, &[row], &OnConflict::Error, &mut Beside::default()).await.expect_err("NULL");
    let message = "null value in column \"id\" of relation \"people\" violates not-null constraint";
    assert_eq!(told(error), ("23502", message.to_string(), "Failing row contains (null, a@x, 3).".to_string()));
}

#[tokio::test]
async fn on_conflict_do_nothing_leaves_rows_out() {
    let world = World::new().await;
    world.fill(&[person(1, "a@x", None)]).await;
    let rows = [person(1, "z@x", None), person(2, "a@x", None), person(3, "", None), person(3, "", None)];
    let mut txn = world.begin().await;
    let inserted = insert(&mut *txn, &world.people, &rows, &OnConflict::DoNothing(None), &mut Beside::default()).await.expect("insert");
    assert_eq!(inserted.written, [2]);
    let named = OnConflict::DoNothing(Some(PRIMARY));
    let error = insert(&mut *txn, &world.people, &rows[..2], &named, &mut Beside::default()).await.expect_err("another key is in the way");
    assert_eq!(error.constraint(), Some("people_email_key"));
}

#[tokio::test]
async fn on_conflict_do_update_returns_the_rows_in_the_way() {
    let world = World::new().await;
    world.fill(&[person(1, "a@x", Some(30))]).await;
    let mut txn = world.begin().await;
    let by_email = OnConflict::DoUpdate(BY_EMAIL);
    let inserted = insert(&mut *txn, &world.people, &[person(8, "b@x", None), person(9, "a@x", None)], &by_email, &mut Beside::default())
        .await
        .expect("insert");
    assert_eq!(inserted, Inserted { written: vec![0], conflicts: vec![(1, person(1, "a@x", Some(30)))] });
    let by_key = OnConflict::DoUpdate(PRIMARY);
    let inserted = insert(&mut *txn, &world.people, &[person(1, "c@x", None)], &by_key, &mut Beside::default()).await.expect("insert");
    assert_eq!(inserted.conflicts, [(0, person(1, "a@x", Some(30)))]);
    for twice in [[person(1, "", None), person(1, "", None)], [person(5, "", None), person(5, "", None)]] {
        let error = insert(&mut *txn, &world.people, &twice, &by_key, &mut Beside::default()).await.expect_err("the same row twice");
        assert_eq!(error.state().code(), "21000");
    }
}

#[tokio::test]
async fn an_update_moves_index_entries_and_primary_keys() {
    let world = World::new().await;
    world.fill(&[person(1, "a@x", Some(30)), person(2, "b@x", Some(20)), person(3, "", None)]).await;
    assert_eq!(world.ids_by(BY_AGE).await, [2, 1, 3]);
    let keys = world.gateway.live_keys();
    let before = world.gateway.rounds();
    let mut txn = world.begin().await;
    let changes = [
        (person(1, "a@x", Some(30)), person(2, "a@x", Some(10))),
        (person(2, "b@x", Some(20)), person(1, "b@x", Some(20))),
        (person(3, "", None), person(4, "c@x", None)),
    ];
    update(&mut *txn, &world.people, &changes, &mut Beside::default()).await.expect("update");
    txn.commit().await.expect("commit");
    assert_eq!(world.gateway.rounds() - before, 1);
    assert_eq!(world.gateway.live_keys(), keys);
    assert_eq!(world.ids_by(BY_AGE).await, [2, 1, 4]);
    assert_eq!(world.ids_by(BY_EMAIL).await, [2, 1, 4]);
    let mut txn = world.begin().await;
    let taken = [(person(4, "c@x", None), person(4, "a@x", None))];
    let error = update(&mut *txn, &world.people, &taken, &mut Beside::default()).await.expect_err("a duplicate");
    assert_eq!(error.detail(), Some("Key (email)=(a@x) already exists."));
    let merged = [(person(1, "b@x", Some(20)), person(9, "", None)), (person(4, "c@x", None), person(9, "", None))];
    assert_eq!(
        update(&mut *txn, &world.people, &merged, &mut Beside::default()).await.expect_err("two of one key").constraint(),
        Some("people_pkey")
    );
}

#[tokio::test]
async fn an_update_of_no_key_reads_nothing_and_a_delete_leaves_nothing() {
    let world = World::new().await;
    let empty = world.gateway.live_keys();
    world.fill(&[person(1, "a@x", Some(30)), person(2, "", None)]).await;
    let before = world.gateway.rounds();
    let mut txn = world.begin().await;
    update(&mut *txn, &world.people, &[(person(1, "a@x", Some(30)), person(1, "a@x", Some(31)))], &mut Beside::default())
        .await
        .expect("update");
    delete(&mut *txn, &world.people, &[person(1, "a@x", Some(31)), person(2, "", None)]).expect("delete");
    txn.commit().await.expect("commit");
    assert_eq!(world.gateway.rounds(), before);
    assert_eq!(world.gateway.live_keys(), empty);
}

#[tokio::test]
async fn scans_follow_bounds_order_and_limit() {
    let world = World::new().await;
    let rows: Vec<Row> = (-3..3).map(|id| person(id, "", Some(id / 2))).chain([person(7, "", None)]).collect();
    world.fill(&rows).await;
    let primary = || ScanSpec::all(SearchedIndex::Primary);
    let age = || ScanSpec::all(SearchedIndex::Secondary(BY_AGE));
    let (included, excluded) = (|value| Bound::Included(int(value)), |value| Bound::Excluded(int(value)));
    let cases = [
        (primary(), vec![-3, -2, -1, 0, 1, 2, 7]),
        (ScanSpec { reverse: true, limit: Some(2), ..primary() }, vec![7, 2]),
        (ScanSpec { lower: included(-2), upper: excluded(1), ..primary() }, vec![-2, -1, 0]),
        (ScanSpec { lower: excluded(-2), upper: included(1), reverse: true, ..primary() }, vec![1, 0, -1]),
        (ScanSpec { lower: excluded(2), ..primary() }, vec![7]),
        (ScanSpec { lower: included(2), upper: excluded(2), ..primary() }, vec![]),
        (ScanSpec { lower: included(3), upper: included(-3), ..primary() }, vec![]),
        (ScanSpec { prefix: vec![int(1)], ..primary() }, vec![1]),
        (ScanSpec { limit: Some(0), ..primary() }, vec![]),
        (age(), vec![-3, -2, -1, 0, 1, 2, 7]),
        (ScanSpec { reverse: true, ..age() }, vec![7, 2, 1, 0, -1, -2, -3]),
        (ScanSpec { lower: included(0), ..age() }, vec![-1, 0, 1, 2]),
        (ScanSpec { upper: excluded(0), ..age() }, vec![-3, -2]),
        (ScanSpec { upper: Bound::Included(Datum::Int32(None)), ..age() }, vec![]),
        (ScanSpec { prefix: vec![Datum::Int32(None)], ..age() }, vec![7]),
        (ScanSpec { prefix: vec![int(-1)], ..age() }, vec![-3, -2]),
    ];
    for (spec, ids) in cases {
        assert_eq!(world.scan(spec.clone()).await, ids, "{spec:?}");
    }
}

#[tokio::test]
async fn a_scan_of_many_pages_returns_every_row_once() {
    let world = World::new().await;
    let count = SCAN_PAGE_ROWS as i32 * 2;
    world.fill(&(0..count).map(|id| person(id, "", Some(0))).collect::<Vec<_>>()).await;
    let all: Vec<i32> = (0..count).collect();
    assert_eq!(world.scan(ScanSpec::all(SearchedIndex::Primary)).await, all);
    assert_eq!(world.ids_by(BY_AGE).await, all);
    let down: Vec<i32> = all.iter().rev().copied().collect();
    assert_eq!(world.scan(ScanSpec { reverse: true, ..ScanSpec::all(SearchedIndex::Primary) }).await, down);
    let most = ScanSpec { limit: Some(SCAN_PAGE_ROWS + 1), ..ScanSpec::all(SearchedIndex::Primary) };
    assert_eq!(world.scan(most).await, all[..=SCAN_PAGE_ROWS]);
}

#[tokio::test]
async fn two_inserts_of_one_key_conflict() {
    let world = World::new().await;
    let (mut one, mut two) = (world.begin().await, world.begin().await);
    for txn in [&mut one, &mut two] {
        insert(&mut **txn, &world.people, &[person(1, "", None)], &OnConflict::Error, &mut Beside::default())
            .await
            .expect("neither sees the other");
    }
    one.commit().await.expect("the first commits");
    assert!(two.commit().await.expect_err("the second does not").is_retryable());
}

#[tokio::test]
async fn an_index_entry_whose_row_went_away_meanwhile_is_a_conflict() {
    let world = World::new().await;
    world.fill(&[person(1, "a@x", Some(30))]).await;
    let mut other = world.begin().await;
    other.delete(layout::key_of(&world.people, &person(1, "a@x", Some(30))).expect("a key")).expect("a write");
    other.commit().await.expect("commit");
    let mut txn = world.begin().await;
    let mut cursor = Cursor::open(world.people.clone(), ScanSpec::all(SearchedIndex::Secondary(BY_AGE))).expect("a scan");
    assert_eq!(cursor.next_page(&mut *txn).await.expect_err("no row").state().code(), "40001");
    let index = world.people.index("people_email_key").expect("the index");
    let found = get_by_index(&mut *txn, &world.people, index, &[vec![text("a@x")]]).await;
    assert_eq!(found.expect_err("no row").state().code(), "40001");
}

const MIB: usize = 1 << 20;
const BY_ID_AND_KIND: IndexId = IndexId(1);
const BY_KIND: IndexId = IndexId(2);

fn document(id: i32) -> Row {
    vec![int(id), int(1), text(&"x".repeat(MIB))]
}

/// `documents (id int primary key, kind int, body text, unique (id, kind))` with an index on kind, and so many rows of a mebibyte.
async fn documents(count: i32) -> (LocalGateway, Arc<TableDescriptor>) {
    let gateway = LocalGateway::new();
    let mut view = Catalog::new().view();
    let mut txn = gateway.begin(ReadMode::Optimistic).await.expect("begin");
    let column = |name: &str, ty| ColumnSpec { name: name.into(), ty, nullable: true, default: None, generated: None };
    let columns = vec![column("id", SqlType::Int4), column("kind", SqlType::Int4), column("body", SqlType::Text)];
    let key = |columns: &[&str]| KeySpec { name: None, columns: columns.iter().map(ToString::to_string).collect() };
    let spec = TableSpec {
        name: "documents".into(),
        columns,
        primary_key: Some(key(&["id"])),
        unique: vec![key(&["id", "kind"])],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
    };
    view.create_table(&mut *txn, DEFAULT_DATABASE, &spec, false).await.expect("create table");
    let index = IndexSpec { name: None, table: "documents".into(), unique: false, constraint: false, columns: vec!["kind".into()] };
    view.create_index(&mut *txn, DEFAULT_DATABASE, &index, false).await.expect("create index");
    let table = view.table(&mut *txn, DEFAULT_DATABASE, "documents").await.expect("the table");
    let rows: Vec<Row> = (0..count).map(document).collect();
    insert(&mut *txn, &table, &rows, &OnConflict::Error, &mut Beside::default()).await.expect("insert");
    txn.commit().await.expect("commit");
    (gateway, table)
}

/// The rest of a scan, page by page.
async fn pages(cursor: &mut Cursor, txn: &mut dyn Transaction) -> Vec<Vec<Row>> {
    let mut pages = Vec::new();
    loop {
        let page = cursor.next_page(txn).await.expect("a page");
        if page.is_empty() {
            return pages;
        }
        pages.push(page);
    }
}

fn ids_of(pages: Vec<Vec<Row>>) -> Vec<Datum> {
    pages.into_iter().flatten().map(|mut row| row.swap_remove(0)).collect()
}

#[tokio::test]
async fn a_page_ends_at_a_number_of_bytes_whatever_order_it_follows() {
    let (gateway, table) = documents(40).await;
    for (index, reverse) in [(SearchedIndex::Primary, false), (SearchedIndex::Primary, true), (SearchedIndex::Secondary(BY_KIND), false)] {
        let mut txn = gateway.begin(ReadMode::Optimistic).await.expect("begin");
        let mut cursor = Cursor::open(table.clone(), ScanSpec { reverse, ..ScanSpec::all(index) }).expect("a scan");
        let pages = pages(&mut cursor, &mut *txn).await;
        assert!(pages.iter().all(|page| page.len() <= 5), "{index:?}: four have that many bytes");
        let mut found = ids_of(pages);
        if reverse {
            found.reverse();
        }
        assert_eq!(found, (0..40).map(int).collect::<Vec<_>>(), "{index:?}");
    }
}

#[tokio::test]
async fn a_read_by_key_ends_at_a_number_of_bytes() {
    let (gateway, table) = documents(40).await;
    let mut txn = gateway.begin(ReadMode::Optimistic).await.expect("begin");
    let index = table.indexes.iter().find(|index| index.id == BY_ID_AND_KIND).expect("the index");
    // One has no row, one can have none.
    let keys: Vec<Vec<Datum>> =
        (0..40).map(|id| vec![int(id), int(1)]).chain([vec![int(99), int(1)], vec![Datum::Int32(None), int(1)]]).collect();
    let primary: Vec<Vec<Datum>> = keys.iter().map(|key| key[..1].to_vec()).collect();
    for by_index in [false, true] {
        let mut found = Vec::new();
        while found.len() < keys.len() {
            let page = match by_index {
                false => get_by_primary_key(&mut *txn, &table, &primary[found.len()..]).await,
                true => get_by_index(&mut *txn, &table, index, &keys[found.len()..]).await,
            };
            let page = page.expect("rows");
            assert!((1..=6).contains(&page.len()), "{}: four have that many bytes", page.len());
            found.extend(page);
        }
        let ids: Vec<Option<Datum>> = found.into_iter().map(|row| row.map(|mut row| row.swap_remove(0))).collect();
        assert_eq!(ids, (0..40).map(|id| Some(int(id))).chain([None, None]).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn an_insert_holds_of_the_rows_in_its_way_only_those_that_it_updates_and_so_many_bytes_of_them() {
    let (gateway, table) = documents(80).await;
    let small = |count: i32| (0..count).map(|id| vec![int(id), int(1), text("")]).collect::<Vec<Row>>();
    let mut txn = gateway.begin(ReadMode::Optimistic).await.expect("begin");
    let inserted =
        insert(&mut *txn, &table, &small(80), &OnConflict::DoNothing(None), &mut Beside::default()).await.expect("none of them is held");
    assert_eq!(inserted, Inserted::default());
    for index in [PRIMARY, BY_ID_AND_KIND] {
        let update = OnConflict::DoUpdate(index);
        let inserted = insert(&mut *txn, &table, &small(60), &update, &mut Beside::default()).await.expect("they are within the bound");
        assert_eq!(inserted.conflicts.into_iter().map(|(_, row)| row).collect::<Vec<_>>(), (0..60).map(document).collect::<Vec<_>>());
        // The first of them is new.
        let too_many: Vec<Row> = [vec![int(100), int(1), text("")]].into_iter().chain(small(80)).collect();
        let error = insert(&mut *txn, &table, &too_many, &update, &mut Beside::default()).await.expect_err("they are too large");
        assert_eq!(error.state().code(), "54000");
    }
    let found = get_by_primary_key(&mut *txn, &table, &[vec![int(100)]]).await.expect("a read");
    assert_eq!(found, [None], "nothing was written");
}

#[tokio::test]
async fn a_scan_leaves_out_rows_that_its_transaction_deletes_meanwhile() {
    let (gateway, table) = documents(40).await;
    for (limit, deleted, left) in [(None, 8..30, vec![4..8, 30..40]), (None, 4..40, vec![]), (Some(30), 6..33, vec![4..6, 33..40])] {
        let mut txn = gateway.begin(ReadMode::Optimistic).await.expect("begin");
        let spec = ScanSpec { limit, ..ScanSpec::all(SearchedIndex::Secondary(BY_KIND)) };
        let mut cursor = Cursor::open(table.clone(), spec).expect("a scan");
        let first = cursor.next_page(&mut *txn).await.expect("a page");
        assert_eq!(first.len(), 4);
        delete(&mut *txn, &table, &deleted.map(document).collect::<Vec<_>>()).expect("deleted");
        let found = ids_of(pages(&mut cursor, &mut *txn).await);
        assert_eq!(found, left.into_iter().flatten().map(int).collect::<Vec<_>>());
    }
}
