//! The files of one crate and which of them use one another.
//!
//! The files and folders of one folder are *siblings*. A sibling uses another if any file of it names something in any file of the other, be
//! it by a name that a folder passes on (`pub use`). A folder is one with the file that opens it, so what that says of its own files, and
//! they of it, counts for nothing.

use crate::source::{Path, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The product code of a crate.
pub struct Tree {
    /// By the path in the tree of modules; the root has the empty one.
    files: BTreeMap<Path, Source>,
}

/// Siblings that use one another, each by way of the others.
#[derive(Debug, PartialEq, Eq)]
pub struct Circle {
    /// Where they are; the root is empty.
    pub folder: String,
    pub siblings: Vec<String>,
    /// What makes it: `file → path`.
    pub because: Vec<String>,
}

/// Who uses whom in one folder, and by which paths.
type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

impl Tree {
    /// Reads the folder `src` of a crate.
    pub fn read(root: &std::path::Path) -> Tree {
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder of sources") {
                let path = entry.expect("readable").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let name = path.strip_prefix(root).expect("it lies there").to_string_lossy().into_owned();
                    files.push((name, fs::read_to_string(&path).expect("readable")));
                }
            }
        }
        Tree::of(files.iter().map(|(name, text)| (name.as_str(), text.as_str())))
    }

    /// A tree of these files: their paths in `src`, and their texts.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Tree {
        let mut files: BTreeMap<Path, Source> = files.into_iter().map(|(name, text)| (module(name), Source::read(text))).collect();
        let in_tests = |(path, source): (&Path, &Source)| {
            source.test_modules.iter().map(|name| [path.as_slice(), std::slice::from_ref(name)].concat()).collect::<Vec<_>>()
        };
        let tests: Vec<Path> = files.iter().flat_map(in_tests).collect();
        files.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
        Tree { files }
    }

    /// The circles of siblings, folder by folder.
    pub fn circles(&self) -> Vec<Circle> {
        self.uses().iter().flat_map(|(folder, uses)| circles(&folder.join("/"), uses)).collect()
    }

    /// By folder, which of its siblings use which.
    fn uses(&self) -> BTreeMap<Path, Uses> {
        let mut folders: BTreeMap<Path, Uses> = BTreeMap::new();
        for (file, source) in &self.files {
            for path in source.imports.iter().map(|import| &import.path).chain(&source.written) {
                let Some(used) = self.absolute(file, path) else { continue };
                if used.last().is_some_and(|name| name == "Site") && !source.uses_more_than_the_type("Site") {
                    continue;
                }
                let used = self.file_of(&used, 0);
                let common = file.iter().zip(&used).take_while(|(one, other)| one == other).count();
                if let (Some(user), Some(used)) = (file.get(common), used.get(common)) {
                    let uses = folders.entry(file[..common].to_vec()).or_default();
                    let because = format!("{} → {}", file.join("/"), path.join("::"));
                    uses.entry(user.clone()).or_default().entry(used.clone()).or_default().insert(because);
                }
            }
        }
        folders
    }

    /// A path of `file` from the root of the crate; `None` if it leads to another crate.
    fn absolute(&self, file: &Path, path: &Path) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([file.as_slice(), rest].concat()),
            "super" => {
                let ups = path.iter().take_while(|segment| *segment == "super").count();
                Some([&file[..file.len().checked_sub(ups)?], &path[ups..]].concat())
            }
            child => {
                let is_child = self.files.contains_key(&[file.as_slice(), &[child.to_owned()]].concat());
                is_child.then(|| [file.as_slice(), path.as_slice()].concat())
            }
        }
    }

    /// The file in which stands what a path from the root names. What a file passes on by an import is looked for there.
    fn file_of(&self, path: &Path, hops: usize) -> Path {
        const HOPS_MAX: usize = 8;
        let depth = (0..=path.len()).rev().find(|depth| self.files.contains_key(&path[..*depth])).unwrap_or(0);
        let (file, rest) = path.split_at(depth);
        let file = file.to_vec();
        let passed_on = rest.first().and_then(|name| {
            let import = self.files.get(&file)?.imports.iter().find(|import| import.name == *name)?;
            self.absolute(&file, &import.path)
        });
        match passed_on {
            Some(origin) if hops < HOPS_MAX => self.file_of(&[origin.as_slice(), &rest[1..]].concat(), hops + 1),
            _ => file,
        }
    }
}

/// A module is the file of its name, or `mod.rs` in the folder of its name.
fn module(file: &str) -> Path {
    let mut path: Path = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|name| name == "mod") || path == ["lib"] || path == ["main"] {
        path.pop();
    }
    path
}

/// The siblings that `start` uses, and those that they use.
fn reached<'a>(uses: &'a Uses, start: &'a String) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut next = vec![start];
    while let Some(sibling) = next.pop() {
        next.extend(uses.get(sibling).into_iter().flat_map(BTreeMap::keys).filter(|used| seen.insert(*used)));
    }
    seen
}

fn circles(folder: &str, uses: &Uses) -> Vec<Circle> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = uses.keys().map(|sibling| (sibling, reached(uses, sibling))).collect();
    let mut found: Vec<Circle> = Vec::new();
    for (sibling, others) in &reached {
        let together = |other: &&&String| reached.get(**other).is_some_and(|back| back.contains(sibling));
        let siblings: Vec<String> = others.iter().filter(together).map(|other| (*other).clone()).collect();
        if siblings.len() < 2 || found.iter().any(|circle| circle.siblings == siblings) {
            continue;
        }
        let within = |user: &String| uses[user].iter().filter(|(used, _)| siblings.contains(used)).flat_map(|(_, because)| because);
        let because = siblings.iter().flat_map(within).cloned().collect();
        found.push(Circle { folder: folder.to_owned(), siblings: siblings.clone(), because });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is in a circle, and why, in a tree of these files.
    fn found(files: &[(&str, &str)]) -> Vec<(Vec<String>, Vec<String>)> {
        Tree::of(files.iter().copied()).circles().into_iter().map(|circle| (circle.siblings, circle.because)).collect()
    }

    #[test]
    fn files_that_use_each_other_are_found_with_what_they_import() {
        let circle = [
            ("lib.rs", "mod plan; mod session; mod types;"),
            ("plan.rs", "use crate::{session::{Active, Facts as Known}, types::Datum};"),
            ("session.rs", "fn run(plan: &super::plan::Plan) {}"),
            ("types.rs", "pub enum Datum {}"),
        ];
        let because = ["plan → crate::session::Active", "plan → crate::session::Facts", "session → super::plan::Plan"];
        assert_eq!(found(&circle), [(["plan", "session"].map(str::to_owned).to_vec(), because.map(str::to_owned).to_vec())]);
        assert_eq!(found(&circle[..2]), [], "one direction is none");
    }

    #[test]
    fn a_name_that_a_folder_passes_on_is_used_where_it_stands() {
        let passed_on = [
            ("lib.rs", "mod a; mod b; pub use b::Thing;"),
            ("a.rs", "use crate::Thing; pub struct Other;"),
            ("b/mod.rs", "mod deep; pub use deep::Thing;"),
            ("b/deep.rs", "use crate::a::Other; pub struct Thing(Other);"),
        ];
        assert_eq!(found(&passed_on).len(), 1, "by way of the root");
        let within = [
            ("lib.rs", "mod b;"),
            ("b/mod.rs", "mod one; mod two; pub use one::One; pub use two::Two;"),
            ("b/one.rs", "use super::Two; pub struct One;"),
            ("b/two.rs", "use super::One; pub struct Two;"),
        ];
        let circles = Tree::of(within).circles();
        assert_eq!(circles.iter().map(|circle| circle.folder.as_str()).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn three_files_in_a_ring_are_one_circle() {
        let ring = [
            ("lib.rs", ""),
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::c::X;"),
            ("c.rs", "pub(crate) use super::a::Y;"),
            ("d.rs", "use crate::a;"),
        ];
        assert_eq!(found(&ring).into_iter().map(|(siblings, _)| siblings).collect::<Vec<_>>(), [["a", "b", "c"]]);
    }

    #[test]
    fn a_folder_and_its_own_files_are_no_circle() {
        let folder =
            [("lib.rs", "mod a;"), ("a.rs", "mod b; use b::B; pub struct A(B);"), ("a/b.rs", "use super::A; pub struct B(Box<A>);")];
        assert_eq!(found(&folder), []);
    }

    #[test]
    fn tests_comments_and_texts_do_not_count() {
        let product = [
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod both;"),
            (
                "a.rs",
                "//! Unlike `crate::b`.\n/* use crate::b; */ const TEXT: &str = \"use crate::b; {\"; const BRACE: char = '{'; fn f<'a>(_: &'a str) {}\n#[cfg(test)]\nuse crate::{b::B, c};\n#[cfg(test)] mod tests { use crate::b::B; }",
            ),
            ("b.rs", "use crate::a::A; const RAW: &str = r#\"\"crate::a\"#;"),
            ("both.rs", "use crate::{a, b};"),
        ];
        assert_eq!(found(&product), []);
        let mut after = product;
        after[1].1 = "#[cfg(test)] mod tests { fn f() { let _ = [1; 2]; } } use crate::b::B;";
        assert_eq!(found(&after).len(), 1, "what follows a test does");
    }

    #[test]
    fn a_site_that_is_only_the_type_of_effects_is_not_used() {
        let site = |context| {
            [("lib.rs", "mod context; mod site;"), ("site.rs", "use crate::context::Context; pub struct Site;"), ("context.rs", context)]
        };
        assert_eq!(found(&site("use crate::site::Site; pub struct Context(Effects<Site>);")), []);
        assert_eq!(found(&site("use crate::site::Site; pub struct Context(Effects<Site>, Box<Site>, Site);")).len(), 1);
    }
}
