//! Round-trip times between regions, read from CSV, and the physical floor that they set.
//!
//! A file is a square matrix in milliseconds: a header `region,NAME,NAME,…`, then one row per region in the same order,
//! beginning with its name. Row = from, column = to; the two directions may differ. The diagonal is the round trip
//! within a region.

use crate::ids::RegionId;
use crate::time::Span;
use thiserror::Error;

/// Round-trip times between regions.
#[derive(Clone, Debug, PartialEq)]
pub struct RttMatrix {
    names: Vec<String>,
    /// Row-major, `names.len()` squared.
    rtt: Vec<Span>,
}

/// What is wrong with a matrix file. Rows and columns count from 1, as an editor shows them.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RttError {
    #[error("{file}: not a CSV file: {message}")]
    Csv { file: String, message: String },
    #[error("{file}: the matrix is empty; expected a header `region,NAME,…` and one row per region")]
    Empty { file: String },
    #[error("{file}: the matrix is not square: {columns} regions in the header, {rows} rows")]
    NotSquare { file: String, columns: usize, rows: usize },
    #[error("{file}, row {row}: {found} cells, expected {expected}")]
    Ragged { file: String, row: usize, found: usize, expected: usize },
    #[error("{file}, row {row}: the region is `{found}`, but column {row} of the header says `{expected}`")]
    Name { file: String, row: usize, found: String, expected: String },
    #[error("{file}: the region `{name}` appears twice")]
    Twice { file: String, name: String },
    #[error("{file}, row {row} ({from}), column {column} ({to}): `{cell}` is not a round-trip time in milliseconds")]
    Cell { file: String, row: usize, column: usize, from: String, to: String, cell: String },
}

/// A cell above this is a mistake of units, and would overflow sums of spans.
const RTT_MS_MAX: f64 = 60_000.0;

impl RttMatrix {
    /// Reads a matrix from CSV text. `file` names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<RttMatrix, RttError> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let mut rows = Vec::new();
        for record in reader.records() {
            rows.push(record.map_err(|error| RttError::Csv { file: file.into(), message: error.to_string() })?);
        }
        let Some((header, rows)) = rows.split_first() else { return Err(RttError::Empty { file: file.into() }) };
        let names: Vec<String> = header.iter().skip(1).map(str::to_owned).collect();
        if names.is_empty() {
            return Err(RttError::Empty { file: file.into() });
        }
        if names.len() != rows.len() {
            return Err(RttError::NotSquare { file: file.into(), columns: names.len(), rows: rows.len() });
        }
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(RttError::Twice { file: file.into(), name: name.clone() });
            }
        }
        let mut rtt = Vec::with_capacity(names.len() * names.len());
        for (from, record) in rows.iter().enumerate() {
            let row = from + 2;
            if record.len() != names.len() + 1 {
                return Err(RttError::Ragged { file: file.into(), row, found: record.len(), expected: names.len() + 1 });
            }
            if record[0] != names[from] {
                return Err(RttError::Name { file: file.into(), row, found: record[0].into(), expected: names[from].clone() });
            }
            for (to, cell) in record.iter().skip(1).enumerate() {
                let millis = cell.parse::<f64>().ok().filter(|millis| *millis <= RTT_MS_MAX).and_then(Span::from_millis_f64);
                rtt.push(millis.ok_or_else(|| RttError::Cell {
                    file: file.into(),
                    row,
                    column: to + 2,
                    from: names[from].clone(),
                    to: names[to].clone(),
                    cell: cell.into(),
                })?);
            }
        }
        Ok(RttMatrix { names, rtt })
    }

    /// A matrix with the same round trip between any two of `names`, and none within a region.
    pub fn uniform(names: Vec<String>, between: Span) -> RttMatrix {
        let n = names.len();
        let rtt = (0..n * n).map(|cell| if cell / n == cell % n { Span::ZERO } else { between }).collect();
        RttMatrix { names, rtt }
    }

    /// The regions' names, in the order of the file.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The round trip from `from` to `to`.
    pub fn rtt(&self, from: RegionId, to: RegionId) -> Span {
        self.rtt[usize::from(from.0) * self.names.len() + usize::from(to.0)]
    }

    /// The time one message takes from `from` to `to`: half the mean of both directions' round trips, so that a message
    /// and its answer together take that mean. Zero within a region: the machine's own network is real there.
    pub fn one_way(&self, from: RegionId, to: RegionId) -> Span {
        if from == to {
            return Span::ZERO;
        }
        Span::from_micros((self.rtt(from, to) + self.rtt(to, from)).as_micros().div_ceil(4))
    }

    /// The physical floor of one wide-area round trip from `from` to a majority of all regions, itself among them: the
    /// round trip to the farthest of the nearest regions that complete a majority.
    pub fn floor(&self, from: RegionId) -> Span {
        let mut trips: Vec<Span> =
            (0..self.names.len() as u16).map(|to| self.one_way(from, RegionId(to)) + self.one_way(RegionId(to), from)).collect();
        trips.sort_unstable();
        trips[self.names.len() / 2]
    }

    /// The matrix of only the named regions, in that order.
    pub fn restrict(&self, names: &[&str]) -> Option<RttMatrix> {
        let indices = names.iter().map(|name| self.names.iter().position(|known| known == name)).collect::<Option<Vec<_>>>()?;
        let rtt = indices.iter().flat_map(|&from| indices.iter().map(move |&to| self.rtt[from * self.names.len() + to])).collect();
        Some(RttMatrix { names: names.iter().map(|&name| name.to_owned()).collect(), rtt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan;

    fn error(text: &str) -> String {
        RttMatrix::parse("m.csv", text).expect_err("a mistake").to_string()
    }

    #[test]
    fn the_floor_of_a_region_is_the_round_trip_that_completes_a_majority() {
        let matrix = wan::profile("paper_replicated_commit_5").expect("shipped").matrix();
        let floors: Vec<u64> = (0..5).map(|region| matrix.floor(RegionId(region)).as_micros() / 1_000).collect();
        assert_eq!(floors, [86, 101, 99, 159, 205]);
        let two = matrix.restrict(&["california", "virginia"]).expect("both exist");
        assert_eq!(two.floor(RegionId(0)), Span::from_millis(86));
    }

    #[test]
    fn a_mistake_is_named_with_file_row_and_column() {
        assert_eq!(error(""), "m.csv: the matrix is empty; expected a header `region,NAME,…` and one row per region");
        assert_eq!(error("region,a,b\na,0,1\n"), "m.csv: the matrix is not square: 2 regions in the header, 1 rows");
        assert_eq!(error("region,a,b\na,0,1\nb,1\n"), "m.csv, row 3: 2 cells, expected 3");
        assert_eq!(error("region,a,b\na,0,1\nc,1,0\n"), "m.csv, row 3: the region is `c`, but column 3 of the header says `b`");
        assert_eq!(error("region,a,a\na,0,1\na,1,0\n"), "m.csv: the region `a` appears twice");
        for bad in ["-1", "x", "", "NaN", "inf", "1e9"] {
            let text = format!("region,a,b\na,0,{bad}\nb,1,0\n");
            assert_eq!(error(&text), format!("m.csv, row 2 (a), column 3 (b): `{bad}` is not a round-trip time in milliseconds"));
        }
    }

    #[test]
    fn both_directions_of_an_asymmetric_link_share_its_round_trip() {
        let matrix = RttMatrix::parse("m.csv", "region,a,b\na,0,10\nb,30,0\n").expect("valid");
        let (a, b) = (RegionId(0), RegionId(1));
        assert_eq!(matrix.one_way(a, b), Span::from_millis(10));
        assert_eq!(matrix.one_way(b, a), Span::from_millis(10));
        assert_eq!(matrix.one_way(a, a), Span::ZERO);
    }
}
