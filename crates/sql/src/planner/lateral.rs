//! `FROM t, unnest(t.list) AS u (value)`: rows of a table beside the elements of an array in each. The query engine unnests in a select list only, so
//! it becomes `FROM (SELECT t.*, unnest(t.list) AS value FROM t) AS t`, and `u.value` becomes `t.value`, by a name that nothing else has.

use super::{own, plainer};
use crate::engine::arrays::OR_NULL;
use crate::error::{SqlError, SqlResult};
use crate::parser::fold;
use crate::parser::names::{MARK, select};
use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, FunctionArg, FunctionArgExpr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, OrderBy, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, Value, Visitor, VisitorMut,
    WildcardAdditionalOptions,
};
use rhumb_generic::{Part, walk, walk_mut};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Rewrites all of them in a part of a statement. Error 0A000 for the ones that cannot be.
pub fn rewrite(part: &mut impl Part) -> SqlResult<()> {
    own::each_select(part, of_select)
}

fn of_select(select: &mut Select, mut order_by: Option<&mut OrderBy>) -> SqlResult<()> {
    while let Some(found) = found(&select.from)? {
        let before =
            select.from[..found.item].iter().map(|item| 1 + item.joins.len()).sum::<usize>() + found.join.map_or(0, |join| 1 + join);
        let item = &mut select.from[found.item];
        let (factor, keeps_rows) = match found.join {
            None => (select.from.remove(found.item).relation, false),
            Some(join) => {
                let join = item.joins.remove(join);
                (join.relation, matches!(join.join_operator, JoinOperator::Left(_) | JoinOperator::LeftOuter(_)))
            }
        };
        let unnested = unnested(factor).ok_or_else(|| SqlError::internal("what was found is no unnest()"))?;
        spell_out(select, before, &unnested)?;
        let mut relations = relations(&mut select.from);
        let relation = relations.find(|factor| called(factor).as_deref() == Some(&*fold(&found.table)));
        put(relation.ok_or_else(|| SqlError::internal("the table of unnest() is gone"))?, &found.table, &unnested, keeps_rows);
        drop(relations);
        let mut renamed = Renamed::new(&unnested, found.table);
        renamed.name_items(&mut select.projection);
        walk_mut(select, &mut renamed)?;
        if let Some(order_by) = &mut order_by {
            renamed.aliases = aliases(&select.projection);
            walk_mut(*order_by, &mut renamed)?;
        }
    }
    Ok(())
}

/// What stands in FROM as `unnest(…)`.
struct Unnested {
    alias: TableAlias,
    arrays: Vec<Expr>,
}

/// Where one stands that is about a table before it.
struct Found {
    item: usize,
    join: Option<usize>,
    /// What the table is called.
    table: Ident,
}

/// The first one. Error 0A000 if the rows of its table are not those that it is beside.
fn found(from: &[TableWithJoins]) -> SqlResult<Option<Found>> {
    for (item, from_item) in from.iter().enumerate() {
        // By itself, after a comma.
        if from_item.joins.is_empty()
            && let Some(table) = about(&from_item.relation)
            && let Some(is_whole) = beside(&from[..item], &[], &table)
        {
            return if is_whole { Ok(Some(Found { item, join: None, table })) } else { Err(unsupported()) };
        }
        for (join, joined) in from_item.joins.iter().enumerate() {
            let Some(table) = about(&joined.relation) else { continue };
            let before = TableWithJoins { relation: from_item.relation.clone(), joins: from_item.joins[..join].to_vec() };
            let Some(is_whole) = beside(&from[..item], &[before], &table) else { continue };
            let always = |on: &JoinConstraint| matches!(on, JoinConstraint::On(Expr::Value(value)) if value.value == Value::Boolean(true));
            let is_plain = match &joined.join_operator {
                JoinOperator::CrossJoin(JoinConstraint::None) => true,
                JoinOperator::Join(on) | JoinOperator::Inner(on) | JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => always(on),
                _ => false,
            };
            return if is_plain && is_whole { Ok(Some(Found { item, join: Some(join), table })) } else { Err(unsupported()) };
        }
    }
    Ok(None)
}

fn unsupported() -> SqlError {
    SqlError::unsupported("unnest() of a column of another table is supported after a comma, with CROSS JOIN, and with JOIN … ON true")
        .with_hint("The table must not be one that an outer join may leave out. Write the join in a subquery.")
}

/// Whether every row of a table is among those of what comes before; `None` if it is not there.
fn beside(items: &[TableWithJoins], last: &[TableWithJoins], table: &Ident) -> Option<bool> {
    use JoinOperator::{CrossJoin, Inner, Join, Left, LeftOuter};
    let wanted = fold(table);
    let is_it = |factor: &TableFactor| called(factor).as_deref() == Some(&*wanted);
    items.iter().chain(last).find_map(|item| {
        let mut found = is_it(&item.relation).then_some(true);
        for join in &item.joins {
            let is_inner = matches!(join.join_operator, Join(_) | Inner(_) | CrossJoin(_));
            let keeps_left = is_inner || matches!(join.join_operator, Left(_) | LeftOuter(_));
            found = match found {
                None => is_it(&join.relation).then_some(is_inner),
                Some(is_whole) => Some(is_whole && keeps_left),
            };
        }
        found
    })
}

/// The one table whose columns an `unnest(…)` is about.
fn about(factor: &TableFactor) -> Option<Ident> {
    let TableFactor::UNNEST { array_exprs, .. } = factor else { return None };
    let mut tables = Tables::default();
    walk(array_exprs, &mut tables).ok()?;
    match (tables.plain, tables.found.len()) {
        (false, 1) => tables.found.pop_first(),
        _ => None,
    }
}

fn unnested(factor: TableFactor) -> Option<Unnested> {
    match factor {
        TableFactor::UNNEST { alias: Some(alias), array_exprs, .. } => Some(Unnested { alias, arrays: array_exprs }),
        _ => None,
    }
}

fn relations(from: &mut [TableWithJoins]) -> impl Iterator<Item = &mut TableFactor> {
    from.iter_mut().flat_map(|item| std::iter::once(&mut item.relation).chain(item.joins.iter_mut().map(|join| &mut join.relation)))
}

fn called(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(fold(&alias.name)),
        TableFactor::Table { name, args: None, .. } => name.0.last().and_then(ObjectNamePart::as_ident).map(fold),
        _ => None,
    }
}

/// All columns of a table but those that it was given.
fn all_of(table: &Ident) -> SelectItem {
    let name = SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(vec![table.clone()]));
    SelectItem::QualifiedWildcard(name, WildcardAdditionalOptions::default())
}

/// `*` as the columns of one table after the other, of which what was unnested came after `before`. Error 0A000 where tables have columns in common.
fn spell_out(select: &mut Select, before: usize, unnested: &Unnested) -> SqlResult<()> {
    let Some(place) = select.projection.iter().position(|item| matches!(item, SelectItem::Wildcard(_))) else { return Ok(()) };
    let in_common = |join: &JoinOperator| {
        use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
        match join {
            Join(on) | Inner(on) | Left(on) | LeftOuter(on) | Right(on) | RightOuter(on) | FullOuter(on) => {
                matches!(on, JoinConstraint::Natural | JoinConstraint::Using(_))
            }
            _ => false,
        }
    };
    let names: Option<Vec<Ident>> =
        relations(&mut select.from).map(|factor| called(factor).map(|name| Ident::with_quote('"', name))).collect();
    let shared = select.from.iter().flat_map(|item| &item.joins).any(|join| in_common(&join.join_operator));
    let names = names.filter(|_| !shared).ok_or_else(|| {
        SqlError::unsupported("* is not supported with unnest() of a column of another table, where tables share columns or have no names")
            .with_hint("Name the columns.")
    })?;
    let mut items: Vec<SelectItem> = names.iter().map(all_of).collect();
    items.insert(before, all_of(&Ident::with_quote('"', fold(&unnested.alias.name))));
    select.projection.splice(place..=place, items);
    Ok(())
}

/// What a column of what was unnested is called in the table that it was put into: as no other column is, or it would be taken for one where tables are
/// joined or where a query within names another table so.
fn hidden(alias: &str, column: &str) -> Ident {
    Ident::with_quote('"', format!("{MARK}{alias}.{column}"))
}

/// Puts it into a table.
fn put(factor: &mut TableFactor, table: &Ident, unnested: &Unnested, keeps_rows: bool) {
    let alias = fold(&unnested.alias.name);
    let mut items = vec![all_of(table)];
    for (column, array) in unnested.alias.columns.iter().zip(&unnested.arrays) {
        let array = if keeps_rows { plainer::call(OR_NULL, vec![array.clone()]) } else { array.clone() };
        items.push(SelectItem::ExprWithAlias { expr: plainer::call("unnest", vec![array]), alias: hidden(&alias, &fold(&column.name)) });
    }
    let empty =
        TableFactor::Derived { lateral: false, subquery: Box::new(select(Vec::new(), Vec::new(), None)), alias: None, sample: None };
    let relation = std::mem::replace(factor, empty);
    let subquery: Query = select(items, vec![TableWithJoins { relation, joins: Vec::new() }], None);
    let alias = TableAlias { explicit: true, name: table.clone(), columns: Vec::new(), at: None };
    *factor = TableFactor::Derived { lateral: false, subquery: Box::new(subquery), alias: Some(alias), sample: None };
}

/// The tables that columns are named with.
#[derive(Default)]
struct Tables {
    found: BTreeSet<Ident>,
    /// True if a column is named without one.
    plain: bool,
}

impl Visitor for Tables {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        match expr {
            Expr::CompoundIdentifier(idents) if idents.len() == 2 => drop(self.found.insert(idents[0].clone())),
            Expr::CompoundIdentifier(_) | Expr::Identifier(_) => self.plain = true,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Columns of what was unnested, as those of the table.
struct Renamed {
    from: String,
    to: Ident,
    columns: Vec<String>,
    /// What the select list calls its items, where that comes before the columns.
    aliases: Vec<String>,
    /// The queries around.
    depth: usize,
    /// How many of them have something else of that name.
    hidden: usize,
}

/// What a select list calls its items.
fn aliases(items: &[SelectItem]) -> Vec<String> {
    let alias = |item: &SelectItem| if let SelectItem::ExprWithAlias { alias, .. } = item { Some(fold(alias)) } else { None };
    items.iter().filter_map(alias).collect()
}

impl Renamed {
    fn new(unnested: &Unnested, to: Ident) -> Renamed {
        let columns = unnested.alias.columns.iter().map(|column| fold(&column.name)).collect();
        Renamed { from: fold(&unnested.alias.name), to, columns, aliases: Vec::new(), depth: 0, hidden: 0 }
    }

    fn column(&self, name: &str) -> Expr {
        Expr::CompoundIdentifier(vec![self.to.clone(), hidden(&self.from, name)])
    }

    /// Gives the items their names: `u.*` is the columns themselves, and `t.*` those of the table without them.
    fn name_items(&self, items: &mut Vec<SelectItem>) {
        let is_own =
            |name: &ObjectName, wanted: &str| name.0.last().and_then(ObjectNamePart::as_ident).map(fold).as_deref() == Some(wanted);
        let named = |item: SelectItem| match item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) if is_own(&name, &self.from) => {
                let alias = |name: &String| Ident::with_quote('"', name.as_str());
                self.columns.iter().map(|name| SelectItem::ExprWithAlias { expr: self.column(name), alias: alias(name) }).collect()
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), mut options)
                if is_own(&name, &fold(&self.to)) =>
            {
                let own = self.columns.iter().map(|column| ObjectName::from(vec![hidden(&self.from, column)]));
                let before = match options.opt_exclude.take() {
                    Some(ExcludeSelectItem::Multiple(columns)) => columns,
                    Some(ExcludeSelectItem::Single(column)) => vec![column],
                    None => Vec::new(),
                };
                options.opt_exclude = Some(ExcludeSelectItem::Multiple(before.into_iter().chain(own).collect()));
                vec![SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)]
            }
            SelectItem::UnnamedExpr(expr) => match self.renamed(&expr) {
                Some((expr, name)) => vec![SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) }],
                None => vec![SelectItem::UnnamedExpr(expr)],
            },
            item => vec![item],
        };
        *items = std::mem::take(items).into_iter().flat_map(named).collect();
    }

    /// A column of what was unnested as one of the table, and its own name.
    fn renamed(&self, expr: &Expr) -> Option<(Expr, String)> {
        let column = match expr {
            Expr::CompoundIdentifier(idents) => match idents.as_slice() {
                [table, column] if self.hidden == 0 && fold(table) == self.from => fold(column),
                _ => return None,
            },
            // In a query within it may be a column of a table there.
            Expr::Identifier(column) if self.depth == 0 => Some(fold(column)).filter(|column| !self.aliases.contains(column))?,
            _ => return None,
        };
        self.columns.contains(&column).then(|| (self.column(&column), column))
    }

    fn is_hidden_in(&self, query: &Query) -> bool {
        fn selects(body: &SetExpr) -> Vec<&Select> {
            match body {
                SetExpr::Select(select) => vec![select],
                SetExpr::SetOperation { left, right, .. } => [selects(left), selects(right)].concat(),
                SetExpr::Query(query) => selects(&query.body),
                _ => Vec::new(),
            }
        }
        let factors = |item: &TableWithJoins| -> Vec<Option<String>> {
            std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation)).map(called).collect()
        };
        selects(&query.body).iter().flat_map(|select| &select.from).flat_map(factors).flatten().any(|name| name == self.from)
    }
}

impl VisitorMut for Renamed {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        self.depth += 1;
        self.hidden += usize::from(self.is_hidden_in(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        self.depth -= 1;
        self.hidden -= usize::from(self.is_hidden_in(query));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Some((renamed, _)) = self.renamed(expr) {
            *expr = renamed;
        }
        ControlFlow::Continue(())
    }
}

/// `LATERAL unnest(…)`, as it is without the word.
pub fn as_unnest(factor: &mut TableFactor) {
    let is_unnest = |name: &ObjectName| name.0.last().and_then(ObjectNamePart::as_ident).map(fold).as_deref() == Some("unnest");
    let (args, alias, with_ordinality) = match factor {
        TableFactor::Function { name, args, with_ordinality, alias, .. } if is_unnest(name) => (&*args, alias, *with_ordinality),
        // With a schema before it, it is read as a table with arguments.
        TableFactor::Table { name, args: Some(args), with_ordinality, alias, .. } if is_unnest(name) => {
            (&args.args, alias, *with_ordinality)
        }
        _ => return,
    };
    let arrays: Option<Vec<Expr>> = args
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        })
        .collect();
    if let Some(array_exprs) = arrays {
        let alias = alias.take();
        *factor = TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_offset_alias: None, with_ordinality };
    }
}
