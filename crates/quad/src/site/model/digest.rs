//! A number for all that a value prints: values with equal numbers are equal.

use std::fmt::{Debug, Result, Write};
use std::hash::{DefaultHasher, Hasher};

#[derive(Default)]
struct Digest(DefaultHasher);

impl Write for Digest {
    fn write_str(&mut self, piece: &str) -> Result {
        self.0.write(piece.as_bytes());
        Ok(())
    }
}

pub(super) fn digest(value: &impl Debug) -> u64 {
    let mut digest = Digest::default();
    write!(digest, "{value:?}").expect("a digest takes every text");
    digest.0.finish()
}
