//! The functions of `pg_catalog` that psql and drivers call on system tables.

use super::oids::{check_oid, foreign_key_oid, index_oid, indexes};
use super::row_function::{function, integer, looked_up, text, yes};
use super::type_names::{ALL_TYPES, short_name};
use crate::parser::quoted;
use crate::schema::{Action, ForeignKey, ProcedureDescriptor, TableDescriptor};
use crate::types::{Datum, SqlType};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{ScalarUDF, ScalarUDFImpl};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The functions, for a database of these tables and procedures.
pub fn make(tables: &[Arc<TableDescriptor>], procedures: &[Arc<ProcedureDescriptor>], user: &str) -> BTreeMap<String, Arc<ScalarUDF>> {
    let index_definitions = definitions(tables, |table, name, columns, unique| {
        let unique = if unique { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX {} ON public.{} USING btree ({columns})", quoted(name), quoted(&table.name))
    });
    let mut constraint_definitions = definitions(tables, |table, name, columns, _| {
        let kind = if table.primary_key_name == name { "PRIMARY KEY" } else { "UNIQUE" };
        format!("{kind} ({columns})")
    });
    for table in tables {
        let checks = table.checks.iter().enumerate();
        constraint_definitions.extend(checks.map(|(place, check)| (check_oid(table, place), format!("CHECK ({})", check.condition))));
        for (place, foreign) in table.foreign_keys.iter().enumerate() {
            let parent = tables.iter().find(|parent| parent.name == foreign.parent);
            constraint_definitions.extend(parent.map(|parent| (foreign_key_oid(table, place), foreign_key(table, foreign, parent))));
        }
    }
    let owner = user.to_string();
    let null = |_: &[Datum]| Datum::Utf8(None);
    let functions = [
        text("array_to_string", null),
        text("col_description", null),
        text("format_type", |values| Datum::Utf8(integer(values, 0).map(|oid| format_type(oid, integer(values, 1))))),
        text("obj_description", null),
        text("pg_encoding_to_char", |_| Datum::Utf8(Some("UTF8".into()))),
        text("pg_get_constraintdef", move |values| looked_up(&constraint_definitions, values)),
        text("pg_get_expr", |values| values.first().cloned().unwrap_or(Datum::Utf8(None))),
        text("pg_get_indexdef", move |values| looked_up(&index_definitions, values)),
        text("pg_get_userbyid", move |_| Datum::Utf8(Some(owner.clone()))),
        text("shobj_description", null),
        yes("pg_table_is_visible"),
        yes("pg_type_is_visible"),
        function("to_regtype", DataType::Int64, |values| Datum::Int64(type_named(values))),
    ];
    let functions = functions.into_iter().chain(super::procedures::functions(procedures));
    functions.map(|function| (function.name().to_string(), Arc::new(ScalarUDF::from(function)))).collect()
}

/// A text for each index, by its number.
fn definitions(tables: &[Arc<TableDescriptor>], text: impl Fn(&TableDescriptor, &str, &str, bool) -> String) -> BTreeMap<i64, String> {
    let of_table = |table: &Arc<TableDescriptor>| {
        indexes(table)
            .map(|(index, name, columns, unique)| {
                let columns: Vec<String> = columns.iter().map(|&column| quoted(&table.columns[column].name)).collect();
                (index_oid(table, index), text(table, name, &columns.join(", "), unique))
            })
            .collect::<Vec<_>>()
    };
    tables.iter().flat_map(of_table).collect()
}

/// A foreign key as PostgreSQL prints it.
fn foreign_key(table: &TableDescriptor, foreign: &ForeignKey, parent: &TableDescriptor) -> String {
    let names = |table: &TableDescriptor, positions: &[usize]| {
        positions.iter().map(|&position| quoted(&table.columns[position].name)).collect::<Vec<_>>().join(", ")
    };
    let referenced = parent.positions_of(&foreign.parent_columns).unwrap_or_default();
    let mut text =
        format!("FOREIGN KEY ({}) REFERENCES {}({})", names(table, &foreign.columns), quoted(&parent.name), names(parent, &referenced));
    for (event, action) in [("UPDATE", foreign.on_update), ("DELETE", foreign.on_delete)] {
        if action != Action::NoAction {
            text += &format!(" ON {event} {}", action.words());
        }
    }
    if foreign.deferrable {
        text += " DEFERRABLE";
    }
    if foreign.initially_deferred {
        text += " INITIALLY DEFERRED";
    }
    text
}

fn format_type(oid: i64, modifier: Option<i64>) -> String {
    let modifier = modifier.and_then(|modifier| i32::try_from(modifier).ok()).unwrap_or(-1);
    let ty = u32::try_from(oid).ok().and_then(|oid| SqlType::from_oid(oid, modifier));
    ty.map_or_else(|| "???".to_string(), |ty| ty.to_string())
}

fn type_named(values: &[Datum]) -> Option<i64> {
    let name = values.first()?.to_string().to_lowercase();
    let found = ALL_TYPES.iter().find(|ty| ty.name() == name || short_name(ty) == name);
    found.map(|ty| i64::from(ty.oid()))
}
