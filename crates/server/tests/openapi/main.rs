//! The API as programs read it: `docs/openapi.json` says what the server does.

mod document;
mod drift;
mod keys;
mod operating;
mod operation;
mod problems;
mod queues;
mod rest;
mod routes;
mod tasks;
mod tidied;
mod work;
