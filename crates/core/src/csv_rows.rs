//! The rows of a CSV text with their numbers as an editor shows them: a mistake is found where it is said to be.
//!
//! Row by row, since a reader of whole files does not count the lines that it passes over. Cells with line breaks have no
//! place in the tables read this way.

/// The rows of `text` with their numbers, from 1, and their cells without blanks around them. Empty lines and lines that
/// begin with `#` are passed over.
pub fn csv_rows(text: &str) -> impl Iterator<Item = (usize, Vec<String>)> + '_ {
    let rows = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    rows.map(|(row, line)| (row, cells(line)))
}

fn cells(line: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(line.as_bytes());
    // There is none if the line holds nothing but a byte order mark.
    let record = reader.records().next().map(|record| record.expect("one line of text is one record"));
    record.iter().flatten().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_an_editor_does() {
        let rows: Vec<(usize, Vec<String>)> = csv_rows("# one\na, b\n\n  \n\"c,d\",\n\u{feff}\n").collect();
        let row = |number, cells: &[&str]| (number, cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<String>>());
        assert_eq!(rows, [row(2, &["a", "b"]), row(5, &["c,d", ""]), row(6, &[])]);
    }
}
