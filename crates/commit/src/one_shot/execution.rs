//! What a transaction does to the rows that it finds: a pure function, the same in every region.

use super::operation::{Expected, Operation, Transaction};
use rhumb_core::fields::{self, Impossible};
use rhumb_core::{Key, KeyRange, Row, Timestamp, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Bytes of the rows whose values one transaction needs, as it is run: it is carried out as a whole, by every site.
pub const VALUES_BYTES_MAX: usize = 64 << 20;

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It took effect; what each operation returned.
    Done(Vec<Output>),
    /// It changed nothing.
    Rejected(Rejection),
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nothing to return.
    Nothing,
    /// The row read. What the transaction itself wrote has version `Timestamp::MAX`.
    Row(Row),
    /// The rows of a range, as they were before the transaction.
    Rows(Vec<Row>),
    /// The number after an addition.
    Number(i64),
}

/// Why a transaction rejected itself. Operations count from 1.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rejection {
    /// The values that it reads are more than a transaction may, or those that it shows, or makes of others.
    #[error("the transaction reads rows of more than {VALUES_BYTES_MAX} bytes, or shows or changes as many")]
    TooMuchRead,
    /// A comparison failed.
    #[error("operation {place}: key {key} is not as expected")]
    Unexpected {
        /// Which operation.
        place: usize,
        /// Which key.
        key: Key,
    },
    /// The rows of a range are others.
    #[error("operation {place}: the rows of {range} have changed")]
    Changed {
        /// Which operation.
        place: usize,
        /// Which range.
        range: KeyRange,
    },
    /// An insertion found a row.
    #[error("operation {place}: key {key} is there already")]
    Duplicate {
        /// Which operation.
        place: usize,
        /// Which key.
        key: Key,
    },
    /// An addition to what is no number, or beyond its bounds.
    #[error("operation {place}: key {key} does not hold a number that this can be added to")]
    NotANumber {
        /// Which operation.
        place: usize,
        /// Which key.
        key: Key,
    },
    /// A sum in a field of a row beyond its bounds.
    #[error("operation {place}: field {field} of key {key} would leave its bounds")]
    OutOfBounds {
        /// Which operation.
        place: usize,
        /// Which key.
        key: Key,
        /// Which field.
        field: u32,
    },
}

impl Rejection {
    /// Which operation it was, from 1; 0 if it was all of them together.
    pub fn place(&self) -> usize {
        let (Rejection::Unexpected { place, .. }
        | Rejection::Changed { place, .. }
        | Rejection::Duplicate { place, .. }
        | Rejection::NotANumber { place, .. }
        | Rejection::OutOfBounds { place, .. }) = self
        else {
            return 0;
        };
        *place
    }
}

/// What a transaction writes: each key once; `None` removes the row.
pub type Writes = Vec<(Key, Option<Value>)>;

/// Runs `transaction` on `rows`, which hold all its keys, and on those of its ranges ([`Operation::range`]), in their order.
pub fn evaluate(transaction: &Transaction, rows: BTreeMap<Key, Row>, scans: Vec<Vec<Row>>) -> (Outcome, Writes) {
    let mut state = State { rows, written: Vec::new(), shown: 0, made: 0 };
    let mut scans = scans.into_iter();
    let mut outputs = Vec::with_capacity(transaction.operations.len());
    for (place, operation) in (1..).zip(&transaction.operations) {
        match state.operate(place, operation, &mut scans) {
            Ok(output) => outputs.push(output),
            Err(rejection) => return (Outcome::Rejected(rejection), Vec::new()),
        }
    }
    let State { mut rows, written, .. } = state;
    let value = |key: Key| {
        let row = rows.remove(&key).expect("what was written is a row of the transaction");
        (key, row.value)
    };
    (Outcome::Done(outputs), written.into_iter().map(value).collect())
}

struct State {
    rows: BTreeMap<Key, Row>,
    /// In the order first written.
    written: Vec<Key>,
    /// Bytes of the rows that single reads have returned, each time that they did.
    shown: usize,
    /// Bytes of the values made of others, each time that one was.
    made: usize,
}

impl State {
    fn operate(&mut self, place: usize, operation: &Operation, scans: &mut impl Iterator<Item = Vec<Row>>) -> Result<Output, Rejection> {
        match operation {
            Operation::Read { key } => {
                let row = self.row(key).clone();
                self.shown += row.bytes();
                return if self.shown > VALUES_BYTES_MAX { Err(Rejection::TooMuchRead) } else { Ok(Output::Row(row)) };
            }
            Operation::Scan { .. } => return Ok(Output::Rows(scans.next().expect("every scan was made"))),
            Operation::Unchanged { range, rows, since } => {
                let found = scans.next().expect("every range was read");
                if found.len() as u64 != u64::from(*rows) || found.iter().any(|row| row.version > *since) {
                    return Err(Rejection::Changed { place, range: range.clone() });
                }
            }
            Operation::Write { key, value } => self.write(key, Some(value.clone())),
            Operation::Delete { key } => self.write(key, None),
            Operation::Insert { key, value } => {
                if self.row(key).value.is_some() {
                    return Err(Rejection::Duplicate { place, key: key.clone() });
                }
                self.write(key, Some(value.clone()));
            }
            Operation::Compare { key, expected } => {
                let row = self.row(key);
                let holds = match expected {
                    Expected::Version(version) if row.value.is_none() => *version == Timestamp::ZERO,
                    Expected::Version(version) => row.version == *version,
                    Expected::Value(value) => row.value == *value,
                };
                if !holds {
                    return Err(Rejection::Unexpected { place, key: key.clone() });
                }
            }
            Operation::Add { key, amount } => {
                let number = number_in(self.row(key)).and_then(|number| number.checked_add(*amount));
                let number = number.ok_or_else(|| Rejection::NotANumber { place, key: key.clone() })?;
                self.write(key, Some(Value::new(number.to_string().into_bytes())));
                return Ok(Output::Number(number));
            }
            Operation::Amend { key, changes } => {
                if let Some(value) = &self.row(key).value {
                    let changed = fields::changed(&value.0, changes).map_err(|why| match why {
                        Impossible::OutOfBounds { field } => Rejection::OutOfBounds { place, key: key.clone(), field },
                        Impossible::Malformed(_) => Rejection::NotANumber { place, key: key.clone() },
                    })?;
                    self.made += changed.len();
                    if self.made > VALUES_BYTES_MAX {
                        return Err(Rejection::TooMuchRead);
                    }
                    self.write(key, Some(Value::new(changed)));
                }
            }
        }
        Ok(Output::Nothing)
    }

    fn row(&self, key: &Key) -> &Row {
        self.rows.get(key).expect("a transaction is run with all its rows")
    }

    fn write(&mut self, key: &Key, value: Option<Value>) {
        let row = self.rows.get_mut(key).expect("a transaction is run with all its rows");
        if row.version != Timestamp::MAX {
            self.written.push(key.clone());
        }
        *row = Row { key: key.clone(), version: Timestamp::MAX, value };
    }
}

/// The decimal number in a row; zero if there is no row.
fn number_in(row: &Row) -> Option<i64> {
    match &row.value {
        None => Some(0),
        Some(value) => std::str::from_utf8(&value.0).ok()?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[(&str, Option<&str>)]) -> BTreeMap<Key, Row> {
        let row = |(key, value): &(&str, Option<&str>)| {
            let version = Timestamp::from_bits(u64::from(value.is_some()) * 5);
            (Key::from(*key), Row { key: (*key).into(), version, value: value.map(Value::from) })
        };
        values.iter().map(row).collect()
    }

    fn run(operations: Vec<Operation>, values: &[(&str, Option<&str>)]) -> (Outcome, Writes) {
        evaluate(&Transaction::new(operations), rows(values), vec![])
    }

    #[test]
    fn operations_on_one_key_see_one_another() {
        let key = || Key::from("a");
        let operations = vec![
            Operation::Compare { key: key(), expected: Expected::Version(Timestamp::from_bits(5)) },
            Operation::Add { key: key(), amount: 3 },
            Operation::Read { key: key() },
            Operation::Delete { key: key() },
            Operation::Insert { key: key(), value: "new".into() },
        ];
        let (outcome, writes) = run(operations, &[("a", Some("4"))]);
        let seen = Row { key: key(), version: Timestamp::MAX, value: Some("7".into()) };
        let outputs = vec![Output::Nothing, Output::Number(7), Output::Row(seen), Output::Nothing, Output::Nothing];
        assert_eq!((outcome, writes), (Outcome::Done(outputs), vec![(key(), Some("new".into()))]));
    }

    #[test]
    fn a_row_that_was_deleted_counts_as_never_written() {
        let compare = |version| {
            let expected = Expected::Version(Timestamp::from_bits(version));
            Transaction::new(vec![Operation::Compare { key: "a".into(), expected }])
        };
        let deleted = Row { key: "a".into(), version: Timestamp::from_bits(5), value: None };
        let outcome = |version| evaluate(&compare(version), [("a".into(), deleted.clone())].into(), vec![]).0;
        assert!(matches!(outcome(0), Outcome::Done(_)) && matches!(outcome(5), Outcome::Rejected(_)));
    }

    #[test]
    fn a_range_is_unchanged_if_nothing_came_went_or_was_written_since() {
        let row = |key: &str, version| Row { key: key.into(), version: Timestamp::from_bits(version), value: Some("v".into()) };
        let unchanged = Operation::Unchanged { range: KeyRange::prefix(b"k"), rows: 2, since: Timestamp::from_bits(7) };
        let transaction = Transaction::new(vec![unchanged]);
        let holds = |rows: Vec<Row>| matches!(evaluate(&transaction, BTreeMap::new(), vec![rows]).0, Outcome::Done(_));
        assert!(holds(vec![row("k1", 3), row("k2", 7)]));
        assert!(!holds(vec![row("k1", 3)]), "one went");
        assert!(!holds(vec![row("k1", 3), row("k2", 8)]), "one was written");
        assert!(!holds(vec![row("k1", 3), row("k2", 7), row("k3", 8)]), "one came");
        assert!(!holds(vec![row("k1", 3), row("k3", 8)]), "one came and one went");
    }

    #[test]
    fn fields_are_amended_where_there_is_a_row() {
        let value = |number: i128| {
            let mut value = vec![fields::FORMAT];
            fields::push(&mut value, 7, &fields::integer_bytes(number));
            Value::new(value)
        };
        let by = fields::By::Adding { amount: 5, least: -10, most: 10 };
        let amend = |key: &str| Operation::Amend { key: key.into(), changes: vec![fields::Change { field: 7, by: by.clone() }] };
        let transaction = Transaction::new(vec![amend("a"), amend("a"), amend("b")]);
        let rows = |number| {
            let row = |key: &str, value| (Key::from(key), Row { key: key.into(), version: Timestamp::from_bits(5), value });
            BTreeMap::from([row("a", Some(value(number))), row("b", None)])
        };
        let (outcome, writes) = evaluate(&transaction, rows(-4), vec![]);
        assert_eq!((outcome, writes), (Outcome::Done(vec![Output::Nothing; 3]), vec![("a".into(), Some(value(6)))]));
        let (outcome, writes) = evaluate(&transaction, rows(1), vec![]);
        let beyond = Rejection::OutOfBounds { place: 2, key: "a".into(), field: 7 };
        assert_eq!((outcome, writes), (Outcome::Rejected(beyond), vec![]));
        assert!(matches!(run(vec![amend("a")], &[("a", Some("text"))]).0, Outcome::Rejected(Rejection::NotANumber { .. })));
    }

    #[test]
    fn what_a_transaction_shows_or_makes_of_rows_is_bounded() {
        let mut value = vec![fields::FORMAT];
        fields::push(&mut value, 7, &vec![0; 1 << 20]);
        let value = Value::new(value);
        let row = Row { key: "a".into(), version: Timestamp::from_bits(5), value: Some(value) };
        let fits = VALUES_BYTES_MAX / row.bytes();
        let read = Operation::Read { key: "a".into() };
        let amend = Operation::Amend { key: "a".into(), changes: Vec::new() };
        for operation in [read, amend] {
            let run = |times| evaluate(&Transaction::new(vec![operation.clone(); times]), [("a".into(), row.clone())].into(), vec![]);
            assert!(matches!(run(fits).0, Outcome::Done(_)));
            assert_eq!(run(fits + 1), (Outcome::Rejected(Rejection::TooMuchRead), vec![]));
        }
    }

    #[test]
    fn an_operation_that_fails_leaves_nothing_behind() {
        let write = Operation::Write { key: "a".into(), value: "x".into() };
        let cases = [
            (Operation::Insert { key: "b".into(), value: "y".into() }, "operation 2: key b is there already"),
            (Operation::Add { key: "b".into(), amount: 1 }, "operation 2: key b does not hold a number that this can be added to"),
            (Operation::Compare { key: "b".into(), expected: Expected::Value(None) }, "operation 2: key b is not as expected"),
        ];
        for (failing, why) in cases {
            let (outcome, writes) = run(vec![write.clone(), failing], &[("a", None), ("b", Some("text"))]);
            let Outcome::Rejected(rejection) = outcome else { panic!("{outcome:?}") };
            assert_eq!((rejection.to_string().as_str(), writes), (why, vec![]));
        }
    }

    #[test]
    fn a_row_that_is_not_there_counts_as_zero_and_sums_stay_in_bounds() {
        let add = |amount| vec![Operation::Add { key: "n".into(), amount }];
        assert_eq!(run(add(-2), &[("n", None)]).0, Outcome::Done(vec![Output::Number(-2)]));
        assert!(matches!(run(add(1), &[("n", Some("9223372036854775807"))]).0, Outcome::Rejected(_)));
    }
}
