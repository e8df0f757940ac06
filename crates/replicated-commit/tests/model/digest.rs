//! A number for all that a member holds: members with equal numbers are in equal states.

use std::fmt::{Debug, Result, Write};
use std::hash::{DefaultHasher, Hasher};

/// Fields that nothing which happens in the model reads, so that states which differ in them alone are one. `asked` is for the ticks of a region,
/// which has none. A `tally` holds a region's own vote, which stands beside it, and the votes by which an attempt was decided, which nobody counts
/// again. The `last` token that was given need only differ from all others, and so does the `last` timestamp of a clock that issues none any more.
const UNREAD: [&str; 3] = ["asked", "tally", "last"];

/// Reads a text while it is printed, but for the values of those fields.
struct Digest {
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
        if UNREAD.contains(&piece) {
            self.depth = Some(0);
        }
        Ok(())
    }
}

/// The digest of all that `value` prints.
pub fn digest(value: &impl Debug) -> u64 {
    let mut digest = Digest { hasher: DefaultHasher::new(), depth: None };
    write!(digest, "{value:?}").expect("a digest takes every text");
    digest.hasher.finish()
}
