//! The API from outside: real requests to a real server on a real folder.

mod bad_input;
mod calls;
mod clock;
mod notifications;
mod operating;
mod queues;
mod tasks;
mod telling;
mod work;
mod world;
