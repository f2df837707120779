//! The API from outside: real requests to a real server on a real folder.

mod audit;
mod bad_input;
mod calls;
mod clock;
mod far_times;
mod hanging_up;
mod isolation;
mod keys;
mod limits;
mod lines;
mod misplaced_lists;
mod moving;
mod namespaces;
mod notifications;
mod operating;
mod queues;
mod revisions;
mod tasks;
mod telling;
mod tls;
mod views;
mod work;
mod world;
