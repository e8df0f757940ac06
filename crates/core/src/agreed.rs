//! What actors record as agreed on, for drivers that compare it.

/// Something that everybody agrees on: whoever records a value under the same topic and key must record the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// What kind of thing, as `attempt`.
    pub topic: &'static str,
    /// Which.
    pub key: String,
    /// What it is, encoded.
    pub value: Vec<u8>,
}
