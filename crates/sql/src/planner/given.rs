//! What the parameters of a prepared statement or a procedure are given: expressions of no table.

use super::Planning;
use super::expression::{Compiler, Expressions};
use super::parameters::Parameters;
use super::rewrite;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::evaluate::Scope;
use crate::types::{Datum, SqlType, coerce};
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast;

/// The expressions, and what compiles them.
pub struct Given<'a> {
    /// As the query engine is given them.
    pub written: Vec<ast::Expr>,
    /// As it has planned them.
    pub planned: Vec<Expr>,
    /// What compiles them, and knows the types of their own parameters.
    pub compiler: Compiler<'a>,
}

impl<'a> Given<'a> {
    /// Plans what parameters of the types `wanted` are given, at this `place`.
    pub fn plan(cx: Planning<'a>, wanted: &[SqlType], given: &[ast::Expr], place: &str) -> SqlResult<Given<'a>> {
        let mut written = given.to_vec();
        rewrite::rewrite(&mut written, cx.facts)?;
        let mut expressions = Expressions::new(cx, Scope::default(), Parameters::of(&written, cx.hints)?)?;
        let mut planned = Vec::with_capacity(written.len());
        for (position, expr) in written.iter().enumerate() {
            planned.push(expressions.plan(expr, wanted.get(position), place)?);
        }
        Ok(Given { written, planned, compiler: expressions.finish() })
    }
}

/// What EXECUTE gives the parameters of the prepared statement `name`, whose types are `wanted`. Errors: 42601, 42804; 0A000 for a parameter of its own.
pub fn values(cx: Planning<'_>, name: &str, wanted: &[SqlType], given: &[ast::Expr]) -> SqlResult<Vec<Datum>> {
    if given.len() != wanted.len() {
        let message = format!("wrong number of parameters for prepared statement \"{name}\"");
        return Err(SqlError::syntax(message).with_hint(format!("It has {}, and {} are given.", wanted.len(), given.len())));
    }
    let Given { planned, compiler, .. } = Given::plan(cx, wanted, given, "what EXECUTE gives")?;
    if !compiler.parameters.is_empty() {
        return Err(SqlError::unsupported("EXECUTE has no parameters of its own"));
    }
    let value = |(position, (expr, wanted)): (usize, (Expr, &SqlType))| {
        let ty = compiler.type_of(&expr)?;
        if !ty.is_text() && !ty.assigns_to(wanted) {
            let message =
                format!("parameter ${} of type {} cannot be coerced to the expected type {}", position + 1, ty.name(), wanted.name());
            return Err(SqlError::new(SqlState::DatatypeMismatch, message));
        }
        let values = compiler.compile(expr)?.evaluate(cx.engine, 1, |_, _| &Datum::Null)?;
        values.into_iter().next().map_or_else(|| Err(SqlError::internal("one row has one value")), |value| coerce(wanted, value))
    };
    planned.into_iter().zip(wanted).enumerate().map(value).collect()
}
