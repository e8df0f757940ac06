//! Values made of fields, and changes of single fields.
//!
//! ```text
//!   format (1 byte) { id · length · bytes }*      ids ascending; ids and lengths as LEB128
//! ```
//!
//! The bytes of a field may be a list: of each item its length and one, then its bytes; 0 for an item without a value.
//!
//! Who writes a value says what its fields mean; to everybody else they are numbered bytes. A field that is not there has no value.
//! The one thing that is known of bytes here is how an integer is written in them: two's complement, big-endian, in as few
//! bytes as hold it. So a protocol can add to a number in a row without knowing of columns. Reading is total.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The first byte of every such value that this version writes.
pub const FORMAT: u8 = 1;
/// Bytes of an integer, at the most.
const INTEGER_BYTES_MAX: usize = 16;
/// Bytes of an id or a length, at the most.
const NUMBER_BYTES_MAX: usize = 5;

/// Bytes that are no value made of fields; the text says why.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// A change of one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Change {
    /// Which field.
    pub field: u32,
    /// How it changes.
    pub by: By,
}

/// How a field changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum By {
    /// It becomes these bytes; `None`: it has no value.
    Setting(Option<Bytes>),
    /// It is an integer, and `amount` is added to it. Without a value it stays so. What comes out must lie within `least` and `most`.
    Adding {
        /// What is added; may be negative.
        amount: i128,
        /// The least that may come out.
        least: i128,
        /// The most that may come out.
        most: i128,
    },
}

/// Why a change cannot be made.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Impossible {
    /// The value is not made of fields, or a field that is added to is no integer.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A sum out of its bounds.
    #[error("field {field} would leave its bounds")]
    OutOfBounds {
        /// Of which field.
        field: u32,
    },
}

/// The fields of a value, in the order of their ids.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    above: Option<u32>,
}

impl<'a> Fields<'a> {
    /// The fields of `value`.
    ///
    /// # Errors
    /// It was written in another format.
    pub fn of(value: &'a [u8]) -> Result<Fields<'a>, Malformed> {
        let mut rest = value;
        check_format(&mut rest)?;
        Ok(Fields { rest, above: None })
    }

    fn take_next(&mut self) -> Result<(u32, &'a [u8]), Malformed> {
        let id = u32::try_from(take_number(&mut self.rest)?).map_err(|_| Malformed("a column id is too large"))?;
        if self.above.is_some_and(|above| id <= above) {
            return Err(Malformed("column ids do not ascend"));
        }
        self.above = Some(id);
        let length = usize::try_from(take_number(&mut self.rest)?).map_err(|_| Malformed("a length is too large"))?;
        Ok((id, take(&mut self.rest, length)?))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let next = self.take_next();
        if next.is_err() {
            self.rest = &[];
        }
        Some(next)
    }
}

/// Takes the format byte off the front of a value.
///
/// # Errors
/// It was written in another format.
pub fn check_format(input: &mut &[u8]) -> Result<(), Malformed> {
    match take(input, 1)?[0] {
        FORMAT => Ok(()),
        _ => Err(Malformed("it was written in a format that this version does not know")),
    }
}

/// Appends a field; ids ascend.
pub fn push(value: &mut Vec<u8>, id: u32, bytes: &[u8]) {
    push_number(value, u64::from(id));
    push_number(value, bytes.len() as u64);
    value.extend_from_slice(bytes);
}

/// Appends an item to a list within a field: its bytes, or that it has no value.
pub fn push_item(list: &mut Vec<u8>, item: Option<&[u8]>) {
    match item {
        None => push_number(list, 0),
        Some(bytes) => {
            push_number(list, bytes.len() as u64 + 1);
            list.extend_from_slice(bytes);
        }
    }
}

/// The items of a list.
///
/// # Errors
/// The bytes end within an item.
pub fn items(mut list: &[u8]) -> Result<Vec<Option<&[u8]>>, Malformed> {
    let mut items = Vec::new();
    while !list.is_empty() {
        let length = usize::try_from(take_number(&mut list)?).map_err(|_| Malformed("a length is too large"))?;
        items.push(length.checked_sub(1).map(|length| take(&mut list, length)).transpose()?);
    }
    Ok(items)
}

/// The bytes of an integer.
pub fn integer_bytes(integer: i128) -> Vec<u8> {
    let bytes = integer.to_be_bytes();
    // Leading bytes that only repeat the sign of the byte after them.
    let redundant = bytes.windows(2).take_while(|pair| (pair[0] == 0 && pair[1] < 0x80) || (pair[0] == u8::MAX && pair[1] >= 0x80));
    bytes[redundant.count()..].to_vec()
}

/// The integer in `bytes`; `None` if there are none or too many.
pub fn integer_in(bytes: &[u8]) -> Option<i128> {
    let (Some(first), 1..=INTEGER_BYTES_MAX) = (bytes.first(), bytes.len()) else { return None };
    let sign = if *first >= 0x80 { -1 } else { 0 };
    Some(bytes.iter().fold(sign, |sum: i128, byte| sum << 8 | i128::from(*byte)))
}

/// `value` with its fields changed, each by one change at the most.
///
/// # Errors
/// The first change that cannot be made.
pub fn changed(value: &[u8], changes: &[Change]) -> Result<Vec<u8>, Impossible> {
    let mut fields = Fields::of(value)?.collect::<Result<Vec<_>, _>>()?.into_iter().peekable();
    let mut changes: Vec<&Change> = changes.iter().collect();
    changes.sort_unstable_by_key(|change| change.field);
    let mut made = Vec::with_capacity(value.len() + 8);
    made.push(FORMAT);
    for change in changes {
        while let Some((id, bytes)) = fields.next_if(|(id, _)| *id < change.field) {
            push(&mut made, id, bytes);
        }
        let before = fields.next_if(|(id, _)| *id == change.field).map(|(_, bytes)| bytes);
        if let Some(bytes) = change.by.applied(change.field, before)? {
            push(&mut made, change.field, &bytes);
        }
    }
    fields.for_each(|(id, bytes)| push(&mut made, id, bytes));
    Ok(made)
}

impl By {
    /// What the field is afterwards.
    fn applied(&self, field: u32, before: Option<&[u8]>) -> Result<Option<Vec<u8>>, Impossible> {
        match (self, before) {
            (By::Setting(bytes), _) => Ok(bytes.as_ref().map(|bytes| bytes.to_vec())),
            (By::Adding { .. }, None) => Ok(None),
            (By::Adding { amount, least, most }, Some(bytes)) => {
                let number = integer_in(bytes).ok_or(Malformed("a value has the wrong length for its type"))?;
                let sum = number.checked_add(*amount).filter(|sum| least <= sum && sum <= most);
                sum.map(|sum| Some(integer_bytes(sum))).ok_or(Impossible::OutOfBounds { field })
            }
        }
    }
}

/// Takes `count` bytes off the front of `input`.
fn take<'a>(input: &mut &'a [u8], count: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = input.split_at_checked(count).ok_or(Malformed("the bytes end too early"))?;
    *input = rest;
    Ok(taken)
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(input: &mut &[u8]) -> Result<u64, Malformed> {
    let mut number = 0;
    for shift in (0..).step_by(7).take(NUMBER_BYTES_MAX) {
        let byte = take(input, 1)?[0];
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Malformed("a number has more than 5 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut value = vec![FORMAT];
        fields.iter().for_each(|(id, bytes)| push(&mut value, *id, bytes));
        value
    }

    fn adding(field: u32, amount: i128) -> Change {
        Change { field, by: By::Adding { amount, least: -128, most: 300 } }
    }

    #[test]
    fn integers_take_as_few_bytes_as_hold_them_and_come_back() {
        for (integer, length) in [(0, 1), (127, 1), (128, 2), (-128, 1), (-129, 2), (i128::MAX, 16), (i128::MIN, 16)] {
            let bytes = integer_bytes(integer);
            assert_eq!((bytes.len(), integer_in(&bytes)), (length, Some(integer)));
        }
        assert_eq!((integer_in(&[]), integer_in(&[0; 17]), integer_in(&[0, 0, 5])), (None, None, Some(5)));
    }

    #[test]
    fn changes_meet_their_fields_and_leave_the_others_alone() {
        let before = value(&[(1, b"one"), (300, &[100]), (301, b"last")]);
        let set = |field, bytes: Option<&'static [u8]>| Change { field, by: By::Setting(bytes.map(Bytes::from_static)) };
        let changes = [adding(300, 100), set(2, Some(b"two")), set(301, None), set(500, Some(b"")), set(400, None)];
        let after = changed(&before, &changes).expect("all of them can be made");
        assert_eq!(after, value(&[(1, b"one"), (2, b"two"), (300, &[0, 200]), (500, b"")]));
        assert_eq!(changed(&before, &[]), Ok(before));
    }

    #[test]
    fn what_has_no_value_has_none_after_an_addition() {
        let before = value(&[(1, b"one")]);
        assert_eq!(changed(&before, &[adding(7, 1)]), Ok(before));
    }

    #[test]
    fn sums_stay_within_their_bounds() {
        let before = value(&[(1, &[100])]);
        let out = Err(Impossible::OutOfBounds { field: 1 });
        assert_eq!(changed(&before, &[adding(1, 200)]), Ok(value(&[(1, &[1, 44])])));
        assert_eq!(changed(&before, &[adding(1, 201)]), out);
        assert_eq!(changed(&before, &[adding(1, -229)]), out);
        assert_eq!(changed(&before, &[Change { field: 1, by: By::Adding { amount: i128::MAX, least: i128::MIN, most: i128::MAX } }]), out);
    }

    #[test]
    fn every_truncation_and_every_disorder_is_refused() {
        let whole = value(&[(1, b"one"), (300, &[100])]);
        let fields = |bytes: &[u8]| Fields::of(bytes).and_then(|fields| fields.collect::<Result<Vec<_>, _>>().map(|fields| fields.len()));
        let lengths: Vec<usize> = (0..=whole.len()).filter(|length| fields(&whole[..*length]).is_ok()).collect();
        // No field, the first one, both.
        assert_eq!(lengths, [1, 6, whole.len()]);
        assert!(
            fields(&value(&[(2, b""), (2, b"")])).is_err()
                && fields(&[2]).is_err()
                && fields(&[FORMAT, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]).is_err()
        );
        assert!(changed(&value(&[(1, b"this is no integer, it is a text")]), &[adding(1, 1)]).is_err());
    }
}
