//! Holds the layering: a crate uses only what stands above it in the table of ARCHITECTURE.md, the pure crates use nothing that could
//! reach the outside world, within a crate no files and no folders use each other, and no file and no function is long.

mod examples;
mod lengths;
mod source;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use tree::{Circle, Tree};

/// The crates from the top layer down. Each may use those before it.
const LAYERS: [&str; 28] = [
    "core",
    "store",
    "testkit",
    "commit",
    "replicated-commit",
    "catenae",
    "quad",
    "paxos-commit",
    "replicated-log",
    "forecast",
    "quota",
    "generic",
    "sqltestkit",
    "plan",
    "sim",
    "alarm",
    "security",
    "config",
    "api",
    "node",
    "resp",
    "sql",
    "server",
    "sqlsim",
    "display",
    "bench",
    "lab",
    "cli",
];
/// The commit protocols: none knows another, nor the store. Only who brings them together knows them: simulator, node, laboratory, command
/// line; and SQL, for what two of them let people administer.
const PROTOCOLS: [&str; 5] = ["replicated-commit", "catenae", "quad", "paxos-commit", "replicated-log"];
/// Who may use whom besides: nobody. Who may not, though the order would let them.
const FORBIDDEN: [(&str, &str, &str); 19] = [
    ("forecast", "store", "a model is bytes; who has files keeps them"),
    ("forecast", "commit", "a forecast knows of values per epoch, not of what they are spent on"),
    ("quota", "store", "sites ask for loads and persists; the driver has the store"),
    ("quota", "commit", "quotas need no transactions"),
    ("commit", "store", "protocols ask for loads and persists; the driver has the store"),
    ("plan", "store", "a plan is worked out from tables; who has files reads them"),
    ("plan", "commit", "a plan knows a protocol's rounds, not its messages"),
    ("plan", "forecast", "a plan is for the workload it is given"),
    ("plan", "quota", "quotas are placed with the sites"),
    ("node", "sim", "the two drivers know nothing of each other"),
    ("resp", "node", "the Redis protocol speaks to the trait of quota::gateway, whatever runs below"),
    ("resp", "sim", "the product needs no simulator to serve quotas"),
    ("sql", "resp", "one interface knows nothing of another"),
    ("sql", "node", "SQL speaks to the traits of commit::transaction, whatever runs below"),
    ("sql", "sim", "the product needs no simulator to run SQL"),
    ("bench", "sql", "workloads are clients: they reach the database over the wire"),
    ("bench", "node", "whose load comes over the wire needs nothing of the server"),
    ("bench", "sim", "a benchmark takes real time; what takes virtual time is the laboratory's"),
    ("lab", "sql", "papers are repeated on the protocols, below SQL"),
];
/// Crates that do no I/O, and all that they may use from outside.
const PURE: [(&str, &[&str]); 11] = [
    ("core", &["bytes", "csv", "postcard", "rand", "rand_chacha", "serde", "thiserror"]),
    ("commit", &["async-trait", "bytes", "serde", "thiserror"]),
    ("replicated-commit", &["bytes", "derive_more", "serde"]),
    ("catenae", &["async-trait", "bytes", "derive_more", "serde"]),
    ("quad", &["async-trait", "derive_more", "libm", "pathfinding", "serde", "thiserror"]),
    ("paxos-commit", &["bytes", "derive_more", "serde"]),
    ("replicated-log", &["bytes", "derive_more", "serde"]),
    ("quota", &["async-trait", "bytes", "serde", "thiserror"]),
    ("forecast", &["crc32fast", "csv", "libm", "nalgebra", "postcard", "serde", "thiserror"]),
    ("plan", &["serde", "strsim", "thiserror"]),
    ("api", &["serde", "serde_json", "utoipa"]),
];

fn crates() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The names under `[dependencies]` of a crate.
fn dependencies(name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(crates().join(name).join("Cargo.toml")).expect("every layer is a crate");
    let table: toml::Table = text.parse().expect("cargo reads it too");
    table.get("dependencies").and_then(|table| table.as_table()).map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

#[test]
fn every_crate_is_a_layer() {
    let found: BTreeSet<String> = fs::read_dir(crates())
        .expect("the workspace has crates")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("ASCII"))
        .collect();
    assert_eq!(found, LAYERS.iter().map(|layer| (*layer).to_owned()).collect());
}

#[test]
fn a_crate_uses_only_what_stands_above_it() {
    let order: BTreeMap<String, usize> = LAYERS.iter().enumerate().map(|(index, layer)| (format!("rhumb-{layer}"), index)).collect();
    for (index, layer) in LAYERS.iter().enumerate() {
        for used in dependencies(layer).iter().filter_map(|used| order.get(used)) {
            assert!(*used < index, "{layer} uses {}, which stands below it", LAYERS[*used]);
        }
    }
}

#[test]
fn a_crate_keeps_out_of_what_is_not_its_business() {
    for (user, used, why) in FORBIDDEN {
        assert!(!dependencies(user).contains(&format!("rhumb-{used}")), "{user} uses {used}, but {why}");
    }
}

#[test]
fn no_product_code_uses_what_is_for_tests() {
    for layer in LAYERS {
        for kit in ["testkit", "sqltestkit"] {
            assert!(!dependencies(layer).contains(&format!("rhumb-{kit}")), "{layer} uses {kit}, which belongs among its dev-dependencies");
        }
    }
}

#[test]
fn only_the_node_and_the_command_line_know_the_http_interface() {
    let users: Vec<&str> = LAYERS.into_iter().filter(|layer| dependencies(layer).contains("rhumb-api")).collect();
    assert_eq!(users, ["node", "cli"]);
}

#[test]
fn no_protocol_knows_another_nor_the_store() {
    for user in PROTOCOLS.into_iter().chain(["commit", "quota", "forecast", "plan", "store", "resp"]) {
        let used = dependencies(user);
        let unwanted = PROTOCOLS.into_iter().chain(if PROTOCOLS.contains(&user) { Some("store") } else { None });
        for protocol in unwanted {
            assert!(!used.contains(&format!("rhumb-{protocol}")), "{user} uses {protocol}");
        }
    }
}

#[test]
fn pure_crates_use_nothing_that_reaches_the_outside_world() {
    for (name, allowed) in PURE {
        for used in dependencies(name).iter().filter(|used| !used.starts_with("rhumb-")) {
            assert!(
                allowed.contains(&used.as_str()),
                "{name} uses {used}: is it free of clocks, entropy, I/O and threads? Then allow it here"
            );
        }
        assert!(crates().join(name).join("clippy.toml").exists(), "{name} has no lint against the outside world");
    }
}

#[test]
fn no_files_of_a_crate_use_each_other() {
    for name in LAYERS {
        if let Some(Circle { folder, siblings, because }) = Tree::read(&crates().join(name).join("src")).circles().into_iter().next() {
            panic!("in crates/{name}/src/{folder} these use each other: {}\n  {}", siblings.join(", "), because.join("\n  "));
        }
    }
}
