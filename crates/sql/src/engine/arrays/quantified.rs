//! `value = ANY (array)`, `value > ALL (array)` and the like: a comparison with each element, and whether it holds for one of them or for all.
//!
//! NULL if that depends on an element or a value that is NULL, or if the array is.

use super::compared::{compare, without_sign};
use crate::types::{Datum, elements};
use datafusion::arrow::array::{Array as _, ArrayRef, BooleanArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

const OPERATORS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];
const ANY: &str = " any";
const ALL: &str = " all";

/// What the query engine's planner, which asks about binary operators only, and the query engine itself call such a comparison.
pub fn name(operator: &str, all: bool) -> Option<String> {
    OPERATORS.contains(&operator).then(|| format!("{operator}{}", if all { ALL } else { ANY }))
}

/// The function of a value and an array.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Quantified {
    name: String,
    operator: &'static str,
    all: bool,
    signature: Signature,
}

impl Quantified {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Quantified> {
        let (operator, all) = match name.strip_suffix(ALL) {
            Some(operator) => (operator, true),
            None => (name.strip_suffix(ANY)?, false),
        };
        let operator = OPERATORS.into_iter().find(|known| *known == operator)?;
        Some(Quantified { name: name.to_owned(), operator, all, signature: Signature::any(2, Volatility::Immutable) })
    }

    /// All of them.
    pub fn each() -> impl Iterator<Item = ScalarUDF> {
        let names = OPERATORS.into_iter().flat_map(|operator| [false, true].map(|all| name(operator, all)));
        names.flatten().filter_map(|name| Quantified::named(&name)).map(ScalarUDF::from)
    }

    fn holds(&self, ordering: Ordering) -> bool {
        match self.operator {
            "=" => ordering.is_eq(),
            "<>" => ordering.is_ne(),
            "<" => ordering.is_lt(),
            "<=" => ordering.is_le(),
            ">" => ordering.is_gt(),
            _ => ordering.is_ge(),
        }
    }

    fn of(&self, value: &Datum, list: &[Datum]) -> Option<bool> {
        let mut is_unknown = false;
        for element in list {
            match compare(value, element) {
                None => is_unknown = true,
                // One is enough, for or against.
                Some(ordering) if self.holds(ordering) != self.all => return Some(!self.all),
                Some(_) => {}
            }
        }
        if is_unknown { None } else { Some(self.all) }
    }

    /// The elements of a list, which is not empty, that decide for it: the largest or the least, two that differ, and a NULL.
    fn decisive(&self, list: &[Datum]) -> Vec<Datum> {
        let known = || list.iter().filter(|value| !value.is_null());
        let order = |one: &&Datum, other: &&Datum| compare(one, other).unwrap_or(Ordering::Equal);
        let (least, largest) = (known().min_by(order), known().max_by(order));
        let chosen = match (self.operator, self.all) {
            (">" | ">=", true) | ("<" | "<=", false) => [largest, None],
            (">" | ">=", false) | ("<" | "<=", true) => [least, None],
            _ => [least, largest],
        };
        chosen.into_iter().flatten().chain(list.iter().find(|value| value.is_null())).cloned().collect()
    }

    /// The same for many values and one list.
    fn of_list(&self, values: &ArrayRef, list: &Datum) -> Result<BooleanArray> {
        let Some(list) = elements(list) else { return Ok(vec![None; values.len()].into()) };
        let Some(of_list) = list.first().map(Datum::data_type) else { return Ok(vec![Some(self.all); values.len()].into()) };
        let common = comparison_coercion(values.data_type(), &of_list).unwrap_or(of_list);
        let list = list.into_iter().map(|value| value.cast_to(&common).map(without_sign)).collect::<Result<Vec<Datum>>>()?;
        let values = cast_with_options(values, &common, &CastOptions { safe: false, ..CastOptions::default() })?;
        // Equality is looked up, whatever the length of the list.
        let set: Option<HashSet<&Datum>> = match (self.operator, self.all) {
            ("=", false) | ("<>", true) => Some(list.iter().filter(|value| !value.is_null()).collect()),
            _ => None,
        };
        let decisive = if set.is_none() { self.decisive(&list) } else { Vec::new() };
        let has_null = set.as_ref().is_some_and(|_| list.iter().any(Datum::is_null));
        let of_row = |row| {
            let value = without_sign(Datum::try_from_array(&values, row)?);
            Ok(match &set {
                None => self.of(&value, &decisive),
                Some(_) if value.is_null() => None,
                Some(set) if set.contains(&value) => Some(!self.all),
                Some(_) if has_null => None,
                Some(_) => Some(self.all),
            })
        };
        Ok((0..values.len()).map(of_row).collect::<Result<Vec<_>>>()?.into())
    }
}

/// The value and the array of a call that is true for the values of the array alone.
pub fn list_of(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) => match (func.inner().downcast_ref(), args.as_slice()) {
            (Some(Quantified { operator: "=", all: false, .. }), [value, array]) => Some((value, array)),
            _ => None,
        },
        _ => None,
    }
}

impl ScalarUDFImpl for Quantified {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_one { 1 } else { arguments.number_rows };
        let values = arguments.args[0].to_array(rows)?;
        let found: BooleanArray = match &arguments.args[1] {
            ColumnarValue::Scalar(list) => self.of_list(&values, list)?,
            ColumnarValue::Array(lists) => {
                let of_row = |row| {
                    let list = elements(&Datum::try_from_array(lists, row)?);
                    let value = Datum::try_from_array(&values, row)?;
                    Ok(list.and_then(|list| self.of(&value, &list)))
                };
                (0..rows).map(of_row).collect::<Result<Vec<_>>>()?.into()
            }
        };
        if is_one {
            return Datum::try_from_array(&found, 0).map(ColumnarValue::Scalar);
        }
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}
