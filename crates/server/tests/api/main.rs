//! The API from outside: real requests to a real server on a real folder.

mod audit;
mod bad_input;
mod calls;
mod isolation;
mod keys;
mod limits;
mod lines;
mod namespaces;
mod queues;
mod tasks;
mod telling;
mod tls;
mod work;
mod world;
