//! Times past the last that can be written: they are refused, and one that is stored all the same spoils no answer.

use punctual::{EmbeddedStore, NewTask, Scheduler, Target, Timestamp};

use super::world::World;

/// From any time of this century, this goes past the end of 9999.
const FAR: &str = "2990000d";

#[tokio::test]
async fn a_delay_past_the_end_of_time_is_refused_and_changes_nothing() {
    let world = World::at("2026-11-16T09:00:00Z").await;
    let tasks = "/v1/queues/q/tasks";
    let due = world.ask("POST", tasks, "{}").await.json();
    let later = world.ask("POST", tasks, r#"{"delay": "1h"}"#).await.json();
    let path = format!("/v1/tasks/{}", later["id"].as_str().unwrap());
    let reserved = world.ask("POST", "/v1/queues/q/reserve", "").await.json();
    let token = &reserved["tasks"][0]["token"];
    let nack = format!("/v1/tasks/{}/nack", due["id"].as_str().unwrap());
    for (method, path, body) in [
        ("POST", tasks, format!(r#"{{"delay": "{FAR}"}}"#)),
        // Between the last that can be written and the end of the year.
        ("POST", tasks, r#"{"delay": "2912130d"}"#.to_owned()),
        ("POST", tasks, r#"{"at": "9999-12-30T22:00:00.000001Z"}"#.to_owned()),
        ("POST", tasks, r#"{"expires_at": "9999-12-31T00:00:00Z"}"#.to_owned()),
        ("POST", tasks, r#"{"start_by": "9999-12-31T00:00:00Z"}"#.to_owned()),
        ("PATCH", &path, format!(r#"{{"delay": "{FAR}"}}"#)),
        ("POST", "/v1/tasks:move", format!(r#"{{"filter": {{}}, "delay": "{FAR}"}}"#)),
        ("POST", &nack, format!(r#"{{"token": {token}, "delay": "{FAR}"}}"#)),
        ("POST", "/v1/clock:advance", format!(r#"{{"by": "{FAR}"}}"#)),
    ] {
        let answer = world.ask(method, path, &body).await;
        assert_eq!(answer.problem(), (422, "time_out_of_range".to_owned()), "{method} {path} {body}");
        assert!(answer.body.contains("9999-12-30T22:00:00Z"), "{}", answer.body);
    }
    let listed = world.ask("GET", "/v1/tasks", "").await.json();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(world.ask("GET", &path, "").await.json()["at"], later["at"]);
    let nacked = world.ask("POST", &nack, &format!(r#"{{"token": {token}, "delay": "1h"}}"#)).await;
    assert_eq!(nacked.status, 200, "it is still reserved: {}", nacked.body);
    let last = world.ask("POST", tasks, r#"{"at": "9999-12-30T22:00:00Z"}"#).await;
    assert_eq!(last.json()["at"], "9999-12-30T22:00:00.000000Z", "{}", last.body);
}

#[tokio::test]
async fn a_task_of_the_library_at_the_end_of_time_spoils_no_answer() {
    let data = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(data.path()).await.unwrap();
    let library = Scheduler::builder().start(store).await.unwrap();
    let task = NewTask::to(Target::Worker).queue("q").at(Timestamp::MAX);
    let id = library.schedule(task).await.unwrap().id();
    library.stop(std::time::Duration::from_secs(5)).await.unwrap();
    drop(library);
    let world = World::on(data).await;
    for path in ["/v1/tasks", "/v1/queues/q/peek", "/v1/queues/q/stats", &format!("/v1/tasks/{id}")] {
        assert_eq!(world.ask("GET", path, "").await.status, 200, "{path}");
    }
    let shown = world.ask("GET", &format!("/v1/tasks/{id}"), "").await.json();
    assert_eq!(shown["at"], "9999-12-30T22:00:00.000000Z", "{shown}");
}
