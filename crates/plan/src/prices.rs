//! What replicas cost: a CSV file `region,replica_month,gigabyte_sent`, in dollars.
//!
//! A gateway sends what its clients write to every replica, and pays for what leaves its own region. So the traffic that a
//! replica causes does not depend on where the others stand, and a placement costs the sum of what its replicas cost. Votes
//! and reads are not counted: they carry no rows, or rows that were asked for.

use crate::matrix::Matrix;
use crate::request::Client;
use crate::table::{Table, TableError};

/// Prices by region, in millionths of a dollar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    /// What a replica costs per month.
    pub replica_month: Vec<u64>,
    /// What a gigabyte costs that is sent out of the region.
    pub gigabyte_sent: Vec<u64>,
}

impl Prices {
    /// Reads prices from CSV text; every region of the matrix needs a row. `file` names the text in errors.
    pub fn parse(file: &str, text: &str, matrix: &Matrix) -> Result<Prices, TableError> {
        let table = Table::parse(file, text, matrix, &["region", "replica_month", "gigabyte_sent"], &[])?;
        table.require_all(matrix)?;
        let column = |column: usize| {
            let cell = |region| table.cell(region, column).expect("the header has this column");
            table
                .regions()
                .map(|region| cell(region).decimal(6, "a price in dollars with at most six decimals"))
                .collect::<Result<Vec<u64>, _>>()
        };
        Ok(Prices { replica_month: column(1)?, gigabyte_sent: column(2)? })
    }

    /// What a replica costs per month in each region if every client writes `megabytes` in that time: its own price and
    /// that of sending it what is written elsewhere, rounded up. Sums beyond 64 bits are capped there.
    pub fn per_replica(&self, clients: &[Client], megabytes: u64) -> Vec<u64> {
        let sent = |client: &Client| u128::from(self.gigabyte_sent[client.region]) * u128::from(client.clients) * u128::from(megabytes);
        let by_all: u128 = clients.iter().map(sent).sum();
        let mut by_own = vec![0; self.replica_month.len()];
        for client in clients {
            by_own[client.region] = sent(client);
        }
        let price = |(month, own): (&u64, u128)| u128::from(*month) + (by_all - own).div_ceil(1_000);
        self.replica_month.iter().zip(by_own).map(price).map(|price| u64::try_from(price).unwrap_or(u64::MAX)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Matrix {
        Matrix::new(["a", "b", "c"].map(str::to_owned).to_vec(), |_, _| 0).expect("three regions")
    }

    #[test]
    fn a_replica_costs_its_rent_and_what_is_sent_to_it() {
        let prices = Prices::parse("p.csv", "region,replica_month,gigabyte_sent\na,100,0.09\nb,80.5,0.02\nc,90,0.1\n", &matrix());
        let prices = prices.expect("valid");
        assert_eq!(prices.replica_month, [100_000_000, 80_500_000, 90_000_000]);
        let client = |region, clients| Client { region, clients, reads_milli: 0 };
        // a sends 10 x 500 MB = 5 GB at 9 cents, b 1 GB at 2 cents.
        let clients = [client(0, 10), client(1, 2)];
        assert_eq!(prices.per_replica(&clients, 500), [100_020_000, 80_950_000, 90_470_000]);
    }

    #[test]
    fn a_mistake_is_named_with_file_row_and_column() {
        let error = |rows: &str| {
            let text = format!("region,replica_month,gigabyte_sent\n{rows}");
            Prices::parse("p.csv", &text, &matrix()).expect_err("a mistake").to_string()
        };
        assert_eq!(error("a,1,1\nb,1,1\n"), "p.csv: there is no row for the region `c`");
        assert_eq!(
            error("a,1,1\nb,1,free\nc,1,1\n"),
            "p.csv, row 3 (b), column 3 (gigabyte_sent): `free` is not a price in dollars with at most six decimals"
        );
    }
}
