//! The numbers of objects (OIDs), derived from their ids.

use crate::schema::{Index, TableDescriptor, TableId};

/// PostgreSQL gives numbers from here on to what users create.
pub const FIRST_USER_OID: i64 = 16_384;
/// What belongs to tables is numbered beyond all of them. Clients hold a number in 32 bits.
const FIRST_PART_OID: i64 = 1 << 31;
/// The indexes of a table that have numbers of their own, and as many constraints of each kind; what is beyond has one by chance.
const PARTS_OF_KIND: i64 = 32;
const KINDS: i64 = 4;
/// PostgreSQL's own number of the schema `pg_catalog`.
pub const PG_CATALOG_OID: i64 = 11;
/// The schema `information_schema`.
pub const INFORMATION_SCHEMA_OID: i64 = 13_000;
/// PostgreSQL's own number of the table `pg_class`.
pub const PG_CLASS_OID: i64 = 1_259;
/// The schema of all tables and procedures.
pub const PUBLIC_OID: i64 = 2_200;
/// The user that owns them.
pub const OWNER_OID: i64 = 10;
/// PostgreSQL's own number of the access method of indexes.
pub const BTREE_OID: i64 = 403;
/// PostgreSQL's own number of the access method of tables.
pub const HEAP_OID: i64 = 2;

/// The number of a table.
pub fn table_oid(table: &TableDescriptor) -> i64 {
    relation_oid(table.id)
}

/// The number of the table or sequence with this id.
pub fn relation_oid(id: TableId) -> i64 {
    FIRST_USER_OID + i64::from(id.0)
}

/// The number of an index of a table; `None` is the primary key.
pub fn index_oid(table: &TableDescriptor, index: Option<&Index>) -> i64 {
    part_oid(table, index.map_or(0, |index| i64::from(index.id.0)), 0)
}

/// The number of the `CHECK` constraint at a place of its table's list.
pub fn check_oid(table: &TableDescriptor, place: usize) -> i64 {
    part_oid(table, place as i64, PARTS_OF_KIND)
}

/// The number of the foreign key at a place of its table's list.
pub fn foreign_key_oid(table: &TableDescriptor, place: usize) -> i64 {
    part_oid(table, place as i64, 2 * PARTS_OF_KIND)
}

fn part_oid(table: &TableDescriptor, number: i64, kind: i64) -> i64 {
    let table = i64::from(table.id.0);
    let part = if number < PARTS_OF_KIND {
        table * KINDS * PARTS_OF_KIND + kind + number
    } else {
        // Fibonacci hashing.
        let mixed = ((table << 32 | kind << 24 | number) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 33) as i64
    };
    FIRST_PART_OID + part % FIRST_PART_OID
}

/// The primary key and the secondary indexes of a table: which, its name, its columns, whether it is unique.
pub fn indexes(table: &TableDescriptor) -> impl Iterator<Item = (Option<&Index>, &str, &[usize], bool)> {
    let visible = !table.primary_key.iter().any(|&column| table.columns[column].hidden);
    let primary = visible.then_some((None, table.primary_key_name.as_str(), table.primary_key.as_slice(), true));
    let secondary = table.indexes.iter().map(|index| (Some(index), index.name.as_str(), index.columns.as_slice(), index.unique));
    primary.into_iter().chain(secondary)
}
