//! Small helpers to write statements over many rows and to read their answers.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::failure::Failure;

/// `$first, $first+1, …`: `count` parameters for an IN list.
pub fn placeholders(first: usize, count: usize) -> String {
    let names: Vec<String> = (first..first + count).map(|i| format!("${i}")).collect();
    names.join(", ")
}

/// `($1, $2), ($3, $4), …`: parameters for a VALUES list of `rows` rows.
pub fn values_list(rows: usize, columns: usize) -> String {
    let rows: Vec<String> = (0..rows).map(|row| format!("({})", placeholders(1 + row * columns, columns))).collect();
    rows.join(", ")
}

/// The value of a column, or a refusal that names the column and the types that do not meet.
pub fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Failure> {
    row.try_get(column).map_err(|error| Failure::Refused { code: None, reason: super::failure::innermost(&error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_in_order() {
        assert_eq!(placeholders(2, 3), "$2, $3, $4");
        assert_eq!(values_list(2, 2), "($1, $2), ($3, $4)");
    }
}
