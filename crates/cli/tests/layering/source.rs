//! The product code of one file: the paths that it imports or writes out. It reads tokens, not types; comments, literals and what stands
//! behind `#[cfg(test)]` are left out.

/// A path such as `crate::catalog::Entry`, a name for each segment, as it is written.
pub type Path = Vec<String>;

/// What one file says of others.
#[derive(Debug, Default)]
pub struct Source {
    /// The paths of its `use` declarations, groups taken apart, each with the name that it gets here.
    pub imports: Vec<Import>,
    /// The paths that begin with `crate` or `super` and stand elsewhere.
    pub written: Vec<Path>,
    /// The names of the modules in files of their own that are for tests.
    pub test_modules: Vec<String>,
    tokens: Vec<String>,
}

/// A path of a `use` declaration.
#[derive(Debug)]
pub struct Import {
    pub path: Path,
    pub name: String,
}

impl Source {
    /// Reads the text of a file.
    pub fn read(text: &str) -> Source {
        let mut source = Source::default();
        source.tokens = source.without_tests(tokens(text));
        let mut at = 0;
        let mut rest = Vec::new();
        while at < source.tokens.len() {
            if is_import(&source.tokens[at..]) {
                let end = find(&source.tokens, at, ";");
                let tree = source.tokens[at + 1..end].to_vec();
                source.import(&[], &tree);
                at = end + 1;
            } else {
                rest.push(source.tokens[at].clone());
                at += 1;
            }
        }
        source.tokens = rest;
        for (at, token) in source.tokens.iter().enumerate() {
            if (token == "crate" || token == "super") && (at == 0 || source.tokens[at - 1] != "::") {
                let path: Path = path_at(&source.tokens[at..]);
                if path.len() > 1 {
                    source.written.push(path);
                }
            }
        }
        source
    }

    /// True if the file names `name` outside of its imports other than as the only parameter of a type, as in `Effects<Site>`.
    pub fn uses_more_than_the_type(&self, name: &str) -> bool {
        let is_parameter = |at: usize| at > 0 && self.tokens[at - 1] == "<" && self.tokens.get(at + 1).is_some_and(|next| next == ">");
        self.tokens.iter().enumerate().any(|(at, token)| token == name && !is_parameter(at))
    }

    fn without_tests(&mut self, tokens: Vec<String>) -> Vec<String> {
        const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
        let mut kept = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            if !tokens[at..].iter().take(TEST.len()).eq(TEST.iter()) {
                kept.push(tokens[at].clone());
                at += 1;
                continue;
            }
            let item = at + TEST.len();
            let end = end_of_item(&tokens, item);
            if let Some(place) = tokens[item..end].iter().position(|token| token == "mod")
                && tokens.get(item + place + 2).is_some_and(|token| token == ";")
            {
                self.test_modules.push(tokens[item + place + 1].clone());
            }
            at = end;
        }
        kept
    }

    fn import(&mut self, before: &[String], tree: &[String]) {
        let mut path = before.to_vec();
        let mut rest = tree;
        while let [segment, following @ ..] = rest {
            match segment.as_str() {
                "::" => {}
                "{" => {
                    parts(&following[..following.len() - 1]).for_each(|part| self.import(&path, part));
                    return;
                }
                "as" => {
                    self.imports.push(Import { path, name: following[0].clone() });
                    return;
                }
                "self" if !path.is_empty() => {}
                segment => path.push(segment.to_owned()),
            }
            rest = following;
        }
        if let Some(name) = path.last().cloned() {
            self.imports.push(Import { path, name });
        }
    }
}

/// True if a `use` declaration begins here. What a type captures is written `use<…>`.
fn is_import(tokens: &[String]) -> bool {
    matches!(tokens, [word, next, ..] if word == "use" && next != "<")
}

/// Where an item that begins at `start` has ended: after its semicolon, or after its braces.
fn end_of_item(tokens: &[String], start: usize) -> usize {
    let mut depth = 0_usize;
    let is_import = (start..tokens.len()).take_while(|at| tokens[*at] != ";" && tokens[*at] != "{").any(|at| is_import(&tokens[at..]));
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            // The last field of a struct ends with what it stands in.
            ")" | "]" | "}" if depth == 0 => return at,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 && !is_import {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The parts between the commas that no braces enclose.
fn parts(tokens: &[String]) -> impl Iterator<Item = &[String]> {
    let mut depth = 0_usize;
    tokens
        .split(move |token| {
            match token.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            depth == 0 && token == ","
        })
        .filter(|part| !part.is_empty())
}

fn find(tokens: &[String], start: usize, wanted: &str) -> usize {
    tokens[start..].iter().position(|token| token == wanted).map_or(tokens.len(), |place| start + place)
}

/// The path that stands at the beginning.
fn path_at(tokens: &[String]) -> Path {
    let names = tokens.iter().step_by(2);
    let joined = tokens.iter().skip(1).step_by(2).take_while(|token| *token == "::").count();
    names.take(joined + 1).take_while(|name| name.starts_with(is_word)).cloned().collect()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The words and signs of a text: `::` is one sign, any other a character. Comments and literals are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = literal_or_comment(rest);
        if length > 0 {
            rest = &rest[length..];
        } else if is_word(first) {
            let end = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
            tokens.push(rest[..end].to_owned());
            rest = &rest[end..];
        } else {
            let end = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            if !first.is_whitespace() {
                tokens.push(rest[..end].to_owned());
            }
            rest = &rest[end..];
        }
    }
    tokens
}

/// The bytes of the comment, the string or the character that the text begins with; 0 if it begins with none.
fn literal_or_comment(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if let Some(comment) = text.strip_prefix("/*") {
        return comment.find("*/").map_or(text.len(), |end| end + 4);
    }
    let unprefixed = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - unprefixed.len();
    if let Some(raw) = unprefixed.strip_prefix('r').filter(|_| prefix < 2) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if let Some(body) = raw[hashes..].strip_prefix('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            return body.find(&close).map_or(text.len(), |end| text.len() - body.len() + end + close.len());
        }
    }
    match unprefixed.chars().next() {
        Some('"') if prefix < 2 => prefix + quoted(unprefixed, '"'),
        // A lifetime has no second quote after one character.
        Some('\'') if prefix < 2 && (unprefixed[1..].starts_with('\\') || unprefixed.chars().nth(2) == Some('\'')) => {
            prefix + quoted(unprefixed, '\'')
        }
        _ => 0,
    }
}

/// The bytes up to the quote that closes the one at the beginning.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + character.len_utf8(),
            _ => {}
        }
    }
    text.len()
}
