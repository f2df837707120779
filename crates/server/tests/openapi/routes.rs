//! Every path of the router is in the document, and every path of the document leads somewhere.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use punctual_client::wire::Problem;
use punctual_server::api::{KEY_VERBS, QUEUE_VERBS, TASK_VERBS, paths};
use punctual_server::{Options, Server};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::document::operations;

type Routes = BTreeSet<(String, String)>;

#[tokio::test]
async fn the_document_and_the_router_know_the_same_paths() {
    let served = served().await;
    let described: Routes =
        operations().iter().map(|it| (it.path.to_owned(), it.method.to_uppercase())).collect();
    let missing: Vec<_> = served.difference(&described).collect();
    assert!(missing.is_empty(), "the server answers these, and the document does not have them: {missing:?}");
    let more: Vec<_> = described.difference(&served).collect();
    assert!(more.is_empty(), "the document has these, and the server does not answer them: {more:?}");
}

/// What the router answers: for each of its paths, the methods that it takes. A path that takes verbs has one route for
/// each of them.
async fn served() -> Routes {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let options =
        Options { drain: Duration::ZERO, ..Options::new(folder.path(), ([127, 0, 0, 1], 0).into()) };
    let server = Server::start(options);
    let server = server.await.expect("a server can be started");
    let address = server.address().expect("it listens");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async { stopped.await.unwrap_or_default() }));
    let mut routes = Routes::new();
    for path in paths() {
        let verbs: Vec<&str> = match path {
            "/v1/tasks/{id}" => TASK_VERBS.iter().map(|(verb, _)| *verb).collect(),
            "/v1/keys/{id}" => KEY_VERBS.iter().map(|(verb, _)| *verb).collect(),
            "/v1/queues/{queue}" => QUEUE_VERBS.iter().map(|(verb, _)| *verb).collect(),
            _ => Vec::new(),
        };
        let with_verbs = verbs.into_iter().map(|verb| format!("{path}:{verb}"));
        for path in std::iter::once(path.to_owned()).chain(with_verbs) {
            let taken = taken(address, &path.replace(['{', '}'], "")).await;
            routes.extend(taken.into_iter().map(|method| (path.clone(), method.to_owned())));
        }
    }
    drop(stop);
    running.await.expect("it does not panic").expect("it stops in good order");
    routes
}

/// The methods that a path takes. It says the same when it is asked with another one.
async fn taken(address: SocketAddr, path: &str) -> Vec<&'static str> {
    let mut taken = Vec::new();
    for method in ["GET", "PUT", "PATCH", "DELETE", "POST"] {
        if !head(address, method, path).await.starts_with("http/1.1 405") {
            taken.push(method);
        }
    }
    let refused = head(address, "BREW", path).await;
    assert!(refused.starts_with("http/1.1 405") && refused.contains(Problem::MEDIA_TYPE), "{refused}");
    let allow =
        refused.lines().find_map(|line| line.strip_prefix("allow: ")).expect("405 says what is allowed");
    let mut allowed: Vec<String> = allow.split(',').map(|method| method.trim().to_uppercase()).collect();
    allowed.retain(|method| method != "HEAD");
    allowed.sort_by_key(|method| taken.iter().position(|taken| taken == method));
    assert_eq!(allowed, taken, "{path}");
    taken
}

/// The head of an answer, in small letters. Its body may never end.
async fn head(address: SocketAddr, method: &str, path: &str) -> String {
    let mut stream = BufReader::new(TcpStream::connect(address).await.expect("the server listens"));
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("it can be asked");
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).await.expect("it answers"), 0, "{method} {path}: {head}");
    }
    head.to_lowercase()
}
