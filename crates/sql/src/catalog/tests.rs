//! Databases, tables and indexes against a database in memory, by two gateways with a cache each.

use crate::catalog::layout::data_prefix;
use crate::catalog::*;
use crate::context::environment::System;
use crate::error::{SqlError, SqlResult};
use crate::schema::*;
use crate::storage::{BACKFILL_ROWS_MAX, Beside, Cursor, OnConflict, Row, RowIds, ScanSpec, SearchedIndex, insert};
use crate::types::{Datum, SqlType};
use rhumb_commit::transaction::{Gateway, ReadMode, Transaction};
use rhumb_core::{Key, SiteId, Value};
use rhumb_sqltestkit::LocalGateway;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

struct Session {
    gateway: LocalGateway,
    catalog: Arc<Catalog>,
}

impl Session {
    fn of(gateway: &LocalGateway) -> Session {
        Session { gateway: gateway.clone(), catalog: Catalog::new() }
    }

    async fn begin(&self) -> (Box<dyn Transaction>, CatalogView) {
        (self.gateway.begin(ReadMode::Optimistic).await.expect("begin"), self.catalog.view().asking_nearby())
    }

    async fn create_table(&self, database: &str, spec: &TableSpec) -> SqlResult<bool> {
        let (mut txn, mut view) = self.begin().await;
        let created = view.create_table(&mut *txn, database, spec, false).await?;
        finish(txn, view).await?;
        Ok(created)
    }

    async fn table(&self, name: &str) -> SqlResult<Arc<TableDescriptor>> {
        let (mut txn, mut view) = self.begin().await;
        let table = view.table(&mut *txn, DEFAULT_DATABASE, name).await?;
        finish(txn, view).await?;
        Ok(table)
    }

    async fn create_index(&self, columns: &[&str], unique: bool) -> SqlResult<bool> {
        let (mut txn, mut view) = self.begin().await;
        let columns = columns.iter().map(|column| column.to_string()).collect();
        let spec = IndexSpec { name: None, table: "t".into(), unique, constraint: false, columns };
        let created = view.create_index(&mut *txn, DEFAULT_DATABASE, &spec, false).await?;
        finish(txn, view).await?;
        Ok(created)
    }

    async fn drop_table(&self, name: &str) -> SqlResult<bool> {
        let (mut txn, mut view) = self.begin().await;
        let dropped = view.drop_table(&mut *txn, DEFAULT_DATABASE, name, false, &BTreeSet::new(), false).await?;
        finish(txn, view).await?;
        Ok(dropped)
    }

    async fn insert(&self, rows: &[Row]) -> SqlResult<()> {
        let (mut txn, mut view) = self.begin().await;
        let table = view.table(&mut *txn, DEFAULT_DATABASE, "t").await?;
        insert(&mut *txn, &table, rows, &OnConflict::Error, &mut Beside::default()).await?;
        finish(txn, view).await
    }
}

/// Commits as a session does: with the cache in mind.
async fn finish(txn: Box<dyn Transaction>, mut view: CatalogView) -> SqlResult<()> {
    match txn.commit().await {
        Ok(committed) => view.committed(committed.at),
        Err(error) => {
            view.invalidate();
            return Err(error.into());
        }
    }
    Ok(())
}

/// `name (a int, b int)`.
fn spec(name: &str, primary_key: Option<&[&str]>, unique: &[&[&str]]) -> TableSpec {
    let key = |columns: &[&str]| KeySpec { name: None, columns: columns.iter().map(|column| column.to_string()).collect() };
    let column = |name: &str| ColumnSpec { name: name.into(), ty: SqlType::Int4, nullable: true, default: None, generated: None };
    TableSpec {
        name: name.into(),
        columns: vec![column("a"), column("b")],
        primary_key: primary_key.map(key),
        unique: unique.iter().map(|columns| key(columns)).collect(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
    }
}

fn row(a: i32, b: i32) -> Row {
    vec![Datum::Int32(Some(a)), Datum::Int32(Some(b))]
}

fn code<T: std::fmt::Debug>(result: SqlResult<T>) -> &'static str {
    result.expect_err("an error").state().code()
}

#[tokio::test]
async fn a_table_is_described_as_it_was_created() {
    let session = Session::of(&LocalGateway::new());
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["b", "a"]), &[&["a"], &["a"]])).await.expect("create");
    let table = session.table("t").await.expect("the table");
    assert_eq!(table.primary_key, [1, 0]);
    assert_eq!(table.primary_key_name, "t_pkey");
    assert!(table.columns.iter().all(|column| !column.nullable && !column.hidden));
    let names: Vec<&str> = table.indexes.iter().map(|index| index.name.as_str()).collect();
    assert_eq!(names, ["t_a_key", "t_a_key1"]);
    assert_eq!(table.arrow_schema().field(1).name(), "b");
    assert_eq!(SqlType::of_field(table.arrow_schema().field(1)), Some(SqlType::Int4));
}

#[tokio::test]
async fn a_table_without_a_primary_key_has_a_hidden_row_id() {
    let session = Session::of(&LocalGateway::new());
    session.create_table(DEFAULT_DATABASE, &spec("t", None, &[])).await.expect("create");
    let table = session.table("t").await.expect("the table");
    assert_eq!(table.primary_key, [2]);
    assert_eq!(table.visible_columns().collect::<Vec<_>>(), [0, 1]);
    let ids = RowIds::new(SiteId::new(0, 0));
    let with_id = |mut row: Row| {
        row.push(ids.next(session.gateway.now()));
        row
    };
    session.insert(&[with_id(row(1, 1)), with_id(row(1, 1))]).await.expect("equal rows");
}

#[tokio::test]
async fn a_majority_is_asked_again_only_for_what_came_from_nearby() {
    let session = Session::of(&LocalGateway::new());
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    let mut of_memory = Vec::new();
    for _ in 0..4 {
        let (mut txn, mut view) = session.begin().await;
        view.table(&mut *txn, DEFAULT_DATABASE, "t").await.expect("the table");
        of_memory.push(view.may_be_stale());
        view.invalidate(); // as after a conflict
        txn.rollback().await;
    }
    assert_eq!(of_memory, [true, false, true, false], "or a reader of busy rows would read the catalog first, every time");
}

#[tokio::test]
async fn names_are_checked() {
    let session = Session::of(&LocalGateway::new());
    let create = |spec: TableSpec| {
        let session = &session;
        async move { code(session.create_table(DEFAULT_DATABASE, &spec).await) }
    };
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    assert_eq!(create(spec("t", None, &[])).await, "42P07");
    assert_eq!(create(spec("t_pkey", None, &[])).await, "42P07");
    assert_eq!(create(spec("u", Some(&["c"]), &[])).await, "42703");
    assert_eq!(create(spec("u", Some(&["a", "a"]), &[])).await, "42701");
    assert_eq!(create(spec(&"u".repeat(64), None, &[])).await, "42622");
    let mut twice = spec("u", None, &[]);
    twice.columns[1].name = "a".into();
    assert_eq!(create(twice).await, "42701");
    let mut reserved = spec("u", None, &[]);
    reserved.columns[1].name = "_rowid".into();
    assert_eq!(create(reserved).await, "42701");
    assert_eq!(code(session.create_table("nowhere", &spec("u", None, &[])).await), "3D000");
    assert_eq!(code(session.table("u").await), "42P01");
    assert_eq!(code(session.table("t_pkey").await), "42809");
    let (mut txn, mut view) = session.begin().await;
    assert!(!view.create_table(&mut *txn, DEFAULT_DATABASE, &spec("t", None, &[]), true).await.expect("if not exists"));
    assert!(!view.drop_table(&mut *txn, DEFAULT_DATABASE, "u", true, &BTreeSet::new(), false).await.expect("if exists"));
    assert_eq!(code(view.drop_table(&mut *txn, DEFAULT_DATABASE, "u", false, &BTreeSet::new(), false).await), "42P01");
}

#[tokio::test]
async fn databases_are_created_listed_and_dropped() {
    let session = Session::of(&LocalGateway::new());
    let (mut txn, mut view) = session.begin().await;
    let unknown = view.create_database(&mut *txn, "shop", Some("telepathy")).await.expect_err("no such protocol");
    assert_eq!(unknown.state().code(), "22023");
    assert_eq!(unknown.message(), "unknown commit protocol \"telepathy\"");
    assert_eq!(unknown.hint(), Some("The known protocols are: replicated_commit, catenae, quad."));
    assert_eq!(code(view.create_database(&mut *txn, DEFAULT_DATABASE, None).await), "42P04");
    view.create_database(&mut *txn, "shop", Some("replicated_commit")).await.expect("create");
    assert_eq!(code(view.create_database(&mut *txn, "shop", None).await), "42P04");
    view.create_table(&mut *txn, "shop", &spec("t", None, &[]), false).await.expect("create");
    finish(txn, view).await.expect("commit");

    let (mut txn, mut view) = session.begin().await;
    let names = |databases: Vec<Arc<DatabaseDescriptor>>| databases.iter().map(|database| database.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(view.databases(&mut *txn).await.expect("a listing")), ["rhumb", "shop"]);
    assert_eq!(view.tables(&mut *txn, "shop").await.expect("a listing")[0].name, "t");
    assert_eq!(view.tables(&mut *txn, DEFAULT_DATABASE).await.expect("a listing"), []);
    assert!(view.drop_database(&mut *txn, "shop", false).await.expect("drop"));
    assert_eq!(code(view.table(&mut *txn, "shop", "t").await), "3D000");
    assert!(!view.drop_database(&mut *txn, "shop", true).await.expect("if exists"));
    assert_eq!(code(view.drop_database(&mut *txn, "shop", false).await), "3D000");
    assert_eq!(code(view.drop_database(&mut *txn, DEFAULT_DATABASE, false).await), "55006");
    finish(txn, view).await.expect("commit");
}

#[tokio::test]
async fn a_stale_cache_ends_in_a_conflict_and_the_retry_succeeds() {
    let gateway = LocalGateway::new();
    let (here, there) = (Session::of(&gateway), Session::of(&gateway));
    here.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    here.insert(&[row(1, 1)]).await.expect("insert");
    there.create_index(&["b"], true).await.expect("create index");
    let stale: SqlError = here.insert(&[row(2, 1)]).await.expect_err("the index is not known here");
    assert!(stale.is_retryable());
    assert_eq!(code(here.insert(&[row(2, 1)]).await), "23505");
    here.insert(&[row(2, 2)]).await.expect("insert");
}

#[tokio::test]
async fn a_dropped_table_is_known_from_the_cache_until_the_commit_finds_out() {
    let gateway = LocalGateway::new();
    let (here, there) = (Session::of(&gateway), Session::of(&gateway));
    here.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    here.table("t").await.expect("cached from now on");
    there.drop_table("t").await.expect("drop");
    let (mut txn, mut view) = here.begin().await;
    view.table(&mut *txn, DEFAULT_DATABASE, "t").await.expect("from the cache");
    assert!(view.may_be_stale());
    view.invalidate();
    assert_eq!(code(view.table(&mut *txn, DEFAULT_DATABASE, "t").await), "42P01");
    assert!(finish(txn, view).await.expect_err("the cached version was expected").is_retryable());
    assert_eq!(code(here.insert(&[row(1, 1)]).await), "42P01");
}

#[tokio::test]
async fn a_cached_descriptor_costs_no_round() {
    let session = Session::of(&LocalGateway::new());
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    session.table("t").await.expect("cached from now on");
    let before = session.gateway.rounds();
    session.insert(&[row(1, 1)]).await.expect("insert");
    assert_eq!(session.gateway.rounds() - before, 1);
}

/// The wide-area trips of looking `t` up in a transaction of its own.
async fn trips(session: &Session) -> u32 {
    let (mut txn, mut view) = session.begin().await;
    view.table(&mut *txn, DEFAULT_DATABASE, "t").await.expect("the table");
    let trips = txn.trips();
    finish(txn, view).await.expect("nobody is in the way");
    trips
}

#[tokio::test]
async fn the_first_use_of_a_table_costs_no_trip_at_any_gateway() {
    let gateway = LocalGateway::new();
    let (here, there) = (Session::of(&gateway), Session::of(&gateway));
    here.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    let before = gateway.rounds();
    assert_eq!((trips(&here).await, gateway.rounds() - before), (0, 0), "who made it knows it");
    assert_eq!((trips(&there).await, gateway.rounds() - before), (0, 1), "the replica nearby has it");
    assert_eq!((trips(&there).await, gateway.rounds() - before), (0, 1), "now it is cached");
    here.create_index(&["b"], true).await.expect("create index");
    assert_eq!((trips(&here).await, here.table("t").await.expect("the table").indexes.len()), (0, 1));
}

#[tokio::test]
async fn what_a_replica_nearby_shows_is_cached_only_once_it_is_validated() {
    let gateway = LocalGateway::new();
    let (here, there) = (Session::of(&gateway), Session::of(&gateway));
    here.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    gateway.fall_behind();
    here.create_index(&["b"], true).await.expect("create index");
    let (mut txn, mut view) = there.begin().await;
    let stale = view.table(&mut *txn, DEFAULT_DATABASE, "t").await.expect("the table");
    assert!(stale.indexes.is_empty() && view.may_be_stale());
    txn.rollback().await;
    let mut locking = gateway.begin(ReadMode::Locking).await.expect("begin");
    let table = there.catalog.view().asking_nearby().table(&mut *locking, DEFAULT_DATABASE, "t").await.expect("the table");
    assert_eq!((table.indexes.len(), locking.trips()), (1, 1));
}

#[tokio::test]
async fn a_table_that_has_not_arrived_nearby_is_asked_for_at_a_majority() {
    let gateway = LocalGateway::new();
    let (here, there) = (Session::of(&gateway), Session::of(&gateway));
    gateway.fall_behind();
    here.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    // What was read nearby and at the majority differ.
    assert!(there.table("t").await.expect_err("a conflict").is_retryable());
    assert_eq!(trips(&there).await, 1);
    there.table("t").await.expect("the second attempt reads it once");
    let (mut txn, mut view) = there.begin().await;
    assert_eq!(code(view.table(&mut *txn, DEFAULT_DATABASE, "u").await), "42P01");
    assert_eq!(txn.trips(), 1, "no replica alone says that there is no table");
}

#[tokio::test]
async fn a_replica_that_lags_costs_a_conflict_and_the_retry_asks_a_majority() {
    let gateway = LocalGateway::new();
    let (here, there) = (Session::of(&gateway), Session::of(&gateway));
    here.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    gateway.fall_behind();
    here.create_index(&["b"], true).await.expect("create index");
    let stale = there.insert(&[row(1, 1)]).await.expect_err("the replica nearby does not know the index");
    assert!(stale.is_retryable());
    assert_eq!(trips(&there).await, 1);
    there.insert(&[row(1, 1)]).await.expect("insert");
    assert_eq!(there.table("t").await.expect("the table").indexes.len(), 1);
}

#[tokio::test]
async fn a_transaction_sees_its_own_definitions_and_no_one_elses_before_they_commit() {
    let gateway = LocalGateway::new();
    let (here, there) = (Session::of(&gateway), Session::of(&gateway));
    let (mut txn, mut view) = here.begin().await;
    view.create_table(&mut *txn, DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[]), false).await.expect("create");
    let table = view.table(&mut *txn, DEFAULT_DATABASE, "t").await.expect("its own table");
    insert(&mut *txn, &table, &[row(1, 1)], &OnConflict::Error, &mut Beside::default()).await.expect("insert");
    let index = IndexSpec { name: Some("i".into()), table: "t".into(), unique: true, constraint: false, columns: vec!["b".into()] };
    view.create_index(&mut *txn, DEFAULT_DATABASE, &index, false).await.expect("create index");
    let table = view.table(&mut *txn, DEFAULT_DATABASE, "t").await.expect("its own table");
    assert_eq!(table.index("i").map(|index| index.columns.clone()), Some(vec![1]));
    let error = insert(&mut *txn, &table, &[row(2, 1)], &OnConflict::Error, &mut Beside::default()).await.expect_err("a duplicate");
    assert_eq!(error.constraint(), Some("i"));
    assert_eq!(code(there.table("t").await), "42P01");
    txn.rollback().await;
    assert_eq!(code(here.table("t").await), "42P01");
}

#[tokio::test]
async fn an_index_is_filled_from_the_rows_there_are() {
    let session = Session::of(&LocalGateway::new());
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    session.insert(&[row(1, 9), row(2, 8), row(3, 9)]).await.expect("insert");
    let error = session.create_index(&["b"], true).await.expect_err("9 is there twice");
    assert_eq!(error.message(), "could not create unique index \"t_b_idx\"");
    assert_eq!(error.detail(), Some("Key (b)=(9) is duplicated."));
    session.create_index(&["b"], false).await.expect("create index");
    session.create_index(&["b"], false).await.expect("another of the same columns");
    let table = session.table("t").await.expect("the table");
    assert_eq!(table.indexes[1].name, "t_b_idx1");
    let (mut txn, _) = session.begin().await;
    let by_b = ScanSpec::all(SearchedIndex::Secondary(table.indexes[0].id));
    let page = Cursor::open(table, by_b).expect("a scan").next_page(&mut *txn).await.expect("a page");
    assert_eq!(page, [row(2, 8), row(1, 9), row(3, 9)]);
}

#[tokio::test]
async fn too_many_rows_are_not_indexed_in_one_transaction() {
    let session = Session::of(&LocalGateway::new());
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    let rows: Vec<Row> = (0..=BACKFILL_ROWS_MAX as i32).map(|id| row(id, id)).collect();
    session.insert(&rows).await.expect("insert");
    let error = session.create_index(&["b"], false).await.expect_err("too many rows");
    assert_eq!(error.state().code(), "54000");
    assert_eq!(error.message(), "table \"t\" has more than 50000 rows, too many to index in one transaction");
}

#[tokio::test]
async fn an_index_created_while_a_row_is_inserted_conflicts_with_it() {
    let gateway = LocalGateway::new();
    let session = Session::of(&gateway);
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    let (mut txn, mut view) = session.begin().await;
    let table = view.table(&mut *txn, DEFAULT_DATABASE, "t").await.expect("the table");
    insert(&mut *txn, &table, &[row(1, 1)], &OnConflict::Error, &mut Beside::default()).await.expect("insert");
    Session::of(&gateway).create_index(&["b"], false).await.expect("create index");
    assert!(finish(txn, view).await.expect_err("the row would be missing from the index").is_retryable());
}

#[tokio::test]
async fn what_was_dropped_is_reclaimed_and_nothing_else() {
    let session = Session::of(&LocalGateway::new());
    let drop_index = async |name: &str| {
        let (mut txn, mut view) = session.begin().await;
        let dropped = view.drop_index(&mut *txn, DEFAULT_DATABASE, name, false, false).await?;
        finish(txn, view).await.map(|()| dropped)
    };
    session.create_table(DEFAULT_DATABASE, &spec("kept", Some(&["a"]), &[])).await.expect("create");
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    session.create_index(&["b"], false).await.expect("create index");
    let rows: Vec<Row> = (0..3_000).map(|id| row(id, id)).collect();
    session.insert(&rows).await.expect("insert");
    let before = session.gateway.live_keys();

    assert_eq!(code(drop_index("t_pkey").await), "2BP01");
    assert_eq!(code(drop_index("t").await), "42809");
    assert_eq!(code(drop_index("nothing").await), "42704");
    assert!(drop_index("t_b_idx").await.expect("drop"));
    while reclaim(&session.gateway).await.expect("reclaim") {}
    assert_eq!(session.gateway.live_keys(), before - 3_000 - 1);
    assert_eq!(session.table("t").await.expect("the table").indexes, []);

    session.drop_table("t").await.expect("drop");
    assert_eq!(code(session.table("t").await), "42P01");
    let background =
        tokio::spawn(keep_reclaiming(Arc::new(session.gateway.clone()), Duration::from_millis(1), Arc::new(System::default())));
    while session.gateway.live_keys() > before - 6_000 - 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    background.abort();
    assert_eq!(session.gateway.live_keys(), before - 6_000 - 3);
    session.table("kept").await.expect("the other table");
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create again");
    session.insert(&[row(1, 1)]).await.expect("an empty table");
}

/// Each of two reads shows what was there when it was made. What does not fit together is no reason to refuse the statement for good.
#[tokio::test]
async fn an_index_whose_table_changes_while_it_is_dropped_is_a_conflict() {
    use crate::catalog::layout::{Entry, relation_key};
    let gateway = LocalGateway::new();
    let session = Session::of(&gateway);
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create table");
    for table in ["t", "gone"] {
        let (mut txn, mut view) = session.begin().await;
        let database = view.fresh_database(&mut *txn, DEFAULT_DATABASE).await.expect("the database");
        view.write(&mut *txn, relation_key(database.id, "dropped_idx"), &Entry::Index(table.into())).expect("written");
        let error = view.drop_index(&mut *txn, DEFAULT_DATABASE, "dropped_idx", true, false).await.expect_err("they do not fit");
        assert_eq!(error.state().code(), "40001", "{error:?}");
    }
}

#[tokio::test]
async fn dropped_rows_are_reclaimed_by_their_bytes_until_none_is_left() {
    let session = Session::of(&LocalGateway::new());
    session.create_table(DEFAULT_DATABASE, &spec("t", Some(&["a"]), &[])).await.expect("create");
    let table = session.table("t").await.expect("the table");
    let (mut txn, mut view) = session.begin().await;
    let database = view.database(&mut *txn, DEFAULT_DATABASE).await.expect("the database");
    let prefix = data_prefix(database.id, Some(table.id));
    let before = session.gateway.live_keys();
    let mut txn = session.gateway.begin(ReadMode::Locking).await.expect("begin");
    for number in 0..1_000_u32 {
        let key = [&prefix[..], &number.to_be_bytes(), &[b'x'; 4_000]].concat();
        let value = vec![0; if number % 100 == 99 { 2 * garbage::RECLAIM_BYTES } else { 10 }];
        txn.put(Key::new(key), Value::new(value)).expect("put");
    }
    txn.commit().await.expect("commit");
    session.drop_table("t").await.expect("drop");
    session.gateway.bound_commits(1 << 20);
    // Whoever stops after any of the transactions leaves the rest to the next one.
    while reclaim(&session.gateway.clone()).await.expect("each transaction fits") {}
    assert_eq!(session.gateway.live_keys(), before - 2, "the names of the table and of its primary key");
}
