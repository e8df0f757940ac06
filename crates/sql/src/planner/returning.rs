//! Select lists over the columns of one table: of a SELECT on the fast path, and of RETURNING.

use super::expression::{Compiler, Expressions};
use crate::engine::tree::visit;
use crate::error::{SqlError, SqlResult};
use crate::executor::result::{ResultColumn, bytes_of};
use crate::executor::returning::{Body, Projection};
use crate::parser::fold;
use crate::parser::names::{name_items, shown};
use crate::schema::TableDescriptor;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast::{self, SelectItem, SelectItemQualifiedWildcardKind};

/// A select list, planned.
pub struct Planned(Vec<(String, Item)>);

enum Item {
    Column(usize),
    Expr(Expr),
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

/// The bytes of all constants in an expression.
fn bytes_of_constants(expr: &Expr) -> u64 {
    let mut bytes = 0;
    let mut count = |expr: &Expr| {
        bytes += if let Expr::Literal(value, _) = expr { bytes_of(value) } else { 0 };
        Ok(TreeNodeRecursion::Continue)
    };
    visit(expr, &mut count).expect("counting does not fail");
    bytes
}
