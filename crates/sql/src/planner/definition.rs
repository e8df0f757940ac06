//! What a CREATE or ALTER asks for, from the parsed statement; and whether the expressions of a table make sense.

use super::Planning;
use super::defaults::defaults;
use super::sequence::{identity, serial};
use super::writer::{Existing, writer};
use crate::catalog::{CheckSpec, ColumnSpec, ForeignKeySpec, GeneratedSpec, IndexSpec, KeySpec, ProcedureSpec, SequenceOptions, TableSpec};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::{self, NumberFunction, ProcedureDefinition, columns_named, fold, unqualified, without_table};
use crate::schema::{Action, ProcedureParameter, TableDescriptor};
use crate::txn::Active;
use crate::types::SqlType;
use datafusion::sql::sqlparser::ast::{self, ColumnOption, TableConstraint};
use std::sync::Arc;

/// Refuses a table whose defaults and constraints no statement could use. Errors of planning.
pub async fn check_table(cx: Planning<'_>, active: &mut Active, table: &Arc<TableDescriptor>) -> SqlResult<()> {
    defaults(cx, active, table, &[], &[]).await?;
    writer(cx, active, table, Existing::Kept).await.map(drop)
}

/// A column, with the constraints that are written beside it.
#[derive(Debug)]
pub struct ColumnDefinition {
    /// The column itself.
    pub column: ColumnSpec,
    /// The keys and checks.
    pub constraints: Vec<Constraint>,
}

/// A constraint of a table.
#[derive(Debug)]
pub enum Constraint {
    PrimaryKey(KeySpec),
    Unique(KeySpec),
    Check(CheckSpec),
    ForeignKey(ForeignKeySpec),
}

/// A CREATE TABLE.
pub fn table_spec(table: &ast::CreateTable, database: &str) -> SqlResult<TableSpec> {
    if table.query.is_some() || table.like.is_some() || table.temporary || table.inherits.is_some() || table.partition_by.is_some() {
        return Err(SqlError::unsupported("only CREATE TABLE name (columns) is supported"));
    }
    let mut spec = TableSpec {
        name: fold(&unqualified(&table.name, database)?),
        columns: Vec::new(),
        primary_key: None,
        unique: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
    };
    for column in &table.columns {
        let ColumnDefinition { column, constraints } = column_definition(column, &spec.name, database)?;
        spec.columns.push(column);
        constraints.into_iter().try_for_each(|constraint| add(&mut spec, constraint))?;
    }
    for constraint in &table.constraints {
        let constraint = self::constraint(constraint, &spec.name, database)?;
        add(&mut spec, constraint)?;
    }
    Ok(spec)
}

fn add(spec: &mut TableSpec, constraint: Constraint) -> SqlResult<()> {
    match constraint {
        Constraint::PrimaryKey(key) => {
            if spec.primary_key.replace(key).is_some() {
                let message = format!("multiple primary keys for table \"{}\" are not allowed", spec.name);
                return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
            }
        }
        Constraint::Unique(key) => spec.unique.push(key),
        Constraint::Check(check) => spec.checks.push(check),
        Constraint::ForeignKey(foreign) => spec.foreign_keys.push(foreign),
    }
    Ok(())
}

/// A column of CREATE TABLE or ADD COLUMN, of the table of that name.
pub fn column_definition(definition: &ast::ColumnDef, table: &str, database: &str) -> SqlResult<ColumnDefinition> {
    let name = fold(&definition.name);
    let serial = serial(&definition.data_type);
    let ty = serial.map_or_else(|| SqlType::from_ast(&definition.data_type), Ok)?;
    let generated = serial.map(|_| GeneratedSpec { identity: None, name: None, options: SequenceOptions::default() });
    let mut column = ColumnSpec { name: name.clone(), ty, nullable: serial.is_none(), default: None, generated };
    let mut constraints = Vec::new();
    for option in &definition.options {
        let constraint_name = || option.name.as_ref().map(fold);
        let key = || KeySpec { name: constraint_name(), columns: vec![name.clone()] };
        match &option.option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => column.nullable = false,
            ColumnOption::Default(value) => column.default = default_text(value)?,
            ColumnOption::PrimaryKey(_) => constraints.push(Constraint::PrimaryKey(key())),
            ColumnOption::Unique(_) => constraints.push(Constraint::Unique(key())),
            ColumnOption::Check(check) => constraints.push(Constraint::Check(check_spec(constraint_name(), &check.expr, table)?)),
            // Text is ordered by its bytes, whatever is said of it.
            ColumnOption::Collation(_) => {}
            ColumnOption::ForeignKey(foreign) => {
                let spec = foreign_key_spec(constraint_name(), vec![name.clone()], foreign, database)?;
                constraints.push(Constraint::ForeignKey(spec));
            }
            ColumnOption::Generated { generated_as, sequence_options, generation_expr: None, .. } => {
                if column.generated.is_some() {
                    let message = format!("multiple identity specifications for column \"{name}\" of table \"{table}\"");
                    return Err(SqlError::syntax(message));
                }
                column.generated = Some(identity(*generated_as, sequence_options.as_deref().unwrap_or_default(), database)?);
            }
            ColumnOption::Generated { .. } | ColumnOption::Identity(_) => {
                return Err(SqlError::unsupported("generated columns are not supported"));
            }
            other => return Err(SqlError::unsupported(format!("the column option {other} is not supported"))),
        }
    }
    if column.generated.is_some() && column.default.is_some() {
        return Err(SqlError::syntax(format!("multiple default values specified for column \"{name}\" of table \"{table}\"")));
    }
    Ok(ColumnDefinition { column, constraints })
}

/// The text of a default; `DEFAULT NULL` is none.
pub fn default_text(value: &ast::Expr) -> SqlResult<Option<String>> {
    let is_null = matches!(value, ast::Expr::Value(value) if value.value == ast::Value::Null);
    if parser::calls(value, |function| function == NumberFunction::OfColumn) {
        return Err(SqlError::unsupported("pg_get_serial_sequence() is not supported in a DEFAULT").with_hint("Name the sequence."));
    }
    if is_null { Ok(None) } else { parser::kept(value).map(Some) }
}

/// A constraint of CREATE TABLE or ADD CONSTRAINT, of the table of that name.
pub fn constraint(constraint: &TableConstraint, table: &str, database: &str) -> SqlResult<Constraint> {
    Ok(match constraint {
        TableConstraint::PrimaryKey(key) => {
            Constraint::PrimaryKey(KeySpec { name: key.name.as_ref().map(fold), columns: key_columns(&key.columns)? })
        }
        TableConstraint::Unique(key) => {
            if key.nulls_distinct == ast::NullsDistinctOption::NotDistinct {
                return Err(SqlError::unsupported("UNIQUE NULLS NOT DISTINCT is not supported"));
            }
            Constraint::Unique(KeySpec { name: key.name.as_ref().map(fold), columns: key_columns(&key.columns)? })
        }
        TableConstraint::Check(check) => Constraint::Check(check_spec(check.name.as_ref().map(fold), &check.expr, table)?),
        TableConstraint::ForeignKey(foreign) => {
            let (name, columns) = (foreign.name.as_ref().map(fold), foreign.columns.iter().map(fold).collect());
            Constraint::ForeignKey(foreign_key_spec(name, columns, foreign, database)?)
        }
        other => return Err(SqlError::unsupported(format!("{other} is not supported"))),
    })
}

fn check_spec(name: Option<String>, condition: &ast::Expr, table: &str) -> SqlResult<CheckSpec> {
    let mut condition = condition.clone();
    without_table(&mut condition, table);
    Ok(CheckSpec { name, condition: parser::kept(&condition)?, columns: columns_named(&condition) })
}

fn foreign_key_spec(
    name: Option<String>,
    columns: Vec<String>,
    foreign: &ast::ForeignKeyConstraint,
    database: &str,
) -> SqlResult<ForeignKeySpec> {
    use ast::{ConstraintReferenceMatchKind as Match, DeferrableInitial, ReferentialAction};
    if matches!(foreign.match_kind, Some(Match::Full | Match::Partial)) {
        return Err(
            SqlError::unsupported("MATCH FULL and MATCH PARTIAL are not supported").with_hint("Leave it out: MATCH SIMPLE is the default.")
        );
    }
    let action = |action: Option<ReferentialAction>| match action {
        None | Some(ReferentialAction::NoAction) => Action::NoAction,
        Some(ReferentialAction::Restrict) => Action::Restrict,
        Some(ReferentialAction::Cascade) => Action::Cascade,
        Some(ReferentialAction::SetNull) => Action::SetNull,
        Some(ReferentialAction::SetDefault) => Action::SetDefault,
    };
    let characteristics = foreign.characteristics;
    let initially_deferred = characteristics.is_some_and(|said| said.initially == Some(DeferrableInitial::Deferred));
    if initially_deferred && characteristics.is_some_and(|said| said.deferrable == Some(false)) {
        return Err(SqlError::syntax("constraint declared INITIALLY DEFERRED must be DEFERRABLE"));
    }
    Ok(ForeignKeySpec {
        name,
        columns,
        parent: fold(&unqualified(&foreign.foreign_table, database)?),
        parent_columns: foreign.referred_columns.iter().map(fold).collect(),
        on_delete: action(foreign.on_delete),
        on_update: action(foreign.on_update),
        deferrable: initially_deferred || characteristics.is_some_and(|said| said.deferrable == Some(true)),
        initially_deferred,
    })
}

/// A CREATE PROCEDURE.
pub fn procedure_spec(definition: &ProcedureDefinition, database: &str) -> SqlResult<ProcedureSpec> {
    let parameters =
        definition.parameters.iter().map(|(name, ty)| Ok(ProcedureParameter { name: name.clone(), ty: SqlType::from_ast(ty)? }));
    Ok(ProcedureSpec {
        name: fold(&unqualified(&definition.name, database)?),
        parameters: parameters.collect::<SqlResult<_>>()?,
        body: definition.body.clone(),
    })
}

/// A CREATE INDEX.
pub fn index_spec(index: &ast::CreateIndex, database: &str) -> SqlResult<IndexSpec> {
    if index.predicate.is_some() || !index.include.is_empty() || index.nulls_distinct == Some(false) {
        return Err(SqlError::unsupported("only CREATE INDEX name ON table (columns) is supported"));
    }
    Ok(IndexSpec {
        name: index.name.as_ref().map(|name| unqualified(name, database).map(|name| fold(&name))).transpose()?,
        table: fold(&unqualified(&index.table_name, database)?),
        unique: index.unique,
        constraint: false,
        columns: key_columns(&index.columns)?,
    })
}

/// The columns of a key or an index: plain columns in ascending order, which can be read backwards as well.
fn key_columns(columns: &[ast::IndexColumn]) -> SqlResult<Vec<String>> {
    columns
        .iter()
        .map(|column| match (&column.column.expr, column.column.options.asc) {
            (ast::Expr::Identifier(ident), None | Some(true)) => Ok(fold(ident)),
            (ast::Expr::Identifier(_), Some(false)) => {
                Err(SqlError::unsupported("descending keys are not supported").with_hint("An ascending one is read backwards as fast."))
            }
            (other, _) => Err(SqlError::unsupported(format!("a key over the expression {other} is not supported"))),
        })
        .collect()
}
