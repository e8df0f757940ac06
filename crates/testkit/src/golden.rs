//! Golden files: what a test wrote down must be what is recorded.

use std::path::Path;

/// Panics unless `text` is what `tests/golden/<name>.txt` of the package under test records. With `UPDATE_GOLDEN` set, records it instead.
pub fn check(name: &str, text: &str) {
    // Cargo runs the tests of a package in its folder.
    let path = Path::new("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the golden file can be written");
        return;
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = recorded.lines().zip(text.lines()).position(|(recorded, now)| recorded != now);
    let line = differs.unwrap_or(recorded.lines().count().min(text.lines().count()));
    assert!(
        recorded == text,
        "{} differs from line {} on:\n  recorded: {}\n  now:      {}\nIf the change is meant, record it: UPDATE_GOLDEN=1",
        path.display(),
        line + 1,
        recorded.lines().nth(line).unwrap_or("(nothing)"),
        text.lines().nth(line).unwrap_or("(nothing)"),
    );
}
