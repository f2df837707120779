//! One operation of the document: what is asked, what is answered, and what can go wrong.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::problems::{Problems, by_status};
use super::tidied::{tidied, without_null};

/// Schemas by their names.
pub type Schemas = BTreeMap<String, Value>;

/// Whoever asks the scheduler can hear these.
const ALWAYS: &[&str] = &[
    "key_missing",
    "key_invalid",
    "scope_missing",
    "head_too_large",
    "host_foreign",
    "origin_foreign",
    "query_invalid",
    "rate_limited",
    "connections_full",
    "not_owner",
    "outcome_unknown",
    "overloaded",
    "stopped",
    "store_failed",
];
/// Whoever sends a body can hear these, too.
const WITH_BODY: &[&str] =
    &["body_invalid", "body_too_large", "body_too_slow", "field_invalid", "media_type_unknown"];

/// One operation.
pub struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub schemas: Schemas,
    pub problems: Problems,
    written: Map<String, Value>,
    parameters: Vec<Value>,
    answers: BTreeMap<u16, Value>,
    codes: Vec<&'static str>,
}

impl Operation {
    /// An operation that asks the scheduler.
    pub fn new(method: &'static str, path: &'static str, id: &str, summary: &str, about: &str) -> Operation {
        let mut operation = Operation::plain(method, path, id, summary, about);
        operation.codes.extend(ALWAYS);
        operation
    }

    /// An operation that cannot fail.
    pub fn plain(
        method: &'static str,
        path: &'static str,
        id: &str,
        summary: &str,
        about: &str,
    ) -> Operation {
        let written = json!({"operationId": id, "summary": summary, "description": about});
        let Value::Object(written) = written else { unreachable!("it was written as an object") };
        let mut operation = Operation {
            method,
            path,
            schemas: Schemas::new(),
            problems: Problems::default(),
            written,
            parameters: Vec::new(),
            answers: BTreeMap::new(),
            codes: Vec::new(),
        };
        operation.name_what_the_path_names();
        operation
    }

    fn name_what_the_path_names(&mut self) {
        for (name, about, of) in [
            ("id", "The id, as it was answered.", ""),
            ("queue", "The queue's name.", "QueueName"),
            ("name", "The notification's name.", "QueueName"),
        ] {
            if !self.path.contains(&format!("{{{name}}}")) {
                continue;
            }
            // An id that is none is answered as one that is unknown: so the document lets everything pass.
            let schema = match of {
                "" => {
                    json!({"type": "string", "minLength": 1})
                }
                of => json!({"$ref": format!("#/components/schemas/{of}")}),
            };
            self.parameters.push(
                json!({"name": name, "in": "path", "required": true, "description": about, "schema": schema}),
            );
            match name {
                "id" if self.path.starts_with("/v1/keys/") => self.codes.push("key_not_found"),
                "id" => self.codes.extend(["task_id_invalid", "task_not_found"]),
                _ => self.codes.extend(["name_empty", "name_too_long", "queue_name_invalid"]),
            }
        }
    }

    pub fn tag(mut self, tag: &str) -> Operation {
        self.written.insert("tags".to_owned(), json!([tag]));
        self
    }

    /// Takes a query with the fields of this type.
    pub fn query<T: ToSchema>(mut self) -> Operation {
        let mut schema = tidied(serde_json::to_value(T::schema()).expect("a schema can be written"));
        self.gather::<T>();
        self.schemas.remove(&*T::name());
        let Some(Value::Object(properties)) = schema.get_mut("properties").map(Value::take) else {
            panic!("{} has fields", T::name());
        };
        for (name, mut schema) in properties {
            let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            let schema = without_null(schema);
            self.parameters
                .push(json!({"name": name, "in": "query", "description": about, "schema": schema}));
        }
        self
    }

    /// Takes whatever this says.
    pub fn parameter(&mut self, parameter: Value) {
        self.parameters.push(parameter);
    }

    /// Takes this header.
    pub fn header(mut self, name: &str, schema: &Value, about: &str) -> Operation {
        self.parameters.push(json!({"name": name, "in": "header", "description": about, "schema": schema}));
        self
    }

    /// Takes a revision that must be the present one.
    pub fn if_match(self, code: &'static str) -> Operation {
        let schema = json!({"type": "string", "pattern": "^(\\*|\"[0-9]{1,19}\"(, ?\"[0-9]{1,19}\")*)$", "examples": ["\"1\""]});
        let about =
            "The `ETag` that was answered, or several: nothing is changed if it is none of them by now.";
        self.header("If-Match", &schema, about).refuses(&[code, "etag_invalid"])
    }

    /// Takes revisions that it is not meant for.
    pub fn if_none_match(self, about: &str) -> Operation {
        // Whatever is a tag may be sent, though it can match only if it is one of ours.
        let tag = "(W/)?\"[\\x21\\x23-\\x7e]*\"";
        let pattern = format!("^(\\*|{tag}(, ?{tag})*)$");
        let schema = json!({"type": "string", "pattern": pattern, "examples": ["\"1\""]});
        self.header("If-None-Match", &schema, about).refuses(&["etag_invalid"])
    }

    /// Looks at something that its asker may have already.
    pub fn unless_unchanged(self) -> Operation {
        self.if_none_match("The `ETag` that was answered: if it is the present one, nothing is sent again.")
            .answers_as(304, "It is as it was.", Value::Null)
            .tagged(&[200, 304])
    }

    /// Takes a body of this type, which may be left out if all of its fields may.
    pub fn body<T: ToSchema>(mut self, is_required: bool) -> Operation {
        let schema = self.refer::<T>();
        let content = json!({"application/json": {"schema": schema}});
        self.written.insert("requestBody".to_owned(), json!({"required": is_required, "content": content}));
        self.refuses(WITH_BODY)
    }

    /// Takes `{"tasks": […]}`, with items of this type. Each is answered for itself.
    pub fn batch<T: ToSchema>(mut self) -> Operation {
        let items = self.refer::<T>();
        let schema = json!({
            "type": "object",
            "required": ["tasks"],
            "additionalProperties": false,
            "properties": {"tasks": {"type": "array", "maxItems": 10_000, "items": items}},
        });
        let content = json!({"application/json": {"schema": schema}});
        self.written.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
        self.refuses(WITH_BODY)
    }

    /// Takes whatever this says.
    pub fn body_as(mut self, body: Value) -> Operation {
        self.written.insert("requestBody".to_owned(), body);
        self.refuses(WITH_BODY)
    }

    /// Can answer this.
    pub fn answers<T: ToSchema>(mut self, status: u16, about: &str) -> Operation {
        let schema = self.refer::<T>();
        self.answers_as(status, about, json!({"application/json": {"schema": schema}}))
    }

    /// Can answer `{"results": […]}`, with items of this type.
    pub fn answers_each<T: ToSchema>(mut self, about: &str) -> Operation {
        let items = self.refer::<T>();
        let schema = json!({
            "type": "object",
            "required": ["results"],
            "properties": {"results": {"type": "array", "items": items}},
        });
        self.answers_as(200, about, json!({"application/json": {"schema": schema}}))
    }

    /// Can answer text of this media type.
    pub fn answers_text(self, status: u16, about: &str, media_type: &str) -> Operation {
        self.answers_as(status, about, json!({media_type: {"schema": {"type": "string"}}}))
    }

    /// Can answer whatever this says.
    pub fn answers_as(mut self, status: u16, about: &str, content: Value) -> Operation {
        let mut answer = json!({"description": about});
        if content != Value::Null {
            answer["content"] = content;
        }
        self.answers.insert(status, answer);
        self
    }

    /// Those answers have this header.
    pub fn says(mut self, statuses: &[u16], name: &str, about: &str) -> Operation {
        for status in statuses {
            let answer = self.answers.get_mut(status).expect("it is answered");
            answer["headers"][name] = json!({"description": about, "schema": {"type": "string"}});
        }
        self
    }

    /// Those answers tell the revision.
    pub fn tagged(self, statuses: &[u16]) -> Operation {
        self.says(statuses, "ETag", "The revision, for `If-Match`.")
    }

    /// That answer leads to other operations.
    pub fn leads_to(mut self, status: u16, links: Value) -> Operation {
        self.answers.get_mut(&status).expect("it is answered")["links"] = links;
        self
    }

    /// Can be refused with these codes.
    pub fn refuses(mut self, codes: &[&'static str]) -> Operation {
        self.codes.extend(codes);
        self
    }

    /// The name of a type in the document, and what it needs is gathered.
    pub fn refer<T: ToSchema>(&mut self) -> Value {
        self.gather::<T>();
        json!({"$ref": format!("#/components/schemas/{}", T::name())})
    }

    fn gather<T: ToSchema>(&mut self) {
        let mut found = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut found);
        for (name, schema) in found {
            let schema = serde_json::to_value(schema).expect("a schema can be written");
            self.schemas.insert(name, tidied(schema));
        }
    }

    /// As the document has it.
    pub fn write(&mut self) -> Value {
        let mut responses = Map::new();
        for (status, answer) in self.answers.iter().map(|(status, answer)| (*status, answer.clone())) {
            responses.insert(status.to_string(), answer);
        }
        for (status, codes) in by_status(&self.codes) {
            responses.insert(status.to_string(), self.problems.refer(status, &codes));
        }
        let mut written = self.written.clone();
        written.insert("responses".to_owned(), Value::Object(responses));
        if !self.parameters.is_empty() {
            written.insert("parameters".to_owned(), Value::Array(self.parameters.clone()));
        }
        Value::Object(written)
    }
}
