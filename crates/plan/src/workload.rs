//! Where the clients are: a CSV file `region,clients[,reads_per_txn]`.

use crate::matrix::Matrix;
use crate::request::Client;
use crate::table::{Table, TableError};

/// Reads the client regions from CSV text, in the order of the matrix; those with no clients are left out. `file` names the
/// text in errors. Where there is no third column, a transaction has `reads_milli` thousandths of a read.
pub fn parse(file: &str, text: &str, matrix: &Matrix, reads_milli: u64) -> Result<Vec<Client>, TableError> {
    let table = Table::parse(file, text, matrix, &["region", "clients"], &["reads_per_txn"])?;
    let mut workload = Vec::new();
    for region in table.regions() {
        let cell = table.cell(region, 1).expect("the header has this column");
        let clients = cell.decimal(0, "a number of clients")?;
        let reads_milli = match table.cell(region, 2) {
            Some(cell) => cell.decimal(3, "a number of reads with at most three decimals")?,
            None => reads_milli,
        };
        if clients > 0 {
            workload.push(Client { region, clients, reads_milli });
        }
    }
    if workload.is_empty() { Err(TableError::NoClients { file: file.to_owned() }) } else { Ok(workload) }
}

/// One client in every region, with `reads_milli` thousandths of a read in a transaction.
pub fn uniform(matrix: &Matrix, reads_milli: u64) -> Vec<Client> {
    (0..matrix.regions()).map(|region| Client { region, clients: 1, reads_milli }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Client>, String> {
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        let matrix = Matrix::new(names, |_, _| 0).expect("three regions");
        parse("w.csv", text, &matrix, 2_000).map_err(|error| error.to_string())
    }

    #[test]
    fn clients_come_in_the_order_of_the_matrix_and_empty_regions_not_at_all() {
        let client = |region, clients, reads_milli| Client { region, clients, reads_milli };
        assert_eq!(read("region,clients\nc,3\n# nobody here\nb,0\na,1\n"), Ok(vec![client(0, 1, 2_000), client(2, 3, 2_000)]));
        assert_eq!(read("region,clients,reads_per_txn\na, 7 ,2.5\nb,1,0\n"), Ok(vec![client(0, 7, 2_500), client(1, 1, 0)]));
    }

    #[test]
    fn a_mistake_is_named_with_file_row_and_column() {
        let error = |text: &str| read(text).expect_err("a mistake");
        assert_eq!(error(""), "w.csv: the table is empty; expected a header `region,clients[,reads_per_txn]` and a row per region");
        assert_eq!(error("\u{feff}\n"), "w.csv, row 1: the header is ``; expected `region,clients[,reads_per_txn]`");
        assert_eq!(error("a,1\n"), "w.csv, row 1: the header is `a,1`; expected `region,clients[,reads_per_txn]`");
        assert_eq!(error("region,clients\na,1\n\nb\n"), "w.csv, row 4: 1 cells, expected 2");
        assert_eq!(
            error("region,clients\nmars,1\n"),
            "w.csv, row 2, column 1: `mars` is not a region of the matrix of round trips; it has a, b, c"
        );
        assert_eq!(error("region,clients\na,1\n#\na,2\n"), "w.csv, row 4, column 1: `a` stands in row 2 already");
        assert_eq!(error("region,clients\na,0\nb,0\n"), "w.csv: no region has clients");
        for bad in ["-1", "x", "", "1.5", "NaN"] {
            let text = format!("region,clients\na,1\nb,{bad}\n");
            assert_eq!(error(&text), format!("w.csv, row 3 (b), column 2 (clients): `{bad}` is not a number of clients"));
        }
        assert_eq!(
            error("region,clients,reads_per_txn\na,1,1.2345\n"),
            "w.csv, row 2 (a), column 3 (reads_per_txn): `1.2345` is not a number of reads with at most three decimals"
        );
    }
}
