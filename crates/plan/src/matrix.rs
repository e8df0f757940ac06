//! Round-trip times as the searches read them: one flat array of microseconds, a row per region.
//!
//! Row = from, column = to; the two directions may differ. The diagonal is the round trip within a region. Times are
//! integers, so that two ways of finding the best placement agree to the microsecond and not to a tolerance.

use rhumb_core::{RegionId, Rng, RttMatrix};
use thiserror::Error;

/// The most regions that a plan looks at: the array then takes 100 MB.
pub const REGIONS_MAX: usize = 5_000;

/// The longest round trip that a plan knows: sums of a few fit 32 bits.
pub const RTT_US_MAX: u32 = 60_000_000;

/// Round-trip times between regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    names: Vec<String>,
    rtt_us: Vec<u32>,
}

/// Why a matrix cannot be planned with.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MatrixError {
    #[error("{regions} regions are more than a plan can look at ({REGIONS_MAX}); leave out those that come into question least")]
    TooManyRegions { regions: usize },
    #[error("the round trip from `{from}` to `{to}`, {rtt_us} microseconds, is longer than a minute")]
    TooLong { from: String, to: String, rtt_us: u32 },
}

/// A name that no region of a matrix has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{name}` is not a region of the matrix of round trips; {hint}")]
pub struct UnknownRegion {
    name: String,
    hint: String,
}

/// How alike two names are, from 0 to 1, if one may be meant by the other.
const ALIKE: f64 = 0.6;
/// How many names an error lists.
const LISTED: usize = 6;

impl Matrix {
    /// The matrix of `names`, with the round trip from one to another (by their indices) in microseconds.
    pub fn new(names: Vec<String>, rtt_us: impl Fn(usize, usize) -> u32) -> Result<Matrix, MatrixError> {
        let n = names.len();
        if n > REGIONS_MAX {
            return Err(MatrixError::TooManyRegions { regions: n });
        }
        let mut cells = Vec::with_capacity(n * n);
        for from in 0..n {
            cells.extend((0..n).map(|to| rtt_us(from, to)));
        }
        if let Some(cell) = cells.iter().position(|&rtt_us| rtt_us > RTT_US_MAX) {
            return Err(MatrixError::TooLong { from: names[cell / n].clone(), to: names[cell % n].clone(), rtt_us: cells[cell] });
        }
        Ok(Matrix { names, rtt_us: cells })
    }

    /// Regions that nobody has measured: random round trips of up to `longest_us` microseconds, the same both ways, and none longer than by
    /// way of others, so that the triangle inequality holds.
    pub fn random(regions: usize, longest_us: u32, rng: &mut Rng) -> Result<Matrix, MatrixError> {
        let mut trips = vec![0; regions * regions];
        for from in 0..regions {
            for to in 0..from {
                let trip = rng.between(0, longest_us.into()) as u32;
                trips[from * regions + to] = trip;
                trips[to * regions + from] = trip;
            }
        }
        for by in 0..regions {
            for cell in 0..regions * regions {
                trips[cell] = trips[cell].min(trips[cell / regions * regions + by] + trips[by * regions + cell % regions]);
            }
        }
        let names = (0..regions).map(|region| format!("r{region}")).collect();
        Matrix::new(names, |from, to| trips[from * regions + to])
    }

    /// The number of regions.
    pub fn regions(&self) -> usize {
        self.names.len()
    }

    /// The regions' names, by their indices.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The region called `name`.
    pub fn region(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The region called `name`, or an error that says what else could be meant.
    pub fn find(&self, name: &str) -> Result<usize, UnknownRegion> {
        self.region(name).ok_or_else(|| UnknownRegion::new(self, name))
    }

    /// The round trips from region `from` to every region, in microseconds.
    pub fn from(&self, from: usize) -> &[u32] {
        &self.rtt_us[from * self.names.len()..][..self.names.len()]
    }

    /// The round trip from `from` to `to`, in microseconds.
    pub fn rtt_us(&self, from: usize, to: usize) -> u32 {
        self.rtt_us[from * self.names.len() + to]
    }

    /// What a request from `from` to a coordinator in `to` costs on the way there and back, in microseconds: nothing if
    /// that is the same region. (A quorum, on the other hand, does count the round trip within a region.)
    pub fn hop_us(&self, from: usize, to: usize) -> u32 {
        if from == to { 0 } else { self.rtt_us(from, to) }
    }

    /// The longest round trip, in microseconds.
    pub fn longest_us(&self) -> u32 {
        self.rtt_us.iter().copied().max().unwrap_or(0)
    }
}

impl UnknownRegion {
    /// That `matrix` has no region called `name`.
    pub fn new(matrix: &Matrix, name: &str) -> UnknownRegion {
        let lower = name.to_lowercase();
        let likeness = |known: &str| strsim::normalized_damerau_levenshtein(&lower, &known.to_lowercase());
        let nearest = matrix.names().iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
        let hint = match nearest.filter(|nearest| likeness(nearest) >= ALIKE) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None if matrix.regions() <= LISTED => format!("it has {}", matrix.names().join(", ")),
            None => format!("it has {} and {} more", matrix.names()[..LISTED].join(", "), matrix.regions() - LISTED),
        };
        UnknownRegion { name: name.to_owned(), hint }
    }
}

impl TryFrom<&RttMatrix> for Matrix {
    type Error = MatrixError;

    fn try_from(rtt: &RttMatrix) -> Result<Matrix, MatrixError> {
        Matrix::new(rtt.names().to_vec(), |from, to| {
            let region = |index: usize| RegionId(u16::try_from(index).expect("at most REGIONS_MAX regions"));
            u32::try_from(rtt.rtt(region(from), region(to)).as_micros()).expect("a matrix of round trips has none above a minute")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::Span;

    #[test]
    fn both_directions_and_the_diagonal_are_kept() {
        let rtt = RttMatrix::parse("m.csv", "region,a,b\na,0.5,10\nb,30.25,0\n").expect("valid");
        let matrix = Matrix::try_from(&rtt).expect("two regions");
        assert_eq!((matrix.from(0), matrix.from(1)), (&[500, 10_000][..], &[30_250, 0][..]));
        assert_eq!((matrix.hop_us(0, 0), matrix.hop_us(1, 0), matrix.longest_us()), (0, 30_250, 30_250));
        assert_eq!((matrix.region("b"), matrix.region("c")), (Some(1), None));
    }

    #[test]
    fn a_name_that_is_not_there_brings_the_nearest_to_mind() {
        let names = ["eu-west-1", "eu-west-2", "us-east-1", "us-west-1", "us-west-2", "sa-east-1", "ap-east-1"];
        let matrix = Matrix::new(names.map(str::to_owned).to_vec(), |_, _| 0).expect("seven regions");
        let error = |name: &str| matrix.find(name).expect_err("not there").to_string();
        assert_eq!(matrix.find("us-east-1"), Ok(2));
        assert_eq!(error("us-esat-1"), "`us-esat-1` is not a region of the matrix of round trips; did you mean `us-east-1`?");
        assert_eq!(error("US-East-1"), "`US-East-1` is not a region of the matrix of round trips; did you mean `us-east-1`?");
        assert_eq!(
            error("mars"),
            "`mars` is not a region of the matrix of round trips; it has eu-west-1, eu-west-2, us-east-1, us-west-1, us-west-2, \
             sa-east-1 and 1 more"
        );
    }

    #[test]
    fn thousands_of_regions_are_read_and_too_many_refused() {
        let names = |n: usize| (0..n).map(|region| format!("r{region}")).collect::<Vec<String>>();
        let matrix = Matrix::try_from(&RttMatrix::uniform(names(4_000), Span::from_millis(7))).expect("fewer than the bound");
        assert_eq!((matrix.regions(), matrix.rtt_us(3_999, 0), matrix.rtt_us(3_999, 3_999)), (4_000, 7_000, 0));
        assert_eq!(
            Matrix::new(names(5_001), |_, _| 0).expect_err("too many").to_string(),
            "5001 regions are more than a plan can look at (5000); leave out those that come into question least"
        );
        assert_eq!(
            Matrix::new(names(2), |from, to| if (from, to) == (1, 0) { 60_000_001 } else { 0 }).expect_err("too long").to_string(),
            "the round trip from `r1` to `r0`, 60000001 microseconds, is longer than a minute"
        );
    }
}
