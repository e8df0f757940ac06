//! From the conditions of a WHERE to the keys that can satisfy it.
//!
//! The keys found are a superset of the answer: whoever uses them evaluates the whole condition on each row again, unless the keys are
//! all that it says ([`Access::answers`]). So a condition that is not understood costs time, never a wrong result.

use super::evaluate::constant;
use super::keys::Keys;
use crate::engine::arrays::list_of;
use crate::engine::tree::any;
use crate::error::SqlResult;
use crate::schema::{Index, IndexId, TableDescriptor};
use crate::storage::{ScanSpec, SearchedIndex, primary_key};
use crate::types::{Datum, SqlType, coerce, elements, length_of};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator};
use rhumb_core::Key;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

/// The most keys that IN lists may multiply to before a scan is preferred.
const POINTS_MAX: usize = 4_096;
/// The most values of a column that are shown one by one.
const SHOWN_MAX: usize = 8;

/// Which keys of a table a statement needs. Its expressions hold no columns, only constants and parameters.
#[derive(Clone, Debug)]
pub struct Access {
    path: Path,
    /// True if the keys are all that the conditions say: every row read satisfies them.
    complete: bool,
    /// True if no text stands for a value of another type, of which the engine may have another idea.
    typed: bool,
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each table of a statement")]
enum Path {
    /// These keys of the primary key (`None`) or of a unique index. For every column of the key, its alternatives.
    Points { index: Option<Index>, columns: Vec<Alternatives> },
    /// A range of the primary key (`None`) or of an index.
    Range { index: Option<Index>, prefix: Vec<Expr>, lower: Bound<Expr>, upper: Bound<Expr> },
}

/// The values that a column may have.
#[derive(Clone, Debug)]
enum Alternatives {
    /// These.
    Each(Vec<Expr>),
    /// The elements of an array.
    Of(Expr),
}

impl Alternatives {
    /// The one value that there is.
    fn single(&self) -> Option<&Expr> {
        match self {
            Alternatives::Each(values) if values.len() == 1 => values.first(),
            _ => None,
        }
    }

    /// How many there are, as far as that is known before they are.
    fn count(&self) -> usize {
        if let Alternatives::Each(values) = self { values.len() } else { 1 }
    }

    fn describe(&self) -> String {
        match self {
            Alternatives::Each(values) if values.len() == 1 => format!("= {}", values[0].human_display()),
            Alternatives::Each(values) if values.len() > SHOWN_MAX => format!("in {} values", values.len()),
            Alternatives::Each(values) => {
                let shown: Vec<String> = values.iter().map(|value| value.human_display().to_string()).collect();
                format!("in ({})", shown.join(", "))
            }
            Alternatives::Of(array) => format!("= any ({})", array.human_display()),
        }
    }

    /// The values, given those of the parameters; `None` if an array has more than are looked up one by one.
    fn values(&self, parameters: &[Datum]) -> SqlResult<Option<Vec<Datum>>> {
        match self {
            Alternatives::Each(values) => values.iter().map(|expr| constant(expr, parameters)).collect::<SqlResult<_>>().map(Some),
            Alternatives::Of(array) => {
                let array = constant(array, parameters)?;
                let is_long = length_of(&array).is_some_and(|length| length > POINTS_MAX);
                Ok(if is_long { None } else { Some(elements(&array).unwrap_or_default()) })
            }
        }
    }
}

/// What the conditions say about the columns of a table.
///
/// Each is kept with the number of the condition that says it.
#[derive(Default)]
struct Conditions {
    count: usize,
    /// True if no text stands for a value of another type.
    typed: bool,
    equal: BTreeMap<usize, (usize, Alternatives)>,
    lower: BTreeMap<usize, (usize, Bound<Expr>)>,
    upper: BTreeMap<usize, (usize, Bound<Expr>)>,
}

impl Access {
    /// The narrowest access that `filters`, all of which must hold, allow.
    pub fn of(table: &TableDescriptor, filters: &[Expr]) -> Access {
        let typed = filters.iter().flat_map(split_conjunction).all(|filter| is_typed(table, filter));
        let mut conditions = Conditions { typed, ..Conditions::default() };
        filters.iter().flat_map(split_conjunction).for_each(|filter| conditions.add(table, filter));
        let unique = table.indexes.iter().filter(|index| index.unique);
        let keys = std::iter::once((None, &table.primary_key)).chain(unique.map(|index| (Some(index), &index.columns)));
        for (index, columns) in keys {
            let alternatives: Option<Vec<_>> = columns.iter().map(|column| conditions.equal.get(column).cloned()).collect();
            if let Some(alternatives) = alternatives
                && alternatives.iter().map(|(_, values)| values.count()).product::<usize>() <= POINTS_MAX
            {
                let (used, columns): (HashSet<usize>, Vec<_>) = alternatives.into_iter().unzip();
                let path = Path::Points { index: index.cloned(), columns };
                return Access { complete: used.len() == conditions.count && !path.has_arrays(), path, typed };
            }
        }
        let all = std::iter::once((None, &table.primary_key)).chain(table.indexes.iter().map(|index| (Some(index), &index.columns)));
        let ranges = all.map(|(index, columns)| conditions.range(index, columns));
        // `max_by_key` prefers the last of equals, and the primary key, which needs no second read, comes first.
        let best = ranges.collect::<Vec<_>>().into_iter().rev().max_by_key(|(score, _)| *score);
        best.expect("every table has a primary key").1
    }

    /// The index that the keys belong to and the number of its columns that are fixed to one value: rows come in the
    /// order of the columns after them. `None`: rows come in no order.
    pub fn order(&self) -> Option<(Option<&Index>, usize)> {
        match &self.path {
            Path::Points { .. } => None,
            Path::Range { index, prefix, .. } => Some((index.as_ref(), prefix.len())),
        }
    }

    /// How rows are found, in words, and the names of the columns that say so.
    pub fn describe(&self, table: &TableDescriptor) -> String {
        let (index, said) = match &self.path {
            Path::Points { index, columns } => (index, columns.iter().map(Alternatives::describe).collect::<Vec<_>>()),
            Path::Range { index, prefix, lower, upper } => {
                let bounds = [(lower, ">=", ">"), (upper, "<=", "<")].into_iter().filter_map(|(bound, including, excluding)| match bound {
                    Bound::Included(expr) => Some(format!("{including} {}", expr.human_display())),
                    Bound::Excluded(expr) => Some(format!("{excluding} {}", expr.human_display())),
                    Bound::Unbounded => None,
                });
                let range: Vec<String> = bounds.collect();
                let prefix = prefix.iter().map(|expr| format!("= {}", expr.human_display()));
                (index, prefix.chain((!range.is_empty()).then(|| range.join(" and "))).collect())
            }
        };
        let key = match index {
            Some(index) => format!("index {}", index.name),
            None => "primary key".to_owned(),
        };
        if said.is_empty() {
            return format!("all rows, by the {key}");
        }
        let columns = key_columns(table, index.as_ref()).iter().map(|&column| table.columns[column].name.as_str());
        let conditions: Vec<String> = columns.zip(&said).map(|(column, said)| format!("{column} {said}")).collect();
        let how = if matches!(self.path, Path::Points { .. }) { "keys" } else { "range" };
        format!("{how} of the {key}: {}", conditions.join(", "))
    }

    /// True if conditions narrow the rows in no way.
    pub fn is_of_all(&self) -> bool {
        matches!(&self.path, Path::Range { prefix, lower: Bound::Unbounded, upper: Bound::Unbounded, .. } if prefix.is_empty())
    }

    /// True if the keys alone say which rows satisfy the conditions.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// True if the keys are primary keys, and their rows are those that satisfy the conditions: nothing is left to evaluate.
    pub fn answers(&self) -> bool {
        self.is_complete() && self.is_of_points() && self.typed
    }

    /// True if the keys are primary keys, known without a read.
    pub fn is_of_points(&self) -> bool {
        matches!(&self.path, Path::Points { index: None, .. }) && !self.path.has_arrays()
    }

    /// True if at most one row can be found.
    pub fn is_single(&self) -> bool {
        matches!(&self.path, Path::Points { columns, .. } if columns.iter().all(|values| values.single().is_some()))
    }

    /// The keys of rows by their primary keys; `None` if these are not known without a read.
    pub fn points(&self, table: &TableDescriptor, parameters: &[Datum]) -> SqlResult<Option<Vec<Key>>> {
        match self.resolve(table, parameters)? {
            Keys::Points { index: None, keys } => {
                let keys = keys.iter().filter_map(|values| primary_key(table, values).transpose());
                keys.collect::<SqlResult<_>>().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The keys, given the values of the parameters.
    pub fn resolve(&self, table: &TableDescriptor, parameters: &[Datum]) -> SqlResult<Keys> {
        match &self.path {
            Path::Points { index, columns } => {
                let types = key_columns(table, index.as_ref());
                let mut keys: Vec<Vec<Datum>> = vec![Vec::new()];
                for (alternatives, column) in columns.iter().zip(types) {
                    let ty = comparison_type(&table.columns[*column].ty);
                    let mut values = Vec::new();
                    let all = Keys::Range { spec: ScanSpec::all(SearchedIndex::Primary), complete: false };
                    let Some(alternatives) = alternatives.values(parameters)? else { return Ok(all) };
                    for value in alternatives {
                        // A value that the column cannot hold is equal to none of its values.
                        values.extend(exact(&ty, value).filter(|value| !value.is_null()));
                    }
                    if keys.len().saturating_mul(values.len()) > POINTS_MAX && self.path.has_arrays() {
                        return Ok(all);
                    }
                    keys = keys
                        .iter()
                        .flat_map(|key| values.iter().map(|value| [key.as_slice(), std::slice::from_ref(value)].concat()))
                        .collect();
                }
                let mut seen = HashSet::new();
                keys.retain(|key| seen.insert(key.clone()));
                Ok(Keys::Points { index: index.clone(), keys })
            }
            Path::Range { index, prefix, lower, upper } => {
                let columns = key_columns(table, index.as_ref());
                let mut values = Vec::with_capacity(prefix.len());
                for (expr, column) in prefix.iter().zip(columns) {
                    match exact(&comparison_type(&table.columns[*column].ty), constant(expr, parameters)?) {
                        Some(value) if !value.is_null() => values.push(value),
                        _ => return Ok(Keys::none()),
                    }
                }
                let bound_type = columns.get(prefix.len()).map(|&column| comparison_type(&table.columns[column].ty));
                let (Some(low), Some(high)) =
                    (resolve_bound(bound_type, lower, parameters)?, resolve_bound(bound_type, upper, parameters)?)
                else {
                    return Ok(Keys::none());
                };
                let dropped = |wanted: &Bound<Expr>, found: &Bound<Datum>| *wanted != Bound::Unbounded && *found == Bound::Unbounded;
                let complete = self.complete && !dropped(lower, &low) && !dropped(upper, &high);
                let (lower, upper) = (low, high);
                let index = index.as_ref().map_or(SearchedIndex::Primary, |index| SearchedIndex::Secondary(index.id));
                Ok(Keys::Range { spec: ScanSpec { index, prefix: values, lower, upper, reverse: false, limit: None }, complete })
            }
        }
    }
}

impl Path {
    /// True if there are as many keys as arrays have elements: too many, and the table is read instead.
    fn has_arrays(&self) -> bool {
        matches!(self, Path::Points { columns, .. } if columns.iter().any(|values| matches!(values, Alternatives::Of(_))))
    }
}

impl Conditions {
    fn add(&mut self, table: &TableDescriptor, filter: &Expr) {
        self.count += 1;
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                if let Some(column) = compared(table, left, [&**right]) {
                    self.compare(column, *op, right);
                } else if let (Some(column), Some(op)) = (compared(table, right, [&**left]), op.swap()) {
                    self.compare(column, op, left);
                }
            }
            Expr::InList(InList { expr, list, negated: false }) => {
                if let Some(column) = compared(table, expr, list) {
                    self.equal.entry(column).or_insert_with(|| (self.count, Alternatives::Each(list.clone())));
                }
            }
            Expr::Between(Between { expr, negated: false, low, high }) => {
                if let Some(column) = compared(table, expr, [&**low, &**high]) {
                    self.compare(column, Operator::GtEq, low);
                    // Two conditions: either may give way to another bound of the column.
                    self.count += 1;
                    self.compare(column, Operator::LtEq, high);
                }
            }
            filter => {
                if let Some((value, array)) = list_of(filter)
                    && let Some(column) = compared(table, value, [array])
                {
                    self.equal.entry(column).or_insert_with(|| (self.count, Alternatives::Of(array.clone())));
                }
            }
        }
    }

    fn compare(&mut self, column: usize, op: Operator, value: &Expr) {
        let (number, value) = (self.count, value.clone());
        match op {
            Operator::Eq => drop(self.equal.insert(column, (number, Alternatives::Each(vec![value])))),
            Operator::Gt => drop(self.lower.insert(column, (number, Bound::Excluded(value)))),
            Operator::GtEq => drop(self.lower.insert(column, (number, Bound::Included(value)))),
            Operator::Lt => drop(self.upper.insert(column, (number, Bound::Excluded(value)))),
            Operator::LtEq => drop(self.upper.insert(column, (number, Bound::Included(value)))),
            _ => {}
        }
    }

    /// The range of one key, and how narrow it seems.
    fn range(&self, index: Option<&Index>, columns: &[usize]) -> (usize, Access) {
        let single = |column: &usize| self.equal.get(column).and_then(|(number, values)| Some((*number, values.single()?.clone())));
        let (mut used, prefix): (HashSet<usize>, Vec<Expr>) = columns.iter().map_while(single).unzip();
        let mut bound = |bounds: &BTreeMap<usize, (usize, Bound<Expr>)>| {
            let found = columns.get(prefix.len()).and_then(|column| bounds.get(column)).cloned();
            found.map_or(Bound::Unbounded, |(number, bound)| {
                used.insert(number);
                bound
            })
        };
        let (lower, upper) = (bound(&self.lower), bound(&self.upper));
        let bounds = usize::from(lower != Bound::Unbounded) + usize::from(upper != Bound::Unbounded);
        let score = prefix.len() * 3 + bounds;
        let path = Path::Range { index: index.cloned(), prefix, lower, upper };
        (score, Access { path, complete: used.len() == self.count, typed: self.typed })
    }
}

fn key_columns<'a>(table: &'a TableDescriptor, index: Option<&'a Index>) -> &'a [usize] {
    index.map_or(&table.primary_key, |index| &index.columns)
}

/// The column that `expr` is, if all of these are constants whose keys are those of all rows that compare equal.
fn compared<'a>(table: &TableDescriptor, expr: &Expr, constants: impl IntoIterator<Item = &'a Expr>) -> Option<usize> {
    let column = column_of(table, expr)?;
    let ty = table.columns[column].ty.arrow();
    constants.into_iter().all(|constant| is_constant(constant) && compares_exactly(&ty, constant)).then_some(column)
}

/// False if a text may stand for a value of another type in this condition.
fn is_typed(table: &TableDescriptor, filter: &Expr) -> bool {
    let is_text = |column: &Column| {
        table.column(&column.name).is_some_and(|column| matches!(table.columns[column].ty, SqlType::Text | SqlType::Varchar(_)))
    };
    let has_text = || any(filter, &mut |expr| matches!(expr, Expr::Literal(Datum::Utf8(_), _)));
    filter.column_refs().into_iter().all(is_text) || !has_text()
}

/// Below this every whole number is a floating-point number of either size.
const WHOLE_MAX: f64 = 16_777_216.0;

/// False if the column is compared with the constant as floating-point numbers, and several of its values are one of these.
fn compares_exactly(column: &DataType, constant: &Expr) -> bool {
    // A parameter without a type takes that of the column.
    let Ok(ty) = constant.get_type(&DFSchema::empty()) else { return true };
    // Of an array, its elements.
    let ty = if let DataType::List(element) = &ty { element.data_type() } else { &ty };
    match (column.is_floating(), ty.is_floating()) {
        (false, true) => !column.is_numeric(),
        // A double takes any constant as the double that it is compared with; a float may not hold that.
        (true, false) if ty.is_numeric() && *column == DataType::Float32 => is_small_whole(constant),
        _ => true,
    }
}

fn is_small_whole(constant: &Expr) -> bool {
    let Expr::Literal(value, _) = constant else { return false };
    matches!(value.cast_to(&DataType::Float64), Ok(Datum::Float64(Some(value))) if value.fract() == 0.0 && value.abs() < WHOLE_MAX)
}

fn column_of(table: &TableDescriptor, expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column(column) => table.column(&column.name),
        _ => None,
    }
}

fn is_constant(expr: &Expr) -> bool {
    !expr.any_column_refs() && crate::engine::analyze::is_immutable(expr)
}

/// The type in which a column is compared: text of any length is text.
fn comparison_type(ty: &SqlType) -> SqlType {
    match ty {
        SqlType::Varchar(_) => SqlType::Text,
        other => *other,
    }
}

/// `value` as the column holds it, or `None` if the column cannot hold it unchanged.
pub fn exact(ty: &SqlType, value: Datum) -> Option<Datum> {
    if value.is_null() {
        return Some(ty.null());
    }
    let held = match coerce(ty, value.clone()).ok()? {
        // The zeros of either sign are equal, and one key.
        Datum::Float64(Some(value)) => Datum::Float64(Some(value + 0.0)),
        Datum::Float32(Some(value)) => Datum::Float32(Some(value + 0.0)),
        other => other,
    };
    if held.data_type() == value.data_type() || matches!(value, Datum::Utf8(_)) || matches!(held, Datum::Float64(_)) {
        return Some(held);
    }
    let back = held.cast_to(&value.data_type()).ok()?;
    (back == value).then_some(held)
}

/// `None`: no value satisfies the bound.
fn resolve_bound(ty: Option<SqlType>, bound: &Bound<Expr>, parameters: &[Datum]) -> SqlResult<Option<Bound<Datum>>> {
    let (expr, included) = match bound {
        Bound::Unbounded => return Ok(Some(Bound::Unbounded)),
        Bound::Included(expr) => (expr, true),
        Bound::Excluded(expr) => (expr, false),
    };
    let value = constant(expr, parameters)?;
    if value.is_null() {
        return Ok(None);
    }
    Ok(Some(match ty.and_then(|ty| exact(&ty, value)) {
        Some(value) if included => Bound::Included(value),
        Some(value) => Bound::Excluded(value),
        // A bound between two values of the column, say 1.5 for an integer: left to the condition itself.
        None => Bound::Unbounded,
    }))
}

/// The id of a key: of the primary key for `None`.
pub fn index_id(index: Option<&Index>) -> IndexId {
    index.map_or(IndexId(0), |index| index.id)
}
