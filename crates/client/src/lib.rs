//! What a Punctual server says and hears over HTTP: the wire types, a client, and a loop for workers.
//!
//! ```no_run
//! use std::time::Duration;
//! use punctual_client::Client;
//! use punctual_client::wire::NewTask;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new("http://127.0.0.1:8700")?;
//! let task = NewTask::new().payload("remember the milk")?.after(Duration::from_secs(90));
//! let made = client.create("reminders", &task).await?;
//! println!("task {} is due at {}", made.task.id, made.task.at);
//! # Ok(())
//! # }
//! ```
//!
//! Without the feature `client` there are only the wire types, which is what a server wants.

#[cfg(feature = "client")]
mod client;
pub mod wire;
#[cfg(feature = "client")]
mod worker;

#[cfg(feature = "client")]
pub use client::{Cause, Client, ClientBuilder, Created, Creating, Error};
#[cfg(feature = "client")]
pub use worker::{Failure, Job, Summary, Worker};
