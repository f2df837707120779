//! Queues, lanes, and who is told of what happens in them.

use http::Method;

use super::Client;
use super::error::Error;
use super::request::segment;
use crate::wire::{
    Changed, LaneName, LanePage, LaneQuery, NewNotification, Notification, NotificationPage, PageQuery,
    Progress, Queue, QueuePage, QueueSettings, QueueStats,
};

fn path(queue: &str) -> String {
    format!("/v1/queues/{}", segment(queue))
}

fn notification_path(name: &str) -> String {
    format!("/v1/notifications/{}", segment(name))
}

impl Client {
    /// Makes a queue, or gives it these settings and the defaults for all others.
    pub async fn put_queue(&self, queue: &str, settings: &QueueSettings) -> Result<Queue, Error> {
        self.asking(Method::PUT, path(queue)).json(settings).read().await
    }

    /// Changes some settings of a queue.
    pub async fn patch_queue(&self, queue: &str, settings: &QueueSettings) -> Result<Queue, Error> {
        self.asking(Method::PATCH, path(queue)).json(settings).read().await
    }

    /// Looks at a queue.
    pub async fn queue(&self, queue: &str) -> Result<Queue, Error> {
        self.get_path(path(queue)).read().await
    }

    /// Deletes a queue that no task waits in.
    pub async fn delete_queue(&self, queue: &str) -> Result<(), Error> {
        self.asking(Method::DELETE, path(queue)).answer().await.map(|_| ())
    }

    /// A page of queues.
    pub async fn queues(&self, query: &PageQuery) -> Result<QueuePage, Error> {
        self.get_path("/v1/queues".to_owned()).query(query).read().await
    }

    /// How a queue stands.
    pub async fn queue_stats(&self, queue: &str) -> Result<QueueStats, Error> {
        self.get_path(format!("{}/stats", path(queue))).read().await
    }

    /// Nothing of this queue starts from now on.
    pub async fn pause_queue(&self, queue: &str) -> Result<Queue, Error> {
        self.post(format!("{}:pause", path(queue))).read().await
    }

    /// Tasks of this queue start again.
    pub async fn resume_queue(&self, queue: &str) -> Result<Queue, Error> {
        self.post(format!("{}:resume", path(queue))).read().await
    }

    /// Cancels all that waits in a queue.
    pub async fn purge_queue(&self, queue: &str) -> Result<Changed, Error> {
        self.post(format!("{}:purge", path(queue))).read().await
    }

    /// A page of lanes.
    pub async fn lanes(&self, query: &LaneQuery) -> Result<LanePage, Error> {
        self.get_path("/v1/lanes".to_owned()).query(query).read().await
    }

    /// Tries the head of a blocked lane again.
    pub async fn release_lane(&self, lane: &LaneName) -> Result<Progress, Error> {
        self.post("/v1/lanes:release".to_owned()).json(lane).read().await
    }

    /// Cancels the head of a blocked lane, so that the lane goes on.
    pub async fn skip_lane(&self, lane: &LaneName) -> Result<Progress, Error> {
        self.post("/v1/lanes:skip".to_owned()).json(lane).read().await
    }

    /// Has a URL told of what happens.
    pub async fn put_notification(
        &self,
        name: &str,
        notification: &NewNotification,
    ) -> Result<Notification, Error> {
        self.asking(Method::PUT, notification_path(name)).json(notification).read().await
    }

    /// Looks at a notification.
    pub async fn notification(&self, name: &str) -> Result<Notification, Error> {
        self.get_path(notification_path(name)).read().await
    }

    /// Nobody is told any more.
    pub async fn delete_notification(&self, name: &str) -> Result<(), Error> {
        self.asking(Method::DELETE, notification_path(name)).answer().await.map(|_| ())
    }

    /// All notifications.
    pub async fn notifications(&self, query: &PageQuery) -> Result<NotificationPage, Error> {
        self.get_path("/v1/notifications".to_owned()).query(query).read().await
    }
}
