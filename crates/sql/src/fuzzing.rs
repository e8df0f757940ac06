//! The decoders of this crate as fuzz targets call them. Part of no product build.

use crate::context::environment::System;
use crate::engine::Engine;
use crate::error::SqlResult;
use crate::protocols::Gateways;
use crate::schema::{Column, DatabaseId, TableDescriptor, TableId};
use crate::session::Described;
use crate::stack::LargeStack;
use crate::storage::{PRIMARY, Row, index_prefix};
use crate::types::{Datum, SqlType};
use bytes::BytesMut;
use rhumb_core::{Key, SiteId, Value};
use rhumb_quota::gateway::Quotas;
use std::sync::Arc;

pub use crate::session::{Lines, Session, Tuples, fields};
pub use crate::types::samples::TYPES;
pub use crate::types::wire::{Format, read_parameter};

/// The field of a row that holds `value`, as a parameter of the same format gives it: without its length.
pub fn written(ty: &SqlType, value: &Datum, format: Format) -> SqlResult<Option<BytesMut>> {
    let mut field = BytesMut::new();
    crate::types::wire::put_field(&mut field, ty, value, format)?;
    let value = field.split_off(size_of::<i32>());
    Ok(if field[..] == (-1i32).to_be_bytes() { None } else { Some(value) })
}

/// A table of two columns, the first of which is its primary key.
pub fn table(key: SqlType, value: SqlType) -> TableDescriptor {
    let column = |id, ty, nullable| Column { nullable, ..Column::new(id, format!("column{id}"), ty) };
    TableDescriptor {
        database: DatabaseId(1),
        id: TableId(2),
        name: "fuzzed".into(),
        columns: vec![column(1, key, false), column(2, value, true)],
        primary_key: vec![0],
        primary_key_name: "fuzzed_pkey".into(),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        sequences: Vec::new(),
        next_column: 3,
        next_index: 1,
    }
}

/// The key of the row of `table` whose primary key is encoded as `columns`.
pub fn row_key(table: &TableDescriptor, columns: &[u8]) -> Key {
    Key::new([&index_prefix(table.database, table.id, PRIMARY), columns].concat())
}

/// The key and the value of a row.
pub fn encode_row(table: &TableDescriptor, row: &Row) -> SqlResult<(Key, Value)> {
    crate::storage::encode_row(table, row)
}

/// A session over these.
pub async fn session(gateways: Gateways, quotas: Arc<dyn Quotas>) -> SqlResult<Session> {
    let engine = Engine::new(gateways, Some(quotas), SiteId::new(0, 0), Arc::new(System::default()))?;
    Session::open(Arc::new(engine), "fuzzer".into(), crate::schema::DEFAULT_DATABASE.into(), 1).await
}

/// Runs the statements of a text that answer without rows.
pub async fn run(session: &mut Session, sql: &str) -> SqlResult<()> {
    let run = async {
        for prepared in session.parse(sql)?.iter() {
            session.execute(prepared, &[], crate::session::Company::Alone).await?;
        }
        Ok(())
    };
    LargeStack::new(run).await
}

/// Plans the statements of a text.
pub async fn plan(session: &mut Session, sql: &str) -> SqlResult<Vec<Described>> {
    let plan = async {
        let mut described = Vec::new();
        for prepared in session.parse(sql)?.iter() {
            described.push(session.describe(prepared).await?);
        }
        Ok(described)
    };
    LargeStack::new(plan).await
}
