//! Patterns of `SIMILAR TO` as regular expressions, and those of `to_char` as the query engine has them.

use crate::error::{SqlError, SqlResult, SqlState};

/// The regular expression of a pattern of `SIMILAR TO`. Error 22025.
pub fn similar(pattern: &str, escape: Option<char>) -> SqlResult<String> {
    let mut regex = String::from("^(?s:");
    let mut characters = pattern.chars();
    let mut in_brackets = false;
    while let Some(character) = characters.next() {
        match character {
            character if Some(character) == escape => {
                let escaped = characters
                    .next()
                    .ok_or_else(|| SqlError::new(SqlState::InvalidEscapeSequence, "the pattern ends with its escape character"))?;
                if !escaped.is_alphanumeric() {
                    regex.push('\\');
                }
                regex.push(escaped);
            }
            ']' if in_brackets => {
                in_brackets = false;
                regex.push(']');
            }
            '[' if !in_brackets => {
                in_brackets = true;
                regex.push('[');
            }
            '\\' | '[' => regex.extend(['\\', character]),
            character if in_brackets => regex.push(character),
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '(' => regex.push_str("(?:"),
            '.' | '^' | '$' => regex.extend(['\\', character]),
            character => regex.push(character),
        }
    }
    regex.push_str(")$");
    Ok(regex)
}

/// What `to_char` of a time prints for a part of its template. Those that begin with others come before them.
const PARTS: [(&str, &str); 27] = [
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("IYYY", "%G"),
    ("IW", "%V"),
    ("FMMonth", "%B"),
    ("FMDay", "%A"),
    ("FMDD", "%-d"),
    ("FMMM", "%-m"),
    ("FMHH24", "%-H"),
    ("FMHH12", "%-I"),
    ("FMHH", "%-I"),
    ("Mon", "%b"),
    ("MM", "%m"),
    ("DDD", "%j"),
    ("DD", "%d"),
    ("Dy", "%a"),
    ("ID", "%u"),
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("HH", "%I"),
    ("MI", "%M"),
    ("SS", "%S"),
    ("MS", "%3f"),
    ("US", "%6f"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("am", "%P"),
];

/// The query engine's template of one of PostgreSQL's for times. Error 0A000 for parts that it does not have.
pub fn of_time(template: &str) -> SqlResult<String> {
    let mut made = String::new();
    let mut rest = template;
    while let Some(character) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            made.push_str(&text.replace('%', "%%"));
            rest = after;
        } else if let Some((part, after)) = PARTS.iter().find_map(|(part, made)| Some((made, rest.strip_prefix(part)?))) {
            made.push_str(part);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("pm") {
            made.push_str("%P");
            rest = after;
        } else if character.is_ascii_alphabetic() {
            let known: Vec<&str> = PARTS.iter().map(|(part, _)| *part).collect();
            return Err(SqlError::unsupported(format!("to_char does not print \"{rest}\""))
                .with_hint(format!("It prints {}, and text within double quotes.", known.join(", "))));
        } else {
            made.push_str(if character == '%' { "%%" } else { &rest[..character.len_utf8()] });
            rest = &rest[character.len_utf8()..];
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_similar_to_match_all_of_a_text() {
        for (pattern, regex) in
            [("a(b|x)c", "^(?s:a(?:b|x)c)$"), ("%.c_", r"^(?s:.*\.c.)$"), ("[a-c%]+", "^(?s:[a-c%]+)$"), (r"100\%", r"^(?s:100\%)$")]
        {
            assert_eq!(similar(pattern, Some('\\')).expect("a pattern"), regex);
        }
        assert_eq!(similar("a#_", Some('#')).expect("a pattern"), r"^(?s:a\_)$");
        assert_eq!(similar("a#", Some('#')).expect_err("cut off").state(), SqlState::InvalidEscapeSequence);
    }

    #[test]
    fn templates_of_times_are_the_engines() {
        assert_eq!(of_time("YYYY-MM-DD HH24:MI:SS.US").expect("a template"), "%Y-%m-%d %H:%M:%S.%6f");
        assert_eq!(of_time("Dy, DD Mon YYYY \"at\" HH12 am %").expect("a template"), "%a, %d %b %Y at %I %P %%");
        assert_eq!(of_time("YYYY-Q").expect_err("quarters").state(), SqlState::FeatureNotSupported);
    }
}
