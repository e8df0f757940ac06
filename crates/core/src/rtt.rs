//! Round-trip times between regions, read from CSV, and the physical floor that they set.
//!
//! A file is a square matrix in milliseconds: a header `region,NAME,NAME,…`, then one row per region in the same order,
//! beginning with its name. Row = from, column = to; the two directions may differ. The diagonal is the round trip
//! within a region. Empty lines and lines that begin with `#` are passed over.

use crate::csv_rows::csv_rows;
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
    #[error("{file}: the matrix is empty; expected a header `region,NAME,…` and one row per region")]
    Empty { file: String },
    #[error("{file}: the matrix is not square: {columns} regions in the header, {rows} rows; every region needs a column and a row")]
    NotSquare { file: String, columns: usize, rows: usize },
    #[error("{file}, row {row}: {found} cells, expected {expected}")]
    Ragged { file: String, row: usize, found: usize, expected: usize },
    #[error(
        "{file}, row {row}: the region is `{found}`, but column {column} of the header says `{expected}`; rows and columns have one order"
    )]
    Name { file: String, row: usize, column: usize, found: String, expected: String },
    #[error("{file}: the region `{name}` appears twice")]
    Twice { file: String, name: String },
    #[error("{file}, row {row} ({from}), column {column} ({to}): is empty; every pair of regions needs a round-trip time in milliseconds")]
    Hole { file: String, row: usize, column: usize, from: String, to: String },
    #[error("{file}, row {row} ({from}), column {column} ({to}): `{cell}` is not a round-trip time in milliseconds")]
    Cell { file: String, row: usize, column: usize, from: String, to: String, cell: String },
}

/// A cell above this is a mistake of units, and would overflow sums of spans.
const RTT_MS_MAX: f64 = 60_000.0;

impl RttMatrix {
    /// Reads a matrix from CSV text. `file` names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<RttMatrix, RttError> {
        let mut rows = csv_rows(text);
        let Some((_, header)) = rows.next() else { return Err(RttError::Empty { file: file.into() }) };
        let names: Vec<String> = header.into_iter().skip(1).collect();
        if names.is_empty() {
            return Err(RttError::Empty { file: file.into() });
        }
        if let Some((_, name)) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
            return Err(RttError::Twice { file: file.into(), name: name.clone() });
        }
        let rows: Vec<(usize, Vec<String>)> = rows.collect();
        if names.len() != rows.len() {
            return Err(RttError::NotSquare { file: file.into(), columns: names.len(), rows: rows.len() });
        }
        let mut rtt = Vec::with_capacity(names.len() * names.len());
        for (from, (row, cells)) in rows.into_iter().enumerate() {
            if cells.len() != names.len() + 1 {
                return Err(RttError::Ragged { file: file.into(), row, found: cells.len(), expected: names.len() + 1 });
            }
            if cells[0] != names[from] {
                let (found, expected) = (cells[0].clone(), names[from].clone());
                return Err(RttError::Name { file: file.into(), row, column: from + 2, found, expected });
            }
            for (to, cell) in cells.iter().skip(1).enumerate() {
                rtt.push(trip(cell).ok_or_else(|| mistaken(file, row, to + 2, &names[from], &names[to], cell))?);
            }
        }
        Ok(RttMatrix { names, rtt })
    }

    /// The matrix as [`RttMatrix::parse`] reads it.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::WriterBuilder::new().comment(Some(b'#')).from_writer(Vec::new());
        let written = "a string takes all, and every row has as many cells";
        writer.write_record(std::iter::once("region").chain(self.names.iter().map(String::as_str))).expect(written);
        for (name, trips) in self.names.iter().zip(self.rtt.chunks(self.names.len())) {
            let cells = trips.iter().map(|trip| trip.as_millis_f64().to_string());
            writer.write_record(std::iter::once(name.clone()).chain(cells)).expect(written);
        }
        String::from_utf8(writer.into_inner().expect(written)).expect("names and numbers are text")
    }

    /// The matrix of `names`, each once, with the round trip from one to another by their indices.
    pub fn of(names: Vec<String>, rtt: impl Fn(usize, usize) -> Span) -> RttMatrix {
        let n = names.len();
        let rtt = (0..n * n).map(|cell| rtt(cell / n, cell % n)).collect();
        RttMatrix { names, rtt }
    }

    /// A matrix with the same round trip between any two of `names`, and none within a region.
    pub fn uniform(names: Vec<String>, between: Span) -> RttMatrix {
        RttMatrix::of(names, |from, to| if from == to { Span::ZERO } else { between })
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
        self.floor_among(from, (0..self.names.len() as u16).map(RegionId)).expect("a matrix has a region")
    }

    /// The same to a majority of `voters`, whether `from` is one of them or not; none if there are none.
    pub fn floor_among(&self, from: RegionId, voters: impl Iterator<Item = RegionId>) -> Option<Span> {
        let mut trips: Vec<Span> = voters.map(|to| self.one_way(from, to) + self.one_way(to, from)).collect();
        trips.sort_unstable();
        trips.get(trips.len() / 2).copied()
    }

    /// The matrix of only the named regions, in that order.
    pub fn restrict(&self, names: &[&str]) -> Option<RttMatrix> {
        let indices = names.iter().map(|name| self.names.iter().position(|known| known == name)).collect::<Option<Vec<_>>>()?;
        let rtt = indices.iter().flat_map(|&from| indices.iter().map(move |&to| self.rtt[from * self.names.len() + to])).collect();
        Some(RttMatrix { names: names.iter().map(|&name| name.to_owned()).collect(), rtt })
    }
}

/// A round trip in milliseconds.
fn trip(cell: &str) -> Option<Span> {
    cell.parse::<f64>().ok().filter(|millis| *millis <= RTT_MS_MAX).and_then(Span::from_millis_f64)
}

/// What is wrong with a cell that is no round trip.
fn mistaken(file: &str, row: usize, column: usize, from: &str, to: &str, cell: &str) -> RttError {
    let (file, from, to) = (file.into(), from.into(), to.into());
    if cell.is_empty() {
        RttError::Hole { file, row, column, from, to }
    } else {
        RttError::Cell { file, row, column, from, to, cell: cell.into() }
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
        let among = |from, voters: &[u16]| matrix.floor_among(RegionId(from), voters.iter().copied().map(RegionId));
        let floors = [among(4, &[0, 1, 2]), among(0, &[0, 1, 2]), among(4, &[3]), among(0, &[])];
        assert_eq!(floors, [Some(205), Some(21), Some(341), None].map(|millis| millis.map(Span::from_millis)));
    }

    #[test]
    fn a_mistake_is_named_with_file_row_and_column() {
        assert_eq!(error(""), "m.csv: the matrix is empty; expected a header `region,NAME,…` and one row per region");
        assert_eq!(
            error("region,a,b\na,0,1\n"),
            "m.csv: the matrix is not square: 2 regions in the header, 1 rows; every region needs a column and a row"
        );
        assert_eq!(error("region,a,b\na,0,1\nb,1\n"), "m.csv, row 3: 2 cells, expected 3");
        let order = "m.csv, row 3: the region is `c`, but column 3 of the header says `b`; rows and columns have one order";
        assert_eq!(error("region,a,b\na,0,1\nc,1,0\n"), order);
        assert_eq!(error("region,a,a\na,0,1\na,1,0\n"), "m.csv: the region `a` appears twice");
        for bad in ["-1", "x", "NaN", "inf", "1e9"] {
            let text = format!("region,a,b\na,0,{bad}\nb,1,0\n");
            assert_eq!(error(&text), format!("m.csv, row 2 (a), column 3 (b): `{bad}` is not a round-trip time in milliseconds"));
        }
        let hole = "m.csv, row 5 (b), column 2 (a): is empty; every pair of regions needs a round-trip time in milliseconds";
        assert_eq!(error("# measured in May\nregion,a,b\n\na,0,1\nb,,0\n"), hole);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = "region,a,b\na,0.5,10\nb,30.25,0\n";
        assert_eq!(RttMatrix::parse("m.csv", text).expect("valid").to_csv(), text);
        let odd = "region,\"a,b\",\"#1\"\n\"a,b\",0,10\n\"#1\",30,0\n";
        assert_eq!(RttMatrix::parse("m.csv", odd).expect("valid").to_csv(), odd);
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
