//! Select lists over the columns of one table: of a SELECT on the fast path, and of RETURNING.

use super::evaluate::Compiled;
use super::expression::{Compiler, Expressions};
use super::result::{PAGE_BYTES_FULL, ResultColumn, bytes_of, check_bytes};
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::fold;
use crate::parser::names::{name_items, shown};
use crate::schema::TableDescriptor;
use crate::storage::Row;
use crate::types::{Datum, coerce};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast::{self, SelectItem, SelectItemQualifiedWildcardKind};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// A select list, planned.
pub struct Planned(Vec<(String, Item)>);

enum Item {
    Column(usize),
    Expr(Expr),
}

/// A select list, ready to be evaluated.
#[derive(Debug)]
pub struct Projection {
    /// The columns of its rows.
    pub columns: Arc<[ResultColumn]>,
    items: Vec<Body>,
}

#[derive(Debug)]
enum Body {
    Column(usize),
    /// With the bytes of the constants in it.
    Expr(Compiled, u64),
}

/// Plans a select list over `table`, which the statement calls `name`.
pub fn plan(expressions: &mut Expressions<'_>, table: &TableDescriptor, name: &str, mut items: Vec<SelectItem>) -> SqlResult<Planned> {
    name_items(&mut items);
    let mut planned = Vec::new();
    for item in &items {
        match item {
            SelectItem::Wildcard(_) => planned.extend(all(table)),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(qualifier), _) => {
                let is_table = qualifier.0.last().and_then(ast::ObjectNamePart::as_ident).is_some_and(|ident| fold(ident) == name);
                if !is_table {
                    return Err(SqlError::undefined_table(&qualifier.to_string()));
                }
                planned.extend(all(table));
            }
            SelectItem::UnnamedExpr(expr) => planned.push(one(expressions, table, expr, column_name(expr))?),
            SelectItem::ExprWithAlias { expr, alias } => {
                let name = shown(&fold(alias));
                planned.push(one(expressions, table, expr, name)?);
            }
            other => return Err(SqlError::unsupported(format!("{other} is not supported here"))),
        }
    }
    Ok(Planned(planned))
}

fn all(table: &TableDescriptor) -> impl Iterator<Item = (String, Item)> + '_ {
    table.visible_columns().map(|position| (table.columns[position].name.clone(), Item::Column(position)))
}

fn column_name(expr: &ast::Expr) -> String {
    match expr {
        ast::Expr::Identifier(ident) => fold(ident),
        ast::Expr::CompoundIdentifier(idents) => idents.last().map(fold).unwrap_or_default(),
        _ => "?column?".into(),
    }
}

fn one(expressions: &mut Expressions<'_>, table: &TableDescriptor, expr: &ast::Expr, name: String) -> SqlResult<(String, Item)> {
    let expr = expressions.plan(expr, None, "a select list")?;
    let column = match &expr {
        Expr::Column(column) => table.column(&column.name),
        _ => None,
    };
    Ok((name, column.map_or(Item::Expr(expr), Item::Column)))
}

impl Planned {
    /// Compiles it.
    pub fn compile(self, compiler: &Compiler<'_>, table: &TableDescriptor) -> SqlResult<Projection> {
        let (mut columns, mut items) = (Vec::new(), Vec::new());
        for (name, item) in self.0 {
            let (ty, body) = match item {
                Item::Column(position) => (table.columns[position].ty, Body::Column(position)),
                Item::Expr(expr) => {
                    let constants = bytes_of_constants(&expr);
                    (compiler.type_of(&expr)?, Body::Expr(compiler.compile(expr)?, constants))
                }
            };
            columns.push(ResultColumn { name, ty });
            items.push(body);
        }
        Ok(Projection { columns: columns.into(), items })
    }
}

impl Projection {
    /// True if it shows columns as they are, each at most once: no row can make that fail, and it has no more bytes than the rows.
    pub fn is_plain(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.items.iter().all(|item| matches!(item, Body::Column(position) if seen.insert(*position)))
    }

    /// What it shows of rows of the table, if it [is plain](Self::is_plain).
    pub fn pick(&self, rows: Vec<Row>) -> Vec<Row> {
        let value = |row: &mut Row, item: &Body| match item {
            Body::Column(position) => std::mem::replace(&mut row[*position], Datum::Null),
            Body::Expr(..) => unreachable!("it is plain"),
        };
        rows.into_iter().map(|mut row| self.items.iter().map(|item| value(&mut row, item)).collect()).collect()
    }

    /// Takes the first of `rows`, as many as make a page, and shows them. Error 54000 if a single one shows too many bytes.
    pub fn page(&self, engine: &Engine, rows: &mut VecDeque<Row>, parameters: &[Datum]) -> SqlResult<Vec<Row>> {
        let (given, mut bytes) = (parameters.iter().map(bytes_of).sum::<u64>(), 0_u64);
        let fits = |row: &&Row| {
            let of_row = row.iter().map(bytes_of).sum::<u64>();
            // An expression may show all that it can see.
            let of_item = |item: &Body| match item {
                Body::Column(position) => bytes_of(&row[*position]),
                Body::Expr(_, constants) => constants.saturating_add(given).saturating_add(of_row),
            };
            bytes = self.items.iter().map(of_item).fold(bytes, u64::saturating_add);
            bytes <= PAGE_BYTES_FULL
        };
        let mut count = rows.iter().take_while(fits).count().max(1).min(rows.len());
        loop {
            match self.rows(engine, &rows.make_contiguous()[..count], parameters) {
                // What functions make is known only then.
                Err(error) if error.state() == SqlState::ProgramLimitExceeded && count > 1 => count /= 2,
                shown => {
                    rows.drain(..count);
                    return shown;
                }
            }
        }
    }

    /// The rows that it makes of rows of the table. Error 54000 if they have too many bytes to be there at once.
    pub fn rows(&self, engine: &Engine, rows: &[Row], parameters: &[Datum]) -> SqlResult<Vec<Row>> {
        let mut results: Vec<Row> = rows.iter().map(|_| Vec::with_capacity(self.items.len())).collect();
        let mut bytes = 0;
        for (item, column) in self.items.iter().zip(self.columns.iter()) {
            match item {
                Body::Column(position) => {
                    bytes += rows.iter().map(|row| bytes_of(&row[*position])).sum::<u64>();
                    check_bytes(bytes)?;
                    results.iter_mut().zip(rows).for_each(|(result, row)| result.push(row[*position].clone()));
                }
                Body::Expr(compiled, _) => {
                    let values = compiled.evaluate(engine, rows.len(), |row, input| input_of(&rows[row], parameters, input))?;
                    bytes += values.iter().map(bytes_of).sum::<u64>();
                    check_bytes(bytes)?;
                    for (result, value) in results.iter_mut().zip(values) {
                        let exact = value.data_type() == column.ty.arrow();
                        result.push(if exact { value } else { coerce(&column.ty, value)? });
                    }
                }
            }
        }
        Ok(results)
    }
}

/// The bytes of all constants in an expression.
fn bytes_of_constants(expr: &Expr) -> u64 {
    let mut bytes = 0;
    let count = |expr: &Expr| {
        bytes += if let Expr::Literal(value, _) = expr { bytes_of(value) } else { 0 };
        Ok(TreeNodeRecursion::Continue)
    };
    expr.apply(count).expect("counting does not fail");
    bytes
}

/// The value of an input of a scope that is a table's columns, then the parameters.
pub fn input_of<'a>(row: &'a Row, parameters: &'a [Datum], input: usize) -> &'a Datum {
    if input < row.len() { &row[input] } else { &parameters[input - row.len()] }
}
