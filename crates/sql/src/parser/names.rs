//! The names of a result's columns: PostgreSQL's, for expressions that have none, and unique for the query engine.
//!
//! PostgreSQL calls an expression after its function, its type or its column, else `?column?`, and lets names repeat. The
//! query engine calls it after its text and wants names unique. So every unnamed item gets the alias that PostgreSQL
//! would show, and one that repeats gets a [`MARK`] and a number, which are cut off again before the client sees it.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType, Expr, GroupByExpr, Ident, Query, Select, SelectFlavor, SelectItem, SetExpr, TableWithJoins, UnaryOperator,
};
use std::collections::BTreeSet;

/// Between a name and what makes it unique. No client can write it in a name.
pub const MARK: char = '\u{1}';

/// The part of a name that the client sees.
pub fn shown(name: &str) -> String {
    name.split(MARK).next().unwrap_or_default().to_string()
}

/// Names the columns of a query.
pub fn name_columns(query: &mut Query) {
    name_body(&mut query.body);
}

fn name_body(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => name_items(&mut select.projection),
        SetExpr::Query(query) => name_columns(query),
        SetExpr::SetOperation { left, right, .. } => {
            name_body(left);
            name_body(right);
        }
        _ => {}
    }
}

/// `SELECT items FROM from WHERE selection`.
pub fn select(projection: Vec<SelectItem>, from: Vec<TableWithJoins>, selection: Option<Expr>) -> Query {
    let select = Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection,
        exclude: None,
        into: None,
        from,
        lateral_views: Vec::new(),
        prewhere: None,
        selection,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    };
    Query {
        with: None,
        body: Box::new(SetExpr::Select(Box::new(select))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// Names the items of a select list.
pub fn name_items(items: &mut [SelectItem]) {
    let mut used = BTreeSet::new();
    for (position, item) in items.iter_mut().enumerate() {
        let unique = |used: &mut BTreeSet<String>, name: &str| {
            let is_new = used.insert(name.to_string());
            if is_new { name.to_string() } else { format!("{name}{MARK}{position}") }
        };
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = name_of(expr).unwrap_or_else(|| "?column?".into());
                let plain = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                let alias = unique(&mut used, &name);
                if !plain || alias != name {
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', alias) };
                }
            }
            SelectItem::ExprWithAlias { alias, .. } => {
                let name = crate::parser::fold(alias);
                let unique_name = unique(&mut used, &name);
                if unique_name != name {
                    *alias = Ident::with_quote('"', unique_name);
                }
            }
            _ => {}
        }
    }
}

fn name_of(expr: &Expr) -> Option<String> {
    figured(expr).map(|name| match name {
        Name::Own(name) | Name::Fallback(name) => name,
    })
}

/// What a column is called that an expression makes.
enum Name {
    /// That of a column, a function or the like, which a cast around it leaves.
    Own(String),
    /// That of a type, or of CASE, which gives way to that of a cast around it.
    Fallback(String),
}

fn figured(expr: &Expr) -> Option<Name> {
    let own = |name: &str| Some(Name::Own(name.to_owned()));
    match expr {
        Expr::Identifier(ident) => Some(Name::Own(crate::parser::fold(ident))),
        Expr::CompoundIdentifier(idents) => idents.last().map(crate::parser::fold).map(Name::Own),
        Expr::Function(function) => function.name.0.last().map(|part| Name::Own(part.to_string().replace('"', "").to_lowercase())),
        Expr::Cast { expr, data_type, .. } => match figured(expr) {
            Some(Name::Own(name)) => Some(Name::Own(name)),
            _ => Some(Name::Fallback(type_name(data_type))),
        },
        Expr::TypedString(typed) => Some(Name::Fallback(type_name(&typed.data_type))),
        Expr::Interval(_) => Some(Name::Fallback("interval".into())),
        Expr::Nested(expr) | Expr::Collate { expr, .. } => figured(expr),
        Expr::CompoundFieldAccess { root, .. } => figured(root),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => figured(expr),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figured) {
            Some(Name::Own(name)) => Some(Name::Own(name)),
            _ => Some(Name::Fallback("case".into())),
        },
        Expr::Array(_) => own("array"),
        Expr::Exists { .. } => own("exists"),
        Expr::Extract { .. } => own("extract"),
        Expr::Substring { .. } => own("substring"),
        Expr::Trim { .. } => own("btrim"),
        Expr::Position { .. } => own("position"),
        Expr::Overlay { .. } => own("overlay"),
        Expr::Ceil { .. } => own("ceil"),
        Expr::Floor { .. } => own("floor"),
        Expr::AtTimeZone { .. } => own("timezone"),
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first()? {
                SelectItem::UnnamedExpr(expr) => figured(expr).map(|name| match name {
                    Name::Own(name) | Name::Fallback(name) => Name::Own(name),
                }),
                SelectItem::ExprWithAlias { alias, .. } => Some(Name::Own(crate::parser::fold(alias))),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn type_name(ty: &DataType) -> String {
    if let DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = ty {
        return type_name(element);
    }
    match crate::types::SqlType::from_ast(ty) {
        Ok(ty) => match ty.oid() {
            16 => "bool",
            20 => "int8",
            21 => "int2",
            23 => "int4",
            700 => "float4",
            701 => "float8",
            1042 => "bpchar",
            1083 => "time",
            1114 => "timestamp",
            1184 => "timestamptz",
            1043 => "varchar",
            _ => ty.name(),
        }
        .to_string(),
        Err(_) => ty.to_string().to_lowercase(),
    }
}
