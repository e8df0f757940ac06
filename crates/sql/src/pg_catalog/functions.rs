//! The functions of `pg_catalog` that psql and drivers call on system tables.

use super::oids::{check_oid, foreign_key_oid, index_oid, indexes, relation_oid, table_oid};
use super::plain::{integer, looked_up, text, yes};
use super::type_names::{ALL_TYPES, short_name};
use crate::engine::row_function::function;
use crate::parser::{fold, quoted, spelt};
use crate::schema::{Action, ForeignKey, OwnedSequence, ProcedureDescriptor, SequenceDescriptor, TableDescriptor};
use crate::types::{Datum, SqlType};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{ScalarUDF, ScalarUDFImpl};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The names of all of them, in order.
pub const NAMES: [&str; 23] = [
    "col_description",
    "format_type",
    "has_database_privilege",
    "has_schema_privilege",
    "has_table_privilege",
    "obj_description",
    "pg_collation_is_visible",
    "pg_encoding_to_char",
    "pg_function_is_visible",
    "pg_get_constraintdef",
    "pg_get_expr",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_indexdef",
    "pg_get_serial_sequence",
    "pg_get_userbyid",
    "pg_table_is_visible",
    "pg_type_is_visible",
    CLASS_NAME,
    CLASS_OID,
    "shobj_description",
    "to_regtype",
];

/// The functions, for a database of these tables and procedures.
pub fn make(
    tables: &[Arc<TableDescriptor>],
    sequences: &[Arc<SequenceDescriptor>],
    procedures: &[Arc<ProcedureDescriptor>],
    user: &str,
) -> BTreeMap<String, Arc<ScalarUDF>> {
    let index_definitions = definitions(tables, |table, name, columns, unique| {
        let unique = if unique { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX {} ON public.{} USING btree ({columns})", quoted(name), quoted(&table.name))
    });
    let index_columns = columns_of_indexes(tables);
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
    let named = classes(tables, sequences);
    let numbered: BTreeMap<i64, String> = named.iter().map(|(name, oid)| (*oid, name.clone())).collect();
    let owned: BTreeMap<(String, String), String> = tables.iter().flat_map(|table| owned_sequences(table)).collect();
    let owner = user.to_string();
    let null = |_: &[Datum]| Datum::Utf8(None);
    let functions = [
        function(CLASS_OID, DataType::Int64, move |values| Datum::Int64(number_of_class(&named, values))),
        text(CLASS_NAME, move |values| Datum::Utf8(name_of_class(&numbered, values))),
        text("pg_get_serial_sequence", move |values| Datum::Utf8(owned_by(&owned, values))),
        text("col_description", null),
        text("format_type", |values| Datum::Utf8(integer(values, 0).map(|oid| format_type(oid, integer(values, 1))))),
        text("obj_description", null),
        text("pg_encoding_to_char", |_| Datum::Utf8(Some("UTF8".into()))),
        text("pg_get_constraintdef", move |values| looked_up(&constraint_definitions, values)),
        text("pg_get_expr", |values| values.first().cloned().unwrap_or(Datum::Utf8(None))),
        text("pg_get_indexdef", move |values| match integer(values, 1) {
            Some(place @ 1..) => {
                let columns = integer(values, 0).and_then(|oid| index_columns.get(&oid));
                Datum::Utf8(columns.and_then(|columns| columns.get(usize::try_from(place).ok()? - 1).cloned()))
            }
            _ => looked_up(&index_definitions, values),
        }),
        text("pg_get_userbyid", move |_| Datum::Utf8(Some(owner.clone()))),
        text("shobj_description", null),
        yes("has_database_privilege"),
        yes("has_schema_privilege"),
        yes("has_table_privilege"),
        yes("pg_collation_is_visible"),
        yes("pg_table_is_visible"),
        yes("pg_type_is_visible"),
        function("to_regtype", DataType::Int64, |values| Datum::Int64(type_named(values))),
    ];
    let functions = functions.into_iter().chain(super::procedures::functions(procedures));
    functions.map(|function| (function.name().to_string(), Arc::new(ScalarUDF::from(function)))).collect()
}

/// The functions that casts to `regclass` become: from a name, or a number, to the number; and to the name.
pub const CLASS_OID: &str = "rhumb_class_oid";
pub const CLASS_NAME: &str = "rhumb_class_name";

/// PostgreSQL's own numbers of the system tables that clients ask for.
const SYSTEM_CLASSES: [(&str, i64); 13] = [
    ("pg_am", 2_601),
    ("pg_attrdef", 2_604),
    ("pg_attribute", 1_249),
    ("pg_class", 1_259),
    ("pg_collation", 3_456),
    ("pg_constraint", 2_606),
    ("pg_database", 1_262),
    ("pg_depend", 2_608),
    ("pg_index", 2_610),
    ("pg_namespace", 2_615),
    ("pg_proc", 1_255),
    ("pg_sequence", 2_224),
    ("pg_type", 1_247),
];

/// The numbers of all relations by their names.
fn classes(tables: &[Arc<TableDescriptor>], sequences: &[Arc<SequenceDescriptor>]) -> BTreeMap<String, i64> {
    let of_table = |table: &Arc<TableDescriptor>| {
        let parts: Vec<(String, i64)> = indexes(table).map(|(index, name, ..)| (name.to_owned(), index_oid(table, index))).collect();
        std::iter::once((table.name.clone(), table_oid(table))).chain(parts)
    };
    let sequences = sequences.iter().map(|sequence| (sequence.name.clone(), relation_oid(sequence.id)));
    let system = SYSTEM_CLASSES.iter().map(|(name, oid)| ((*name).to_owned(), *oid));
    // Of one name a system table is what goes by it.
    tables.iter().flat_map(of_table).chain(sequences).chain(system).collect()
}

fn number_of_class(classes: &BTreeMap<String, i64>, values: &[Datum]) -> Option<i64> {
    let written = values.first().filter(|value| !value.is_null())?.to_string();
    if let Ok(number) = written.parse() {
        return Some(number);
    }
    let name = spelt(&written).ok()?.0.last()?.as_ident().map(fold)?;
    classes.get(&name).copied()
}

fn name_of_class(classes: &BTreeMap<i64, String>, values: &[Datum]) -> Option<String> {
    let written = values.first().filter(|value| !value.is_null())?.to_string();
    let Ok(number) = written.parse::<i64>() else { return Some(written) };
    Some(classes.get(&number).map_or(written, |name| quoted(name)))
}

/// The sequences of the columns of a table, by both names.
fn owned_sequences(table: &TableDescriptor) -> Vec<((String, String), String)> {
    let of_column = |owned: &OwnedSequence| {
        let column = &table.columns[table.position_of(owned.column)?];
        Some(((table.name.clone(), column.name.clone()), format!("public.{}", quoted(&owned.name))))
    };
    table.sequences.iter().filter_map(of_column).collect()
}

fn owned_by(owned: &BTreeMap<(String, String), String>, values: &[Datum]) -> Option<String> {
    let [table, column] = values else { return None };
    let table = spelt(&table.to_string()).ok()?.0.last()?.as_ident().map(fold)?;
    owned.get(&(table, column.to_string())).cloned()
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

/// The columns of each index, by its number.
fn columns_of_indexes(tables: &[Arc<TableDescriptor>]) -> BTreeMap<i64, Vec<String>> {
    let named = |table: &TableDescriptor, columns: &[usize]| columns.iter().map(|column| quoted(&table.columns[*column].name)).collect();
    let of_table = |table: &Arc<TableDescriptor>| {
        indexes(table).map(|(index, _, columns, _)| (index_oid(table, index), named(table, columns))).collect::<Vec<_>>()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_all_functions() {
        let made = make(&[], &[], &[], "root");
        assert_eq!(made.keys().map(String::as_str).collect::<Vec<_>>(), NAMES);
    }
}
