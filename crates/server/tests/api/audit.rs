//! The audit: who changed what, when and from where; never a secret, never a payload.

use std::path::Path;

use punctual_client::wire::{NewTask, Scope};
use serde_json::Value;

use super::keys::key;
use super::world::World;

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("there is an audit");
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

#[tokio::test]
async fn every_change_is_written_with_the_key_that_made_it() {
    let world = World::new().await;
    world.client.create("before", &NewTask::new()).await.unwrap();
    let (id, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let admin = world.client_with(&admin);
    let (shop, secret) = key(&admin, "shop", &[Scope::Read, Scope::Write]).await;
    let client = world.client_with(&secret);
    let payload = punctual_client::wire::Json::of(&"a payload of theirs").unwrap();
    let task = NewTask { payload: Some(payload), delay: Some("1h".parse().unwrap()), ..NewTask::new() };
    let task = client.create("mail", &task).await.unwrap().task.id;
    client.list(&Default::default()).await.unwrap();
    client.cancel(&task).await.unwrap();
    client.cancel(&task).await.unwrap_err();
    let bearer = format!("Bearer {secret}");
    let nonsense = format!("/v1/tasks/{task}?nonsense");
    world.ask_with("DELETE", &nonsense, &[("authorization", bearer.as_str())], b"").await;
    world.client.list(&Default::default()).await.unwrap_err();
    drop((admin, client));
    let data = world.stop().await;
    let path = data.path().join("audit.jsonl");
    let audit = lines(&path);
    let said: Vec<String> = audit
        .iter()
        .map(|line| {
            let text = |field: &str| line[field].as_str().unwrap_or("-").to_owned();
            let status = line["status"].as_u64().unwrap();
            let deed =
                format!("{} {} {} {status} {}", text("key"), text("namespace"), text("method"), text("code"));
            deed.replace(&id, "ADMIN").replace(&shop, "SHOP")
        })
        .collect();
    // What was made before there were keys is nobody's; the request that made the first key had none yet.
    assert_eq!(
        said,
        [
            "- default POST 201 -",
            "ADMIN default POST 201 -",
            "SHOP shop POST 201 -",
            "SHOP shop DELETE 200 -",
            "SHOP shop DELETE 409 task_ended",
            "SHOP shop DELETE 400 query_invalid",
            "- - GET 401 key_missing",
        ]
    );
    assert_eq!(audit[2]["path"], "/v1/queues/mail/tasks");
    assert_eq!(audit[2]["made"], format!("/v1/tasks/{task}"));
    assert_eq!(audit[3]["path"], format!("/v1/tasks/{task}"));
    assert_eq!(audit[2]["from"], "127.0.0.1");
    assert!(audit.iter().all(|line| line["at"].as_str().is_some_and(|at| at.ends_with('Z'))));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("theirs") && !text.contains(&secret[30..]), "{text}");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn an_audit_goes_on_where_it_ended_and_can_be_had_without_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("who.jsonl");
    let mut data = tempfile::tempdir().unwrap();
    for count in 1..=2 {
        let world = World::with(data, |options| options.audit = Some(path.clone())).await;
        world.client.create("mail", &NewTask::new()).await.unwrap();
        data = world.stop().await;
        assert_eq!(lines(&path).len(), count);
    }
}

#[tokio::test]
async fn refusals_cannot_fill_the_disk() {
    let world = World::new().await;
    key(&world.client, "default", &[Scope::Admin]).await;
    for _ in 0..400 {
        world.client.list(&Default::default()).await.unwrap_err();
    }
    let data = world.stop().await;
    let refusals = lines(&data.path().join("audit.jsonl")).into_iter().filter(|line| line["status"] == 401);
    let refusals = refusals.count();
    assert!((100..300).contains(&refusals), "{refusals} of 400 were written");
}
