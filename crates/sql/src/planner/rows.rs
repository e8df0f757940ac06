//! Comparisons of rows, such as `(a, b) < (1, 2)`, as comparisons of their parts: the query engine does not know NULL in them.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::too_complex;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

/// The parts of a row that is compared by `<` and the like, at the most: each makes the expression deeper.
const ORDERED_PARTS_MAX: usize = 100;
/// The rows that `IN` lists, at the most: each is a condition of its own.
const ROWS_MAX: usize = 1_000;

/// The same expression by the parts of the rows that it compares; `None` if it compares no rows. Errors: 42601 for rows of different
/// lengths, 54001 for too many.
pub fn by_parts(expr: &Expr) -> SqlResult<Option<Expr>> {
    Ok(match expr {
        Expr::BinaryOp { left, op, right } => match (left.as_ref(), right.as_ref()) {
            (Expr::Tuple(left), Expr::Tuple(right)) => compared(left, op, right)?,
            _ => None,
        },
        Expr::InList { expr, list, negated } => match expr.as_ref() {
            Expr::Tuple(row) => in_list(row, list, *negated)?,
            _ => None,
        },
        Expr::IsNull(expr) => of_each(expr, Expr::IsNull),
        Expr::IsNotNull(expr) => of_each(expr, Expr::IsNotNull),
        Expr::IsDistinctFrom(left, right) => match (left.as_ref(), right.as_ref()) {
            (Expr::Tuple(left), Expr::Tuple(right)) => joined(BinaryOperator::Or, pairs(left, right)?, Expr::IsDistinctFrom),
            _ => None,
        },
        Expr::IsNotDistinctFrom(left, right) => match (left.as_ref(), right.as_ref()) {
            (Expr::Tuple(left), Expr::Tuple(right)) => joined(BinaryOperator::And, pairs(left, right)?, Expr::IsNotDistinctFrom),
            _ => None,
        },
        _ => None,
    })
}

fn compared(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> SqlResult<Option<Expr>> {
    let strict = match op {
        BinaryOperator::Eq => return Ok(joined(BinaryOperator::And, pairs(left, right)?, binary(BinaryOperator::Eq))),
        BinaryOperator::NotEq => return Ok(joined(BinaryOperator::Or, pairs(left, right)?, binary(BinaryOperator::NotEq))),
        BinaryOperator::Lt | BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::Gt | BinaryOperator::GtEq => BinaryOperator::Gt,
        _ => return Ok(None),
    };
    if left.len() > ORDERED_PARTS_MAX {
        return Err(too_complex(format!("a row that is compared by {op} has more than {ORDERED_PARTS_MAX} parts")));
    }
    // The first parts that differ decide: a < c OR a = c AND (b < d).
    let mut whole = None;
    for (left, right) in pairs(left, right)?.into_iter().rev() {
        whole = Some(match whole {
            None => binary(op.clone())(left, right),
            Some(rest) => {
                let equal = binary(BinaryOperator::Eq)(left.clone(), right.clone());
                let later = binary(BinaryOperator::And)(equal.into(), Box::new(nested(rest)));
                binary(BinaryOperator::Or)(binary(strict.clone())(left, right).into(), later.into())
            }
        });
    }
    Ok(whole.map(nested))
}

fn in_list(row: &[Expr], list: &[Expr], negated: bool) -> SqlResult<Option<Expr>> {
    if list.len() > ROWS_MAX {
        return Err(too_complex(format!("IN lists more than {ROWS_MAX} rows")).with_hint("Join with VALUES, or ask for fewer at a time."));
    }
    let mut equal = Vec::new();
    for other in list {
        let Expr::Tuple(other) = other else { return Ok(None) };
        equal.extend(compared(row, &BinaryOperator::Eq, other)?);
    }
    let any = combined(BinaryOperator::Or, equal);
    Ok(if negated { any.map(|any| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) }) } else { any })
}

fn of_each(row: &Expr, test: fn(Box<Expr>) -> Expr) -> Option<Expr> {
    let Expr::Tuple(parts) = row else { return None };
    combined(BinaryOperator::And, parts.iter().map(|part| test(Box::new(part.clone()))).collect())
}

fn joined(op: BinaryOperator, pairs: Vec<(Box<Expr>, Box<Expr>)>, test: impl Fn(Box<Expr>, Box<Expr>) -> Expr) -> Option<Expr> {
    combined(op, pairs.into_iter().map(|(left, right)| test(left, right)).collect())
}

/// All of them, joined by `op`, as a tree no deeper than it must be: commas let a statement be wide, and whatever walks over it is recursive.
fn combined(op: BinaryOperator, mut tests: Vec<Expr>) -> Option<Expr> {
    while tests.len() > 1 {
        let mut rest = tests.into_iter();
        let mut halved = Vec::new();
        while let Some(one) = rest.next() {
            halved.push(match rest.next() {
                Some(other) => binary(op.clone())(Box::new(one), Box::new(other)),
                None => one,
            });
        }
        tests = halved;
    }
    tests.pop().map(nested)
}

fn pairs(left: &[Expr], right: &[Expr]) -> SqlResult<Vec<(Box<Expr>, Box<Expr>)>> {
    if left.len() != right.len() {
        return Err(SqlError::new(SqlState::SyntaxError, "unequal number of entries in row expressions"));
    }
    Ok(left.iter().zip(right).map(|(left, right)| (Box::new(left.clone()), Box::new(right.clone()))).collect())
}

fn binary(op: BinaryOperator) -> impl Fn(Box<Expr>, Box<Expr>) -> Expr {
    move |left, right| Expr::BinaryOp { left, op: op.clone(), right }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::expression;

    #[test]
    fn rows_are_compared_part_by_part() {
        for (written, parts) in [
            ("(a, b) = (1, 2)", "(a = 1 AND b = 2)"),
            ("(a, b) <> (1, 2)", "(a <> 1 OR b <> 2)"),
            ("(a, b, c) <= (1, 2, 3)", "(a < 1 OR a = 1 AND (b < 2 OR b = 2 AND (c <= 3)))"),
            ("(a, b) NOT IN ((1, 2), (3, 4))", "NOT ((a = 1 AND b = 2) OR (a = 3 AND b = 4))"),
            ("(a, b) IS NULL", "(a IS NULL AND b IS NULL)"),
            ("(a, b) IS NOT NULL", "(a IS NOT NULL AND b IS NOT NULL)"),
            ("(a, b) IS DISTINCT FROM (1, 2)", "(a IS DISTINCT FROM 1 OR b IS DISTINCT FROM 2)"),
        ] {
            let expr = expression(written).expect("an expression");
            assert_eq!(by_parts(&expr).expect("rows of one length").map(|expr| expr.to_string()).as_deref(), Some(parts));
        }
        assert_eq!(by_parts(&expression("a < b").expect("an expression")).expect("no rows"), None);
        assert_eq!(by_parts(&expression("a IN (1, 2)").expect("an expression")).expect("no rows"), None);
        let unequal = by_parts(&expression("(a, b) = (1, 2, 3)").expect("an expression"));
        assert_eq!(unequal.expect_err("rows of different lengths").state(), SqlState::SyntaxError);
    }

    /// How deep binary operators and brackets nest.
    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            Expr::Nested(expr) => 1 + depth(expr),
            _ => 0,
        }
    }

    fn rewritten(written: &str) -> Result<Option<usize>, SqlState> {
        let expr = expression(written).expect("an expression");
        by_parts(&expr).map(|expr| expr.as_ref().map(depth)).map_err(|error| error.state())
    }

    #[test]
    fn wide_rows_and_long_lists_make_no_deep_trees() {
        let row = |parts: usize| format!("({})", vec!["a"; parts].join(", "));
        let list = |rows: usize| format!("(a, a) IN ({})", vec!["(1, 2)"; rows].join(", "));
        assert_eq!(rewritten(&format!("{} = {}", row(1_000), row(1_000))), Ok(Some(12)));
        assert_eq!(rewritten(&format!("{} IS NULL", row(1_000))), Ok(Some(11)));
        assert_eq!(rewritten(&list(ROWS_MAX)), Ok(Some(14)));
        assert_eq!(rewritten(&list(ROWS_MAX + 1)), Err(SqlState::StatementTooComplex));
        let less = |parts| format!("{} < {}", row(parts), row(parts));
        assert!(rewritten(&less(ORDERED_PARTS_MAX)).is_ok());
        assert_eq!(rewritten(&less(ORDERED_PARTS_MAX + 1)), Err(SqlState::StatementTooComplex));
    }
}
