//! The expressions of a statement over one table: planned one after another, the types of parameters learnt on the way,
//! then compiled together.

use super::Planning;
use super::parameters::{Parameters, require_scalar};
use super::resolver::Resolver;
use crate::context::Facts;
use crate::engine::arrays::typing::told_type;
use crate::engine::guarded;
use crate::engine::settling::{check_condition, settle};
use crate::engine::tree::rewrite;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::evaluate::{Compiled, Scope};
use crate::pg_catalog::System;
use crate::schema::Column;
use crate::types::{Datum, SqlType, parse_text};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::sql::planner::PlannerContext;
use datafusion::sql::sqlparser::ast;
use rhumb_generic::walk;

/// Plans expressions over a scope.
pub struct Expressions<'a> {
    cx: Planning<'a>,
    scope: Scope,
    schema: DFSchema,
    parameters: Parameters,
}

impl<'a> Expressions<'a> {
    /// Expressions over `scope`, in a statement with these parameters.
    pub fn new(cx: Planning<'a>, scope: Scope, parameters: Parameters) -> SqlResult<Expressions<'a>> {
        let schema = scope.schema()?;
        Ok(Expressions { cx, scope, schema, parameters })
    }

    /// Plans an expression that may hold subqueries and aggregates, for the caller to look at.
    pub fn plan_any(&mut self, expr: &ast::Expr, expected: Option<&SqlType>) -> SqlResult<Expr> {
        let resolver = Resolver::new(self.cx.engine, System::default(), self.parameters.made_max());
        let mut context = PlannerContext::new().with_prepare_param_data_types(self.parameters.fields());
        let expr = guarded(|| rhumb_generic::expression(&resolver, expr.clone(), &self.schema, &mut context))?;
        let expr = guarded(|| settle(expr, &self.schema).map(|changed| changed.data))?;
        self.parameters.learn(&expr, expected);
        canonical_uuids(expr, &self.schema)
    }

    /// Plans an expression that is evaluated row by row. `expected` is the type of the column that it is for.
    pub fn plan(&mut self, expr: &ast::Expr, expected: Option<&SqlType>, place: &str) -> SqlResult<Expr> {
        if holds_query(expr) {
            return Err(SqlError::unsupported(format!("subqueries are not supported in {place}")));
        }
        let expr = self.plan_any(expr, expected)?;
        require_scalar(&expr, place)?;
        Ok(expr)
    }

    /// Plans a condition on one row. Error 42804 for what is no truth value.
    pub fn plan_condition(&mut self, expr: &ast::Expr, place: &str) -> SqlResult<Expr> {
        let planned = self.plan(expr, Some(&SqlType::Bool), place)?;
        check_condition(&planned, &self.schema, place)?;
        Ok(planned)
    }

    /// Refuses a condition of `WHERE` that is no truth value. Error 42804.
    pub fn check_condition(&self, planned: &Expr) -> SqlResult<()> {
        check_condition(planned, &self.schema, "WHERE")
    }

    /// Plans what `column` is assigned. Error 42804 for an expression whose type does not become the column's by itself.
    pub fn plan_assigned(&mut self, expr: &ast::Expr, column: &Column, place: &str) -> SqlResult<Expr> {
        let planned = self.plan(expr, Some(&column.ty), place)?;
        told_type(&planned, &self.schema).map_or(Ok(()), |ty| check_assigned(&ty, column))?;
        Ok(planned)
    }

    /// What the session says about itself.
    pub fn facts(&self) -> &'a Facts {
        self.cx.facts
    }

    /// The parameters, with what was learnt of them.
    pub fn parameters(&self) -> Parameters {
        self.parameters.clone()
    }

    /// No more expressions, and all that was learnt of the parameters elsewhere: what compiles them.
    pub fn finish_with(self, parameters: &Parameters) -> Compiler<'a> {
        Expressions { parameters: parameters.clone(), ..self }.finish()
    }

    /// Likewise, for expressions of a definition, which have no parameters. Error 42P02.
    pub fn finish_definition(self) -> SqlResult<Compiler<'a>> {
        let compiler = self.finish();
        if compiler.parameters.is_empty() { Ok(compiler) } else { Err(SqlError::undefined_parameter(1)) }
    }

    /// No more expressions: what compiles them.
    pub fn finish(self) -> Compiler<'a> {
        let types = self.parameters.finish();
        Compiler { cx: self.cx, scope: self.scope.with_parameters(&types), parameters: types }
    }
}

/// Compiles planned expressions.
pub struct Compiler<'a> {
    cx: Planning<'a>,
    scope: Scope,
    /// The types of the parameters.
    pub parameters: Vec<SqlType>,
}

impl Compiler<'_> {
    /// Compiles an expression.
    pub fn compile(&self, expr: Expr) -> SqlResult<Compiled> {
        Compiled::new(self.cx.engine, expr, &self.scope)
    }

    /// The type of an expression's values.
    pub fn type_of(&self, expr: &Expr) -> SqlResult<SqlType> {
        use datafusion::logical_expr::ExprSchemable;
        let schema = self.scope.schema()?;
        let expr = crate::executor::evaluate::placeholders_to_columns(expr.clone())?;
        let (_, field) = guarded(|| expr.to_field(&schema))?;
        Ok(SqlType::of_field(&field).unwrap_or(SqlType::Text))
    }
}

/// Refuses a value of type `from` for `column`, if only a cast makes one of the column's type of it. Error 42804.
pub fn check_assigned(from: &SqlType, column: &Column) -> SqlResult<()> {
    if from.assigns_to(&column.ty) {
        return Ok(());
    }
    let message = format!("column \"{}\" is of type {} but expression is of type {}", column.name, column.ty.name(), from.name());
    Err(SqlError::new(SqlState::DatatypeMismatch, message).with_hint("You will need to rewrite or cast the expression."))
}

/// True if the expression holds a query.
pub fn holds_query(expr: &ast::Expr) -> bool {
    use std::ops::ControlFlow;
    struct Finder {
        found: bool,
    }
    impl ast::Visitor for Finder {
        type Break = SqlError;
        fn pre_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<SqlError> {
            self.found = true;
            ControlFlow::Continue(())
        }
    }
    let mut finder = Finder { found: false };
    let walked = walk(expr, &mut finder);
    debug_assert!(walked.is_ok(), "it sees all of them");
    finder.found
}

/// True for the keyword DEFAULT.
pub fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

/// The query engine holds a uuid as text: text compared with one must be in canonical form.
fn canonical_uuids(expr: Expr, schema: &DFSchema) -> SqlResult<Expr> {
    let is_uuid = |expr: &Expr| match expr {
        Expr::Column(column) => schema.field_from_column(column).is_ok_and(|field| SqlType::of_field(field) == Some(SqlType::Uuid)),
        _ => false,
    };
    let canonical = |expr: &mut Expr| -> datafusion::common::Result<()> {
        if let Expr::Literal(value @ Datum::Utf8(Some(_)), _) = expr {
            let text = value.to_string();
            *value = parse_text(&SqlType::Uuid, &text).map_err(|error| datafusion::common::DataFusionError::External(Box::new(error)))?;
        }
        Ok(())
    };
    guarded(|| {
        let transformed = rewrite(expr, &mut |mut expr| {
            match &mut expr {
                Expr::BinaryExpr(BinaryExpr { left, right, op }) if is_comparison(*op) => {
                    if is_uuid(left) {
                        canonical(right)?;
                    } else if is_uuid(right) {
                        canonical(left)?;
                    }
                }
                Expr::InList(InList { expr, list, .. }) if is_uuid(expr) => list.iter_mut().try_for_each(canonical)?,
                _ => {}
            }
            Ok(Transformed::no(expr))
        })?;
        Ok(transformed.data)
    })
}

fn is_comparison(op: Operator) -> bool {
    matches!(op, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}
