//! Keys: nobody gets in without one, none does more than it may, and none does anything after its time.

use futures_util::StreamExt;
use punctual_client::Client;
use punctual_client::wire::{EventQuery, Moment, NewKey, NewTask, PageQuery, Reserve, RotateKey, Scope};
use punctual_server::{Need, PATHS};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::world::{Answer, World, secs};

const TASKS: &str = "/v1/queues/mail/tasks";

/// A key with these scopes, in that namespace. The first that is made is for managing the others.
pub async fn key(admin: &Client, namespace: &str, scopes: &[Scope]) -> (String, String) {
    let new = NewKey {
        namespace: Some(namespace.to_owned()),
        scopes: Some(scopes.to_vec()),
        name: Some(format!("of {namespace}")),
        ..NewKey::default()
    };
    let made = admin.add_key(&new).await.expect("whoever manages keys can make one");
    (made.key.id, made.secret)
}

#[tokio::test]
async fn from_the_first_key_on_nobody_gets_in_without_one() {
    let world = World::new().await;
    let task = r#"{"delay": "1h"}"#;
    assert_eq!(world.ask("POST", TASKS, task).await.status, 201, "on loopback nobody needs a key");
    let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    for (authorization, code) in [
        (None, "key_missing"),
        (Some("Basic dXNlcjpwYXNz".to_owned()), "key_missing"),
        (Some("Bearer nonsense".to_owned()), "key_invalid"),
        (Some(format!("Bearer {}x", admin)), "key_invalid"),
        (Some(format!("Bearer {}", &admin[..admin.len() - 1])), "key_invalid"),
    ] {
        let headers: Vec<(&str, &str)> =
            authorization.iter().map(|it| ("authorization", it.as_str())).collect();
        let answer = world.ask_with("POST", TASKS, &headers, task.as_bytes()).await;
        assert_eq!(answer.problem(), (401, code.to_owned()), "{authorization:?}");
        assert!(answer.head.contains("www-authenticate: bearer"), "{}", answer.head);
    }
    let bearer = format!("bearer {admin}");
    let headers = [("authorization", bearer.as_str())];
    assert_eq!(world.ask_with("POST", TASKS, &headers, task.as_bytes()).await.status, 201);
    for open in ["/healthz", "/readyz", "/errors/key_missing"] {
        assert_eq!(world.ask("GET", open, "").await.status, 200, "{open} is for everybody");
    }
    let world = World::on(world.stop().await).await;
    assert_eq!(world.ask("GET", "/v1/tasks", "").await.problem().0, 401, "also after a restart");
    assert_eq!(world.ask_with("GET", "/v1/tasks", &headers, b"").await.status, 200);
}

#[tokio::test]
async fn a_key_does_what_its_scopes_say_and_nothing_else() {
    let world = World::new().await;
    let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&admin);
    let asks = [
        ("GET", "/v1/tasks", "", Scope::Read),
        ("GET", "/v1/tasks?view=full", "", Scope::Payloads),
        ("GET", "/v1/tasks?v%69ew=ful%6C", "", Scope::Payloads),
        ("GET", "/v1/queues/mail/peek", "", Scope::Payloads),
        ("POST", TASKS, r#"{"delay": "1h"}"#, Scope::Write),
        ("POST", "/v1/queues/mail/reserve", "{}", Scope::Work),
        ("GET", "/metrics", "", Scope::Metrics),
        ("GET", "/v1/keys", "", Scope::Admin),
    ];
    for (method, path, body, needed) in asks {
        for scope in Scope::ALL {
            // Whoever sees payloads must also be able to look at tasks.
            let scopes: &[Scope] =
                if *scope == Scope::Payloads { &[Scope::Read, Scope::Payloads] } else { &[*scope] };
            let (_, secret) = key(&admin, "default", scopes).await;
            let bearer = format!("Bearer {secret}");
            let headers = [("authorization", bearer.as_str())];
            let answer = world.ask_with(method, path, &headers, body.as_bytes()).await;
            let may = scopes.contains(&needed) || *scope == Scope::Admin;
            assert_eq!(answer.status < 300, may, "{method} {path} with {scopes:?}: {}", answer.body);
            if !may {
                assert_eq!(answer.problem(), (403, "scope_missing".to_owned()));
                let names = |scope: Scope| answer.body.contains(&format!("`{scope}`"));
                assert!(names(needed) || names(Scope::Read), "it names what is missing: {}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn every_path_refuses_whoever_has_no_key_or_not_the_scope() {
    let world = World::new().await;
    let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&admin);
    for needed in Scope::ALL {
        // Every scope but the one that is needed, and but the one that is all of them.
        let others = Scope::ALL.iter().copied().filter(|scope| scope != needed && *scope != Scope::Admin);
        let (_, others) = key(&admin, "default", &others.collect::<Vec<_>>()).await;
        let bearer = format!("Bearer {others}");
        let paths = PATHS.iter().flat_map(|(path, methods)| methods.iter().map(move |line| (path, line)));
        for (path, (method, _)) in paths.filter(|(_, (_, need))| *need == Need::Scope(*needed)) {
            let verb = match (*method, *path) {
                ("POST", "/v1/tasks/{id}") => ":run",
                ("POST", "/v1/queues/{queue}") => ":pause",
                ("POST", "/v1/keys/{id}") => ":rotate",
                _ => "",
            };
            let at = path.replace("{id}", "x").replace("{queue}", "q") + verb;
            let answer = world.ask(method, &at, "{}").await;
            assert_eq!(answer.problem(), (401, "key_missing".to_owned()), "{method} {at}");
            let answer = world.ask_with(method, &at, &[("authorization", &bearer)], b"{}").await;
            assert_eq!(answer.problem(), (403, "scope_missing".to_owned()), "{method} {at} needs {needed}");
        }
    }
    let open: Vec<&str> =
        PATHS.iter().filter(|(_, lines)| lines[0].1 == Need::Nothing).map(|(path, _)| *path).collect();
    assert_eq!(
        open,
        ["/errors/{code}", "/healthz", "/openapi.json", "/readyz"],
        "nothing else is for everybody"
    );
}

#[tokio::test]
async fn a_rotated_key_works_with_both_secrets_for_a_while() {
    let world = World::new().await;
    let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&admin);
    let (id, first) = key(&admin, "default", &[Scope::Write]).await;
    let overlapping = RotateKey { overlap: Some(secs(3600).into()) };
    let second = admin.rotate_key(&id, &overlapping).await.unwrap();
    assert!(second.key.overlap_until.is_some() && second.key.id == id && second.secret != first);
    for secret in [&first, &second.secret] {
        world.client_with(secret).create("mail", &NewTask::new()).await.unwrap();
    }
    let at_once = RotateKey { overlap: Some(secs(0).into()) };
    let third = admin.rotate_key(&id, &at_once).await.unwrap().secret;
    for former in [&first, &second.secret] {
        assert!(refused(&world, former).await, "without an overlap no old secret is good for anything");
    }
    world.client_with(&third).create("mail", &NewTask::new()).await.unwrap();
    let revoked = admin.revoke_key(&id).await.unwrap();
    assert!(revoked.revoked_at.is_some());
    for secret in [&first, &second.secret, &third] {
        assert!(refused(&world, secret).await);
    }
    let listed = admin.keys(&PageQuery::default()).await.unwrap().keys;
    let listed = listed.iter().find(|key| key.id == id).unwrap();
    assert!(listed.last_used_at.is_some() && listed.revoked_at == revoked.revoked_at);
    let answer = admin.rotate_key(&id, &at_once).await.unwrap_err();
    assert!(format!("{answer:?}").contains("key_not_found"), "{answer:?}");
}

async fn refused(world: &World, secret: &str) -> bool {
    let bearer = format!("Bearer {secret}");
    let answer = world.ask_with("POST", TASKS, &[("authorization", bearer.as_str())], b"{}").await;
    answer.status == 401 && answer.problem().1 == "key_invalid"
}

#[tokio::test]
async fn a_key_that_has_expired_opens_nothing() {
    let world = World::new().await;
    let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&admin);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(1);
    let new = NewKey { expires_at: Some(soon.to_string().parse().unwrap()), ..NewKey::default() };
    let made = admin.add_key(&new).await.unwrap();
    let client = world.client_with(&made.secret);
    client.create("mail", &NewTask::new()).await.unwrap();
    // Nothing but the clock tells when its time is over.
    while client.create("mail", &NewTask::new()).await.is_ok() {}
    assert!(jiff::Timestamp::now() >= soon, "not before its time");
    assert!(refused(&world, &made.secret).await);
}

#[tokio::test]
async fn keys_that_would_lock_everybody_out_are_refused() {
    let world = World::new().await;
    for (body, field) in [
        (r#"{"scopes": ["read"]}"#, "scopes"),
        (r#"{}"#, "scopes"),
        (r#"{"scopes": []}"#, "scopes"),
        (r#"{"scopes": ["admin"], "namespace": "a/b"}"#, "namespace"),
        (r#"{"scopes": ["admin"], "name": ""}"#, "name"),
        (r#"{"scopes": ["admin"], "expires_at": "2001-01-01T00:00:00Z"}"#, "expires_at"),
        (r#"{"scopes": ["admin"], "expires_at": "2999-01-01T00:00:00Z"}"#, "expires_at"),
        (r#"{"scopes": ["admin"], "requests_per_second": 0}"#, "requests_per_second"),
        (r#"{"scopes": ["admin", "fly"]}"#, "scopes[1]"),
        (r#"{"scope": ["admin"]}"#, "scope"),
    ] {
        let answer = world.ask("POST", "/v1/keys", body).await;
        assert_eq!(answer.problem(), (422, "field_invalid".to_owned()), "{body}: {}", answer.body);
        assert_eq!(answer.json()["errors"][0]["field"], field, "{body}: {}", answer.body);
    }
    assert_eq!(world.ask("GET", "/v1/keys", "").await.json()["keys"].as_array().unwrap().len(), 0);
    let (id, secret) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&secret);
    let bearer = format!("Bearer {secret}");
    let path = format!("/v1/keys/{id}");
    let last = world.ask_with("DELETE", &path, &[("authorization", &bearer)], b"").await;
    assert_eq!(last.problem(), (409, "key_needed".to_owned()));
    key(&admin, "default", &[Scope::Admin]).await;
    admin.revoke_key(&id).await.unwrap();
    assert!(refused(&world, &secret).await);
}

#[tokio::test]
async fn secrets_are_nowhere_but_with_whoever_made_them() {
    let world = World::new().await;
    let (id, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let client = world.client_with(&admin);
    let listed = client.keys(&PageQuery::default()).await.unwrap();
    assert!(!format!("{listed:?}").contains(&admin[..40]));
    let rotated = client.rotate_key(&id, &RotateKey::default()).await.unwrap();
    assert!(!format!("{rotated:?}").contains(&rotated.secret));
    client.create("mail", &NewTask::new().name("needle-that-is-stored")).await.unwrap();
    drop(client);
    let data = world.stop().await;
    let (mut files, mut found) = (0, 0);
    let mut folders = vec![data.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let bytes = std::fs::read(&entry).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let holds = |part: &str| text.contains(part);
            files += 1;
            found += usize::from(holds("needle-that-is-stored"));
            for secret in [&admin, &rotated.secret] {
                let (_, secret) = secret.rsplit_once(&format!("{id}_")).unwrap();
                assert!(!holds(secret), "{} holds a secret", entry.display());
            }
        }
    }
    assert!(files > 2 && found > 0, "the folder was looked through");
}

#[tokio::test]
async fn without_keys_pages_of_other_sites_are_not_let_in() {
    let world = World::new().await;
    let asks = async |origin: &str| {
        let headers = [("origin", origin), ("content-type", "text/plain")];
        let answer = world.ask_with("POST", TASKS, &headers, b"{}").await;
        answer.status
    };
    assert_eq!(asks("https://evil.example").await, 403);
    assert_eq!(asks("null").await, 403);
    assert_eq!(asks("http://localhost").await, 201, "the page is ours");
    let cross_site = world.ask_with("GET", "/v1/tasks", &[("sec-fetch-site", "cross-site")], b"").await;
    assert_eq!(cross_site.problem(), (403, "origin_foreign".to_owned()));
    let same_origin = world.ask_with("GET", "/v1/tasks", &[("sec-fetch-site", "same-origin")], b"").await;
    assert_eq!(same_origin.status, 200);
}

/// What a page can do whose name leads to this machine: to the browser, it is of one site with us.
#[tokio::test]
async fn without_keys_only_this_machines_names_are_answered() {
    let world = World::new().await;
    let asks = async |head: &str| {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        Answer::read(&bytes)
    };
    let close = "connection: close";
    for host in ["evil.example", "evil.example:8700", "192.168.0.7", "localhost.evil.example"] {
        let refused = asks(&format!("GET /v1/tasks HTTP/1.1\r\nhost: {host}\r\n{close}")).await;
        assert_eq!(refused.problem(), (421, "host_foreign".to_owned()), "{host}");
    }
    for host in ["localhost", "LocalHost:1", "127.0.0.1:8700", "[::1]:8700"] {
        assert_eq!(
            asks(&format!("GET /v1/tasks HTTP/1.1\r\nhost: {host}\r\n{close}")).await.status,
            200,
            "{host}"
        );
    }
    assert_eq!(asks("GET /v1/tasks HTTP/1.0").await.status, 200, "it says no name");
    key(&world.client, "default", &[Scope::Admin]).await;
    let with_keys = asks(&format!("GET /v1/tasks HTTP/1.1\r\nhost: evil.example\r\n{close}")).await;
    assert_eq!(with_keys.problem(), (401, "key_missing".to_owned()), "a key is what counts now");
}

#[tokio::test]
async fn a_stream_of_events_ends_with_its_key() {
    let world = World::new().await;
    let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&admin);
    let (id, secret) = key(&admin, "default", &[Scope::Read]).await;
    let reader = world.client_with(&secret);
    let mut events = std::pin::pin!(reader.events(&EventQuery::default()).await.unwrap());
    admin.create("mail", &NewTask::new()).await.unwrap();
    events.next().await.unwrap().unwrap();
    admin.revoke_key(&id).await.unwrap();
    // What was on its way comes; then there is an end, whether or not anything happens.
    let rest: Vec<_> = events.collect().await;
    assert!(rest.len() <= 1, "{rest:?}");
}

/// It went on for whoever had got hold of the secret that was replaced.
#[tokio::test]
async fn a_stream_of_events_ends_with_the_secret_that_began_it() {
    let world = World::new().await;
    let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&admin);
    let (id, first) = key(&admin, "default", &[Scope::Read]).await;
    let of_first = world.client_with(&first).events(&EventQuery::default()).await.unwrap();
    let begun = jiff::Timestamp::now();
    let overlap = secs(2);
    let second = admin.rotate_key(&id, &RotateKey { overlap: Some(overlap.into()) }).await.unwrap().secret;
    assert_eq!(of_first.count().await, 0, "nothing happens but that");
    assert!(jiff::Timestamp::now() >= begun + overlap, "not before its time");
    let of_second = world.client_with(&second).events(&EventQuery::default()).await.unwrap();
    let third = admin.rotate_key(&id, &RotateKey { overlap: Some(secs(0).into()) }).await.unwrap().secret;
    assert_eq!(of_second.count().await, 0, "without an overlap it ends at once");
    assert!(world.client_with(&third).events(&EventQuery::default()).await.is_ok());
}

#[tokio::test]
async fn a_stream_of_events_ends_when_its_key_expires() {
    let world = World::new().await;
    let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&admin);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3);
    let new = NewKey { expires_at: Some(soon.to_string().parse().unwrap()), ..NewKey::default() };
    let passing = admin.add_key(&new).await.unwrap();
    let reader = world.client_with(&passing.secret);
    let events = reader.events(&EventQuery::default()).await.unwrap();
    assert_eq!(events.count().await, 0, "nothing happens but that");
    assert!(jiff::Timestamp::now() >= soon, "not before its time");
}

#[tokio::test]
async fn a_worker_whose_key_is_revoked_while_it_waits_gets_nothing() {
    let world = World::new().await;
    let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&admin);
    let (id, secret) = key(&admin, "default", &[Scope::Work]).await;
    let worker = world.client_with(&secret);
    let wish = Reserve { wait: Some(secs(20).into()), ..Reserve::default() };
    let revoking = async {
        // The worker asks first, on a connection that is open; what is made below wakes it.
        worker.reserve("mail", &Reserve::default()).await.ok();
        let waiting = tokio::spawn({
            let worker = worker.clone();
            async move { worker.reserve("mail", &wish).await }
        });
        for _ in 0..100 {
            admin.list(&Default::default()).await.unwrap();
        }
        admin.revoke_key(&id).await.unwrap();
        admin.create("mail", &NewTask::new()).await.unwrap();
        waiting.await.unwrap()
    };
    assert_eq!(revoking.await.unwrap_err().code(), Some("key_invalid"));
    let (_, other) = key(&admin, "default", &[Scope::Work]).await;
    let wish = Reserve { wait: Some(secs(20).into()), ..Reserve::default() };
    let got = world.client_with(&other).reserve("mail", &wish).await.unwrap();
    assert_eq!(got.len(), 1, "the task went back");
}

#[tokio::test]
async fn the_last_lasting_key_of_an_administrator_stays() {
    let world = World::new().await;
    let (lasting, secret) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&secret);
    let expires_at = Some(Moment::from_micros(4_000_000_000_000_000).into());
    let expiring = NewKey { scopes: Some(vec![Scope::Admin]), expires_at, ..NewKey::default() };
    let passing = [admin.add_key(&expiring).await.unwrap(), admin.add_key(&expiring).await.unwrap()];
    let refused = admin.revoke_key(&lasting).await.unwrap_err();
    assert_eq!(refused.code(), Some("key_needed"));
    assert!(refused.to_string().contains("does not expire"), "{refused}");
    assert!(world.client_with(&secret).keys(&PageQuery::default()).await.is_ok(), "it is good as before");
    admin.revoke_key(&passing[0].key.id).await.unwrap();
    let (other, _) = key(&admin, "default", &[Scope::Admin]).await;
    // Two who revoke at once: one of them stays.
    let (one, two) = tokio::join!(admin.revoke_key(&lasting), admin.revoke_key(&other));
    assert_eq!([&one, &two].iter().filter(|revoked| revoked.is_ok()).count(), 1, "{one:?} {two:?}");
}
