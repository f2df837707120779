//! What is on hold since a data folder was restored.

use serde::{Deserialize, Serialize};

/// What is on hold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hold {
    /// Queues that were paused by the restore, and that nobody has resumed since.
    pub queues: Vec<HeldQueue>,
}

/// A queue that is on hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeldQueue {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub queue: String,
}
