//! Examples in doc comments: they are marked as text, since `doctest = false` keeps any command from running them. Tests are files of their own.

use crate::lengths::sources;
use std::fs;

/// The lines that open a block of code which is not marked as text.
fn unmarked(text: &str) -> Vec<usize> {
    let (mut open, mut found) = (false, Vec::new());
    for (index, line) in text.lines().enumerate() {
        let comment = line.trim_start();
        let Some(said) = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!")) else { continue };
        if let Some(kind) = said.trim_start().strip_prefix("```") {
            if !open && kind.trim() != "text" {
                found.push(index + 1);
            }
            open = !open;
        }
    }
    found
}

#[test]
fn examples_that_nothing_runs_are_marked_as_text() {
    let crates = crate::crates();
    for path in sources(&crates) {
        let lines = unmarked(&fs::read_to_string(&path).expect("readable"));
        assert!(
            lines.is_empty(),
            "{} has code in doc comments at {lines:?} that no test runs: mark it as text, or make it a test",
            path.display()
        );
    }
}

#[test]
fn a_block_of_code_without_a_mark_is_found() {
    assert_eq!(unmarked("//! ```text\n//! a\n//! ```\n/// ```\n/// assert!(false);\n/// ```\nfn f() {}\n"), [4]);
}
