//! How many clients a replica can carry: a CSV file `region,clients`.

use crate::constraints::Constraint;
use crate::matrix::Matrix;
use crate::table::{Table, TableError};

/// Reads a limit from CSV text. A replica in a region without a row carries any number of clients. `file` names the text in
/// errors.
pub fn parse(file: &str, text: &str, matrix: &Matrix) -> Result<Constraint, TableError> {
    let table = Table::parse(file, text, matrix, &["region", "clients"], &[])?;
    let mut capacity = vec![u64::MAX; matrix.regions()];
    for region in table.regions() {
        capacity[region] = table.cell(region, 1).expect("the header has this column").decimal(0, "a number of clients")?;
    }
    Ok(Constraint::Capacity(capacity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_row_carries_any_number() {
        let matrix = Matrix::new(["a", "b", "c"].map(str::to_owned).to_vec(), |_, _| 0).expect("three regions");
        let read = |text: &str| parse("c.csv", text, &matrix);
        assert_eq!(read("region,clients\nb,20\na,0\n"), Ok(Constraint::Capacity(vec![0, 20, u64::MAX])));
        let error = read("region,clients\nb,plenty\n").expect_err("no number").to_string();
        assert_eq!(error, "c.csv, row 2 (b), column 2 (clients): `plenty` is not a number of clients");
    }
}
