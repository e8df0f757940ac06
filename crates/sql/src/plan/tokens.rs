//! SELECT of acquire() and release(): one row.
//!
//! Each call is an item of the select list by itself, and no other item sees its answer. So all that can fail is evaluated first: the
//! arguments of all calls, and the other items. A statement that makes no sense stops before any tokens move. Then whoever runs the
//! statement carries out the operations, each once, and puts their answers into the row, which cannot fail.

use super::evaluate::{Compiled, Scope};
use super::expression::{Compiler, Expressions};
use super::parameters::Parameters;
use super::result::{ResultColumn, check_columns};
use super::{Planning, rewrite};
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::{TokenCall, fold, names, token_call};
use crate::storage::Row;
use crate::types::{Datum, SqlType, coerce, to_text};
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast::{self, SelectItem, SetExpr};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Action, OPERATIONS_MAX, Operation, RequestKey, parse_amount};
use std::sync::Arc;

/// What the arguments of a call are called, and the types of those that are parameters of unknown type.
const ARGUMENTS: [(&str, SqlType); 3] = [("quota", SqlType::Text), ("amount", SqlType::Int8), ("request id", SqlType::Text)];

/// The items of the select list.
#[derive(Debug)]
pub struct TokensPlan {
    /// The types of its parameters.
    pub parameters: Vec<SqlType>,
    /// The columns of its row.
    pub columns: Arc<[ResultColumn]>,
    items: Vec<Item>,
}

#[derive(Debug)]
enum Item {
    Call(Call),
    Value(Compiled),
}

#[derive(Debug)]
struct Call {
    action: Action,
    arguments: Vec<(SqlType, Compiled)>,
}

/// An item that is planned and not compiled yet.
enum Planned {
    Call(Action, Vec<Expr>),
    Value(Expr),
}

impl TokensPlan {
    /// Plans a SELECT whose calls stand where they may. Nothing is called.
    pub fn make(cx: Planning<'_>, query: &ast::Query) -> SqlResult<TokensPlan> {
        let parameters = Parameters::of(query, cx.hints)?;
        let mut query = query.clone();
        names::name_columns(&mut query);
        let mut expressions = Expressions::new(cx, Scope::default(), parameters)?;
        let items = items(&query)?;
        check_columns(items.len())?;
        let mut planned = Vec::with_capacity(items.len());
        for (name, expr) in items {
            planned.push((name, plan_item(cx, &mut expressions, expr)?));
        }
        if planned.iter().filter(|(_, item)| matches!(item, Planned::Call(..))).count() > OPERATIONS_MAX {
            return Err(SqlError::too_large(format!("more than {OPERATIONS_MAX} quota functions in one statement")));
        }

        let compiler = expressions.finish();
        let (mut columns, mut items) = (Vec::new(), Vec::new());
        for (name, item) in planned {
            let (ty, item) = match item {
                Planned::Call(action, arguments) => {
                    let arguments = arguments.into_iter().map(|argument| compiled(&compiler, argument)).collect::<SqlResult<_>>()?;
                    (SqlType::Int8, Item::Call(Call { action, arguments }))
                }
                Planned::Value(expr) => {
                    let (ty, expr) = compiled(&compiler, expr)?;
                    (ty, Item::Value(expr))
                }
            };
            columns.push(ResultColumn { name, ty });
            items.push(item);
        }
        Ok(TokensPlan { parameters: compiler.parameters, columns: columns.into(), items })
    }

    /// What its calls ask for, from left to right, and its row without their answers. An error: nothing is to be done.
    pub fn evaluate(&self, engine: &Engine, parameters: &[Datum]) -> SqlResult<(Vec<Operation>, Row)> {
        let (mut operations, mut row) = (Vec::new(), Vec::with_capacity(self.items.len()));
        for (item, column) in self.items.iter().zip(self.columns.iter()) {
            row.push(match item {
                Item::Call(call) => {
                    operations.push(call.operation(|argument| one(argument, engine, parameters))?);
                    column.ty.null()
                }
                Item::Value(expr) => {
                    let value = one(expr, engine, parameters)?;
                    if value.data_type() == column.ty.arrow() { value } else { coerce(&column.ty, value)? }
                }
            });
        }
        Ok((operations, row))
    }

    /// Its row, once its calls left so many tokens each.
    pub fn answered(&self, mut row: Row, left: &[u64]) -> Row {
        let answers = self.items.iter().zip(&mut row).filter(|(item, _)| matches!(item, Item::Call(_)));
        for ((_, answer), &left) in answers.zip(left) {
            // No number of tokens is near the end of the type.
            *answer = Datum::Int64(i64::try_from(left).ok());
        }
        row
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
            Action::Free => Operation::free(quota, amount, id)?,
        })
    }
}

/// The value of an expression over the parameters.
fn one(expr: &Compiled, engine: &Engine, parameters: &[Datum]) -> SqlResult<Datum> {
    Ok(expr.evaluate(engine, 1, |_, input| &parameters[input])?.pop().expect("one value for one row"))
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

fn plan_item(cx: Planning<'_>, expressions: &mut Expressions<'_>, expr: &ast::Expr) -> SqlResult<Planned> {
    let mut planned = |mut expr: ast::Expr, ty: Option<&SqlType>, place: &str| {
        rewrite::rewrite(&mut expr, cx.facts)?;
        expressions.plan(&expr, ty, place)
    };
    let call = if let ast::Expr::Function(function) = expr { token_call(function)? } else { None };
    let Some(TokenCall { action, arguments }) = call else {
        return planned(expr.clone(), None, "a select list with acquire() or release()").map(Planned::Value);
    };
    let arguments =
        arguments.into_iter().zip(ARGUMENTS).map(|(argument, (_, ty))| planned(argument, Some(&ty), "an argument of a quota function"));
    Ok(Planned::Call(action, arguments.collect::<SqlResult<_>>()?))
}

/// An expression with the type of its values.
fn compiled(compiler: &Compiler<'_>, expr: Expr) -> SqlResult<(SqlType, Compiled)> {
    Ok((compiler.type_of(&expr)?, compiler.compile(expr)?))
}
