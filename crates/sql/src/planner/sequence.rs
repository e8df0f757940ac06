//! What a statement says of a sequence; and the calls of nextval() and the like in it, which become parameters that are drawn when it runs.

use super::Planning;
use super::parameters::{PARAMETERS_MAX, Parameters};
use crate::catalog::{GeneratedSpec, SequenceOptions};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::Plan;
use crate::parser::{self, NumberFunction, SequenceClause, constant_text, fold, plain_arguments, spelt, unqualified};
use crate::schema::{Identity, SequenceDescriptor, TableDescriptor};
use crate::sequence::Draw;
use crate::txn::Active;
use crate::types::SqlType;
use datafusion::sql::sqlparser::ast::{self, Expr, Function, Value};
use rhumb_generic::Part;
use std::sync::Arc;

/// What the clauses of a sequence say. Errors 22003, 42601, and of types.
pub fn sequence_options(clauses: &[SequenceClause], database: &str) -> SqlResult<SequenceOptions> {
    let mut options = SequenceOptions::default();
    let twice = || SqlError::syntax("conflicting or redundant options");
    for clause in clauses {
        let is_new = match clause {
            SequenceClause::Type(ty) => options.ty.replace(SqlType::from_ast(ty)?).is_none(),
            SequenceClause::Start(number) => options.start.replace(integer(number)?).is_none(),
            SequenceClause::Restart(number) => options.restart.replace(number.as_deref().map(integer).transpose()?).is_none(),
            SequenceClause::Increment(number) => options.increment.replace(integer(number)?).is_none(),
            SequenceClause::Min(number) => options.min.replace(number.as_deref().map(integer).transpose()?).is_none(),
            SequenceClause::Max(number) => options.max.replace(number.as_deref().map(integer).transpose()?).is_none(),
            SequenceClause::Cache(number) => options.cache.replace(integer(number)?).is_none(),
            SequenceClause::Cycle(cycle) => options.cycle.replace(*cycle).is_none(),
            SequenceClause::Name(_) => return Err(SqlError::syntax("SEQUENCE NAME stands only where an identity column is added")),
            SequenceClause::OwnedBy(owner) => {
                options.owned_by.replace(owner.as_ref().map(|owner| owned_by(owner, database)).transpose()?).is_none()
            }
        };
        if !is_new {
            return Err(twice());
        }
    }
    Ok(options)
}

fn integer(digits: &str) -> SqlResult<i64> {
    let out_of_range = || SqlError::new(SqlState::NumericValueOutOfRange, format!("value \"{digits}\" is out of range for type bigint"));
    digits.parse().map_err(|_| out_of_range())
}

/// A table and a column of it.
fn owned_by(name: &ast::ObjectName, database: &str) -> SqlResult<(String, String)> {
    let mut parts = name.0.clone();
    let column = parts.pop().filter(|_| !parts.is_empty());
    let column = column.as_ref().and_then(ast::ObjectNamePart::as_ident).map(fold);
    let column =
        column.ok_or_else(|| SqlError::syntax("invalid OWNED BY option").with_hint("Specify OWNED BY table.column or OWNED BY NONE."))?;
    Ok((fold(&unqualified(&ast::ObjectName(parts), database)?), column))
}

/// The type of a `serial` column, if that is what it is.
pub fn serial(ty: &ast::DataType) -> Option<SqlType> {
    let ast::DataType::Custom(name, modifiers) = ty else { return None };
    if !modifiers.is_empty() {
        return None;
    }
    match fold(name.0.last()?.as_ident()?).as_str() {
        "smallserial" | "serial2" => Some(SqlType::Int2),
        "serial" | "serial4" => Some(SqlType::Int4),
        "bigserial" | "serial8" => Some(SqlType::Int8),
        _ => None,
    }
}

/// `GENERATED … AS IDENTITY`. Errors as of [`sequence_options`].
pub fn identity(generated: ast::GeneratedAs, options: &[ast::SequenceOptions], database: &str) -> SqlResult<GeneratedSpec> {
    let identity = match generated {
        ast::GeneratedAs::Always => Identity::Always,
        ast::GeneratedAs::ByDefault => Identity::ByDefault,
        ast::GeneratedAs::ExpStored => return Err(SqlError::unsupported("generated columns are not supported")),
    };
    let text = |value: &Expr| value.to_string();
    let clause = |option: &ast::SequenceOptions| match option {
        ast::SequenceOptions::IncrementBy(by, _) => SequenceClause::Increment(text(by)),
        ast::SequenceOptions::MinValue(min) => SequenceClause::Min(min.as_ref().map(text)),
        ast::SequenceOptions::MaxValue(max) => SequenceClause::Max(max.as_ref().map(text)),
        ast::SequenceOptions::StartWith(start, _) => SequenceClause::Start(text(start)),
        ast::SequenceOptions::Cache(cache) => SequenceClause::Cache(text(cache)),
        ast::SequenceOptions::Cycle(no) => SequenceClause::Cycle(!no),
    };
    let clauses: Vec<SequenceClause> = options.iter().map(clause).collect();
    Ok(GeneratedSpec { identity: Some(identity), name: None, options: sequence_options(&clauses, database)? })
}

/// The same, of clauses that may name the sequence.
pub fn identity_of(always: bool, clauses: &[SequenceClause], database: &str) -> SqlResult<GeneratedSpec> {
    let (mut name, mut others) = (None, Vec::new());
    for clause in clauses {
        match clause {
            SequenceClause::Name(_) if name.is_some() => return Err(SqlError::syntax("conflicting or redundant options")),
            SequenceClause::Name(named) => name = Some(fold(&unqualified(named, database)?)),
            SequenceClause::OwnedBy(_) | SequenceClause::Restart(_) => {
                return Err(SqlError::syntax("the sequence of an identity column is new, and goes with that"));
            }
            other => others.push(other.clone()),
        }
    }
    let identity = if always { Identity::Always } else { Identity::ByDefault };
    Ok(GeneratedSpec { identity: Some(identity), name, options: sequence_options(&others, database)? })
}

/// What was taken out of a statement.
#[derive(Default)]
pub struct Taken {
    /// What is drawn, in the order of its parameters.
    pub draws: Vec<Draw>,
    /// The tables that were looked at for it.
    tables: Vec<Arc<TableDescriptor>>,
    /// The sequences.
    sequences: Vec<Arc<SequenceDescriptor>>,
}

impl Taken {
    /// The plan of the statement, with the numbers as its last parameters.
    pub fn into_plan(self, mut plan: Plan) -> Plan {
        plan.parameters.truncate(plan.parameters.len().saturating_sub(self.draws.len()));
        plan.tables.extend(self.tables);
        plan.sequences.extend(self.sequences);
        plan.draws = self.draws;
        plan
    }
}

/// Which sequence a call is about.
#[derive(Clone)]
enum About {
    Named(String),
    OfColumn(String, String),
    Nothing,
}

/// Takes the calls out of a query: what is drawn, and the types of its parameters with the numbers behind them, as far as they are known.
pub async fn taken(cx: Planning<'_>, active: &mut Active, query: &mut Box<ast::Query>) -> SqlResult<(Taken, Vec<Option<SqlType>>)> {
    let mut hints = cx.hints.to_vec();
    if !parser::calls(query, |_| true) {
        return Ok((Taken::default(), hints));
    }
    hints.resize(Parameters::of(query, cx.hints)?.count(), None);
    let taken = take_draws(cx, active, query, hints.len()).await?;
    hints.extend(taken.draws.iter().map(|_| Some(SqlType::Int8)));
    Ok((taken, hints))
}

/// The same of the rows of an INSERT; what stands elsewhere in it stays.
pub async fn taken_from_values(
    cx: Planning<'_>,
    active: &mut Active,
    insert: &mut ast::Insert,
) -> SqlResult<(Taken, Vec<Option<SqlType>>)> {
    let mut hints = cx.hints.to_vec();
    let parameters = Parameters::of(insert, cx.hints)?.count();
    let Some(values) = insert.source.as_deref_mut().and_then(values_of).filter(|values| parser::calls(*values, |_| true)) else {
        return Ok((Taken::default(), hints));
    };
    // A query of a value has rows of its own.
    if parser::calls_in_queries(values) {
        return Err(out_of_place());
    }
    hints.resize(parameters, None);
    let taken = take_draws(cx, active, values, hints.len()).await?;
    hints.extend(taken.draws.iter().map(|_| Some(SqlType::Int8)));
    Ok((taken, hints))
}

/// The rows of `VALUES (…), (…)`, whatever stands around them.
fn values_of(query: &mut ast::Query) -> Option<&mut ast::Values> {
    if let ast::SetExpr::Values(values) = query.body.as_mut() { Some(values) } else { None }
}

/// The error of a call that is not evaluated once for each run, or row, of its statement: 0A000.
pub fn out_of_place() -> SqlError {
    SqlError::unsupported("nextval(), currval(), lastval() and setval() are not supported here")
        .with_hint("Call them in a SELECT without a table, among the VALUES of an INSERT, or as the DEFAULT of a column.")
}

/// Takes the calls out of a part of a statement: each becomes a parameter, of those after the first `after`. Calls of pg_get_serial_sequence()
/// become what they return. Errors: 0A000 for names that are not constant, 42602, 42P01, 42809.
pub async fn take_draws(cx: Planning<'_>, active: &mut Active, part: &mut (impl Part + Send), after: usize) -> SqlResult<Taken> {
    if !parser::calls(part, |_| true) {
        return Ok(Taken::default());
    }
    // First the names, then what they stand for, which the catalog knows, then the same calls once more.
    let mut calls = Vec::new();
    let collect = |function: NumberFunction, call: &Function| {
        if is_taken(function, call) {
            calls.push((function, about(function, call)?));
        }
        Ok(None)
    };
    parser::replace_calls(part, collect)?;
    let (mut found, mut tables, mut sequences) = (Vec::with_capacity(calls.len()), Vec::new(), Vec::new());
    for (function, about) in calls {
        let sequence = sequence_about(cx, active, &about, &mut tables).await?;
        sequences.extend(sequence.clone());
        found.push((function, sequence));
    }
    let (mut found, mut draws) = (found.into_iter(), Vec::new());
    let replace = |function: NumberFunction, call: &Function| {
        if !is_taken(function, call) {
            return Ok(None);
        }
        let found = found.next().ok_or_else(|| SqlError::internal("a call was not seen before"))?;
        let draw = match found {
            (NumberFunction::OfColumn, sequence) => return Ok(Some(name_of(sequence.as_deref()))),
            (NumberFunction::Next, Some(sequence)) => Draw::Next(sequence),
            (NumberFunction::Current, Some(sequence)) => Draw::Current(sequence),
            (NumberFunction::Last, _) => Draw::Last,
            // Of no sequence there is no number; setval() is left to its own statement.
            (_, None) | (NumberFunction::Set, _) => return Ok(Some(Expr::Value(Value::Null.into()))),
        };
        draws.push(draw);
        if after + draws.len() > PARAMETERS_MAX {
            let message = format!("a statement takes at most {PARAMETERS_MAX} parameters and numbers of sequences together");
            return Err(
                SqlError::new(SqlState::TooManyArguments, message).with_hint("Have the numbers come from the DEFAULT of the column.")
            );
        }
        Ok(Some(Expr::Value(Value::Placeholder(format!("${}", after + draws.len())).into())))
    };
    parser::replace_calls(part, replace)?;
    Ok(Taken { draws, tables, sequences })
}

/// True for calls that are taken out: of pg_get_serial_sequence() those of constants; beside system tables it is a function of these.
fn is_taken(function: NumberFunction, call: &Function) -> bool {
    match function {
        NumberFunction::Set => false,
        NumberFunction::OfColumn => plain_arguments(call).is_some_and(|given| given.iter().all(|given| constant_text(given).is_some())),
        _ => true,
    }
}

/// What pg_get_serial_sequence() returns.
fn name_of(sequence: Option<&SequenceDescriptor>) -> Expr {
    let value = match sequence {
        Some(sequence) => Value::SingleQuotedString(format!("public.{}", parser::quoted(&sequence.name))),
        None => Value::Null,
    };
    Expr::Value(value.into())
}

fn about(function: NumberFunction, call: &Function) -> SqlResult<About> {
    let arguments = plain_arguments(call).unwrap_or_default();
    let undefined = || SqlError::new(SqlState::UndefinedFunction, format!("there is no such function: {call}"));
    let constant = |expr: &Expr| {
        constant_text(expr).map(str::to_owned).ok_or_else(|| {
            SqlError::unsupported(format!("{call} is not supported: the name is to be a constant"))
                .with_hint("Write the name into the statement.")
        })
    };
    match (function, arguments.as_slice()) {
        (NumberFunction::Last, []) => Ok(About::Nothing),
        (NumberFunction::OfColumn, [table, column]) => Ok(About::OfColumn(constant(table)?, constant(column)?)),
        (NumberFunction::Next | NumberFunction::Current, [name]) => match uncast(name) {
            Expr::Function(inner) if NumberFunction::of(inner) == Some(NumberFunction::OfColumn) => about(NumberFunction::OfColumn, inner),
            name => Ok(About::Named(constant(name)?)),
        },
        _ => Err(undefined()),
    }
}

/// An expression without the casts around it.
fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => uncast(expr),
        expr => expr,
    }
}

async fn sequence_about(
    cx: Planning<'_>,
    active: &mut Active,
    about: &About,
    tables: &mut Vec<Arc<TableDescriptor>>,
) -> SqlResult<Option<Arc<SequenceDescriptor>>> {
    let database = cx.facts.database.as_str();
    match about {
        About::Nothing => Ok(None),
        About::Named(name) => sequence_named(active, database, name).await.map(Some),
        About::OfColumn(table, column) => {
            let name = fold(&unqualified(&spelt(table)?, database)?);
            let table = active.catalog.table(active.txn.as_mut(), database, &name).await?;
            tables.push(table.clone());
            let undefined =
                || SqlError::new(SqlState::UndefinedColumn, format!("column \"{column}\" of relation \"{name}\" does not exist"));
            // The name of the column is taken as it is.
            let column = table.column(column).filter(|column| !table.columns[*column].hidden).ok_or_else(undefined)?;
            match owned(&table, column) {
                Some(sequence) => active.catalog.sequence(active.txn.as_mut(), database, sequence).await.map(Some),
                None => Ok(None),
            }
        }
    }
}

/// The sequence that goes with a column.
fn owned(table: &TableDescriptor, column: usize) -> Option<&str> {
    let id = table.columns[column].id;
    table.sequences.iter().find(|owned| owned.column == id).map(|owned| owned.name.as_str())
}

/// The sequence whose name a text spells. Errors: 42602, 42P01, 42809.
pub async fn sequence_named(active: &mut Active, database: &str, text: &str) -> SqlResult<Arc<SequenceDescriptor>> {
    let name = fold(&unqualified(&spelt(text)?, database)?);
    active.catalog.sequence(active.txn.as_mut(), database, &name).await
}
