//! What goes wrong is sorted by what to do about it.

use std::error::Error as _;
use std::time::Duration;

use punctual_client::wire::*;
use punctual_client::{Client, Error};

use crate::server::{Fault, Server};

#[tokio::test]
async fn a_refusal_carries_its_problem() {
    let server = Server::start().await;
    let at = "2026-11-16T09:00".parse().unwrap();
    let error =
        server.client().create("mail", &NewTask { at: Some(at), ..NewTask::new() }).await.unwrap_err();
    let Error::Refused(problem) = &error else { panic!("{error:?}") };
    assert_eq!((problem.status, problem.kind()), (422, "/errors/time_invalid".to_owned()));
    assert!(error.to_string().starts_with("Bad time; at: 2026-11-16T09:00:00 has no offset"), "{error}");
    assert!(!error.is_passing());
}

#[tokio::test]
async fn a_busy_server_says_how_long_to_wait() {
    let server = Server::start().await;
    server.fail("/tasks", Fault::Refuse(429, code::OVERLOADED));
    let error = server.client().create("mail", &NewTask::new()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(error.is_passing());
    assert!(server.world.tasks().tasks.is_empty());
}

#[tokio::test]
async fn a_lost_answer_leaves_it_open_whether_it_happened() {
    let server = Server::start().await;
    server.fail("/tasks", Fault::LoseAnswer);
    let error = server.client().create("mail", &NewTask::new()).await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error:?}");
    assert_eq!(server.world.tasks().tasks.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_not_waited_for() {
    let server = Server::start().await;
    server.fail("/readyz", Fault::Hang);
    let client = server.client_with(|builder| builder.timeout(Duration::from_secs(3)));
    let error = client.is_ready().await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error:?}");
    // The next one goes through.
    assert!(client.is_ready().await.unwrap());
}

#[tokio::test]
async fn no_connection_means_that_nothing_happened() {
    // Nobody listens on a port that was given back.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::new(&format!("http://{address}")).unwrap();
    let error = client.create("mail", &NewTask::new()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    assert!(error.source().is_some());
}

#[tokio::test]
async fn an_answer_has_a_limit() {
    let server = Server::start().await;
    let client = server.client_with(|builder| builder.answer_max(100));
    let error = client.create("mail", &NewTask::new()).await.unwrap_err();
    assert!(matches!(error, Error::Unreadable(_)), "{error:?}");
}

#[tokio::test]
async fn a_key_is_not_shown() {
    let server = Server::start().await;
    let client = server.client_with(|builder| builder.key("sesame"));
    assert!(!format!("{client:?}").contains("sesame"));
}
