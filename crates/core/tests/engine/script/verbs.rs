//! What each verb of a script does.

use std::sync::Arc;

use bytes::Bytes;
use punctual_core::{Amend, Amendment, Ask, AskNo, Event, Found, Outcome, PartitionId, Query, Spec, TaskId};
use punctual_store::Store;

use super::shell::{Kind, surely};
use super::words::{Line, boot, duration, micros, number, wall};
use super::world::{Auto, Holding, World};

impl World {
    pub fn obey(&mut self, line: &Line) {
        match line.verb.as_str() {
            "partitions" => self.partitions = number(line.first()) as u16,
            "show" => self.shown.extend(line.plain().iter().cloned()),
            "watch" => self.watched.extend(line.plain().iter().cloned()),
            "auto" => self.add_auto(line),
            "trust" => self.trust(line),
            "limits" => self.change_settings(|world| world.rules.set_limits(line)),
            "queue" => self.change_settings(|world| world.rules.set_queue(line)),
            "receivers" => self.change_settings(|world| world.rules.set_receivers(line)),
            "nodes" => self.change_settings(|world| world.rules.set_nodes(line)),
            _ => {
                self.begin();
                self.obey_live(line);
            }
        }
    }

    /// Verbs that need a node.
    fn obey_live(&mut self, line: &Line) {
        match line.verb.as_str() {
            "accept" => self.accept(line),
            "succeed" | "fail" | "give_up" | "interrupt" | "no_receiver" => self.report_by_script(line),
            "touch" => self.touch(line),
            "cancel" | "move" | "change" | "run" | "retry" | "expire" => self.amend(line),
            "reserve" => self.reserve(line),
            "pause" | "resume" => self.change_settings(|world| {
                world.rules.queue_settings(line.first()).paused = line.verb == "pause";
            }),
            "tick" => {}
            "step_clock" => self.clock.stepped += micros(line.first()),
            "tear" => self.tear = Some(line.number("after").unwrap_or(0) as usize),
            "fill_store" => self.store_is_full = true,
            "empty_store" => self.store_is_full = false,
            "hand_over" => self.hand_over(self.partition_of(line), line.get("to")),
            "take_over" => self.take_over(line.get("by").unwrap_or("a"), self.partition_of(line)),
            "reload" => {
                let partition = self.partition_of(line);
                let owner = self.owner_of(partition).expect("only an owner can reload");
                self.take_over(&owner, partition);
            }
            "crash" => self.crash(line.plain().first().map_or("a", String::as_str)),
            "hold_store" => self.hold(line, Holding::Deed),
            "hold_answers" => self.hold(line, Holding::Answer),
            "let_store" => self.let_store(line),
            "assert" => self.check_count(line),
            verb => panic!("no verb is called {verb}"),
        }
    }

    pub fn change_settings(&mut self, change: impl FnOnce(&mut World)) {
        change(self);
        let (now, settings) = (self.clock.now(), Arc::new(self.rules.settings()));
        for member in self.members.keys().cloned().collect::<Vec<_>>() {
            self.with(&member, |node, out| node.set_settings(now, settings.clone(), out));
        }
    }

    fn trust(&mut self, line: &Line) {
        line.get("until").expect("trust until when?").clone_into(&mut self.trusted_until);
        let (now, until) = (self.clock.now(), boot(&self.trusted_until));
        for node in self.members.values_mut() {
            node.trust_until(now, until);
        }
    }

    fn add_auto(&mut self, line: &Line) {
        let [word, pattern] = line.plain() else { panic!("auto <outcome> <pattern>") };
        let auto = Auto {
            pattern: pattern.clone(),
            outcome: outcome(word, line),
            after: line.get("after").map_or(0, micros),
        };
        // The latest word counts, also for what runs already.
        self.auto.insert(0, auto);
    }

    fn report_by_script(&mut self, line: &Line) {
        let (member, token) = self.attempt_of(line);
        self.report(&member, token, outcome(&line.verb, line));
    }

    /// The attempt that a line names, or the last one of its task.
    fn attempt_of(&self, line: &Line) -> (String, punctual_core::Token) {
        let label = line.first();
        let wanted = line.plain().iter().find_map(|word| word.strip_prefix('#')).map(number);
        let attempts = self.attempts.get(label).map_or(&[][..], Vec::as_slice);
        let named = |(_, token): &&(String, punctual_core::Token)| {
            wanted.is_none_or(|wanted| i64::from(token.attempt) == wanted)
        };
        let attempt = attempts.iter().rev().find(named);
        attempt
            .unwrap_or_else(|| panic!("{label} has no attempt to report on\n{}", self.transcript()))
            .clone()
    }

    fn touch(&mut self, line: &Line) {
        let (_, token) = self.attempt_of(line);
        let more = duration(line.get("for").expect("touch for how long?"));
        let partition = token.id.partition(self.partitions);
        self.ask(line, partition, format!("touch {}", line.first()), Ask::Touch(token, more));
    }

    fn amend(&mut self, line: &Line) {
        let label = line.first().to_owned();
        let id = *self.ids.get(&label).unwrap_or_else(|| panic!("no task is called {label}"));
        let amendment = match line.verb.as_str() {
            "cancel" => Amendment::Cancel,
            "move" => Amendment::Move(wall(line.get("to").expect("move to when?"))),
            "run" => Amendment::Run,
            "retry" => Amendment::Retry,
            "expire" => Amendment::Expire,
            _ => self.replacement(line, id),
        };
        let partition = id.partition(self.partitions);
        let if_revision = line.number("if_revision").map(|revision| revision as u32);
        let amend = Amend { id, amendment, if_revision };
        self.ask(line, partition, format!("{} {label}", line.verb), Ask::Amend(amend));
    }

    fn replacement(&self, line: &Line, id: TaskId) -> Amendment {
        let found = surely(self.store.find(id.partition(self.partitions), &[Query::Id(id)]));
        let mut spec: Spec = match found.into_iter().next().flatten() {
            Some(Found::Live(task)) => (*task.spec).clone(),
            Some(Found::Ended(ended)) => (*ended.task.spec).clone(),
            _ => panic!("only what is there can be changed"),
        };
        if let Some(payload) = line.get("payload") {
            spec.payload = Bytes::from(payload.to_owned());
        }
        spec.expires_at = line.get("expires").map(wall).or(spec.expires_at);
        if let Some(handler) = line.get("handler") {
            spec.target = punctual_core::Target::Handler(handler.into());
        }
        Amendment::Replace { spec: spec.into(), at: line.get("to").map(wall) }
    }

    /// Asks something of a partition's owner, or of the member that the line names.
    pub fn ask(&mut self, line: &Line, partition: PartitionId, what: String, ask: Ask) {
        let no = AskNo(self.number());
        self.asks.insert(no, what);
        let owner = line.get("via").map(str::to_owned).or_else(|| self.owner_of(partition));
        let now = self.clock.now();
        let member = owner.unwrap_or_else(|| "a".to_owned());
        self.with(&member, |node, out| node.ask(now, partition, Event::Asked(no, ask), out));
    }

    fn reserve(&mut self, line: &Line) {
        let queue = self.rules.queue(line.first());
        let max = line.plain().get(1).map_or(1, |max| number(max) as usize);
        let time_to_run = line.get("ttr").map(duration);
        let now = self.clock.now();
        for member in self.members.keys().cloned().collect::<Vec<_>>() {
            self.with(&member, |node, out| _ = node.reserve(now, (queue, max), time_to_run, out));
        }
    }

    fn hold(&mut self, line: &Line, holding: Holding) {
        self.held.extend(kinds(line).into_iter().map(|kind| (kind, holding)));
    }

    fn let_store(&mut self, line: &Line) {
        for kind in kinds(line) {
            self.held.remove(&kind);
        }
    }

    fn check_count(&mut self, line: &Line) {
        let [what, relation, expected] = line.plain() else { panic!("assert <count> <relation> <number>") };
        let got = match what.as_str() {
            "loaded" => self.members.values().map(|node| node.loaded() as i64).sum(),
            "running" => self.members.values().map(|node| node.running_count() as i64).sum(),
            "deferrals" => self.members.values().map(|node| node.deferrals() as i64).sum(),
            other => self.counts.get(other).copied().unwrap_or(0),
        };
        let expected = number(expected);
        let holds = match relation.as_str() {
            "<=" => got <= expected,
            ">=" => got >= expected,
            "==" => got == expected,
            _ => panic!("no relation is written {relation}"),
        };
        assert!(holds, "{what} is {got}, not {relation} {expected}\n{}", self.transcript());
    }
}

fn kinds(line: &Line) -> Vec<Kind> {
    let named = |name: &str| line.plain().is_empty() || line.has(name);
    Kind::ALL.into_iter().filter(|(name, _)| named(name)).map(|(_, kind)| kind).collect()
}

fn outcome(word: &str, line: &Line) -> Outcome {
    match word {
        "succeed" => Outcome::Succeeded(Bytes::new()),
        "fail" => {
            Outcome::Failed { error: "it failed".into(), retry_after: line.get("retry_after").map(duration) }
        }
        "give_up" => Outcome::GaveUp("it cannot be done".into()),
        "interrupt" => Outcome::Interrupted,
        "no_receiver" => Outcome::NoReceiver,
        _ => panic!("no outcome is called {word}"),
    }
}
