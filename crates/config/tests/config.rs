//! Every mistake in a configuration is named with file, line where there is one, key, and what is allowed.

use rhumb_catenae::ChainSites;
use rhumb_commit::placement::{Coordinators, Placement};
use rhumb_config::{Config, ConfigError, Setup, first_quorums};
use rhumb_core::{RegionId, SiteId, Span, Topology};
use rhumb_forecast::{Forecaster, RandomWalk};
use rhumb_quad::quorums::Scoring;
use rhumb_quota::name::Name;
use std::collections::BTreeMap;
use std::path::Path;

const WHOLE: &str = r#"
data_dir = "data"
site = { region = "virginia", shard = 0 }
listen = { sql = "127.0.0.1:26257", http = "127.0.0.1:0", peer = "127.0.0.1:9002" }

[[regions]]
name = "california"
sites = ["127.0.0.1:9001"]

[[regions]]
name = "virginia"
sites = ["127.0.0.1:9002"]

[wan]
profile = "paper_replicated_commit_5"
jitter_ms = 0.5
"#;

fn read(text: &str) -> Result<Setup, ConfigError> {
    Setup::new(Config::parse("site.toml", text)?, "site.toml", Path::new("/etc/rhumb"))
}

#[test]
fn a_whole_configuration_says_who_is_where() {
    let setup = read(WHOLE).expect("whole");
    assert_eq!(setup.site, SiteId::new(1, 0));
    assert_eq!(setup.name(setup.site), "virginia/0");
    assert_eq!(setup.addresses[&SiteId::new(0, 0)].to_string(), "127.0.0.1:9001");
    assert_eq!(setup.data_dir, Path::new("/etc/rhumb/data"));
    let wan = setup.wan.expect("given");
    assert_eq!(wan.matrix.one_way(RegionId(0), RegionId(1)), Span::from_millis(43));
    assert_eq!(wan.jitter, Span::from_micros(500));
    assert!(!setup.chaos);
    assert_eq!(setup.resp, None);
    assert_eq!(setup.secret_file, Path::new("/etc/rhumb/cluster.secret"));
    assert_eq!(setup.max_clock_offset, Span::from_secs(5));
    let said = WHOLE.replace("data_dir", "secret_file = \"/run/secrets/rhumb\"\ndata_dir") + "[clock]\nmax_offset_ms = 250\n";
    let setup = read(&said).expect("whole");
    assert_eq!((setup.secret_file.as_path(), setup.max_clock_offset), (Path::new("/run/secrets/rhumb"), Span::from_millis(250)));
}

/// With certificates, at addresses of other machines.
fn encrypted() -> String {
    let table = "[tls]\nauthorities = \"ca.crt\"\ncertificate = \"/etc/ssl/site.pem\"\n";
    WHOLE.replace("127.0.0.1:9002", "10.0.0.2:9002").replace("127.0.0.1:26257", "0.0.0.0:26257") + table
}

#[test]
fn with_certificates_a_site_listens_beyond_the_loopback() {
    let setup = read(&encrypted()).expect("whole");
    assert_eq!(setup.sql.to_string(), "0.0.0.0:26257");
    assert_eq!(setup.http_names, ["virginia-0.rhumb.rhumb.internal"]);
    let tls = setup.tls.expect("given");
    assert_eq!(tls.files.authorities, Path::new("/etc/rhumb/ca.crt"));
    assert_eq!(
        (tls.files.certificate.as_path(), tls.files.key.as_path()),
        (Path::new("/etc/ssl/site.pem"), Path::new("/etc/ssl/site.pem"))
    );
    assert_eq!(tls.names[&SiteId::new(0, 0)].to_string(), "california-0.rhumb.rhumb.internal");
    assert_eq!((tls.ca, tls.renewal), (None, None));
    let renewal = "[tls.renewal]\nsite = \"california-0.rhumb.rhumb.internal\"\nhttp = \"10.0.0.1:8080\"\n";
    let renewed = read(&(encrypted() + "key = \"site.key\"\n" + renewal)).expect("whole").tls.expect("given");
    assert_eq!(renewed.files.key, Path::new("/etc/rhumb/site.key"));
    assert_eq!(renewed.renewal.map(|renewal| renewal.http.to_string()).as_deref(), Some("10.0.0.1:8080"));
    let config = Config::parse("site.toml", &(encrypted() + renewal)).expect("whole");
    assert_eq!(Config::parse("copy.toml", &config.to_toml()), Ok(config));
}

#[test]
fn certificates_that_cannot_be_are_refused() {
    let refused = |text: String, why: &str| assert_eq!(read(&text).expect_err("refused").to_string(), format!("site.toml, {why}"));
    let labels = "expected lower-case letters, digits and `-`, no `-` first or last, at most 56 of them";
    refused(encrypted().replace("\"virginia\"", "\"us.east\""), &format!("tls: `us.east` cannot stand in a certificate; {labels}"));
    refused(
        encrypted().replace("data_dir", "cluster = \"Shop\"\ndata_dir"),
        &format!("tls: `Shop` cannot stand in a certificate; {labels}"),
    );
    refused(encrypted().replace("\"ca.crt\"", "\"\""), "tls.authorities: is empty; expected a file");
    refused(encrypted() + "key = \"\"\n", "tls.key: is empty; expected a file");
    let renewal = |site: &str| format!("[tls.renewal]\nsite = \"{site}\"\nhttp = \"10.0.0.1:8080\"\n");
    refused(
        encrypted() + &renewal("california"),
        "tls.renewal.site: `california` is not the name of a site, REGION-SHARD.CLUSTER.rhumb.internal",
    );
    let both = encrypted() + "ca = \"ca\"\n" + &renewal("california-0.rhumb.rhumb.internal");
    refused(both, "tls.renewal: is given beside `ca`: the site that holds the CA renews by itself");
}

#[test]
fn the_port_for_the_redis_protocol_may_be_left_out_or_given() {
    let given = WHOLE.replace("http =", "resp = \"127.0.0.1:6379\", http =");
    assert_eq!(read(&given).expect("whole").resp, Some("127.0.0.1:6379".parse().expect("an address")));
    let config = Config::parse("site.toml", &given).expect("whole");
    assert_eq!(Config::parse("copy.toml", &config.to_toml()), Ok(config));
}

#[test]
fn a_configuration_written_is_read_back() {
    let config = Config::parse("site.toml", WHOLE).expect("whole");
    assert_eq!(Config::parse("copy.toml", &config.to_toml()), Ok(config));
}

#[test]
fn a_quota_follows_the_model_that_is_named_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut model = RandomWalk::default();
    model.observe(42.0);
    std::fs::write(folder.path().join("vm.model"), model.save()).expect("written");
    let text = WHOLE.replace("[wan]", "[quotas]\nepoch_s = 300\nmodels = { vm = \"vm.model\" }\n[wan]");
    let read = || Setup::new(Config::parse("site.toml", &text)?, "site.toml", folder.path());
    let quotas = read().expect("whole").quotas;
    assert_eq!(quotas.epoch, Span::from_secs(300));
    let predictors = quotas.models.predictors().expect("there is a model");
    let name = |text| Name::new(text).expect("a name");
    let mut first = predictors(&name("vm")).expect("it has one");
    first.observe(50.0);
    assert_eq!(first.predict(), Some(50.0));
    assert_eq!(predictors(&name("vm")).expect("a copy of its own").predict(), Some(42.0));
    assert!(predictors(&name("seat")).is_none());

    let mut damaged = model.save();
    damaged[10] ^= 1;
    std::fs::write(folder.path().join("vm.model"), damaged).expect("written");
    let why = "the saved model is damaged: its checksum does not match; restore the file or train the model again";
    let expected = format!("site.toml, quotas.models.vm: {}: {why}", folder.path().join("vm.model").display());
    assert_eq!(read().map(|_| ()).map_err(|error| error.to_string()), Err(expected));
}

#[test]
fn quorums_follow_what_is_measured_by_what_the_operator_says() {
    let quad = |text: &str| read(&WHOLE.replace("[wan]", &format!("[quad]\n{text}\n[wan]"))).map(|setup| setup.quad);
    let adaptation = |text: &str| quad(text).expect("whole").adaptation.expect("it follows what is measured");
    let plain = adaptation("");
    assert_eq!(
        (plain.period.as_millis_f64() as u64, plain.capacity, plain.settings.cores),
        (10_000, 100, 2),
        "two sites cannot have three cores"
    );
    let said = adaptation(
        "period_s = 2\ncapacity = 50\nscore.load = 0.9\nscore.by = 'latency'\nassignment = { distance = 2, balance = 0 }\nauto.availability = 0.9999",
    );
    assert_eq!((said.period, said.capacity), (Span::from_secs(2), 50));
    assert_eq!((plain.settings.score.scoring, said.settings.score.scoring), (Scoring::Load, Scoring::Latency));
    assert_eq!((said.settings.score.rtt, said.settings.score.load), (plain.settings.score.rtt, 0.9));
    let cost = said.settings.cost;
    assert_eq!((cost.communication, cost.load, cost.balance, said.availability.wanted), (2.0, 1.0, 0.0, 0.9999));
    let config = Config::parse("site.toml", &WHOLE.replace("[wan]", "[quad]\ncapacity = 7\n[wan]")).expect("whole");
    assert_eq!(Config::parse("copy.toml", &config.to_toml()), Ok(config));
    for (text, said) in [
        ("period_s = 0", "period_s: is 0; expected 1 to 3600"),
        ("period_s = 3601", "period_s: is 3601; expected 1 to 3600"),
        ("capacity = 0", "capacity: is 0; expected 1 to 10000000"),
        ("score.load = -0.5", "score.load: is -0.5; expected a weight, 0 to 1000"),
        ("score.distance = nan", "score.distance: is NaN; expected a weight, 0 to 1000"),
        ("assignment.balance = inf", "assignment.balance: is inf; expected a weight, 0 to 1000"),
        ("score = { distance = 0, load = 0 }", "score: all its weights are 0; expected one above that among distance, load"),
        (
            "assignment = { distance = 0, load = 0, balance = 0 }",
            "assignment: all its weights are 0; expected one above that among distance, load, balance",
        ),
        ("auto.availability = 1.0", "auto.availability: is 1; expected a share of time, above 0 and below 1"),
        ("auto.site_availability = -1", "auto.site_availability: is -1; expected a share of time, above 0 and below 1"),
    ] {
        let refused = quad(text).expect_err(text);
        assert_eq!(refused.to_string(), format!("site.toml, quad.{said}"));
    }
    let unknown = quad("cores = 3").expect_err("cores are asked for in SQL").to_string();
    assert!(unknown.contains("quad") && unknown.contains("unknown field `cores`"), "{unknown}");
}

#[test]
fn every_site_knows_the_first_quorums_from_the_shape_of_the_cluster() {
    let topology = |regions: usize, shards: u16| Topology::new((0..regions).map(|region| format!("r{region}")).collect(), shards);
    let quorums = first_quorums(&topology(5, 2)).expect("ten sites");
    assert_eq!((quorums.cores().len(), quorums.members().len()), (3, 10));
    assert_eq!(first_quorums(&topology(2, 1)).map(|quorums| quorums.cores().len()), Some(2));
    assert_eq!(first_quorums(&topology(1, 1)).map(|quorums| quorums.cores().len()), Some(1));
    assert_eq!(first_quorums(&topology(33, 2)), None, "quorums are built of 64 sites at the most");
}

/// The whole configuration with these regions besides, and a placement.
fn placed(placement: &str) -> String {
    let region = |(index, name): (usize, &&str)| format!("[[regions]]\nname = \"{name}\"\nsites = [\"127.0.0.1:{}\"]\n", 9003 + index);
    let more: String = ["oregon", "ireland", "singapore"].iter().enumerate().map(region).collect();
    WHOLE.replace("[wan]", &format!("{more}\n[placement]\n{placement}\n[wan]"))
}

#[test]
fn a_placement_says_which_regions_hold_what() {
    assert_eq!(read(WHOLE).expect("whole").placement, Placement::everywhere(2));
    let text = placed(
        "active = [\"virginia\", \"california\", \"oregon\"]\npassive = [\"ireland\"]\n[placement.coordinators.singapore]\nread = \"ireland\"\ncommit = \"oregon\"",
    );
    let setup = read(&text).expect("whole");
    let region = |name| setup.topology.region(name).expect("it is there");
    let expected = Placement {
        epoch: 1,
        voters: ["california", "virginia", "oregon"].map(region).into_iter().collect(),
        passives: region("ireland").into(),
        coordinators: [(region("singapore"), Coordinators { read: region("ireland"), commit: region("oregon") })].into(),
        former: Vec::new(),
        lost: BTreeMap::new(),
    };
    assert_eq!(setup.placement, expected);
    let config = Config::parse("site.toml", &text).expect("whole");
    assert_eq!(Config::parse("copy.toml", &config.to_toml()), Ok(config));
}

#[test]
fn a_placement_that_cannot_be_is_refused() {
    let all = "expected one of california, virginia, oregon, ireland, singapore";
    let table = [
        ("active = []", "active: is empty; at least one region must vote".to_owned()),
        ("active = [\"oregon\", \"virgina\"]", format!("active[1]: `virgina` is not among the regions; did you mean `virginia`? {all}")),
        ("active = [\"mars\"]", format!("active[0]: `mars` is not among the regions; {all}")),
        ("active = [\"oregon\", \"oregon\"]", "active[1]: `oregon` is listed twice".to_owned()),
        (
            "active = [\"oregon\"]\npassive = [\"oregon\"]",
            "passive: `oregon` is active already; a region is either active or passive".to_owned(),
        ),
        (
            "active = [\"oregon\"]\npassive = [\"ireland\"]\ncoordinators.singapore = { read = \"virginia\", commit = \"oregon\" }",
            "coordinators.singapore.read: `virginia` holds no copy; expected one of oregon, ireland".to_owned(),
        ),
        (
            "active = [\"oregon\"]\ncoordinators.singapur = { read = \"oregon\", commit = \"oregon\" }",
            format!("coordinators.singapur: `singapur` is not among the regions; did you mean `singapore`? {all}"),
        ),
        (
            "active = [\"oregon\"]\ncoordinators.singapore = { read = \"oregon\", commit = \"Oregon\" }",
            format!("coordinators.singapore.commit: `Oregon` is not among the regions; did you mean `oregon`? {all}"),
        ),
    ];
    for (placement, expected) in table {
        let error = read(&placed(placement)).expect_err(placement);
        assert_eq!(error.to_string(), format!("site.toml, placement.{expected}"));
    }
    let error = read(&placed("passive = [\"oregon\"]")).expect_err("nobody votes");
    assert!(error.to_string().contains("placement: missing field `active`"), "{error}");
}

#[test]
fn chain_servers_may_stand_on_the_sites_of_a_region() {
    let two = WHOLE.replace("9001\"]", "9001\", \"127.0.0.1:9003\"]").replace("9002\"]", "9002\", \"127.0.0.1:9004\"]");
    let of = |chains: &str| read(&two.replace("[wan]", &format!("[catenae]\n{chains}\n[wan]"))).expect("whole");
    assert_eq!(of("").catenae.chain_sites, ChainSites::Coordinator);
    assert_eq!(of("chain_sites = \"every\"").catenae.chain_sites, ChainSites::Every);
    // Sites may differ in it: nothing that is agreed on depends on it.
    assert_eq!(of("").fingerprint(), of("chain_sites = \"every\"").fingerprint());
}

#[test]
fn clusters_differ_by_name_shape_and_placement_and_not_by_site() {
    let of = |from: &str, to: &str| read(&WHOLE.replace(from, to)).expect("whole").fingerprint();
    let whole = of("", "");
    assert_eq!(whole, of("26257", "26258"));
    assert_ne!(whole, of("data_dir", "cluster = \"other\"\ndata_dir"));
    assert_ne!(whole, of("\"california\"", "\"oregon\""));
    assert_eq!(whole, of("[wan]", "[placement]\nactive = [\"california\", \"virginia\"]\n[wan]"));
    assert_ne!(whole, of("[wan]", "[placement]\nactive = [\"california\"]\n[wan]"));
    assert_ne!(
        of("[wan]", "[placement]\nactive = [\"california\"]\n[wan]"),
        of("[wan]", "[placement]\nactive = [\"california\"]\npassive = [\"virginia\"]\n[wan]")
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Config::load(Path::new("/nowhere/site.toml")).expect_err("no such file");
    assert_eq!(error.to_string(), "/nowhere/site.toml: cannot read the configuration: No such file or directory (os error 2)");
}

/// What is replaced in the whole configuration, by what, and the error that this leads to.
type Mistake<'a> = (&'a str, &'a str, &'a str);

fn assert_refused(mistakes: &[Mistake<'_>]) {
    for (from, to, expected) in mistakes {
        assert!(WHOLE.contains(from), "`{from}` is in the whole configuration");
        let error = read(&WHOLE.replace(from, to)).expect_err(expected);
        assert_eq!(error.to_string(), *expected);
    }
}

#[test]
fn wrong_syntax_keys_and_types_are_named_with_their_line() {
    assert_refused(&[
        ("data_dir = \"data\"", "data_dir = ", "site.toml, line 2: string values must be quoted, expected literal string"),
        (
            "jitter_ms",
            "jitter",
            "site.toml, line 16, wan.jitter: unknown field `jitter`, expected one of `profile`, `file`, `matrix`, `jitter_ms`, `loss`",
        ),
        ("jitter_ms = 0.5", "jitter_ms = \"1\"", "site.toml, line 16, wan.jitter_ms: invalid type: string \"1\", expected f64"),
        ("shard = 0", "shard = -1", "site.toml, line 3, site.shard: invalid value: integer `-1`, expected u16"),
        ("data_dir = \"data\"", "", "site.toml, line 1: missing field `data_dir`"),
        (
            "127.0.0.1:26257",
            "localhost:26257",
            "site.toml, line 4, listen.sql: `localhost:26257` is not an address; expected IP:PORT, such as \"127.0.0.1:9001\"",
        ),
    ]);
}

#[test]
fn regions_and_addresses_that_cannot_be_are_named_with_what_is_allowed() {
    assert_refused(&[
        ("\"data\"", "\"\"", "site.toml, data_dir: is empty; expected a folder"),
        ("name = \"virginia\"", "name = \"california\"", "site.toml, regions[1].name: `california` is already the name of regions[0]"),
        ("name = \"virginia\"", "name = \"\"", "site.toml, regions[1].name: is empty"),
        (
            "region = \"virginia\"",
            "region = \"oregon\"",
            "site.toml, site.region: `oregon` is not among the regions; expected one of california, virginia",
        ),
        ("shard = 0", "shard = 1", "site.toml, site.shard: is 1, but region `virginia` has only the shards 0 to 0"),
        (
            "[\"127.0.0.1:9002\"]",
            "[\"127.0.0.1:9002\", \"127.0.0.1:9003\"]",
            "site.toml, regions[1].sites: has 2 entries, but regions[0] has 1; every region holds one site per shard",
        ),
        ("[\"127.0.0.1:9002\"]", "[]", "site.toml, regions[1].sites: has 0 entries; expected 1 to 64"),
        (
            "[\"127.0.0.1:9001\"]",
            "[\"127.0.0.1:9002\"]",
            "site.toml, regions[1].sites[0]: 127.0.0.1:9002 is already the address of regions[0].sites[0]",
        ),
        (
            "127.0.0.1:9001",
            "127.0.0.1:0",
            "site.toml, regions[0].sites[0]: has port 0; the other sites must know the port, so expected 1 to 65535",
        ),
        (
            "127.0.0.1:26257",
            "0.0.0.0:26257",
            "site.toml, listen.sql: 0.0.0.0:26257 is refused: nothing is served in plain text beyond the loopback; give the site certificates under `[tls]`, as `rhumb init` does, or bind to 127.0.0.1 or [::1]",
        ),
        (
            "127.0.0.1:9001",
            "10.0.0.1:9001",
            "site.toml, regions[0].sites[0]: 10.0.0.1:9001 is refused: nothing is served in plain text beyond the loopback; give the site certificates under `[tls]`, as `rhumb init` does, or bind to 127.0.0.1 or [::1]",
        ),
        (
            "peer = \"127.0.0.1:9002\"",
            "peer = \"127.0.0.1:9001\"",
            "site.toml, listen.peer: is 127.0.0.1:9001, but regions give this site the address 127.0.0.1:9002; they must agree",
        ),
        (
            "http =",
            "resp = \"localhost\", http =",
            "site.toml, line 4, listen.resp: `localhost` is not an address; expected IP:PORT, such as \"127.0.0.1:9001\"",
        ),
        (
            "http =",
            "resp = \"0.0.0.0:6379\", http =",
            "site.toml, listen.resp: 0.0.0.0:6379 is refused: nothing is served in plain text beyond the loopback; give the site certificates under `[tls]`, as `rhumb init` does, or bind to 127.0.0.1 or [::1]",
        ),
        ("http =", "resp = \"127.0.0.1:26257\", http =", "site.toml, listen.resp: 127.0.0.1:26257 is already taken by listen.sql"),
        ("127.0.0.1:26257", "127.0.0.1:9002", "site.toml, listen.peer: 127.0.0.1:9002 is already taken by listen.sql"),
    ]);
}

#[test]
fn other_values_that_cannot_be_are_named_with_what_is_allowed() {
    assert_refused(&[
        (
            "profile = \"paper_replicated_commit_5\"",
            "profile = \"mars\"",
            "site.toml, wan.profile: `mars` is not a shipped profile; expected one of paper_replicated_commit_5, paper_samya_5, \
             paper_gplacer_9, aws_32, azure_48, gcp_39, aws_azure_42",
        ),
        (
            "\"paper_replicated_commit_5\"",
            "\"paper_samya_5\"",
            "site.toml, wan.profile: `paper_samya_5` has no region `california`; it has us-west1, asia-east2, \
             europe-west2, australia-southeast1, southamerica-east1",
        ),
        (
            "profile = \"paper_replicated_commit_5\"",
            "file = \"rtt.csv\"",
            "site.toml, wan.file: cannot read /etc/rhumb/rtt.csv: No such file or directory (os error 2)",
        ),
        (
            "jitter_ms",
            "file = \"a\"\njitter_ms",
            "site.toml, wan: more than one of `profile`, `file` and `matrix` is given; expected one of them",
        ),
        ("0.5", "-0.5", "site.toml, wan.jitter_ms: is -0.5; expected 0 to 10000"),
        ("jitter_ms = 0.5", "loss = 1.0", "site.toml, wan.loss: is 1; expected a share, 0 to below 1"),
        ("[wan]", "[limits]\nrequests = 0\n[wan]", "site.toml, limits.requests: is 0; expected 1 to 1000000"),
        ("[wan]", "[limits]\nstop_grace_ms = 700000\n[wan]", "site.toml, limits.stop_grace_ms: is 700000; expected 0 to 600000"),
        ("[wan]", "[limits]\nstatements_mib = 15\n[wan]", "site.toml, limits.statements_mib: is 15; expected 16 to 65536"),
        ("[wan]", "[quotas]\nepoch_s = 0\n[wan]", "site.toml, quotas.epoch_s: is 0; expected 1 to 86400"),
        (
            "[wan]",
            "[quotas.models]\nvm = \"vm.model\"\n[wan]",
            "site.toml, quotas.models.vm: /etc/rhumb/vm.model: cannot read the model: No such file or directory (os error 2)",
        ),
        (
            "[wan]",
            "[quotas.models]\n\"\" = \"vm.model\"\n[wan]",
            "site.toml, quotas.models.: the name of a quota is empty; give it 1 to 200 bytes",
        ),
        (
            "[wan]",
            "[catenae]\nchain_sites = \"each\"\n[wan]",
            "site.toml, line 15, catenae.chain_sites: unknown variant `each`, expected `coordinator` or `every`",
        ),
        (
            "[wan]",
            "[catenae]\nchain_sites = \"every\"\n[wan]",
            "site.toml, catenae.chain_sites: is `every`, but regions have one site each; expected `coordinator`",
        ),
        ("data_dir", "secret_file = \"\"\ndata_dir", "site.toml, secret_file: is empty; expected a file"),
        ("[wan]", "[clock]\nmax_offset_ms = 99\n[wan]", "site.toml, clock.max_offset_ms: is 99; expected 100 to 600000"),
        ("[wan]", "[storage]\ncache_mib = 0\n[wan]", "site.toml, storage.cache_mib: is 0; expected 1 to 1048576"),
        ("[wan]", "[storage]\nrow_cache_mib = 0\n[wan]", "site.toml, storage.row_cache_mib: is 0; expected 1 to 1048576"),
    ]);
}
