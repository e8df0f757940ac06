//! What a cluster file may say of databases of protocol `catenae`: real sites, real clients, and what each setting promises.

use crate::common::{self, Demo, rows};
use std::fmt::Write as _;
use std::path::PathBuf;
use tempfile::TempDir;
use tokio_postgres::Client;

const REGIONS: [&str; 3] = ["a", "b", "c"];

/// A cluster file of three regions with so many sites each, and this section about Catenae.
fn cluster(folder: &TempDir, sites: usize, catenae: &str) -> PathBuf {
    let mut text = format!("[wan]\nmatrix = \"region,a,b,c\\na,0,20,36\\nb,20,0,28\\nc,36,28,0\\n\"\n[catenae]\n{catenae}\n");
    for name in REGIONS {
        writeln!(text, "[[regions]]\nname = \"{name}\"").expect("memory");
        for _ in 0..sites {
            let port = || common::lasting_port().local_addr().expect("an address").port();
            let (sql, http, peer) = (port(), port(), port());
            writeln!(text, "[[regions.sites]]\nsql = \"127.0.0.1:{sql}\"\nhttp = \"127.0.0.1:{http}\"\npeer = \"127.0.0.1:{peer}\"")
                .expect("memory");
        }
    }
    let path = folder.path().join("cluster.toml");
    std::fs::write(&path, text).expect("written");
    path
}

/// A demo of that cluster, with an empty database of protocol `catenae` and a client of it in each region.
async fn start(folder: &TempDir, sites: usize, catenae: &str) -> (Demo, Vec<Client>) {
    let demo = Demo::start(&["--cluster", &cluster(folder, sites, catenae).display().to_string()]);
    demo.connect(0).await.batch_execute("CREATE DATABASE bank WITH (protocol = 'catenae')").await.expect("created");
    let mut clients = Vec::new();
    for region in 0..REGIONS.len() {
        clients.push(demo.connect_to(region, "bank").await.expect("every region has heard of it"));
    }
    (demo, clients)
}

/// An event of Catenae as the first sites of all regions counted it.
fn events(demo: &Demo, event: &str) -> u64 {
    let name = format!("rhumb_events_total{{service=\"catenae\",event=\"{event}\"}}");
    (0..REGIONS.len()).map(|region| demo.metric(region, &name).unwrap_or(0.0) as u64).sum()
}

/// Rows that transactions of all regions raise, two at a time, one of them always the same.
const ROWS: usize = 7;
/// Transactions of each region in a round.
const RAISES: usize = 6;
/// Rounds after which chains must have crossed sites.
const ROUNDS_MAX: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn chains_cross_the_sites_of_a_region() {
    let folder = tempfile::tempdir().expect("a folder");
    let (demo, clients) = start(&folder, 2, "epoch_ms = 50\nchain_sites = \"every\"").await;
    clients[0].batch_execute("CREATE TABLE item (id INT PRIMARY KEY, n INT NOT NULL)").await.expect("created");
    let values: Vec<String> = (0..ROWS).map(|id| format!("({id}, 0)")).collect();
    clients[1].batch_execute(&format!("INSERT INTO item VALUES {}", values.join(", "))).await.expect("inserted");
    let mut rounds = 0;
    // Those that are lost, on a machine that is busy with other things, are begun again on one site, and so are those that follow.
    while events(&demo, "catenae.crossing") <= events(&demo, "catenae.crossing_lost") {
        assert!(rounds < ROUNDS_MAX, "no chain crosses the sites of a region");
        rounds += 1;
        let raises = clients.iter().enumerate().map(async |(region, client)| {
            for number in 0..RAISES {
                let other = 1 + (number * 2 + region) % (ROWS - 1);
                let text = format!("UPDATE item SET n = n + 1 WHERE id = 0; UPDATE item SET n = n + 1 WHERE id = {other}");
                client.batch_execute(&text).await.expect("it travels");
            }
        });
        futures::future::join_all(raises).await;
    }
    let once = (rounds * RAISES * REGIONS.len()).to_string();
    for client in &clients {
        let text = "SELECT (SELECT n FROM item WHERE id = 0) || ' ' || (SELECT sum(n) FROM item WHERE id > 0)";
        assert_eq!(rows(client, text).await, [format!("{once} {once}")]);
    }
    assert!(events(&demo, "catenae.chosen") > 0, "orders that a majority found alike");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_region_has_on_disk_is_not_lost_and_the_others_wait_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (demo, clients) = start(&folder, 1, "durability = \"region\"").await;
    let chaos = |arguments: &[&str]| tokio::task::block_in_place(|| demo.chaos(arguments));
    clients[0].batch_execute("CREATE TABLE note (id INT PRIMARY KEY, words TEXT)").await.expect("created");
    clients[2].batch_execute("INSERT INTO note VALUES (1, 'first')").await.expect("inserted");
    assert_eq!(rows(&clients[0], "SELECT id FROM note").await, ["1"]);
    clients[1].batch_execute("INSERT INTO note VALUES (2, 'told, and killed at once')").await.expect("inserted");
    chaos(&["kill", "b"]);
    // Without that region nobody can know what it said, so nobody goes on, however long. What is settled can be read.
    let stuck = clients[0].batch_execute("INSERT INTO note VALUES (3, 'without b')").await.expect_err("nobody may answer");
    let state = stuck.code().map(|code| code.code().to_owned());
    assert!(matches!(state.as_deref(), Some("40003" | "57P03")), "{stuck:?}");
    clients[2].batch_execute("SET rhumb.read_mode = 'optimistic'; BEGIN").await.expect("set");
    assert!(rows(&clients[2], "SELECT id FROM note").await.contains(&"1".to_owned()));
    clients[2].batch_execute("COMMIT; RESET rhumb.read_mode").await.expect("over");
    // Its disk is what the promise hangs on.
    chaos(&["restart", "b"]);
    let back = demo.connect_to(1, "bank").await.expect("it is back");
    let words = rows(&back, "SELECT words FROM note WHERE id < 3 ORDER BY id").await;
    assert_eq!(words, ["first", "told, and killed at once"]);
    clients[0].batch_execute("INSERT INTO note VALUES (4, 'all are there')").await.expect("all are there");
    // What nobody was told of may have happened or not, everywhere alike.
    let ids = rows(&back, "SELECT id FROM note ORDER BY id").await;
    assert!(ids == ["1", "2", "4"] || ids == ["1", "2", "3", "4"], "{ids:?}");
    for client in [&clients[0], &clients[2]] {
        assert_eq!(rows(client, "SELECT id FROM note ORDER BY id").await, ids);
    }
}

/// A client of every site of the demo, region by region, the first site of each first.
async fn clients_of_all_sites(demo: &Demo) -> Vec<Client> {
    let running = demo.running();
    let mut clients = Vec::new();
    for site in running["sites"].as_array().expect("sites") {
        let mut config: tokio_postgres::Config = site["pg"].as_str().expect("an address").parse().expect("an address");
        let (client, connection) = config.dbname("bank").connect(tokio_postgres::NoTls).await.expect("every site serves");
        tokio::spawn(connection);
        clients.push(client);
    }
    clients
}

/// Tables of one row each, some of which belong to one coordinator and some to the other.
const TABLES: usize = 6;

/// How often rows were raised.
#[derive(Clone, Copy, Default)]
struct Raised {
    surely: usize,
    /// The answer was that nobody knows, or none.
    perhaps: usize,
}

/// Raises the row of each table by one at `client`, again until it is told that it did: whoever speaks for a lost site must be found first.
async fn raise_all(client: &Client, raised: &mut Raised) {
    for table in 0..TABLES {
        let sql = format!("UPDATE item{table} SET n = n + 1 WHERE id = 1");
        loop {
            match client.batch_execute(&sql).await {
                Ok(()) => break raised.surely += 1,
                Err(error) => match error.code().map(tokio_postgres::error::SqlState::code) {
                    Some("57P03") => {}
                    Some("40003") => raised.perhaps += 1,
                    _ => panic!("{sql}: {error:?}"),
                },
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_coordinators_of_a_region_share_its_rows_and_one_stands_in_for_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let (demo, first) = start(&folder, 2, "coordinators = 2").await;
    let clients = clients_of_all_sites(&demo).await;
    let chaos = |arguments: &[&str]| tokio::task::block_in_place(|| demo.chaos(arguments));
    for table in 0..TABLES {
        let sql = format!("CREATE TABLE item{table} (id INT PRIMARY KEY, n INT NOT NULL); INSERT INTO item{table} VALUES (1, 0)");
        first[0].batch_execute(&sql).await.expect("created");
    }
    let mut raised = Raised::default();
    for client in &clients {
        raise_all(client, &mut raised).await;
    }
    assert_eq!((raised.surely, raised.perhaps), (clients.len() * TABLES, 0), "nothing is lost");
    assert!(events(&demo, "catenae.forwarded") > 0, "the first sites pass on what the second ones speak for");
    chaos(&["kill", "b.1"]);
    for client in &first {
        raise_all(client, &mut raised).await;
    }
    chaos(&["restart", "b.1"]);
    let back = clients_of_all_sites(&demo).await;
    for client in &back {
        raise_all(client, &mut raised).await;
    }
    for client in &back {
        let mut sum = 0;
        for table in 0..TABLES {
            sum += rows(client, &format!("SELECT n FROM item{table}")).await[0].parse::<usize>().expect("a number");
        }
        assert!((raised.surely..=raised.surely + raised.perhaps).contains(&sum), "{sum}: {} and perhaps {}", raised.surely, raised.perhaps);
    }
}
