//! The system tables, made from the descriptors. Numbers of objects (OIDs) are derived from their ids.

use crate::engine::batch_of;
use crate::schema::{DatabaseDescriptor, Index, ProcedureDescriptor, TableDescriptor};
use crate::types::{Datum, SqlType};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::TableSource;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The system tables that can be read.
pub const NAMES: [&str; 13] = [
    "pg_am",
    "pg_attrdef",
    "pg_attribute",
    "pg_class",
    "pg_collation",
    "pg_constraint",
    "pg_database",
    "pg_description",
    "pg_index",
    "pg_namespace",
    "pg_proc",
    "pg_roles",
    "pg_type",
];

/// PostgreSQL gives numbers from here on to what users create.
pub const FIRST_USER_OID: i64 = 16_384;
/// Indexes are numbered beyond all tables.
const FIRST_INDEX_OID: i64 = 1 << 33;
const INDEXES_PER_TABLE: i64 = 1 << 10;
const PG_CATALOG_OID: i64 = 11;
/// The schema of all tables and procedures.
pub const PUBLIC_OID: i64 = 2_200;
/// The user that owns them.
pub const OWNER_OID: i64 = 10;
const BTREE_OID: i64 = 403;
const HEAP_OID: i64 = 2;

/// The number of a table.
pub fn table_oid(table: &TableDescriptor) -> i64 {
    FIRST_USER_OID + i64::from(table.id.0)
}

/// The number of an index of a table; `None` is the primary key.
pub fn index_oid(table: &TableDescriptor, index: Option<&Index>) -> i64 {
    FIRST_INDEX_OID + i64::from(table.id.0) * INDEXES_PER_TABLE + index.map_or(0, |index| i64::from(index.id.0))
}

/// The primary key and the secondary indexes of a table: which, its name, its columns, whether it is unique.
pub fn indexes(table: &TableDescriptor) -> impl Iterator<Item = (Option<&Index>, &str, &[usize], bool)> {
    let visible = !table.primary_key.iter().any(|&column| table.columns[column].hidden);
    let primary = visible.then_some((None, table.primary_key_name.as_str(), table.primary_key.as_slice(), true));
    let secondary = table.indexes.iter().map(|index| (Some(index), index.name.as_str(), index.columns.as_slice(), index.unique));
    primary.into_iter().chain(secondary)
}

/// A text.
pub fn text(value: impl Into<String>) -> Datum {
    Datum::Utf8(Some(value.into()))
}

/// A number.
pub fn number(value: impl Into<i64>) -> Datum {
    Datum::Int64(Some(value.into()))
}

fn flag(value: bool) -> Datum {
    Datum::Boolean(Some(value))
}

/// A table being made: its columns, then its rows in that order.
pub struct Maker {
    name: &'static str,
    columns: Vec<(&'static str, DataType)>,
    rows: Vec<Vec<Datum>>,
}

impl Maker {
    /// A table without columns.
    pub fn new(name: &'static str) -> Maker {
        Maker { name, columns: Vec::new(), rows: Vec::new() }
    }

    /// Numbers, OIDs among them.
    pub fn numbers(self, names: &[&'static str]) -> Maker {
        self.columns(names, DataType::Int64)
    }

    /// Texts.
    pub fn texts(self, names: &[&'static str]) -> Maker {
        self.columns(names, DataType::Utf8)
    }

    /// Truth values.
    pub fn flags(self, names: &[&'static str]) -> Maker {
        self.columns(names, DataType::Boolean)
    }

    fn columns(mut self, names: &[&'static str], ty: DataType) -> Maker {
        self.columns.extend(names.iter().map(|name| (*name, ty.clone())));
        self
    }

    /// A row: the columns that matter; the others get 0, false or NULL.
    pub fn row(&mut self, values: &[(&str, Datum)]) {
        let value = |(name, ty): &(&'static str, DataType)| {
            let given = values.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
            given.unwrap_or(match ty {
                DataType::Int64 => number(0),
                DataType::Boolean => flag(false),
                _ => Datum::Utf8(None),
            })
        };
        self.rows.push(self.columns.iter().map(value).collect());
    }

    fn finish(self, tables: &mut BTreeMap<String, Arc<dyn TableSource>>) -> Result<()> {
        let fields: Vec<Field> = self.columns.iter().map(|(name, ty)| Field::new(*name, ty.clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let batch = batch_of(&schema, self.rows.len(), |row, column| self.rows[row][column].clone())?;
        tables.insert(self.name.to_string(), provider_as_source(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)));
        Ok(())
    }
}

/// Makes all system tables.
pub fn make(
    databases: &[Arc<DatabaseDescriptor>],
    user_tables: &[Arc<TableDescriptor>],
    procedures: &[Arc<ProcedureDescriptor>],
    user: &str,
) -> Result<BTreeMap<String, Arc<dyn TableSource>>> {
    let mut tables = BTreeMap::new();
    for maker in
        [classes(user_tables), attributes(user_tables), defaults(user_tables), indexes_table(user_tables), constraints(user_tables)]
    {
        maker.finish(&mut tables)?;
    }
    for maker in [namespaces(), access_methods(), types(), databases_table(databases), roles(user), super::procedures::table(procedures)] {
        maker.finish(&mut tables)?;
    }
    Maker::new("pg_collation").numbers(&["oid", "collnamespace"]).texts(&["collname"]).finish(&mut tables)?;
    Maker::new("pg_description").numbers(&["objoid", "classoid", "objsubid"]).texts(&["description"]).finish(&mut tables)?;
    Ok(tables)
}

fn classes(tables: &[Arc<TableDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_class")
        .numbers(&["oid", "relnamespace", "reltype", "reloftype", "relowner", "relam", "relfilenode", "reltablespace", "relpages"])
        .numbers(&["reltuples", "reltoastrelid", "relnatts", "relchecks"])
        .texts(&["relname", "relpersistence", "relkind", "relreplident", "relacl", "reloptions", "relpartbound"])
        .flags(&["relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass", "relrowsecurity"])
        .flags(&["relforcerowsecurity", "relispopulated", "relispartition"]);
    for table in tables {
        let relation = |oid: i64, name: &str, kind: &str, method: i64, columns: usize| {
            [
                ("oid", number(oid)),
                ("relnamespace", number(PUBLIC_OID)),
                ("relowner", number(OWNER_OID)),
                ("relam", number(method)),
                ("relnatts", number(columns as i64)),
                ("relname", text(name)),
                ("relpersistence", text("p")),
                ("relkind", text(kind)),
                ("relreplident", text("d")),
                ("relhasindex", flag(kind == "r")),
                ("relispopulated", flag(true)),
            ]
        };
        maker.row(&relation(table_oid(table), &table.name, "r", HEAP_OID, table.visible_columns().count()));
        for (index, name, columns, _) in indexes(table) {
            maker.row(&relation(index_oid(table, index), name, "i", BTREE_OID, columns.len()));
        }
    }
    maker
}

fn attributes(tables: &[Arc<TableDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_attribute")
        .numbers(&["attrelid", "atttypid", "attstattarget", "attlen", "attnum", "attndims", "atttypmod", "attcollation"])
        .texts(&["attname", "attidentity", "attgenerated", "attstorage", "attcompression"])
        .flags(&["attnotnull", "atthasdef", "attisdropped"]);
    for table in tables {
        for (number_of, position) in table.visible_columns().enumerate() {
            let column = &table.columns[position];
            maker.row(&[
                ("attrelid", number(table_oid(table))),
                ("atttypid", number(i64::from(column.ty.oid()))),
                ("attlen", number(i64::from(column.ty.type_length()))),
                ("attnum", number(number_of as i64 + 1)),
                ("atttypmod", number(i64::from(column.ty.type_modifier()))),
                ("attname", text(column.name.as_str())),
                ("attidentity", text("")),
                ("attgenerated", text("")),
                ("attnotnull", flag(!column.nullable)),
                ("atthasdef", flag(column.default.is_some())),
            ]);
        }
    }
    maker
}

fn defaults(tables: &[Arc<TableDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_attrdef").numbers(&["oid", "adrelid", "adnum"]).texts(&["adbin"]);
    for table in tables {
        for (number_of, position) in table.visible_columns().enumerate() {
            if let Some(default) = &table.columns[position].default {
                maker.row(&[
                    ("adrelid", number(table_oid(table))),
                    ("adnum", number(number_of as i64 + 1)),
                    ("adbin", text(default.as_str())),
                ]);
            }
        }
    }
    maker
}

fn indexes_table(tables: &[Arc<TableDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_index")
        .numbers(&["indexrelid", "indrelid", "indnatts", "indnkeyatts"])
        .flags(&["indisunique", "indisprimary", "indisexclusion", "indimmediate", "indisclustered", "indisvalid", "indisready"])
        .flags(&["indislive", "indisreplident"])
        .texts(&["indkey", "indpred", "indexprs"]);
    for table in tables {
        for (index, _, columns, unique) in indexes(table) {
            maker.row(&[
                ("indexrelid", number(index_oid(table, index))),
                ("indrelid", number(table_oid(table))),
                ("indnatts", number(columns.len() as i64)),
                ("indisunique", flag(unique)),
                ("indisprimary", flag(index.is_none())),
                ("indisvalid", flag(true)),
                ("indisready", flag(true)),
                ("indislive", flag(true)),
            ]);
        }
    }
    maker
}

fn constraints(tables: &[Arc<TableDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_constraint")
        .numbers(&["oid", "connamespace", "conrelid", "conindid", "confrelid", "conparentid", "contypid"])
        .texts(&["conname", "contype"])
        .flags(&["condeferrable", "condeferred", "convalidated"]);
    for table in tables {
        for (index, name, ..) in indexes(table).filter(|(index, ..)| index.is_none()) {
            maker.row(&[
                ("oid", number(index_oid(table, index))),
                ("connamespace", number(PUBLIC_OID)),
                ("conrelid", number(table_oid(table))),
                ("conindid", number(index_oid(table, index))),
                ("conname", text(name)),
                ("contype", text("p")),
                ("convalidated", flag(true)),
            ]);
        }
    }
    maker
}

fn namespaces() -> Maker {
    let mut maker = Maker::new("pg_namespace").numbers(&["oid", "nspowner"]).texts(&["nspname", "nspacl"]);
    for (oid, name) in [(PG_CATALOG_OID, "pg_catalog"), (PUBLIC_OID, "public")] {
        maker.row(&[("oid", number(oid)), ("nspowner", number(OWNER_OID)), ("nspname", text(name))]);
    }
    maker
}

fn access_methods() -> Maker {
    let mut maker = Maker::new("pg_am").numbers(&["oid"]).texts(&["amname", "amtype"]);
    for (oid, name, kind) in [(HEAP_OID, "heap", "t"), (BTREE_OID, "btree", "i")] {
        maker.row(&[("oid", number(oid)), ("amname", text(name)), ("amtype", text(kind))]);
    }
    maker
}

fn types() -> Maker {
    let mut maker = Maker::new("pg_type")
        .numbers(&["oid", "typnamespace", "typowner", "typlen", "typrelid", "typelem", "typarray", "typbasetype", "typtypmod"])
        .numbers(&["typcollation", "typsubscript"])
        .texts(&["typname", "typtype", "typcategory", "typdelim"])
        .flags(&["typisdefined", "typnotnull", "typisarray"]);
    for ty in super::functions::ALL_TYPES {
        maker.row(&[
            ("oid", number(i64::from(ty.oid()))),
            ("typnamespace", number(PG_CATALOG_OID)),
            ("typowner", number(OWNER_OID)),
            ("typlen", number(i64::from(ty.type_length()))),
            ("typtypmod", number(-1)),
            ("typname", text(short_name(&ty))),
            ("typtype", text("b")),
            ("typdelim", text(",")),
            ("typisdefined", flag(true)),
        ]);
    }
    maker
}

/// The name of a type in `pg_type`.
pub fn short_name(ty: &SqlType) -> &'static str {
    match ty {
        SqlType::Bool => "bool",
        SqlType::Int2 => "int2",
        SqlType::Int4 => "int4",
        SqlType::Int8 => "int8",
        SqlType::Float4 => "float4",
        SqlType::Float8 => "float8",
        SqlType::Char(_) => "bpchar",
        SqlType::Varchar(_) => "varchar",
        SqlType::Time => "time",
        SqlType::Timestamp => "timestamp",
        SqlType::TimestampTz => "timestamptz",
        other => other.name(),
    }
}

fn databases_table(databases: &[Arc<DatabaseDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_database")
        .numbers(&["oid", "datdba", "encoding", "datconnlimit", "dattablespace"])
        .texts(&["datname", "datcollate", "datctype", "daticulocale", "datlocprovider", "datacl"])
        .flags(&["datistemplate", "datallowconn"]);
    for (position, database) in databases.iter().enumerate() {
        maker.row(&[
            ("oid", number(position as i64 + 1)),
            ("datdba", number(OWNER_OID)),
            ("encoding", number(6)),
            ("datconnlimit", number(-1)),
            ("datname", text(database.name.as_str())),
            ("datcollate", text("C")),
            ("datctype", text("C")),
            ("datlocprovider", text("c")),
            ("datallowconn", flag(true)),
        ]);
    }
    maker
}

fn roles(user: &str) -> Maker {
    let mut maker = Maker::new("pg_roles").numbers(&["oid"]).texts(&["rolname"]).flags(&["rolsuper", "rolcanlogin"]);
    maker.row(&[("oid", number(OWNER_OID)), ("rolname", text(user)), ("rolsuper", flag(true)), ("rolcanlogin", flag(true))]);
    maker
}
