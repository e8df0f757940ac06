//! `information_schema`, as far as tools read it: tables and their columns, constraints, sequences and procedures.

use super::maker::{Maker, number, text};
use super::oids::indexes;
use super::type_names::short_name;
use crate::context::Facts;
use crate::schema::{ForeignKey, Identity, ProcedureDescriptor, SequenceDescriptor, TableDescriptor};
use crate::types::{Datum, SqlType};
use datafusion::common::Result;
use datafusion::logical_expr::TableSource;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The schema that they are in.
pub const SCHEMA: &str = "information_schema";
/// Its tables: by their own names, and what they are called once the schema is taken off.
const TABLES: [(&str, &str); 11] = [
    ("check_constraints", "information_schema.check_constraints"),
    ("columns", "information_schema.columns"),
    ("constraint_column_usage", "information_schema.constraint_column_usage"),
    ("key_column_usage", "information_schema.key_column_usage"),
    ("referential_constraints", "information_schema.referential_constraints"),
    ("routines", "information_schema.routines"),
    ("schemata", "information_schema.schemata"),
    ("sequences", "information_schema.sequences"),
    ("table_constraints", "information_schema.table_constraints"),
    ("tables", "information_schema.tables"),
    ("views", "information_schema.views"),
];

/// The table of that name, by both names.
pub fn named(name: &str) -> Option<(&'static str, &'static str)> {
    TABLES.into_iter().find(|(known, _)| *known == name)
}

/// True for what one of them is called without the schema.
pub fn is_one(name: &str) -> bool {
    TABLES.iter().any(|(_, known)| *known == name)
}

/// What they are made of.
pub struct Information<'a> {
    pub facts: &'a Facts,
    pub tables: &'a [Arc<TableDescriptor>],
    pub sequences: &'a [Arc<SequenceDescriptor>],
    pub procedures: &'a [Arc<ProcedureDescriptor>],
}

/// A constraint of a table.
struct Constraint<'a> {
    table: &'a TableDescriptor,
    name: &'a str,
    kind: &'static str,
    /// The positions of its columns.
    columns: &'a [usize],
    foreign: Option<&'a ForeignKey>,
}

impl<'a> Information<'a> {
    /// Makes them.
    pub fn make(&self, made: &mut BTreeMap<String, Arc<dyn TableSource>>) -> Result<()> {
        let makers = [
            self.check_constraints(),
            self.columns(),
            self.constraint_column_usage(),
            self.key_column_usage(),
            self.referential_constraints(),
            self.routines(),
            self.schemata(),
            self.sequences_table(),
            self.table_constraints(),
            self.tables_table(),
            Maker::new("information_schema.views").texts(&[
                "table_catalog",
                "table_schema",
                "table_name",
                "view_definition",
                "check_option",
            ]),
        ];
        makers.into_iter().try_for_each(|maker| maker.finish(made))
    }

    /// The database, the schema and a name, under a prefix.
    fn named(&self, columns: [&'static str; 3], name: &str) -> [(&'static str, Datum); 3] {
        let [catalog, schema, own] = columns;
        [(catalog, text(self.facts.database.as_str())), (schema, text("public")), (own, text(name))]
    }

    fn table(&self, name: &str) -> [(&'static str, Datum); 3] {
        self.named(["table_catalog", "table_schema", "table_name"], name)
    }

    fn constraint(&self, name: &str) -> [(&'static str, Datum); 3] {
        self.named(["constraint_catalog", "constraint_schema", "constraint_name"], name)
    }

    /// All constraints but those of NOT NULL.
    fn constraints(&self) -> Vec<Constraint<'a>> {
        let mut constraints = Vec::new();
        for table in self.tables {
            let keys = indexes(table).filter(|(index, ..)| index.is_none_or(|index| index.constraint));
            constraints.extend(keys.map(|(index, name, columns, _)| {
                let kind = if index.is_none() { "PRIMARY KEY" } else { "UNIQUE" };
                Constraint { table, name, kind, columns, foreign: None }
            }));
            constraints.extend(table.foreign_keys.iter().map(|foreign| Constraint {
                table,
                name: &foreign.name,
                kind: "FOREIGN KEY",
                columns: &foreign.columns,
                foreign: Some(foreign),
            }));
            constraints.extend(table.checks.iter().map(|check| Constraint {
                table,
                name: &check.name,
                kind: "CHECK",
                columns: &check.columns,
                foreign: None,
            }));
        }
        constraints
    }

    /// What a foreign key references: the table, and the positions of the columns there.
    fn referenced(&self, foreign: &ForeignKey) -> Option<(&'a TableDescriptor, Vec<usize>)> {
        let parent = self.tables.iter().find(|table| table.name == foreign.parent)?;
        Some((parent, parent.positions_of(&foreign.parent_columns)?))
    }

    fn tables_table(&self) -> Maker {
        let mut maker =
            Maker::new("information_schema.tables").texts(&["table_catalog", "table_schema", "table_name", "table_type"]).texts(&[
                "self_referencing_column_name",
                "reference_generation",
                "user_defined_type_catalog",
                "user_defined_type_schema",
                "user_defined_type_name",
                "is_insertable_into",
                "is_typed",
                "commit_action",
            ]);
        for table in self.tables {
            let own = [("table_type", text("BASE TABLE")), ("is_insertable_into", text("YES")), ("is_typed", text("NO"))];
            maker.row(&[&self.table(&table.name)[..], &own[..]].concat());
        }
        maker
    }

    fn columns(&self) -> Maker {
        let mut maker = Maker::new("information_schema.columns")
            .texts(&["table_catalog", "table_schema", "table_name", "column_name"])
            .numbers(&["ordinal_position"])
            .texts(&["column_default", "is_nullable", "data_type"])
            .numbers(&["character_maximum_length", "character_octet_length", "numeric_precision", "numeric_precision_radix"])
            .numbers(&["numeric_scale", "datetime_precision"])
            .texts(&["interval_type"])
            .numbers(&["interval_precision"])
            .texts(&["character_set_name", "collation_name", "domain_name", "udt_catalog", "udt_schema", "udt_name", "dtd_identifier"])
            .texts(&["is_self_referencing", "is_identity", "identity_generation", "identity_start", "identity_increment"])
            .texts(&["identity_maximum", "identity_minimum", "identity_cycle", "is_generated", "generation_expression", "is_updatable"]);
        for table in self.tables {
            for position in table.visible_columns() {
                let column = &table.columns[position];
                let own = [
                    ("column_name", text(column.name.as_str())),
                    ("ordinal_position", number(i64::from(column.id))),
                    ("column_default", column.default.as_deref().map_or(Datum::Utf8(None), text)),
                    ("is_nullable", yes_or_no(column.nullable)),
                    ("data_type", text(if matches!(column.ty, SqlType::Array(_)) { "ARRAY" } else { column.ty.name() })),
                    ("interval_precision", Datum::Int64(None)),
                    ("udt_catalog", text(self.facts.database.as_str())),
                    ("udt_schema", text("pg_catalog")),
                    ("udt_name", text(short_name(&column.ty))),
                    ("dtd_identifier", text(column.id.to_string())),
                    ("is_self_referencing", text("NO")),
                    ("is_identity", yes_or_no(column.identity.is_some())),
                    ("is_generated", text("NEVER")),
                    ("is_updatable", text("YES")),
                ];
                let identity = self.identity(table, position);
                maker.row(&[&self.table(&table.name)[..], &own[..], &sizes(&column.ty)[..], &identity[..]].concat());
            }
        }
        maker
    }

    /// What is said of an identity column.
    fn identity(&self, table: &TableDescriptor, position: usize) -> Vec<(&'static str, Datum)> {
        let sequence = table.identity_sequence(position).and_then(|name| self.sequences.iter().find(|sequence| sequence.name == name));
        let Some(sequence) = sequence else { return vec![("identity_cycle", text("NO"))] };
        let always = table.columns[position].identity == Some(Identity::Always);
        vec![
            ("identity_generation", text(if always { "ALWAYS" } else { "BY DEFAULT" })),
            ("identity_start", text(sequence.start.to_string())),
            ("identity_increment", text(sequence.increment.to_string())),
            ("identity_maximum", text(sequence.max.to_string())),
            ("identity_minimum", text(sequence.min.to_string())),
            ("identity_cycle", yes_or_no(sequence.cycle)),
        ]
    }

    fn table_constraints(&self) -> Maker {
        let mut maker = Maker::new("information_schema.table_constraints")
            .texts(&["constraint_catalog", "constraint_schema", "constraint_name", "table_catalog", "table_schema", "table_name"])
            .texts(&["constraint_type", "is_deferrable", "initially_deferred", "enforced", "nulls_distinct"]);
        for Constraint { table, name, kind, foreign, .. } in self.constraints() {
            let own = [
                ("constraint_type", text(kind)),
                ("is_deferrable", yes_or_no(foreign.is_some_and(|foreign| foreign.deferrable))),
                ("initially_deferred", yes_or_no(foreign.is_some_and(|foreign| foreign.initially_deferred))),
                ("enforced", text("YES")),
                ("nulls_distinct", if kind == "UNIQUE" { text("YES") } else { Datum::Utf8(None) }),
            ];
            maker.row(&[&self.constraint(name)[..], &self.table(&table.name)[..], &own[..]].concat());
        }
        maker
    }

    fn key_column_usage(&self) -> Maker {
        let mut maker = Maker::new("information_schema.key_column_usage")
            .texts(&["constraint_catalog", "constraint_schema", "constraint_name", "table_catalog", "table_schema", "table_name"])
            .texts(&["column_name"])
            .numbers(&["ordinal_position", "position_in_unique_constraint"]);
        for Constraint { table, name, columns, foreign, .. } in
            self.constraints().into_iter().filter(|constraint| constraint.kind != "CHECK")
        {
            let referenced = foreign.and_then(|foreign| self.referenced(foreign));
            for (place, &column) in columns.iter().enumerate() {
                let in_key = referenced.as_ref().and_then(|(parent, positions)| {
                    let key = parent.unique_over(positions)?.map_or(&parent.primary_key, |index| &index.columns);
                    key.iter().position(|other| *other == positions[place])
                });
                let own = [
                    ("column_name", text(table.columns[column].name.as_str())),
                    ("ordinal_position", number(place as i64 + 1)),
                    ("position_in_unique_constraint", Datum::Int64(in_key.map(|place| place as i64 + 1))),
                ];
                maker.row(&[&self.constraint(name)[..], &self.table(&table.name)[..], &own[..]].concat());
            }
        }
        maker
    }

    fn constraint_column_usage(&self) -> Maker {
        let mut maker = Maker::new("information_schema.constraint_column_usage")
            .texts(&["table_catalog", "table_schema", "table_name", "column_name"])
            .texts(&["constraint_catalog", "constraint_schema", "constraint_name"]);
        for Constraint { table, name, columns, foreign, .. } in self.constraints() {
            // Of a foreign key, what it references.
            let (table, columns) = foreign.and_then(|foreign| self.referenced(foreign)).unwrap_or_else(|| (table, columns.to_vec()));
            for column in columns {
                let own = [("column_name", text(table.columns[column].name.as_str()))];
                maker.row(&[&self.table(&table.name)[..], &own[..], &self.constraint(name)[..]].concat());
            }
        }
        maker
    }

    fn referential_constraints(&self) -> Maker {
        let mut maker = Maker::new("information_schema.referential_constraints")
            .texts(&["constraint_catalog", "constraint_schema", "constraint_name"])
            .texts(&["unique_constraint_catalog", "unique_constraint_schema", "unique_constraint_name"])
            .texts(&["match_option", "update_rule", "delete_rule"]);
        for constraint in self.constraints() {
            let Some(foreign) = constraint.foreign else { continue };
            let referenced = self.referenced(foreign);
            let key = referenced.as_ref().and_then(|(parent, positions)| {
                Some(parent.unique_over(positions)?.map_or(&parent.primary_key_name, |index| &index.name).as_str())
            });
            let unique = ["unique_constraint_catalog", "unique_constraint_schema", "unique_constraint_name"];
            let own = [
                ("match_option", text("NONE")),
                ("update_rule", text(foreign.on_update.words())),
                ("delete_rule", text(foreign.on_delete.words())),
            ];
            maker.row(&[&self.constraint(&foreign.name)[..], &self.named(unique, key.unwrap_or_default())[..], &own[..]].concat());
        }
        maker
    }

    fn check_constraints(&self) -> Maker {
        let mut maker = Maker::new("information_schema.check_constraints").texts(&[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "check_clause",
        ]);
        for check in self.tables.iter().flat_map(|table| &table.checks) {
            maker.row(&[&self.constraint(&check.name)[..], &[("check_clause", text(format!("({})", check.condition)))][..]].concat());
        }
        maker
    }

    fn sequences_table(&self) -> Maker {
        let mut maker = Maker::new("information_schema.sequences")
            .texts(&["sequence_catalog", "sequence_schema", "sequence_name", "data_type"])
            .numbers(&["numeric_precision", "numeric_precision_radix", "numeric_scale"])
            .texts(&["start_value", "minimum_value", "maximum_value", "increment", "cycle_option"]);
        // That of an identity column is not one of these.
        let of_identity: Vec<&str> =
            self.tables.iter().flat_map(|table| &table.sequences).filter(|owned| owned.identity).map(|owned| owned.name.as_str()).collect();
        for sequence in self.sequences.iter().filter(|sequence| !of_identity.contains(&sequence.name.as_str())) {
            let own = [
                ("data_type", text(sequence.ty.name())),
                ("numeric_precision", number(bits(&sequence.ty))),
                ("numeric_precision_radix", number(2)),
                ("start_value", text(sequence.start.to_string())),
                ("minimum_value", text(sequence.min.to_string())),
                ("maximum_value", text(sequence.max.to_string())),
                ("increment", text(sequence.increment.to_string())),
                ("cycle_option", yes_or_no(sequence.cycle)),
            ];
            let named = self.named(["sequence_catalog", "sequence_schema", "sequence_name"], &sequence.name);
            maker.row(&[&named[..], &own[..]].concat());
        }
        maker
    }

    fn schemata(&self) -> Maker {
        let mut maker = Maker::new("information_schema.schemata").texts(&["catalog_name", "schema_name", "schema_owner"]).texts(&[
            "default_character_set_catalog",
            "default_character_set_schema",
            "default_character_set_name",
            "sql_path",
        ]);
        for schema in ["pg_catalog", SCHEMA, "public"] {
            maker.row(&[
                ("catalog_name", text(self.facts.database.as_str())),
                ("schema_name", text(schema)),
                ("schema_owner", text(self.facts.user.as_str())),
            ]);
        }
        maker
    }

    fn routines(&self) -> Maker {
        let mut maker = Maker::new("information_schema.routines")
            .texts(&["specific_catalog", "specific_schema", "specific_name", "routine_catalog", "routine_schema", "routine_name"])
            .texts(&["routine_type", "data_type", "routine_body", "routine_definition", "external_language"]);
        for procedure in self.procedures {
            let specific = format!("{}_{}", procedure.name, super::oids::FIRST_USER_OID + i64::from(procedure.id));
            let own = [
                ("routine_type", text("PROCEDURE")),
                ("routine_body", text("SQL")),
                ("routine_definition", text(procedure.body.as_str())),
                ("external_language", text("SQL")),
            ];
            let named = self.named(["routine_catalog", "routine_schema", "routine_name"], &procedure.name);
            maker.row(
                &[&self.named(["specific_catalog", "specific_schema", "specific_name"], &specific)[..], &named[..], &own[..]].concat(),
            );
        }
        maker
    }
}

fn yes_or_no(yes: bool) -> Datum {
    text(if yes { "YES" } else { "NO" })
}

fn bits(ty: &SqlType) -> i64 {
    i64::from(ty.type_length()) * 8
}

/// The most bytes of a text of so many characters.
const BYTES_OF_CHARACTER: i64 = 4;

/// How large values of a type are; what does not apply is NULL.
fn sizes(ty: &SqlType) -> [(&'static str, Datum); 6] {
    let characters = match ty {
        SqlType::Varchar(length) => length.map(i64::from),
        SqlType::Char(length) => Some(i64::from(*length)),
        _ => None,
    };
    // PostgreSQL says 1 GiB of texts without a bound.
    let bytes = characters.map(|characters| characters * BYTES_OF_CHARACTER).or(ty.is_text().then_some(1 << 30));
    let (precision, radix, scale) = match ty {
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => (Some(bits(ty)), Some(2), Some(0)),
        SqlType::Float4 => (Some(24), Some(2), None),
        SqlType::Float8 => (Some(53), Some(2), None),
        SqlType::Numeric(Some((precision, scale))) => (Some(i64::from(*precision)), Some(10), Some(i64::from(*scale))),
        SqlType::Numeric(None) => (None, Some(10), None),
        _ => (None, None, None),
    };
    let moment = match ty {
        SqlType::Date => Some(0),
        SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => Some(6),
        _ => None,
    };
    [
        ("character_maximum_length", Datum::Int64(characters)),
        ("character_octet_length", Datum::Int64(bytes)),
        ("numeric_precision", Datum::Int64(precision)),
        ("numeric_precision_radix", Datum::Int64(radix)),
        ("numeric_scale", Datum::Int64(scale)),
        ("datetime_precision", Datum::Int64(moment)),
    ]
}
