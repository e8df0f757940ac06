//! Expressions of the query engine evaluated on a few rows, without a plan around them.
//!
//! An expression is planned once, with the columns of its [`Scope`] and the statement's parameters (`$1` …) as its inputs,
//! and then evaluated on as many rows as needed. The semantics are the query engine's, the same as in any other query.

use crate::engine::tree::rewrite;
use crate::engine::{Engine, batch_of, guarded};
use crate::engine::{analyze, arithmetic};
use crate::error::{SqlError, SqlResult};
use crate::types::{Datum, SqlType};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, DataFusionError, Result, TableReference};
use datafusion::execution::context::ExecutionProps;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_plan::PhysicalExpr;
use rhumb_generic::array_of;
use std::sync::Arc;

/// What the inputs of an expression are called, in the order of the values given to it.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    fields: Vec<(Option<TableReference>, FieldRef)>,
}

impl Scope {
    /// The same with further columns, as they follow one another, all qualified by `qualifier`.
    pub fn with(mut self, qualifier: &str, schema: &Schema) -> Scope {
        let qualifier = TableReference::bare(qualifier.to_string());
        self.fields.extend(schema.fields().iter().map(|field| (Some(qualifier.clone()), field.clone())));
        self
    }

    /// The same with the statement's parameters, named `$1` and so on.
    pub fn with_parameters(mut self, types: &[SqlType]) -> Scope {
        let fields = types.iter().enumerate().map(|(position, ty)| (None, Arc::new(ty.field(&format!("${}", position + 1), true))));
        self.fields.extend(fields);
        self
    }

    /// The scope as the planner takes it.
    pub fn schema(&self) -> SqlResult<DFSchema> {
        guarded(|| DFSchema::new_with_metadata(self.fields.clone(), Default::default()))
    }

    fn position(&self, column: &Column) -> Option<usize> {
        self.fields
            .iter()
            .position(|(qualifier, field)| *field.name() == column.name && (column.relation.is_none() || column.relation == *qualifier))
    }
}

/// An expression ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Compiled {
    inputs: Vec<usize>,
    schema: SchemaRef,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    /// Just one of the inputs.
    Input(usize),
    Expr(Arc<dyn PhysicalExpr>),
    /// With arrays among its parameters, which are put in when it is evaluated: written out for every row, they would take a multiple of the memory.
    Arrays(Expr, Box<DFSchema>, Vec<(usize, Column)>),
    /// Depends on the clock or on chance, so it is planned whenever it is evaluated.
    Late(Expr, Box<DFSchema>),
}

impl Compiled {
    /// Plans an expression whose columns are all in `scope`.
    pub fn new(engine: &Engine, expr: Expr, scope: &Scope) -> SqlResult<Compiled> {
        let expr = placeholders_to_columns(expr)?;
        let mut inputs: Vec<usize> = expr.column_refs().into_iter().filter_map(|column| scope.position(column)).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let arrays: Vec<(usize, Column)> = expr
            .column_refs()
            .into_iter()
            .filter(|column| column.relation.is_none() && column.name.starts_with('$'))
            .filter_map(|column| Some((scope.position(column)?, column.clone())))
            .filter(|(input, _)| matches!(scope.fields[*input].1.data_type(), DataType::List(_)))
            .collect();
        let is_just_one = matches!(expr, Expr::Column(_));
        if !is_just_one {
            inputs.retain(|input| !arrays.iter().any(|(array, _)| array == input));
        }
        let fields: Vec<_> = inputs.iter().map(|&input| scope.fields[input].clone()).collect();
        let schema = Arc::new(Schema::new(fields.iter().map(|(_, field)| field.clone()).collect::<Vec<_>>()));
        if let Expr::Column(column) = &expr
            && let Some(position) = scope.position(column)
        {
            return Ok(Compiled { inputs, schema, body: Body::Input(position) });
        }
        let planned = guarded(|| DFSchema::new_with_metadata(fields, Default::default()))?;
        let expr = guarded(|| arithmetic::in_expression(expr, &planned))?.data;
        let body = if !arrays.is_empty() {
            Body::Arrays(expr, Box::new(planned), arrays)
        } else if analyze::is_immutable(&expr) {
            Body::Expr(guarded(|| physical(engine, engine.timeless_state(), expr, &planned))?)
        } else {
            Body::Late(expr, Box::new(planned))
        };
        Ok(Compiled { inputs, schema, body })
    }

    /// Its values on `rows` rows; `input(row, position)` is the value of an input of its scope.
    pub fn evaluate<'a>(&self, engine: &Engine, rows: usize, input: impl Fn(usize, usize) -> &'a Datum) -> SqlResult<Vec<Datum>> {
        match &self.body {
            Body::Input(position) => Ok((0..rows).map(|row| input(row, *position).clone()).collect()),
            Body::Expr(_) | Body::Late(..) | Body::Arrays(..) => {
                let array = self.array(engine, rows, input)?;
                guarded(|| (0..rows).map(|row| Datum::try_from_array(array.as_ref(), row)).collect())
            }
        }
    }

    /// Which of the rows it is true for.
    pub fn select<'a>(&self, engine: &Engine, rows: usize, input: impl Fn(usize, usize) -> &'a Datum) -> SqlResult<Vec<bool>> {
        let array = self.array(engine, rows, input)?;
        let Some(flags) = array.as_any().downcast_ref::<BooleanArray>() else {
            // A bare NULL is a condition too; it holds for no row.
            return Ok(vec![false; rows]);
        };
        Ok(flags.iter().map(|flag| flag == Some(true)).collect())
    }

    /// Its values on these rows as an array.
    fn array<'a>(&self, engine: &Engine, rows: usize, input: impl Fn(usize, usize) -> &'a Datum) -> SqlResult<ArrayRef> {
        guarded(|| {
            let batch = || batch_of(&self.schema, rows, |row, column| input(row, self.inputs[column]).clone());
            match &self.body {
                Body::Input(position) => {
                    array_of(self.schema.field(0).data_type(), (0..rows).map(|row| input(row, *position).clone()).collect())
                }
                Body::Expr(expr) => expr.evaluate(&batch()?)?.into_array(rows),
                Body::Arrays(expr, schema, arrays) => {
                    let value = |column: &Column| {
                        let (input_of, _) = arrays.iter().find(|(_, array)| array == column)?;
                        Some(if rows == 0 { Datum::Null } else { input(0, *input_of).clone() })
                    };
                    let bound = rewrite(expr.clone(), &mut |expr| match expr {
                        Expr::Column(column) => Ok(match value(&column) {
                            Some(value) => Transformed::yes(Expr::Literal(value, None)),
                            None => Transformed::no(Expr::Column(column)),
                        }),
                        other => Ok(Transformed::no(other)),
                    })?;
                    physical(engine, &engine.state(), bound.data, schema)?.evaluate(&batch()?)?.into_array(rows)
                }
                Body::Late(expr, schema) => physical(engine, &engine.state(), expr.clone(), schema)?.evaluate(&batch()?)?.into_array(rows),
            }
        })
    }
}

/// Some functions exist only until they are simplified, so that is done here too. Large constants are left to be made when it runs.
fn physical(engine: &Engine, state: &SessionState, expr: Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(engine.planning_options().clone())
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let expr = simplifier.simplify(simplifier.coerce(expr, schema)?)?;
    state.create_physical_expr(expr, schema)
}

/// The same with parameters as inputs, like columns.
pub fn placeholders_to_columns(expr: Expr) -> SqlResult<Expr> {
    guarded(|| {
        rewrite(expr, &mut |expr| {
            Ok(match expr {
                Expr::Placeholder(placeholder) => Transformed::yes(Expr::Column(Column::new_unqualified(placeholder.id))),
                other => Transformed::no(other),
            })
        })
        .map(|transformed| transformed.data)
    })
}

/// The value of an expression without columns: a constant, a parameter, or something made of these.
pub fn constant(expr: &Expr, parameters: &[Datum]) -> SqlResult<Datum> {
    match expr {
        Expr::Literal(value, _) => Ok(value.clone()),
        Expr::Placeholder(placeholder) => parameter(&placeholder.id, parameters),
        other => constant_expression(other, parameters),
    }
}

fn parameter(id: &str, parameters: &[Datum]) -> SqlResult<Datum> {
    let position = id.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok()).and_then(|number| number.checked_sub(1));
    let value = position.and_then(|position| parameters.get(position)).cloned();
    value.ok_or_else(|| SqlError::internal(format!("parameter {id} was not bound")))
}

fn constant_expression(expr: &Expr, parameters: &[Datum]) -> SqlResult<Datum> {
    let value = guarded(|| {
        let schema = DFSchema::empty();
        let expr = rewrite(expr.clone(), &mut |expr| match expr {
            Expr::Placeholder(placeholder) => {
                let value = parameter(&placeholder.id, parameters).map_err(|error| DataFusionError::External(Box::new(error)))?;
                Ok(Transformed::yes(Expr::Literal(value, None)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        let simplifier = ExprSimplifier::new(SimplifyContext::default());
        simplifier.simplify(simplifier.coerce(expr.data, &schema)?)
    })?;
    match value {
        Expr::Literal(value, _) => Ok(value),
        // What cannot be simplified fails, and evaluating it says how.
        other => guarded(|| {
            let physical = create_physical_expr(&other, &DFSchema::empty(), &ExecutionProps::new(), &PhysicalPlanningContext::default())?;
            let value = physical.evaluate(&batch_of(&Arc::new(Schema::empty()), 1, |_, _| Datum::Null)?)?;
            Datum::try_from_array(&value.into_array(1)?, 0)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::environment::System;
    use crate::engine::bounded;
    use crate::protocols::Gateways;
    use datafusion::prelude::lit;
    use rhumb_core::SiteId;
    use rhumb_sqltestkit::LocalGateway;

    #[test]
    fn a_large_constant_is_made_whenever_it_is_needed_and_not_kept() {
        let gateways = Gateways::from(Arc::new(LocalGateway::new()));
        let engine = Engine::new(gateways, None, SiteId::new(0, 0), Arc::new(System::default())).expect("an engine");
        let repeat = bounded::bounded(&engine.timeless_state().scalar_functions()["repeat"], bounded::share(1));
        let mut kept = Vec::new();
        for times in [100_i64, 1_000_000] {
            let repeated = repeat.call(vec![lit("x"), lit(times)]);
            let compiled = Compiled::new(&engine, repeated, &Scope::default()).expect("it compiles");
            kept.push(format!("{compiled:?}"));
            let value = compiled.evaluate(&engine, 1, |_, _| unreachable!("it has no inputs")).expect("a value").remove(0);
            assert_eq!(value, Datum::Utf8(Some("x".repeat(times as usize))));
        }
        assert!(kept[0].contains(&"x".repeat(100)), "a small one is: {}", kept[0]);
        assert!(kept[1].len() < 10_000);
    }
}
