//! Moving tasks: all that a filter finds, each once and all to one time.

use serde_json::{Value, json};

use super::world::World;

/// Makes so many tasks, a second apart.
async fn make(world: &World, count: usize) {
    let tasks: Vec<Value> =
        (0..count).map(|number| json!({"delay": format!("{}s", 3600 + number)})).collect();
    let made = world.ask("POST", "/v1/queues/f/tasks", &json!({"tasks": tasks}).to_string()).await;
    assert_eq!(made.status, 200, "{}", made.body);
}

#[tokio::test]
async fn a_move_by_filter_moves_each_task_once_and_ends() {
    let world = World::new().await;
    make(&world, 250).await;
    let (mut cursor, mut changed, mut requests) = (Value::Null, 0, 0);
    loop {
        let mut body = json!({"filter": {"queue": "f"}, "delay": "10h", "limit": 20});
        if !cursor.is_null() {
            body["cursor"] = cursor;
        }
        let page = world.ask("POST", "/v1/tasks:move", &body.to_string()).await.json();
        assert_eq!(page["matched"], page["changed"], "{page}");
        changed += page["changed"].as_u64().unwrap();
        cursor = page["next"].clone();
        requests += 1;
        if cursor.is_null() {
            break;
        }
        assert!(requests < 100, "it does not end: {changed} were moved");
    }
    assert_eq!(changed, 250);
    let listed = world.ask("GET", "/v1/tasks?queue=f&limit=1000", "").await.json();
    let tasks = listed["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 250);
    assert!(tasks.iter().all(|task| task["at"] == tasks[0]["at"] && task["revision"] == 2), "{}", tasks[0]);
}

#[tokio::test]
async fn a_cursor_of_one_time_is_not_for_another() {
    let world = World::new().await;
    make(&world, 3).await;
    let first = json!({"filter": {}, "at": "2099-01-01T00:00:00Z", "limit": 1});
    let page = world.ask("POST", "/v1/tasks:move", &first.to_string()).await.json();
    let other = json!({"filter": {}, "at": "2098-01-01T00:00:00Z", "cursor": page["next"]});
    let refused = world.ask("POST", "/v1/tasks:move", &other.to_string()).await;
    assert_eq!(refused.problem(), (400, "cursor_invalid".to_owned()));
}
