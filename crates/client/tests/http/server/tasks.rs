//! The tasks of the server in memory, and what can be done with them.

use std::collections::BTreeMap;

use punctual_client::wire::*;

/// The moment at which everything happens here.
pub fn now() -> Moment {
    "2026-11-16T08:00:00Z".parse().expect("a time")
}

/// All tasks.
#[derive(Default)]
pub struct Tasks {
    pub tasks: BTreeMap<String, Task>,
    tokens: BTreeMap<String, String>,
    /// Tasks go to workers with this time to run.
    pub ttr: Option<Span>,
}

fn no_such_task() -> Problem {
    Problem::new(404, code::TASK_NOT_FOUND, "No such task", "look at the id")
}

impl Tasks {
    pub fn create(&mut self, queue: &str, new: &NewTask) -> Result<Task, Problem> {
        let at = match (&new.at, new.delay) {
            (Some(at), None) => at.resolve(new.timezone.as_deref()).map_err(|wrong| {
                Problem::new(422, "time_invalid", "Bad time", "").field("at", wrong.to_string())
            })?,
            (None, delay) => {
                let delay = delay.map_or(0, |delay| std::time::Duration::from(delay).as_micros() as i64);
                Moment::from_micros(now().as_micros() + delay)
            }
            (Some(_), Some(_)) => return Err(Problem::new(422, "two_times", "Two times", "")),
        };
        let id = format!("{:04}", self.tasks.len() + 1);
        let task = Task {
            id: id.clone(),
            queue: queue.to_owned(),
            state: State::Scheduled,
            at,
            next_at: Some(at),
            lane: new.lane.clone(),
            unique_key: new.unique_key.clone(),
            name: new.name.clone(),
            priority: new.priority.unwrap_or(5),
            attempts: 0,
            target: if new.http.is_some() { TargetKind::Http } else { TargetKind::Worker },
            start_by: None,
            expires_at: None,
            timeout: new.timeout,
            last_error: None,
            ended_at: None,
            revision: 1,
            warnings: Vec::new(),
            payload: new.payload.clone(),
            payload_base64: new.payload_base64.clone(),
            http: new.http.clone(),
            handler: new.handler.clone(),
            callback: new.callback.clone(),
            result: None,
            retry: new.retry.clone(),
        };
        self.tasks.insert(id, task.clone());
        Ok(task)
    }

    pub fn get(&mut self, id: &str) -> Result<&mut Task, Problem> {
        self.tasks.get_mut(id).ok_or_else(no_such_task)
    }

    pub fn state(&self, id: &str) -> State {
        self.tasks[id].state
    }

    pub fn count(&self, state: State) -> usize {
        self.tasks.values().filter(|task| task.state == state).count()
    }

    pub fn patch(&mut self, id: &str, revision: Option<&str>, patch: Patch) -> Result<Task, Problem> {
        let task = self.get(id)?;
        if revision.is_some_and(|revision| revision != format!("\"{}\"", task.revision)) {
            return Err(Problem::new(412, code::TASK_CHANGED, "It was changed", ""));
        }
        if let Some(at) = patch.at {
            task.at = at.resolve(patch.timezone.as_deref()).map_err(|_| no_such_task())?;
        }
        task.payload = patch.payload.or(task.payload.take());
        task.callback = patch.callback.apply_to(task.callback.take());
        task.timeout = patch.timeout.apply_to(task.timeout);
        task.revision += 1;
        Ok(task.clone())
    }

    pub fn cancel(&mut self, id: &str) -> Result<Cancelled, Problem> {
        let task = self.get(id)?;
        match task.state {
            State::Running | State::Reserved => Err(Problem::new(409, code::TASK_RUNNING, "It runs", "")),
            state if state.has_ended() => Err(Problem::new(409, code::TASK_ENDED, "It has ended", "")),
            _ => {
                task.state = State::Cancelled;
                Ok(Cancelled { state: State::Cancelled })
            }
        }
    }

    pub fn list(&self, query: &TaskQuery) -> TaskPage {
        let after = query.cursor.clone().unwrap_or_default();
        let limit = query.limit.unwrap_or(100) as usize;
        let wanted = |task: &&Task| {
            task.id > after
                && query.queue.as_ref().is_none_or(|queue| *queue == task.queue)
                && query.state.is_none_or(|state| state == task.state)
                && query.name.is_none_or_eq(&task.name)
        };
        let mut tasks: Vec<Task> = self.tasks.values().filter(wanted).take(limit + 1).cloned().collect();
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        TaskPage { next: tasks.last().filter(|_| more).map(|task| task.id.clone()), tasks }
    }

    pub fn reserve(&mut self, queue: &str, max: usize) -> Vec<ReservedTask> {
        let ttr = self.ttr.unwrap_or(Span::from_secs(60));
        let is_next = |task: &&mut Task| {
            task.queue == queue && matches!(task.state, State::Scheduled | State::Retrying)
        };
        let mut reserved = Vec::new();
        for task in self.tasks.values_mut().filter(is_next).take(max) {
            task.state = State::Reserved;
            task.attempts += 1;
            let token = format!("{}-{}", task.id, task.attempts);
            self.tokens.insert(task.id.clone(), token.clone());
            reserved.push(ReservedTask {
                id: task.id.clone(),
                token,
                queue: task.queue.clone(),
                payload: task.payload.clone(),
                payload_base64: task.payload_base64.clone(),
                attempt: task.attempts,
                at: task.at,
                lane: task.lane.clone(),
                name: task.name.clone(),
                ttr_until: now(),
                ttr: Some(ttr),
                traceparent: None,
                tracestate: None,
            });
        }
        reserved
    }

    /// Takes a task away from its worker, as if its time to run were over.
    pub fn take_away(&mut self, id: &str) {
        self.tokens.remove(id);
        self.tasks.get_mut(id).expect("it is there").state = State::Retrying;
    }

    /// What a report does: the task is the worker's no longer, and stands as said.
    pub fn report(
        &mut self,
        id: &str,
        token: Option<&str>,
        change: impl FnOnce(&mut Task),
    ) -> Result<Progress, Problem> {
        let task = self.tasks.get_mut(id).ok_or_else(no_such_task)?;
        if token.is_some() && self.tokens.get(id).map(String::as_str) != token {
            return Err(Problem::new(409, code::TOKEN_LATE, "Too late", "someone else has it by now"));
        }
        change(task);
        if task.state != State::Reserved {
            self.tokens.remove(id);
        }
        Ok(Progress { id: id.to_owned(), state: task.state, next_at: task.next_at })
    }
}

/// Whether a wish is not there, or is met.
trait IsNoneOrEq {
    fn is_none_or_eq(&self, other: &Option<String>) -> bool;
}

impl IsNoneOrEq for Option<String> {
    fn is_none_or_eq(&self, other: &Option<String>) -> bool {
        self.is_none() || self == other
    }
}
