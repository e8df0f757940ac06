//! Folders that are not what their site left, at the level of one site: what it finds by itself, and what it makes of a peer's word.

use super::*;
use rhumb_core::Batch;
use rhumb_core::actor::Space;
use rhumb_store::{DiskOptions, Store};
use rhumb_testkit::folders::{copy, roll_back};

const PEER: SiteId = SiteId::new(1, 0);
const NAMES: [&str; 2] = ["", "quotas"];
const SERVICES: [Service; 2] = [Service::Commit, Service::Quotas];

/// A site of two stores that runs.
struct Running {
    incarnations: Incarnations,
    stores: Vec<Store<DiskEngine>>,
}

fn folders(folder: &Path) -> Vec<(Service, PathBuf)> {
    SERVICES.into_iter().zip(NAMES.map(|name| folder.join(name))).collect()
}

fn start(folder: &Path) -> Result<Running, String> {
    let folders = folders(folder);
    let open = |path: &Path| Store::open(DiskEngine::open(path, DiskOptions::DEFAULT)?);
    let first = open(&folders[0].1).map_err(|error| error.to_string())?;
    let past = Past::read(folder, &folders).map_err(|error| error.to_string())?;
    let stores = vec![first, open(&folders[1].1).map_err(|error| error.to_string())?];
    let engines: Vec<_> = SERVICES.into_iter().zip(stores.iter().map(Store::engine)).collect();
    let incarnations = past.begin(&engines).map_err(|error| error.to_string())?;
    Ok(Running { incarnations, stores })
}

impl Running {
    /// Syncs something in each store.
    fn works(&self) {
        for store in &self.stores {
            let mut batch = Batch::new();
            batch.put_record(Space(1), "key", "value");
            store.apply(&batch).expect("written");
            store.sync().expect("synced");
        }
    }

    /// What it tells others.
    fn progress(&self) -> Progress {
        Progress { incarnation: self.incarnations.now(), counts: self.incarnations.counts() }
    }

    fn stops(self) {
        drop(self.stores);
        self.incarnations.end().expect("written");
    }

    /// Its process is gone; what it had on disk is as it was.
    fn dies(self) {
        drop(self.stores);
    }
}

/// A folder, and one for copies of it.
fn temporary() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, copied) = (folder.path().join("data"), folder.path().join("copy"));
    (folder, data, copied)
}

/// Later than what the clock of a file system cannot tell apart.
fn pause() {
    std::thread::sleep(Duration::from_millis(30));
}

fn refused(folder: &Path) -> String {
    match start(folder) {
        Ok(_) => panic!("it starts"),
        Err(why) => {
            assert!(why.contains("No copy will do") && !why.contains("restore"), "it says what to do: {why}");
            why
        }
    }
}

#[test]
fn a_folder_knows_all_incarnations_that_began_with_it_and_what_was_heard_of_each_peer() {
    let (_folder, data, _) = temporary();
    let first = start(&data).expect("a new folder");
    assert_eq!(first.incarnations.heard(PEER), Progress::default());
    first.incarnations.note(PEER, 7).expect("noted");
    first.incarnations.note(SiteId::new(2, 3), 8).expect("noted");
    first.incarnations.note(PEER, 9).expect("noted");
    first.incarnations.hear(PEER, &Progress { incarnation: 9, counts: [3, 0, 5, 0] });
    first.incarnations.hear(PEER, &Progress { incarnation: 9, counts: [1, 4, 5, 0] });
    first.incarnations.hear(PEER, &Progress { incarnation: 7, counts: [9, 9, 9, 9] });
    let told = first.progress();
    first.works();
    let later = first.progress();
    assert_eq!((told.counts, later.counts), ([0; 4], [1, 1, 0, 0]));
    assert_eq!([told, later].map(|heard| first.incarnations.check("virginia/0", &heard)), [Ok(()), Ok(())]);
    first.stops();
    let second = start(&data).expect("its own");
    assert_ne!(second.incarnations.now(), later.incarnation);
    let (peer, other) = (second.incarnations.heard(PEER), second.incarnations.heard(SiteId::new(2, 3)));
    assert_eq!((peer, other.incarnation), (Progress { incarnation: 9, counts: [3, 4, 5, 0] }, 8));
    let heard = [Progress::default(), told, later, second.progress()];
    assert_eq!(heard.map(|heard| second.incarnations.check("virginia/0", &heard)), [Ok(()), Ok(()), Ok(()), Ok(())]);
    second.stops();
}

#[test]
fn a_site_that_died_goes_on_where_it_was_and_nothing_that_it_told_is_unknown() {
    let (_folder, data, _) = temporary();
    let mut told = Vec::new();
    for _ in 0..3 {
        let site = start(&data).expect("its own");
        site.works();
        told.push(site.progress());
        assert_eq!(told.iter().map(|heard| site.incarnations.check("virginia/0", heard)).collect::<Vec<_>>(), vec![Ok(()); told.len()]);
        site.dies();
    }
}

#[test]
fn a_store_that_is_removed_emptied_or_older_than_the_others_is_refused_whether_the_site_died_or_stopped() {
    for stops in [true, false] {
        let (folder, data, copied) = temporary();
        let quotas = data.join("quotas");
        let end = |site: Running| if stops { site.stops() } else { site.dies() };
        let run = || {
            let site = start(&data).expect("its own");
            site.works();
            end(site);
        };
        run();
        copy(&quotas, &copied);
        run();
        let latest = folder.path().join("latest");
        fs::rename(&quotas, &latest).expect("moved");
        let missing = format!("{} is missing or empty, but the site has written there: ", quotas.display());
        assert!(refused(&data).starts_with(&missing), "removed");
        fs::create_dir(&quotas).expect("made");
        assert!(refused(&data).starts_with(&missing), "emptied");
        fs::remove_dir(&quotas).expect("removed");
        // A store that is somebody's, but new.
        drop(DiskEngine::open(&quotas, DiskOptions::DEFAULT).expect("made"));
        assert!(refused(&data).contains(if stops { "is missing or empty" } else { "is a copy" }), "made anew");
        fs::remove_dir_all(&quotas).expect("removed");
        pause();
        copy(&copied, &quotas);
        for _ in 0..3 {
            let why = refused(&data);
            assert!(why.contains(if stops { "it is an older copy" } else { "is a copy" }), "{why}");
        }
        fs::remove_dir_all(&quotas).expect("removed");
        fs::rename(&latest, &quotas).expect("moved");
        run();
    }
}

/// What tells it is the stamp alone: the files are those that were there.
#[test]
fn a_store_that_is_older_by_an_incarnation_is_refused_on_a_disk_that_was_rolled_back() {
    let (_folder, data, copied) = temporary();
    let run = || {
        let site = start(&data).expect("its own");
        site.works();
        site.dies();
    };
    run();
    copy(&data.join("quotas"), &copied);
    run();
    roll_back(&data.join("quotas"), &copied);
    let why = refused(&data);
    assert!(why.starts_with(&format!("{} holds what the site wrote in incarnation ", data.join("quotas").display())), "{why}");
}

#[test]
fn a_copy_of_the_whole_folder_is_refused_if_the_site_ran_or_had_died() {
    let (folder, data, copied) = temporary();
    let site = start(&data).expect("a new folder");
    site.works();
    copy(&data, &copied);
    site.dies();
    let dead = folder.path().join("dead");
    pause();
    copy(&data, &dead);
    for copied in [&copied, &dead] {
        assert!(refused(copied).starts_with(&format!("{} is a copy, or stands where it was copied to", copied.display())));
        let moved = folder.path().join("moved");
        fs::rename(&data, &moved).expect("moved");
        copy(copied, &data);
        assert!(refused(&data).starts_with(&format!("{} is a copy", data.display())), "in its place, too");
        fs::remove_dir_all(&data).expect("removed");
        fs::rename(&moved, &data).expect("moved");
    }
    start(&data).expect("its own").stops();
    let stopped = folder.path().join("stopped");
    copy(&data, &stopped);
    start(&stopped).expect("a folder of a site that was stopped may be moved").stops();
    fs::remove_file(data.join("RUNNING")).expect_err("it was stopped");
    start(&data).expect("its own").dies();
    fs::remove_file(data.join("RUNNING")).expect("it died");
    assert!(refused(&data).starts_with(&format!("{} is missing, although", data.join("RUNNING").display())));
}

#[test]
fn what_a_peer_has_heard_unmasks_an_empty_folder_and_every_older_one() {
    let (folder, data, copied) = temporary();
    let site = start(&data).expect("a new folder");
    site.works();
    copy(&data, &copied);
    let before = site.progress();
    site.works();
    let heard = site.progress();
    assert!(heard.counts > before.counts);
    site.dies();
    // (a) As it was while it ran, in the same incarnation, on a disk that was rolled back: nothing in the folder tells.
    roll_back(&data, &copied);
    for _ in 0..3 {
        let older = start(&data).expect("nothing tells");
        assert_eq!(older.incarnations.check("virginia/0", &before), Ok(()));
        let why = older.incarnations.check("virginia/0", &heard).expect_err("it is older");
        let expected = format!("{} is not the data folder that this site had: virginia/0 has heard it in an incarnation", data.display());
        assert!(why.starts_with(&expected), "{why}");
        assert!(why.contains(" s ago, after 2 syncs of commit, of which the folder has 1. It is empty, or was restored"), "{why}");
        // However much it does meanwhile.
        (0..5).for_each(|_| older.works());
        assert!(older.incarnations.check("virginia/0", &heard).is_err());
        older.dies();
    }
    // (b) As it was after it had stopped.
    let other = folder.path().join("other");
    let site = start(&other).expect("a new folder");
    let first = site.progress();
    site.stops();
    let stopped = folder.path().join("stopped");
    copy(&other, &stopped);
    let site = start(&other).expect("its own");
    let second = site.progress();
    site.stops();
    let older = start(&stopped).expect("nothing tells");
    assert_eq!(older.incarnations.check("virginia/0", &first), Ok(()));
    assert!(older.incarnations.check("virginia/0", &second).expect_err("it is older").contains("of which the folder knows nothing"));
    // (c) Nothing at all.
    let empty = start(&folder.path().join("empty")).expect("a new folder");
    assert!(empty.incarnations.check("virginia/0", &first).is_err());
}

#[test]
fn a_start_that_was_interrupted_anywhere_is_gone_on_with() {
    let (folder, data, copied) = temporary();
    let site = start(&data).expect("a new folder");
    site.works();
    site.stops();
    // What stands in the folder after each step of a start.
    let stamped = |count: usize| {
        let folders = folders(&data);
        let open = |path: &Path| DiskEngine::open(path, DiskOptions::DEFAULT).expect("its own");
        let engines: Vec<_> = folders.iter().map(|(service, path)| (*service, open(path))).collect();
        let stores = engines.iter().map(|(service, engine)| (*service, engine.files()));
        super::Running::write(&data, 77, stores).expect("written");
        engines[..count].iter().for_each(|(_, engine)| engine.begin(77).expect("begun"));
    };
    for count in 0..=2 {
        copy(&data, &copied);
        stamped(count);
        let site = start(&data).expect("gone on with");
        assert_eq!(site.incarnations.now(), 77);
        site.works();
        site.stops();
        start(&data).expect("its own").stops();
        fs::remove_dir_all(&data).expect("removed");
        fs::rename(&copied, &data).expect("as it was");
    }
    drop(folder);
}

#[test]
fn a_damaged_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(PEERS), "1 0 7 0 0 0 0\n1 0\n").expect("written");
    let error = Incarnations::begin(folder.path()).expect_err("damaged").to_string();
    assert_eq!(error, format!("{} cannot be read or written: `1 0` is no line of it", folder.path().join(PEERS).display()));
}
