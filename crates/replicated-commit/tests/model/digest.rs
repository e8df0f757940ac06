//! A number for all that a member holds: members with equal numbers are in equal states.

use std::fmt::{Debug, Result, Write};
use std::hash::{DefaultHasher, Hasher};

/// Reads a text while it is printed, but for the values of some fields.
struct Digest {
    unread: &'static [&'static str],
    hasher: DefaultHasher,
    /// How many brackets are open within a value that is left out; none outside of such a value.
    depth: Option<usize>,
}

impl Write for Digest {
    fn write_str(&mut self, piece: &str) -> Result {
        if let Some(depth) = &mut self.depth {
            let ends = piece.bytes().any(|byte| match byte {
                b'{' | b'[' | b'(' => {
                    *depth += 1;
                    false
                }
                b'}' | b']' | b')' if *depth > 0 => {
                    *depth -= 1;
                    false
                }
                b'}' | b']' | b')' => true,
                b',' => *depth == 0,
                _ => false,
            });
            if !ends {
                return Ok(());
            }
            self.depth = None;
        }
        self.hasher.write(piece.as_bytes());
        if self.unread.contains(&piece) {
            self.depth = Some(0);
        }
        Ok(())
    }
}

/// The digest of all that `value` prints, but for the values of fields that nothing which happens in a model reads: states that differ in them
/// alone are one.
pub fn digest(value: &impl Debug, unread: &'static [&'static str]) -> u64 {
    let mut digest = Digest { unread, hasher: DefaultHasher::new(), depth: None };
    write!(digest, "{value:?}").expect("a digest takes every text");
    digest.hasher.finish()
}
