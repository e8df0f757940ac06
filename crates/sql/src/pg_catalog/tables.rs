//! The system tables, made from the descriptors.

use super::maker::{Maker, flag, list, number, text};
use super::oids::{
    BTREE_OID, HEAP_OID, INFORMATION_SCHEMA_OID, OWNER_OID, PG_CATALOG_OID, PG_CLASS_OID, PUBLIC_OID, check_oid, foreign_key_oid,
    index_oid, indexes, relation_oid, table_oid,
};
use super::type_names::{ALL_TYPES, short_name};
use crate::schema::{Action, DatabaseDescriptor, Identity, ProcedureDescriptor, SequenceDescriptor, TableDescriptor, TableId};
use crate::types::{Element, SqlType};
use datafusion::common::Result;
use datafusion::logical_expr::TableSource;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The system tables that can be read.
pub const NAMES: [&str; 17] = [
    "pg_am",
    "pg_attrdef",
    "pg_attribute",
    "pg_class",
    "pg_collation",
    "pg_constraint",
    "pg_database",
    "pg_depend",
    "pg_description",
    "pg_enum",
    "pg_index",
    "pg_namespace",
    "pg_opclass",
    "pg_proc",
    "pg_roles",
    "pg_sequence",
    "pg_type",
];

/// Makes all system tables.
pub fn make(
    databases: &[Arc<DatabaseDescriptor>],
    user_tables: &[Arc<TableDescriptor>],
    sequences: &[Arc<SequenceDescriptor>],
    procedures: &[Arc<ProcedureDescriptor>],
    user: &str,
) -> Result<BTreeMap<String, Arc<dyn TableSource>>> {
    let mut tables = BTreeMap::new();
    for maker in [
        classes(user_tables, sequences),
        attributes(user_tables),
        defaults(user_tables),
        indexes_table(user_tables),
        constraints(user_tables),
    ] {
        maker.finish(&mut tables)?;
    }
    for maker in [
        namespaces(),
        access_methods(),
        types(),
        databases_table(databases),
        roles(user),
        super::procedures::table(procedures),
        sequences_table(sequences),
        dependencies(user_tables, sequences),
    ] {
        maker.finish(&mut tables)?;
    }
    Maker::new("pg_opclass")
        .numbers(&["oid", "opcmethod", "opcnamespace", "opcintype"])
        .texts(&["opcname"])
        .flags(&["opcdefault"])
        .finish(&mut tables)?;
    Maker::new("pg_enum").numbers(&["oid", "enumtypid", "enumsortorder"]).texts(&["enumlabel"]).finish(&mut tables)?;
    Maker::new("pg_collation").numbers(&["oid", "collnamespace"]).texts(&["collname"]).finish(&mut tables)?;
    Maker::new("pg_description").numbers(&["objoid", "classoid", "objsubid"]).texts(&["description"]).finish(&mut tables)?;
    Ok(tables)
}

fn classes(tables: &[Arc<TableDescriptor>], sequences: &[Arc<SequenceDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_class")
        .numbers(&["oid", "relnamespace", "reltype", "reloftype", "relowner", "relam", "relfilenode", "reltablespace", "relpages"])
        .numbers(&["reltuples", "reltoastrelid", "relnatts", "relchecks"])
        .texts(&["relname", "relpersistence", "relkind", "relreplident", "relpartbound"])
        .text_lists(&["relacl", "reloptions"])
        .flags(&["relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass", "relrowsecurity"])
        .flags(&["relforcerowsecurity", "relispopulated", "relispartition"]);
    let relation = |oid: i64, name: &str, kind: &str, method: i64, columns: usize, checks: usize| {
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
            ("relchecks", number(checks as i64)),
            ("relispopulated", flag(true)),
        ]
    };
    for table in tables {
        maker.row(&relation(table_oid(table), &table.name, "r", HEAP_OID, table.visible_columns().count(), table.checks.len()));
        for (index, name, columns, _) in indexes(table) {
            maker.row(&relation(index_oid(table, index), name, "i", BTREE_OID, columns.len(), 0));
        }
    }
    for sequence in sequences {
        maker.row(&relation(relation_oid(sequence.id), &sequence.name, "S", 0, 3, 0));
    }
    maker
}

fn attributes(tables: &[Arc<TableDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_attribute")
        .numbers(&["attrelid", "atttypid", "attstattarget", "attlen", "attnum", "attndims", "atttypmod", "attcollation"])
        .texts(&["attname", "attidentity", "attgenerated", "attstorage", "attcompression"])
        .flags(&["attnotnull", "atthasdef", "attisdropped"]);
    for table in tables {
        for position in table.visible_columns() {
            let column = &table.columns[position];
            maker.row(&[
                ("attrelid", number(table_oid(table))),
                ("atttypid", number(i64::from(column.ty.oid()))),
                ("attlen", number(i64::from(column.ty.type_length()))),
                ("attnum", number(i64::from(column.id))),
                ("atttypmod", number(i64::from(column.ty.type_modifier()))),
                ("attname", text(column.name.as_str())),
                ("attidentity", text(identity_code(column.identity))),
                ("attgenerated", text("")),
                ("attnotnull", flag(!column.nullable)),
                ("atthasdef", flag(column.default.is_some())),
            ]);
        }
    }
    maker
}

fn identity_code(identity: Option<Identity>) -> &'static str {
    match identity {
        None => "",
        Some(Identity::Always) => "a",
        Some(Identity::ByDefault) => "d",
    }
}

fn sequences_table(sequences: &[Arc<SequenceDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_sequence")
        .numbers(&["seqrelid", "seqtypid", "seqstart", "seqincrement", "seqmax", "seqmin", "seqcache"])
        .flags(&["seqcycle"]);
    for sequence in sequences {
        maker.row(&[
            ("seqrelid", number(relation_oid(sequence.id))),
            ("seqtypid", number(i64::from(sequence.ty.oid()))),
            ("seqstart", number(sequence.start)),
            ("seqincrement", number(sequence.increment)),
            ("seqmax", number(sequence.max)),
            ("seqmin", number(sequence.min)),
            ("seqcache", number(i64::from(sequence.cache.unwrap_or(1)))),
            ("seqcycle", flag(sequence.cycle)),
        ]);
    }
    maker
}

/// The columns that sequences go with: what `pg_depend` is asked for most.
fn dependencies(tables: &[Arc<TableDescriptor>], sequences: &[Arc<SequenceDescriptor>]) -> Maker {
    let mut maker =
        Maker::new("pg_depend").numbers(&["classid", "objid", "objsubid", "refclassid", "refobjid", "refobjsubid"]).texts(&["deptype"]);
    let by_name: BTreeMap<&str, TableId> = sequences.iter().map(|sequence| (sequence.name.as_str(), sequence.id)).collect();
    for table in tables {
        for owned in &table.sequences {
            let Some(&sequence) = by_name.get(owned.name.as_str()) else { continue };
            maker.row(&[
                ("classid", number(PG_CLASS_OID)),
                ("objid", number(relation_oid(sequence))),
                ("refclassid", number(PG_CLASS_OID)),
                ("refobjid", number(table_oid(table))),
                ("refobjsubid", number(i64::from(owned.column))),
                ("deptype", text(if owned.identity { "i" } else { "a" })),
            ]);
        }
    }
    maker
}

fn defaults(tables: &[Arc<TableDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_attrdef").numbers(&["oid", "adrelid", "adnum"]).texts(&["adbin"]);
    for table in tables {
        for position in table.visible_columns() {
            let column = &table.columns[position];
            if let Some(default) = &column.default {
                maker.row(&[
                    ("adrelid", number(table_oid(table))),
                    ("adnum", number(i64::from(column.id))),
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
        .flags(&["indislive", "indisreplident", "indnullsnotdistinct"])
        .vectors(&["indkey", "indoption", "indclass", "indcollation"])
        .texts(&["indpred", "indexprs"]);
    for table in tables {
        for (index, _, columns, unique) in indexes(table) {
            maker.row(&[
                ("indexrelid", number(index_oid(table, index))),
                ("indrelid", number(table_oid(table))),
                ("indnatts", number(columns.len() as i64)),
                ("indnkeyatts", number(columns.len() as i64)),
                ("indkey", list(columns.iter().map(|column| table.columns[*column].id))),
                ("indoption", list(columns.iter().map(|_| 0))),
                ("indclass", list(columns.iter().map(|_| 0))),
                ("indcollation", list(columns.iter().map(|_| 0))),
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
        .texts(&["conname", "contype", "confupdtype", "confdeltype", "confmatchtype", "conbin"])
        .lists(&["conkey", "confkey"])
        .flags(&["condeferrable", "condeferred", "convalidated", "conislocal", "connoinherit"]);
    for table in tables {
        let constraint = |oid: i64, index: i64, name: &str, kind: &str, columns: &[usize]| {
            [
                ("conkey", list(columns.iter().map(|column| table.columns[*column].id))),
                ("conislocal", flag(true)),
                ("oid", number(oid)),
                ("connamespace", number(PUBLIC_OID)),
                ("conrelid", number(table_oid(table))),
                ("conindid", number(index)),
                ("conname", text(name)),
                ("contype", text(kind)),
                ("convalidated", flag(true)),
            ]
        };
        for (index, name, columns, _) in indexes(table).filter(|(index, ..)| index.is_none_or(|index| index.constraint)) {
            let oid = index_oid(table, index);
            maker.row(&constraint(oid, oid, name, if index.is_none() { "p" } else { "u" }, columns));
        }
        for (place, check) in table.checks.iter().enumerate() {
            let own = [("conbin", text(check.condition.as_str()))];
            maker.row(&[&constraint(check_oid(table, place), 0, &check.name, "c", &check.columns)[..], &own[..]].concat());
        }
        for (place, foreign) in table.foreign_keys.iter().enumerate() {
            let parent = tables.iter().find(|parent| parent.name == foreign.parent);
            let key = parent.and_then(|parent| Some((parent, parent.unique_over(&parent.positions_of(&foreign.parent_columns)?)?)));
            let index = key.map_or(0, |(parent, index)| index_oid(parent, index));
            let common = constraint(foreign_key_oid(table, place), index, &foreign.name, "f", &foreign.columns);
            let own = [
                ("confrelid", number(parent.map_or(0, |parent| table_oid(parent)))),
                ("confkey", list(foreign.parent_columns.iter().copied())),
                ("confupdtype", text(action_code(foreign.on_update))),
                ("confdeltype", text(action_code(foreign.on_delete))),
                ("confmatchtype", text("s")),
                ("condeferrable", flag(foreign.deferrable)),
                ("condeferred", flag(foreign.initially_deferred)),
            ];
            maker.row(&[&common[..], &own[..]].concat());
        }
    }
    maker
}

fn action_code(action: Action) -> &'static str {
    match action {
        Action::NoAction => "a",
        Action::Restrict => "r",
        Action::Cascade => "c",
        Action::SetNull => "n",
        Action::SetDefault => "d",
    }
}

fn namespaces() -> Maker {
    let mut maker = Maker::new("pg_namespace").numbers(&["oid", "nspowner"]).texts(&["nspname"]).text_lists(&["nspacl"]);
    for (oid, name) in [(PG_CATALOG_OID, "pg_catalog"), (INFORMATION_SCHEMA_OID, "information_schema"), (PUBLIC_OID, "public")] {
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
    let mut ty = |ty: &SqlType, name: String, element: u32, array: u32| {
        maker.row(&[
            ("oid", number(i64::from(ty.oid()))),
            ("typnamespace", number(PG_CATALOG_OID)),
            ("typowner", number(OWNER_OID)),
            ("typlen", number(i64::from(ty.type_length()))),
            ("typelem", number(i64::from(element))),
            ("typarray", number(i64::from(array))),
            ("typtypmod", number(-1)),
            ("typname", text(name)),
            ("typtype", text("b")),
            ("typcategory", text(if element == 0 { category(ty) } else { "A" })),
            ("typdelim", text(",")),
            ("typisdefined", flag(true)),
        ]);
    };
    for scalar in ALL_TYPES {
        let array = Element::try_from(scalar).map_or(scalar, SqlType::Array);
        ty(&scalar, short_name(&scalar).to_owned(), 0, array.oid());
        ty(&array, short_name(&array).to_owned(), scalar.oid(), 0);
    }
    maker
}

/// PostgreSQL's `typcategory`.
fn category(ty: &SqlType) -> &'static str {
    match ty {
        SqlType::Bool => "B",
        SqlType::Date | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => "D",
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => "S",
        SqlType::Interval => "T",
        SqlType::Bytea | SqlType::Uuid => "U",
        SqlType::Array(_) => "A",
        _ => "N",
    }
}

fn databases_table(databases: &[Arc<DatabaseDescriptor>]) -> Maker {
    let mut maker = Maker::new("pg_database")
        .numbers(&["oid", "datdba", "encoding", "datconnlimit", "dattablespace"])
        .texts(&["datname", "datcollate", "datctype", "daticulocale", "datlocprovider"])
        .text_lists(&["datacl"])
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
