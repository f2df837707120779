//! What becomes of tasks, in words.

use punctual_core::{
    Answer, AskNo, Change, Created, EndState, EndedTask, Found, Obstacle, Place, Query, RowKey, Task, TaskId,
    WaitState,
};
use punctual_store::Store;

use super::accept::label;
use super::shell::surely;
use super::words::due;
use super::world::World;

impl World {
    /// A line that scripts get only when they ask for this kind.
    pub fn show(&mut self, kind: &str, text: &str) {
        if self.shown.contains(kind) {
            self.say("", text);
        }
    }

    pub fn obstacle_name(&self, obstacle: Obstacle) -> String {
        self.obstacles.get(&obstacle).cloned().unwrap_or_else(|| format!("{obstacle:?}"))
    }

    /// A change is on stable storage.
    pub fn written(&mut self, change: &Change) {
        self.promises.written(self.clock.now(), change);
        match change {
            Change::Accepted(task) => self.note(task),
            Change::Refiled { from, task, .. } => {
                self.note(task);
                self.refiled(*from, task);
            }
            Change::Ended { task, end, .. } => {
                self.note(task);
                self.count("ended");
                let label = label(&task.spec);
                let word = match end.state {
                    EndState::Succeeded => "finish",
                    EndState::Dead => "give up",
                    EndState::Cancelled => "cancel",
                    EndState::Expired => "expire",
                };
                self.say(&label, &format!("{word} {label}"));
            }
            Change::Revived(task) => {
                let label = label(&task.spec);
                self.say(&label, &format!("revive {label}"));
            }
            Change::Held { obstacle, holder } => {
                let name = self.obstacle_name(*obstacle);
                let by = holder.map_or_else(String::new, |id| format!(" by {}", self.label_of(id)));
                self.show("holds", &format!("hold {name}{by}"));
            }
            Change::Cleared(obstacle) => {
                let name = self.obstacle_name(*obstacle);
                self.show("holds", &format!("free {name}"));
            }
            Change::LowWater(_, at) => self.show("marks", &format!("mark t{}", due(*at))),
            Change::Began { id, attempts, .. } => {
                let text = format!("begin {} #{attempts}", self.label_of(*id));
                self.show("begins", &text);
            }
            Change::Schedule(..) => {}
        }
    }

    fn refiled(&mut self, from: Place, task: &Task) {
        let (Place::Window(_, RowKey { wake_at, .. }) | Place::Parked(_, RowKey { wake_at, .. })) = from;
        let label = label(&task.spec);
        let at = due(task.wake_at);
        match task.parked {
            _ if task.state == WaitState::Blocked => self.say(&label, &format!("block {label}")),
            Some(obstacle) => {
                let text = format!("park {label} under {}", self.obstacle_name(obstacle));
                self.show("parks", &text);
            }
            None if task.wake_at > wake_at => self.say(&label, &format!("postpone {label} to t{at}")),
            None if task.wake_at < wake_at => self.say(&label, &format!("bring {label} to t{at}")),
            None => self.say(&label, &format!("refile {label}")),
        }
    }

    fn note(&mut self, task: &Task) {
        let label = label(&task.spec);
        self.ids.insert(label.clone(), task.id);
        self.labels.insert(task.id, label);
    }

    fn label_of(&self, id: TaskId) -> String {
        self.labels.get(&id).cloned().unwrap_or_else(|| format!("{:?}", id.seq))
    }

    /// A write was cut, and nobody was told where: the promises are held against what is there now.
    pub fn look_at_what_was_written(&mut self, changes: &[Change]) {
        for change in changes {
            let id = match change {
                Change::Accepted(task)
                | Change::Refiled { task, .. }
                | Change::Ended { task, .. }
                | Change::Revived(task) => task.id,
                Change::Began { id, .. } => *id,
                _ => continue,
            };
            let partition = id.partition(self.partitions);
            let found = surely(self.store.find(partition, &[Query::Id(id)])).into_iter().next().flatten();
            if let Some(Found::Live(task) | Found::Ended(EndedTask { task, .. })) = &found {
                self.note(task);
            }
            self.promises.looked_up(self.clock.now(), id, found);
        }
    }

    pub fn hear_answer(&mut self, no: AskNo, answer: Answer) {
        let Some(what) = self.asks.remove(&no) else { return };
        let labels = what.split_once(' ').map_or("", |(_, labels)| labels).to_owned();
        let text = match answer {
            Answer::Created(created) => {
                self.promises.created(self.clock.now(), &created);
                return self.hear_created(&labels, &created);
            }
            Answer::Amended(task) => format!("done, due t{}", due(task.wake_at)),
            Answer::Cancelled => "cancelled".to_owned(),
            Answer::Prolonged => "prolonged".to_owned(),
            Answer::Late => "late".to_owned(),
            Answer::Running { attempt } => format!("running #{attempt}"),
            Answer::Ended(state) => format!("ended {state:?}").to_lowercase(),
            Answer::NotFound => "not found".to_owned(),
            Answer::Outdated { revision } => format!("outdated, revision {revision}"),
            Answer::Overloaded => "overloaded".to_owned(),
            Answer::NotOwner => "not owner".to_owned(),
            Answer::Unknown => "unknown".to_owned(),
        };
        self.say(&labels, &format!("answer {what}: {text}"));
    }

    fn hear_created(&mut self, labels: &str, created: &[Created]) {
        for (label, created) in labels.split(' ').zip(created) {
            let text = match created {
                Created::New(id) => {
                    self.ids.insert(label.to_owned(), *id);
                    if self.shown.contains("accepts") {
                        self.say(label, &format!("accept {label}"));
                    }
                    continue;
                }
                Created::Replaced(_) => "replaced".to_owned(),
                Created::Kept(id, state) => format!("kept {} {state:?}", self.label_of(*id)).to_lowercase(),
                Created::Ended(id, state) => format!("ended {} {state:?}", self.label_of(*id)).to_lowercase(),
                Created::Conflict(id) => format!("conflict {}", self.label_of(*id)),
                Created::Past => "past".to_owned(),
                Created::Full => "full".to_owned(),
            };
            self.say(label, &format!("answer accept {label}: {text}"));
        }
    }
}
