#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore]
async fn listen() {
    let l = tokio::net::TcpListener::bind("127.0.0.1:15432").await.unwrap();
    let g = std::sync::Arc::new(rhumb_sql::testing::LocalGateway::new());
    rhumb_sql::server::serve(l, g, Default::default()).await.unwrap();
}
