//! Comparisons of rows, such as `(a, b) < (1, 2)`, as comparisons of their parts: the query engine does not know NULL in them.

use crate::error::{SqlError, SqlResult, SqlState};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

/// The same expression by the parts of the rows that it compares; `None` if it compares no rows. Error 42601 for rows of different lengths.
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
    let mut any = None;
    for other in list {
        let Expr::Tuple(other) = other else { return Ok(None) };
        let Some(equal) = compared(row, &BinaryOperator::Eq, other)? else { return Ok(None) };
        any = Some(match any {
            None => equal,
            Some(any) => binary(BinaryOperator::Or)(Box::new(any), equal.into()),
        });
    }
    let any = any.map(nested);
    Ok(if negated { any.map(|any| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) }) } else { any })
}

fn of_each(row: &Expr, test: fn(Box<Expr>) -> Expr) -> Option<Expr> {
    let Expr::Tuple(parts) = row else { return None };
    let tests = parts.iter().map(|part| test(Box::new(part.clone())));
    tests.reduce(|all, one| binary(BinaryOperator::And)(Box::new(all), Box::new(one))).map(nested)
}

fn joined(op: BinaryOperator, pairs: Vec<(Box<Expr>, Box<Expr>)>, test: impl Fn(Box<Expr>, Box<Expr>) -> Expr) -> Option<Expr> {
    let tests = pairs.into_iter().map(|(left, right)| test(left, right));
    tests.reduce(|all, one| binary(op.clone())(Box::new(all), Box::new(one))).map(nested)
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
        let unequal = by_parts(&expression("(a, b) = (1, 2, 3)").expect("an expression"));
        assert_eq!(unequal.expect_err("rows of different lengths").state(), SqlState::SyntaxError);
    }
}
