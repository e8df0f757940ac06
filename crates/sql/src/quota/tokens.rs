//! SELECT of acquire() and release() as it runs: what its calls ask for, and one row.
//!
//! All that can fail is evaluated first: the arguments of all calls, and the other items. So a statement that makes no sense stops before
//! any tokens move. Then whoever runs the statement carries out the operations, each once, and puts their answers into the row, which
//! cannot fail.

use super::definition::name;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::{Compiled, ResultColumn};
use crate::storage::Row;
use crate::types::{Datum, SqlType, coerce, to_text};
use rhumb_quota::operation::{Action, Operation, RequestKey, parse_amount};
use std::sync::Arc;

/// What the arguments of a call are called, and the types of those that are parameters of unknown type.
pub const ARGUMENTS: [(&str, SqlType); 3] = [("quota", SqlType::Text), ("amount", SqlType::Int8), ("request id", SqlType::Text)];

/// The items of the select list.
#[derive(Debug)]
pub struct TokensPlan {
    /// The types of its parameters.
    pub parameters: Vec<SqlType>,
    /// The columns of its row.
    pub columns: Arc<[ResultColumn]>,
    /// What makes its values.
    pub items: Vec<Item>,
}

/// An item of the select list.
#[derive(Debug)]
pub enum Item {
    Call(Call),
    Value(Compiled),
}

/// A call of acquire() or release().
#[derive(Debug)]
pub struct Call {
    pub action: Action,
    pub arguments: Vec<(SqlType, Compiled)>,
}

impl TokensPlan {
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
        let (quota, amount) = (name(quota)?, parse_amount(amount.as_bytes())?);
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
