//! Data folders of real sites: nobody else on the machine reads them, and a site goes on with what it left and with nothing else.

use crate::common::{Demo, done, get, rhumb, until};
use rhumb_testkit::folders::{copy, roll_back};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const THREE: [&str; 4] = ["--wan", "none", "--regions", "3"];

/// Whatever is below `path`, itself too.
fn all(path: &Path) -> Vec<PathBuf> {
    let below = |path: &Path| fs::read_dir(path).expect("readable").map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>();
    let within = if path.is_dir() { below(path) } else { Vec::new() };
    within.iter().flat_map(|path| all(path)).chain([path.to_owned()]).collect()
}

/// The configuration of a site of the demo, and its data folder.
fn site(demo: &Demo, index: usize) -> (String, PathBuf) {
    let config = demo.running()["sites"][index]["config"].as_str().expect("a path").to_owned();
    let data = Path::new(&config).parent().expect("a folder").join("data");
    (config, data)
}

#[test]
fn nobody_else_on_the_machine_can_read_what_a_demo_keeps() {
    let kept = tempfile::tempdir().expect("a folder");
    let data = kept.path().join("data");
    let _demo = Demo::start(&[&THREE[..], &["--data", data.to_str().expect("text")]].concat());
    let open = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0);
    let found: Vec<PathBuf> = all(&data);
    assert!(found.len() > 50, "data, configurations and logs of three sites: {found:?}");
    assert_eq!(found.into_iter().filter(open).collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

#[test]
fn a_killed_site_goes_on_and_no_copy_of_its_folder_gives_tokens_out_again() {
    let demo = Demo::start(&THREE);
    let (of_demo, (config, data)) = (format!("--demo={}", demo.state()), site(&demo, 0));
    let quota = |arguments: &[&str]| done(&[&["quota"], arguments, &[of_demo.as_str()]].concat());
    let acquire = |tokens: &str| quota(&["acquire", "vm", tokens, "--site", "region1"]);
    let refused = || {
        let output = rhumb(&["start", "--config", &config]);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{said}");
        said.lines().last().expect("a reason").to_owned()
    };
    quota(&["create", "vm", "300"]);
    acquire("10");
    // A plain kill.
    demo.chaos(&["kill", "region1"]);
    demo.chaos(&["restart", "region1"]);
    acquire("10");

    let copied = demo.path("copy");
    copy(&data, &copied);
    let http = demo.running()["sites"][0]["http"].as_str().expect("an address").to_owned();
    let metrics = get(&http, "/metrics");
    let syncs = metrics.split("rhumb_store_sync_seconds_count{service=\"quotas\"} ").nth(1).expect("it counts its syncs");
    let syncs: u64 = syncs.lines().next().and_then(|count| count.parse().ok()).expect("a number");
    acquire("50");
    // What a peer has heard is on its disk soon.
    let peers = site(&demo, 1).1.join("PEERS");
    let heard = || {
        let text = fs::read_to_string(&peers).expect("they have met");
        let of_region1 = text.lines().find_map(|line| line.strip_prefix("0 0 ")).expect("they have met").to_owned();
        of_region1.split(' ').nth(2).and_then(|quotas| quotas.parse::<u64>().ok()).unwrap_or(0)
    };
    until("the peer has noted what it hears", || heard() > syncs);
    demo.chaos(&["kill", "region1"]);

    // On a disk that was rolled back nothing in the folder tells, but the others do.
    let latest = demo.path("latest");
    copy(&data, &latest);
    roll_back(&data, &copied);
    for _ in 0..2 {
        let said = refused();
        assert!(said.contains("is not the data folder that this site had: region") && said.contains("No copy will do"), "{said}");
    }
    // A copy in its place tells by itself, be it of a site that ran or of one that was dead.
    for copied in [&copied, &latest] {
        fs::remove_dir_all(&data).expect("removed");
        copy(copied, &data);
        let said = refused();
        assert!(said.contains("is a copy, or stands where it was copied to, of a folder in use"), "{said}");
    }
    fs::remove_dir_all(&data).expect("removed");
    let said = refused();
    assert!(said.contains("is not the data folder that this site had: region"), "an empty folder: {said}");
}
