//! Databases of either protocol behind one server: each in its own key space, their names in one.

use crate::support::{Server, code, strings};
use rhumb_sql::Gateways;
use rhumb_sql::catalog::{hand_over, reclaim};
use rhumb_sql::protocols::Protocol;
use rhumb_sql::server::ServerOptions;
use rhumb_sqltestkit::LocalGateway;
use std::sync::Arc;

/// A server of Replicated Commit and Catenae, and the key space of the latter.
async fn both() -> (Server, LocalGateway) {
    let (names, own) = (LocalGateway::new(), LocalGateway::new());
    let gateways = Gateways { catenae: Some(Arc::new(own.clone())), ..Gateways::from(Arc::new(names.clone())) };
    (Server::behind(gateways, names, ServerOptions::default()).await, own)
}

#[tokio::test]
async fn what_a_database_holds_is_with_its_protocol() {
    let (server, own) = both().await;
    let system = server.connect().await;
    system.batch_execute("CREATE DATABASE shop WITH (protocol = 'catenae'); CREATE TABLE t (id INT)").await.expect("created");
    let before = server.gateway.live_keys();
    let shop = server.connect_to("shop").await.expect("connected");
    shop.batch_execute("CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 10)").await.expect("created");
    assert_eq!((strings(&shop, "SELECT n FROM t").await, strings(&system, "SELECT id FROM t").await), (vec!["10".into()], vec![]));
    assert_eq!(server.gateway.live_keys(), before);
    assert!(own.live_keys() > 0);
    assert_eq!(strings(&shop, "SELECT datname FROM pg_database ORDER BY 1").await, ["rhumb", "shop"]);
    assert_eq!(strings(&shop, "SELECT relname FROM pg_class WHERE relkind = 'r'").await, ["t"]);
}

#[tokio::test]
async fn statements_about_databases_run_where_the_names_are() {
    let (server, own) = both().await;
    server.connect().await.batch_execute("CREATE DATABASE shop WITH (protocol = 'catenae')").await.expect("created");
    let shop = server.connect_to("shop").await.expect("connected");
    let before = own.live_keys();
    shop.batch_execute("CREATE DATABASE other WITH (protocol = 'catenae')").await.expect("created");
    shop.batch_execute("ALTER DATABASE other SET rhumb.read_mode = 'optimistic'").await.expect("altered");
    assert_eq!(strings(&server.connect_to("other").await.expect("connected"), "SHOW rhumb.read_mode").await, ["optimistic"]);
    assert_eq!(code(shop.batch_execute("CREATE DATABASE other").await), "42P04");
    for together in ["BEGIN; CREATE DATABASE x; COMMIT", "SELECT 1; DROP DATABASE other"] {
        assert_eq!(code(shop.batch_execute(together).await), "25001", "{together}");
        shop.batch_execute("ROLLBACK").await.expect("over");
    }
    assert_eq!(code(shop.batch_execute("DROP DATABASE shop").await), "55006");
    assert_eq!(own.live_keys(), before);
}

#[tokio::test]
async fn what_a_dropped_database_held_is_dropped_where_it_is() {
    let (server, own) = both().await;
    let system = server.connect().await;
    system.batch_execute("CREATE DATABASE shop WITH (protocol = 'catenae')").await.expect("created");
    let shop = server.connect_to("shop").await.expect("connected");
    shop.batch_execute("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2)").await.expect("created");
    shop.batch_execute("CREATE PROCEDURE p() LANGUAGE SQL AS 'DELETE FROM t WHERE id = 1'").await.expect("created");
    system.batch_execute("DROP DATABASE shop").await.expect("dropped");
    assert_eq!(code(server.connect_to("shop").await), "3D000");
    while hand_over(&server.gateway, Protocol::Catenae, &own).await.expect("handed over") {}
    while reclaim(&own).await.expect("reclaimed") {}
    assert_eq!(code(shop.batch_execute("INSERT INTO t VALUES (3)").await), "42P01");
    assert_eq!(code(shop.batch_execute("CREATE TABLE u (id INT)").await), "3D000");
    // The last id given out, and the note that the database is no more.
    assert_eq!(own.live_keys(), 2);
    assert!(!hand_over(&server.gateway, Protocol::Catenae, &own).await.expect("nothing is left"));
    system.batch_execute("CREATE DATABASE shop WITH (protocol = 'catenae')").await.expect("another of that name");
    let shop = server.connect_to("shop").await.expect("connected");
    shop.batch_execute("CREATE TABLE t (id INT)").await.expect("created");
    assert_eq!(strings(&shop, "SELECT * FROM t").await, [""; 0]);
}

#[tokio::test]
async fn protocols_that_a_site_does_not_have_are_refused_with_a_hint() {
    let server = Server::start().await;
    let client = server.connect().await;
    let refused = client.batch_execute("CREATE DATABASE x WITH (protocol = 'paxos')").await.expect_err("refused");
    let refused = refused.as_db_error().expect("an error of the server");
    assert_eq!((refused.code().code(), refused.hint()), ("22023", Some("The known protocols are: replicated_commit, catenae, quad.")));
    client.batch_execute("CREATE DATABASE x WITH (protocol = 'catenae')").await.expect("other sites hold it");
    assert_eq!(code(server.connect_to("x").await), "0A000");
}

#[tokio::test]
async fn of_databases_that_are_dropped_each_key_space_takes_its_own() {
    let (names, catenae, quad) = (LocalGateway::new(), LocalGateway::new(), LocalGateway::new());
    let gateways = Gateways {
        catenae: Some(Arc::new(catenae.clone())),
        quad: Some(Arc::new(quad.clone())),
        ..Gateways::from(Arc::new(names.clone()))
    };
    let server = Server::behind(gateways, names, ServerOptions::default()).await;
    let system = server.connect().await;
    for (name, protocol) in [("one", "quad"), ("two", "catenae")] {
        system.batch_execute(&format!("CREATE DATABASE {name} WITH (protocol = '{protocol}')")).await.expect("created");
        let client = server.connect_to(name).await.expect("connected");
        client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)").await.expect("created");
    }
    let before = quad.live_keys();
    system.batch_execute("DROP DATABASE one; DROP DATABASE two").await.expect("dropped");
    // The note of the other is in the way of neither.
    while hand_over(&server.gateway, Protocol::Catenae, &catenae).await.expect("handed over") {}
    while reclaim(&catenae).await.expect("reclaimed") {}
    assert_eq!((catenae.live_keys(), quad.live_keys()), (2, before));
    while hand_over(&server.gateway, Protocol::Quad, &quad).await.expect("handed over") {}
    while reclaim(&quad).await.expect("reclaimed") {}
    assert_eq!(quad.live_keys(), 2, "the last id given out, and the note that the database is no more");
}

#[tokio::test]
async fn cores_are_of_quad_alone_and_a_number_that_can_be() {
    let server = Server::start().await;
    let client = server.connect().await;
    for (with, said) in [
        ("cores = 3", "cores is an option of protocol \"quad\" only"),
        ("protocol = 'catenae', cores = auto", "cores is an option of protocol \"quad\" only"),
        ("protocol = 'quad', cores = many", "invalid number of cores: \"many\""),
        ("protocol = 'quad', cores = 0", "invalid number of cores: \"0\""),
        ("protocol = 'quad', cores = -2", "invalid number of cores: \"-2\""),
        ("protocol = 'quad', kappa = 3", "unrecognized option of a database: \"kappa\""),
    ] {
        let refused = client.batch_execute(&format!("CREATE DATABASE x WITH ({with})")).await.expect_err("refused");
        let refused = refused.as_db_error().expect("an error of the server");
        assert_eq!((refused.code().code(), refused.message()), ("22023", said), "{with}");
        assert!(refused.hint().is_some(), "{with}");
    }
    assert_eq!(code(client.batch_execute("ALTER DATABASE rhumb SET cores = 2").await), "22023");
    assert_eq!(code(client.batch_execute("CREATE DATABASE x WITH (protocol = 'quad', protocol = 'catenae')").await), "42601");
    for said in ["ALTER DATABASE rhumb SET cores = 2", "CREATE DATABASE x WITH (protocol = 'quad', cores = 2)"] {
        assert_eq!(code(client.batch_execute(&format!("BEGIN; {said}")).await), "25001", "ROLLBACK could not undo it: {said}");
        client.batch_execute("ROLLBACK").await.expect("rolled back");
    }
    assert_eq!(strings(&client, "SELECT datname FROM pg_database").await, ["rhumb"], "nothing was created");
}

#[tokio::test]
async fn the_protocol_of_each_database_is_shown() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE DATABASE shop WITH (protocol = 'catenae')").await.expect("created");
    let shown = strings(&client, "SELECT name || ' ' || protocol FROM rhumb.databases ORDER BY 1").await;
    assert_eq!(shown, ["rhumb replicated_commit", "shop catenae"]);
}
