//! The operations of several statements as the one list that travels.

use crate::error::SqlError;
use rhumb_commit::one_shot::execution::Output;
use rhumb_commit::one_shot::operation::{OPERATIONS_MAX, Operation};
use rhumb_core::Key;
use std::collections::BTreeMap;

/// Rows that the ranges of a list may hold together.
const SCANNED_ROWS_MAX: u32 = 10_000;

/// The operations of several statements as one list.
pub struct Merged {
    /// The operations.
    pub operations: Vec<Operation>,
    /// By operation: which of which statement it is.
    pub places: Vec<(usize, usize)>,
}

/// Why operations make no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmerged {
    /// There are none.
    Nothing,
    /// A range is read that holds a key written by a statement before.
    RangeWritten,
    /// There are so many.
    TooMany(usize),
    /// Their ranges may hold so many rows together.
    TooManyScanned(u32),
}

impl Unmerged {
    /// For a client whose statement is such a transaction or none, in a database of this protocol.
    pub fn error(self, protocol: &str) -> SqlError {
        match self {
            Unmerged::Nothing => SqlError::internal("what has no operations is not refused for that"),
            Unmerged::RangeWritten => SqlError::unsupported("a procedure cannot read a range of rows after it wrote into it").with_detail(
                format!("In a database of protocol \"{protocol}\" it is a one-shot transaction: ranges are read as they were before."),
            ),
            Unmerged::TooMany(operations) => {
                SqlError::too_large(format!("a transaction has at most {OPERATIONS_MAX} operations; this one has {operations}"))
            }
            Unmerged::TooManyScanned(rows) => SqlError::too_large(format!(
                "the ranges that a transaction reads hold at most {SCANNED_ROWS_MAX} rows; those of this one may hold {rows}"
            )),
        }
    }
}

impl Merged {
    /// Puts those on one key together, in their order. No operation depends on what another one returned, so that changes nothing but
    /// for ranges, which are read as they were before. Where there are too many, fewer may do, of the rows that there are.
    pub fn of<'a>(statements: impl Iterator<Item = &'a [Operation]>) -> Result<Merged, Unmerged> {
        let mut ranges = Vec::new();
        let mut chains: Vec<Vec<((usize, usize), Operation)>> = Vec::new();
        let mut chain_of: BTreeMap<Key, usize> = BTreeMap::new();
        let mut written: Vec<Key> = Vec::new();
        for (statement, operations) in statements.enumerate() {
            for (step, operation) in operations.iter().enumerate() {
                let placed = ((statement, step), operation.clone());
                match operation.key() {
                    Some(key) => {
                        let chain = *chain_of.entry(key.clone()).or_insert_with(|| {
                            chains.push(Vec::new());
                            chains.len() - 1
                        });
                        chains[chain].push(placed);
                        if operation.writes() {
                            written.push(key.clone());
                        }
                    }
                    None => {
                        let (range, _) = operation.range().expect("what has no key has a range");
                        if written.iter().any(|key| range.contains(key)) {
                            return Err(Unmerged::RangeWritten);
                        }
                        ranges.push(placed);
                    }
                }
            }
        }
        let scanned: u32 = ranges.iter().filter_map(|(_, operation)| operation.range()).map(|(_, limit)| limit).sum();
        let (places, operations): (Vec<_>, Vec<_>) = ranges.into_iter().chain(chains.into_iter().flatten()).unzip();
        match operations.len() {
            0 => Err(Unmerged::Nothing),
            count if count > OPERATIONS_MAX => Err(Unmerged::TooMany(count)),
            _ if scanned > SCANNED_ROWS_MAX => Err(Unmerged::TooManyScanned(scanned)),
            _ => Ok(Merged { operations, places }),
        }
    }
}

/// What the operations of each statement returned, in the order of its steps, given what those at `places` did.
pub fn returned(statements: usize, places: Vec<(usize, usize)>, outputs: Vec<Output>) -> Vec<Vec<Output>> {
    let mut returned: Vec<BTreeMap<usize, Output>> = (0..statements).map(|_| BTreeMap::new()).collect();
    for ((statement, step), output) in places.into_iter().zip(outputs) {
        returned[statement].insert(step, output);
    }
    returned.into_iter().map(|outputs| outputs.into_values().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::KeyRange;

    fn write(key: &str) -> Operation {
        Operation::Write { key: key.into(), value: "v".into() }
    }

    fn scan(prefix: &[u8]) -> Operation {
        Operation::Scan { range: KeyRange::prefix(prefix), limit: 3 }
    }

    fn merged(statements: &[Vec<Operation>]) -> Result<(String, Vec<(usize, usize)>), Unmerged> {
        let merged = Merged::of(statements.iter().map(Vec::as_slice))?;
        let words: Vec<String> = merged.operations.iter().map(ToString::to_string).collect();
        Ok((words.join(" "), merged.places))
    }

    #[test]
    fn operations_on_one_key_come_to_stand_together() {
        let read = |key: &str| Operation::Read { key: key.into() };
        let found = merged(&[vec![write("a"), read("a")], vec![write("b")], vec![scan(b"k"), read("a")]]);
        let (words, places) = found.expect("no range holds what was written");
        assert!(words.ends_with("wa ra ra wb"), "{words}");
        assert_eq!(places, [(2, 0), (0, 0), (0, 1), (2, 1), (1, 0)]);
    }

    #[test]
    fn a_range_is_not_read_after_it_was_written() {
        assert_eq!(merged(&[vec![write("k1")], vec![scan(b"k")]]), Err(Unmerged::RangeWritten));
        assert!(merged(&[vec![scan(b"k")], vec![write("k1")]]).is_ok());
        assert_eq!(merged(&[]), Err(Unmerged::Nothing));
    }

    #[test]
    fn what_operations_returned_comes_back_to_their_statements() {
        let outputs = [1, 2, 3, 4, 5].map(Output::Number).to_vec();
        let returned = returned(4, vec![(2, 0), (0, 1), (0, 0), (2, 1), (1, 0)], outputs);
        let expected = [vec![3, 2], vec![5], vec![1, 4], vec![]];
        assert_eq!(returned, expected.map(|numbers| numbers.into_iter().map(Output::Number).collect::<Vec<_>>()));
    }
}
