//! How long files and functions are: what does not fit is several ideas, and wants names for them.

use std::fs;
use std::path::{Path, PathBuf};

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 80;

/// All files of Rust below a folder.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The functions of a file as `rustfmt` lays them out, and how many lines each has with its signature.
fn functions<'a>(text: &'a str) -> Vec<(&'a str, usize)> {
    let lines: Vec<&'a str> = text.lines().collect();
    let function = |(start, line): (usize, &&'a str)| {
        let declared = line.trim_start();
        let words: Vec<&str> = declared.split(' ').collect();
        let at = words.iter().position(|word| *word == "fn")?;
        let modifier = |word: &&str| word.starts_with("pub") || ["const", "async", "in"].contains(word) || word.ends_with(')');
        if !words[..at].iter().all(modifier) || declared.ends_with(['}', ';']) {
            return None;
        }
        let indent = &line[..line.len() - declared.len()];
        let (end, declares) = (format!("{indent}}}"), format!("{indent})"));
        let ends = |line: &&str| **line == end || line.starts_with(&declares) && line.ends_with(';');
        let length = lines[start..].iter().position(ends)? + 1;
        if lines[start + length - 1] != end {
            return None;
        }
        let name = words.get(at + 1)?.split(['(', '<']).next()?;
        Some((name, length))
    };
    lines.iter().enumerate().filter_map(function).collect()
}

#[test]
fn no_file_and_no_function_is_long() {
    let crates = crate::crates();
    for path in sources(&crates) {
        let text = fs::read_to_string(&path).expect("readable");
        let shown = path.strip_prefix(&crates).expect("it lies there").display();
        let lines = text.lines().count();
        assert!(lines <= FILE_LINES_MAX, "crates/{shown} has {lines} lines: divide it, {FILE_LINES_MAX} are the most");
        for (name, lines) in functions(&text) {
            assert!(
                lines <= FUNCTION_LINES_MAX,
                "{name} in crates/{shown} has {lines} lines: divide it, {FUNCTION_LINES_MAX} are the most"
            );
        }
    }
}

#[test]
fn the_lines_of_functions_are_counted() {
    let text = "\
impl A {
    pub(crate) async fn long<T>(
        &self,
    ) -> T {
        fn within() {}
        if true {
        }
    }

    fn short(&self) {
    }
}

trait B {
    fn declared(&self);
    fn declared_at_length(
        &self,
    ) -> u8;
    fn provided(&self) {
    }
}
";
    assert_eq!(functions(text), [("long", 7), ("short", 2), ("provided", 2)]);
}
