//! The file of a cluster: each site of it is what its own file would say, and mistakes are named by their keys here.

use rhumb_config::{Cluster, ConfigError, Wan};
use rhumb_core::{RegionId, SiteId, Span};
use std::path::Path;

const WHOLE: &str = r#"
[[regions]]
name = "aws:us-east-1"
[[regions.sites]]
sql = "127.0.0.1:26257"
http = "127.0.0.1:8080"
peer = "127.0.0.1:27257"

[[regions]]
name = "ireland"
[[regions.sites]]
sql = "127.0.0.1:26258"
resp = "127.0.0.1:6380"
http = "127.0.0.1:8081"
peer = "127.0.0.1:27258"

[wan]
matrix = """
region,aws:us-east-1,ireland
aws:us-east-1,0,99
ireland,99,0
"""
"#;

fn checked(text: &str) -> Result<Cluster, ConfigError> {
    let cluster = Cluster::parse("cluster.toml", text)?;
    cluster.check("cluster.toml", Path::new("/etc/rhumb")).map(|()| cluster)
}

#[test]
fn every_site_has_its_addresses_its_folder_and_the_wide_area_of_all() {
    let cluster = checked(WHOLE).expect("whole");
    let setup = |region| cluster.setup(region, 0, "cluster.toml", Path::new("/etc/rhumb"));
    let (first, second) = (setup("aws:us-east-1").expect("whole"), setup("ireland").expect("whole"));
    assert_eq!((first.site, second.site), (SiteId::new(0, 0), SiteId::new(1, 0)));
    assert_eq!(second.data_dir, Path::new("/etc/rhumb/data/ireland-0"));
    assert_eq!((first.resp, second.sql.port(), second.http.port()), (None, 26258, 8081));
    assert_eq!((&first.addresses, first.fingerprint()), (&second.addresses, second.fingerprint()));
    let wan = second.wan.expect("given");
    assert_eq!(wan.matrix.one_way(RegionId(0), RegionId(1)), Span::from_micros(49_500));
    let error = setup("mars").expect_err("not there").to_string();
    assert_eq!(error, "cluster.toml, regions: there is no region `mars`; expected one of aws:us-east-1, ireland");
    let error = cluster.setup("ireland", 1, "cluster.toml", Path::new("")).expect_err("not there").to_string();
    assert_eq!(error, "cluster.toml, regions: there is no shard 1; region `ireland` has the shards 0 to 0");
}

#[test]
fn a_cluster_written_is_read_back() {
    let matrix = "region,a,b\na,0,1.5\nb,1.5,0\n".to_owned();
    let wan = Wan { matrix: Some(matrix.clone()), ..Wan::default() };
    let cluster = Cluster::on_loopback(&["a".to_owned(), "b".to_owned()], Some(wan));
    let text = cluster.to_toml();
    assert!(text.contains(&format!("matrix = \"\"\"\n{matrix}\"\"\"\n")), "{text}");
    assert_eq!(checked(&text), Ok(cluster));
}

#[test]
fn a_mistake_is_named_by_its_key_in_this_file() {
    let table = [
        ("127.0.0.1:26258", "127.0.0.1:8080", "regions[1].sites[0].sql: 127.0.0.1:8080 is already the address of regions[0].sites[0].http"),
        ("127.0.0.1:8081", "127.0.0.1:0", "regions[1].sites[0].http: has port 0; expected 1 to 65535"),
        (
            "127.0.0.1:6380",
            "0.0.0.0:6380",
            "regions[1].sites[0].resp: 0.0.0.0:6380 is refused: nothing is served in plain text beyond the loopback; give the site certificates under `[tls]`, as `rhumb init` does, or bind to 127.0.0.1 or [::1]",
        ),
        (
            "name = \"ireland\"",
            "name = \"../ireland\"",
            "regions[1].name: `../ireland` cannot name a folder; expected letters, digits, `-`, `_`, `.` and `:`, a letter or digit first",
        ),
        ("name = \"ireland\"", "name = \"aws:us-east-1\"", "regions[1].name: `aws:us-east-1` is already the name of regions[0]"),
        ("99,0\n", "99\n", "wan.matrix: the matrix, row 3: 2 cells, expected 3"),
        (
            "matrix =",
            "profile = \"aws_32\"\nmatrix =",
            "wan: more than one of `profile`, `file` and `matrix` is given; expected one of them",
        ),
    ];
    for (from, to, expected) in table {
        let error = checked(&WHOLE.replacen(from, to, 1)).expect_err(expected).to_string();
        assert_eq!(error, format!("cluster.toml, {expected}"));
    }
    assert_eq!(
        checked("regions = []\n").expect_err("nothing").to_string(),
        "cluster.toml, regions: has no entries; expected at least one region"
    );
    let bare = "[[regions]]\nname = \"a\"\nsites = []\n";
    assert_eq!(checked(bare).expect_err("no site").to_string(), "cluster.toml, regions[0].sites: has 0 entries; expected 1 to 64");
    let unknown = checked("[[regions]]\nnames = \"a\"\n").expect_err("a typo").to_string();
    assert!(unknown.starts_with("cluster.toml, line 2, regions[0].names: unknown field `names`"), "{unknown}");
}
