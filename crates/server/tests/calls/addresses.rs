//! What may not be called is not called, whatever its name says.

use axum::Router;
use axum::http::header;
use axum::routing::any;
use punctual_core::Outcome;
use punctual_server::call::{Call, Caller, Guard, Ports};

use crate::servers::*;

/// 127.0.0.1 plays the public internet, and 127.0.0.2 what must not be reached.
fn guarded(resolver: &std::sync::Arc<Scripted>) -> Caller {
    let mut options = options();
    options.resolver = resolver.clone();
    options.guard =
        Guard { allow: vec!["127.0.0.1/32".parse().unwrap()], ports: Ports::Any, ..Guard::default() };
    Caller::new(options)
}

/// Two servers on one port, one at each address; neither keeps connections.
async fn public_and_private() -> (Served, Served) {
    let named = |name: &'static str| {
        Router::new().route("/", any(move || async move { ([(header::CONNECTION, "close")], name) }))
    };
    let public = serve(named("public")).await;
    let private = serve_at(&format!("127.0.0.2:{}", public.address.port()), named("private")).await;
    (public, private)
}

#[tokio::test]
async fn a_name_that_changes_its_answer_gains_nothing() {
    let (public, private) = public_and_private().await;
    let resolver = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let caller = guarded(&resolver);
    let url = format!("http://rebind.test:{}/", public.address.port());
    let first = result(outcome(&caller, attempt(), Call::post(&url)).await);
    assert_eq!((first["body"].as_str(), resolver.asked()), (Some("public"), 1));
    let second = error(outcome(&caller, attempt(), Call::post(&url)).await);
    assert_eq!(
        second,
        "blocked: 127.0.0.2 is a loopback address; allow it with --allow-net 127.0.0.2/32 (it is where rebind.test is)"
    );
    assert_eq!((public.connections(), private.connections(), resolver.asked()), (1, 0, 2));
}

#[tokio::test]
async fn of_several_addresses_only_those_allowed_are_tried() {
    let (public, private) = public_and_private().await;
    let resolver = Scripted::new(&[&["127.0.0.2", "10.0.0.1", "::1", "127.0.0.1"]]);
    let url = format!("http://mixed.test:{}/", public.address.port());
    let answer = result(outcome(&guarded(&resolver), attempt(), Call::post(&url)).await);
    assert_eq!(answer["body"], "public");
    assert_eq!((public.connections(), private.connections(), resolver.asked()), (1, 0, 1));
}

#[tokio::test]
async fn an_address_that_does_not_answer_is_followed_by_the_next() {
    let (public, _private) = public_and_private().await;
    let mut options = options();
    // Nobody listens at 127.0.0.3.
    options.resolver = Scripted::new(&[&["127.0.0.3", "127.0.0.1"]]);
    let url = format!("http://two.test:{}/", public.address.port());
    let answer = result(outcome(&Caller::new(options), attempt(), Call::post(&url)).await);
    assert_eq!(answer["body"], "public");
}

#[tokio::test]
async fn literal_addresses_are_blocked_however_they_are_written() {
    let server = serve(Router::new()).await;
    let port = server.address.port();
    let mut options = options();
    options.guard = Guard { ports: Ports::Any, ..Guard::default() };
    let caller = Caller::new(options);
    for host in ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "0"] {
        let outcome = outcome(&caller, attempt(), Call::post(format!("http://{host}:{port}/"))).await;
        // Tried again, in case an operator allows it.
        let Outcome::Failed { error, .. } = outcome else { panic!("{host}: {outcome:?}") };
        assert!(error.starts_with("blocked: "), "{host}: {error}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn our_own_address_is_never_called() {
    let server = serve(Router::new()).await;
    let mut options = options();
    options.guard.own = vec![server.address];
    let caller = Caller::new(options);
    for host in ["127.0.0.1", "localhost", "127.5.5.5"] {
        let url = format!("http://{host}:{}/", server.address.port());
        let text = error(outcome(&caller, attempt(), Call::post(url)).await);
        assert!(text.contains("is an address of Punctual itself"), "{host}: {text}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_without_addresses_is_a_failure() {
    let mut options = options();
    options.resolver = Scripted::new(&[&[]]);
    let text = error(outcome(&Caller::new(options), attempt(), Call::post("http://none.test/")).await);
    assert_eq!(text, "could not find the address of none.test: it has none");
}
