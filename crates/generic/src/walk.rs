//! Walks over parsed statements and parts of them, one that reads and one that changes. They know neither the visitor nor its error.

use sqlparser::ast::{
    Delete, Expr, Insert, ObjectName, OrderBy, OrderByExpr, Query, Select, SelectItem, SetExpr, Statement, TableFactor, Update,
    ValueWithSpan, Values, Visit, VisitMut, Visitor, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Shows `visitor` all that `part` consists of, until it breaks with an error.
pub fn walk<E>(part: &impl Part, visitor: &mut dyn Visitor<Break = E>) -> Result<(), E> {
    let mut keeper = Keeper { visitor, error: None };
    let _ = part.show(Reader(&mut keeper));
    keeper.error.map_or(Ok(()), Err)
}

/// As [`walk`], by a visitor that may change what it sees.
pub fn walk_mut<E>(part: &mut impl Part, visitor: &mut dyn VisitorMut<Break = E>) -> Result<(), E> {
    let mut keeper = Keeper { visitor, error: None };
    let _ = part.change(Changer(&mut keeper));
    keeper.error.map_or(Ok(()), Err)
}

/// The tables that `part` names, as often as it does, those of subqueries included.
pub fn relations(part: &impl Part) -> Vec<ObjectName> {
    let mut relations = Relations(Vec::new());
    let _: Result<(), Infallible> = walk(part, &mut relations);
    relations.0
}

/// A statement, or a part of one, that can be walked.
pub trait Part {
    /// Shows all of it.
    fn show(&self, reader: Reader<'_>) -> ControlFlow<()>;

    /// Shows all of it, to be changed.
    fn change(&mut self, changer: Changer<'_>) -> ControlFlow<()>;
}

macro_rules! parts {
    ($($part:ty),+ $(,)?) => {
        $(impl Part for $part {
            fn show(&self, mut reader: Reader<'_>) -> ControlFlow<()> {
                self.visit(&mut reader)
            }

            fn change(&mut self, mut changer: Changer<'_>) -> ControlFlow<()> {
                VisitMut::visit(self, &mut changer)
            }
        })+
    };
}

parts!(
    Statement,
    Query,
    Select,
    SetExpr,
    Values,
    Insert,
    Update,
    Delete,
    OrderBy,
    Vec<OrderByExpr>,
    SelectItem,
    Vec<SelectItem>,
    Expr,
    Option<Expr>,
    Vec<Expr>,
);

impl<P: Part> Part for Box<P> {
    fn show(&self, reader: Reader<'_>) -> ControlFlow<()> {
        (**self).show(reader)
    }

    fn change(&mut self, changer: Changer<'_>) -> ControlFlow<()> {
        (**self).change(changer)
    }
}

struct Relations(Vec<ObjectName>);

impl Visitor for Relations {
    type Break = Infallible;

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<Infallible> {
        self.0.push(name.clone());
        ControlFlow::Continue(())
    }
}

/// The visitor of every walk that reads.
pub struct Reader<'a>(&'a mut dyn Visitor<Break = ()>);

/// The visitor of every walk that changes.
pub struct Changer<'a>(&'a mut dyn VisitorMut<Break = ()>);

/// Keeps the error with which the visitor breaks, so that the walk does not know its type.
struct Keeper<'a, V: ?Sized, E> {
    visitor: &'a mut V,
    error: Option<E>,
}

/// The methods of a visitor, by what `$pass` makes of each; `$mutable` is `mut` or nothing.
macro_rules! methods {
    ($pass:ident, $($mutable:tt)?) => {
        type Break = ();
        $pass! {
            pre_visit_query: &$($mutable)? Query,
            post_visit_query: &$($mutable)? Query,
            pre_visit_select: &$($mutable)? Select,
            post_visit_select: &$($mutable)? Select,
            pre_visit_relation: &$($mutable)? ObjectName,
            post_visit_relation: &$($mutable)? ObjectName,
            pre_visit_table_factor: &$($mutable)? TableFactor,
            post_visit_table_factor: &$($mutable)? TableFactor,
            pre_visit_expr: &$($mutable)? Expr,
            post_visit_expr: &$($mutable)? Expr,
            pre_visit_statement: &$($mutable)? Statement,
            post_visit_statement: &$($mutable)? Statement,
            pre_visit_value: &$($mutable)? ValueWithSpan,
            post_visit_value: &$($mutable)? ValueWithSpan,
        }
    };
}

macro_rules! pass_on {
    ($($method:ident: $part:ty),+ $(,)?) => {
        $(fn $method(&mut self, part: $part) -> ControlFlow<()> {
            self.0.$method(part)
        })+
    };
}

macro_rules! keep {
    ($($method:ident: $part:ty),+ $(,)?) => {
        $(fn $method(&mut self, part: $part) -> ControlFlow<()> {
            self.visitor.$method(part).map_break(|error| self.error = Some(error))
        })+
    };
}

impl Visitor for Reader<'_> {
    methods!(pass_on,);
}

impl VisitorMut for Changer<'_> {
    methods!(pass_on, mut);
}

impl<E> Visitor for Keeper<'_, dyn Visitor<Break = E> + '_, E> {
    methods!(keep,);
}

impl<E> VisitorMut for Keeper<'_, dyn VisitorMut<Break = E> + '_, E> {
    methods!(keep, mut);
}
