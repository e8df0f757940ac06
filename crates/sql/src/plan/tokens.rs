//! SELECT of acquire() and release(): one row.
//!
//! Each call is taken out of the select list, where an input takes its place. First the arguments of all calls are
//! evaluated, so that one that makes no sense stops the statement before any tokens move; then whoever runs the statement
//! carries out the operations, each once; then the row is evaluated over what they answered.

use super::evaluate::{Compiled, Scope};
use super::expression::{Compiler, Expressions};
use super::names::{self, MARK};
use super::parameters::Parameters;
use super::result::ResultColumn;
use super::returning::input_of;
use super::{Planning, rewrite};
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parse::{TokenCall, fold, token_call};
use crate::table::Row;
use crate::types::{Datum, SqlType, coerce, to_text};
use datafusion::arrow::datatypes::Schema;
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast::{self, Ident, SelectItem, SetExpr, VisitMut, VisitorMut};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Action, OPERATIONS_MAX, Operation, RequestKey, parse_amount};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What the arguments of a call are called, and the types of those that are parameters of unknown type.
const ARGUMENTS: [(&str, SqlType); 3] = [("quota", SqlType::Text), ("amount", SqlType::Int8), ("request id", SqlType::Text)];

/// The calls and the row made of their answers.
#[derive(Debug)]
pub struct TokensPlan {
    /// The types of its parameters.
    pub parameters: Vec<SqlType>,
    /// The columns of its row.
    pub columns: Arc<[ResultColumn]>,
    calls: Vec<Call>,
    row: Vec<Compiled>,
}

#[derive(Debug)]
struct Call {
    action: Action,
    arguments: Vec<(SqlType, Compiled)>,
}

impl TokensPlan {
    /// Plans a SELECT whose calls stand where they may. Nothing is called.
    pub fn make(cx: Planning<'_>, query: &ast::Query) -> SqlResult<TokensPlan> {
        let parameters = Parameters::of(query, cx.hints)?;
        let mut query = query.clone();
        names::name_columns(&mut query);
        let calls = take_calls(&mut query)?;
        rewrite::rewrite(&mut query, cx.facts)?;

        let answers: Vec<_> = (0..calls.len()).map(|call| SqlType::Int8.field(&input_name(call), false)).collect();
        let scope = Scope::default().with("calls", &Schema::new(answers));
        let mut expressions = Expressions::new(cx, scope, parameters)?;
        let calls = calls.into_iter().map(|call| planned(cx, &mut expressions, call)).collect::<SqlResult<Vec<_>>>()?;
        let items = items(&query)?
            .into_iter()
            .map(|(name, expr)| Ok((name, expressions.plan(expr, None, "a select list with acquire() or release()")?)))
            .collect::<SqlResult<Vec<_>>>()?;

        let compiler = expressions.finish();
        let calls = calls.into_iter().map(|(action, arguments)| Ok(Call { action, arguments: compiled(&compiler, arguments)? }));
        let calls = calls.collect::<SqlResult<_>>()?;
        let (names, items): (Vec<String>, Vec<Expr>) = items.into_iter().unzip();
        let (types, row): (Vec<SqlType>, Vec<Compiled>) = compiled(&compiler, items)?.into_iter().unzip();
        let columns = names.into_iter().zip(types).map(|(name, ty)| ResultColumn { name, ty }).collect();
        Ok(TokensPlan { parameters: compiler.parameters, columns, calls, row })
    }

    /// What its calls ask for, from left to right. Errors 22004, 22023: nothing is to be done.
    pub fn operations(&self, engine: &Engine, parameters: &[Datum]) -> SqlResult<Vec<Operation>> {
        // No argument depends on an answer.
        let answers = vec![SqlType::Int8.null(); self.calls.len()];
        self.calls.iter().map(|call| call.operation(|argument| one(argument, engine, &answers, parameters))).collect()
    }

    /// Its row, once its calls left so many tokens each.
    pub fn row(&self, engine: &Engine, parameters: &[Datum], left: &[u64]) -> SqlResult<Row> {
        // No number of tokens is near the end of the type.
        let answers: Row = left.iter().map(|&left| Datum::Int64(i64::try_from(left).ok())).collect();
        let values = self.row.iter().zip(self.columns.iter()).map(|(expr, column)| {
            let value = one(expr, engine, &answers, parameters)?;
            if value.data_type() == column.ty.arrow() { Ok(value) } else { coerce(&column.ty, value) }
        });
        values.collect()
    }
}

impl Call {
    fn operation(&self, value: impl Fn(&Compiled) -> SqlResult<Datum>) -> SqlResult<Operation> {
        let texts = self.arguments.iter().zip(ARGUMENTS).map(|((ty, argument), (what, _))| {
            let text = to_text(ty, &value(argument)?);
            text.ok_or_else(|| SqlError::new(SqlState::NullValueNotAllowed, format!("the {what} given to a quota function is NULL")))
        });
        let texts: Vec<String> = texts.collect::<SqlResult<_>>()?;
        let [quota, amount, id @ ..] = texts.as_slice() else {
            return Err(SqlError::internal("a quota function was parsed without its arguments"));
        };
        let (quota, amount) = (Name::new(quota)?, parse_amount(amount.as_bytes())?);
        let id = id.first().map(|id| RequestKey::new(id.clone())).transpose()?;
        Ok(match self.action {
            Action::Acquire => Operation::acquire(quota, amount, id)?,
            Action::Release => Operation::release(quota, amount, id)?,
        })
    }
}

/// The value of an expression over the answers and the parameters.
fn one(expr: &Compiled, engine: &Engine, answers: &Row, parameters: &[Datum]) -> SqlResult<Datum> {
    Ok(expr.evaluate(engine, 1, |_, input| input_of(answers, parameters, input))?.pop().expect("one value for one row"))
}

/// The name of the input that takes the place of a call.
fn input_name(call: usize) -> String {
    format!("{MARK}{call}")
}

fn take_calls(query: &mut ast::Query) -> SqlResult<Vec<TokenCall>> {
    let mut taker = Taker(Vec::new());
    match query.visit(&mut taker) {
        ControlFlow::Continue(()) if taker.0.len() <= OPERATIONS_MAX => Ok(taker.0),
        ControlFlow::Continue(()) => Err(SqlError::too_large(format!("more than {OPERATIONS_MAX} quota functions in one statement"))),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Takes the calls out of the expressions that it visits.
struct Taker(Vec<TokenCall>);

impl VisitorMut for Taker {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<SqlError> {
        let ast::Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        match token_call(function) {
            Ok(Some(call)) => {
                *expr = ast::Expr::Identifier(Ident::with_quote('"', input_name(self.0.len())));
                self.0.push(call);
                ControlFlow::Continue(())
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// The named expressions of the select list.
fn items(query: &ast::Query) -> SqlResult<Vec<(String, &ast::Expr)>> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Err(SqlError::internal("quota functions are planned in SELECT only")) };
    select
        .projection
        .iter()
        .map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => Ok((names::shown(&fold(alias)), expr)),
            SelectItem::UnnamedExpr(expr) => Ok((expr.to_string(), expr)),
            other => Err(SqlError::syntax(format!("SELECT {other} with no tables specified is not valid"))),
        })
        .collect()
}

fn planned(cx: Planning<'_>, expressions: &mut Expressions<'_>, call: TokenCall) -> SqlResult<(Action, Vec<Expr>)> {
    let arguments = call.arguments.into_iter().zip(ARGUMENTS).map(|(mut argument, (_, ty))| {
        rewrite::rewrite(&mut argument, cx.facts)?;
        expressions.plan(&argument, Some(&ty), "an argument of a quota function")
    });
    Ok((call.action, arguments.collect::<SqlResult<_>>()?))
}

/// The expressions with the types of their values.
fn compiled(compiler: &Compiler<'_>, exprs: Vec<Expr>) -> SqlResult<Vec<(SqlType, Compiled)>> {
    exprs.into_iter().map(|expr| Ok((compiler.type_of(&expr)?, compiler.compile(expr)?))).collect()
}
