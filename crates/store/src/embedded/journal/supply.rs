//! Where new segments come from: made when they are needed, or ahead of that by a thread in the background.
//!
//! Zeroing a segment at once would fill the disk's queue, and every sync of the journal would wait behind it. The
//! thread syncs each small chunk, and rests before the next one: for long while it is well ahead of how the segment in use
//! fills, not at all when it falls behind or somebody waits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::error::Failure;
use super::maker::{Maker, NotMade};
use super::segment::Segment;
use crate::embedded::disk::{Disk, DiskFile};

/// How long the thread rests between two chunks while it is twice as far as the segment in use, and while it is ahead.
const LONG_REST: Duration = Duration::from_millis(20);
const SHORT_REST: Duration = Duration::from_millis(2);

type Made<D> = Result<Segment<<D as Disk>::File>, NotMade>;

pub(super) enum Supply<D: Disk> {
    Inline(Maker<D>),
    Background(Workshop<D>),
}

impl<D: Disk> Supply<D> {
    pub fn is_inline(&self) -> bool {
        matches!(self, Supply::Inline(_))
    }

    /// Has one made in the background, if that is how they are made.
    pub fn order(&mut self) {
        if let Supply::Background(workshop) = self {
            workshop.order();
        }
    }

    /// So much of the segment in use is filled: the next one must be made before that is all.
    pub fn note_used(&self, bytes: u64) {
        if let Supply::Background(workshop) = self {
            workshop.used.store(bytes, Ordering::Relaxed);
        }
    }

    /// What has been made in the background since.
    pub fn poll(&mut self) -> Option<Made<D>> {
        match self {
            Supply::Inline(_) => None,
            Supply::Background(workshop) => workshop.poll(),
        }
    }

    /// Makes one, or waits for it.
    pub fn wait(&mut self) -> Made<D> {
        match self {
            Supply::Inline(maker) => maker.make(|_, _| Ok(())),
            Supply::Background(workshop) => workshop.wait(),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Order {
    Make,
    Hurry,
}

pub(super) struct Workshop<D: Disk> {
    /// Dropped first, which tells the thread to end.
    orders: Option<SyncSender<Order>>,
    made: Receiver<Made<D>>,
    is_making: bool,
    /// How much of the segment in use is filled.
    used: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl<D: Disk> Workshop<D> {
    pub fn start(maker: Maker<D>) -> io::Result<Workshop<D>> {
        // One segment at a time is made, and few can hurry it.
        let (orders, inbox) = sync_channel(4);
        let (outbox, made) = sync_channel(1);
        let used = Arc::new(AtomicU64::new(0));
        let seen = used.clone();
        let thread = std::thread::Builder::new().name("punctual-zeros".into());
        let thread = thread.spawn(move || work(maker, &inbox, &outbox, &seen))?;
        Ok(Workshop { orders: Some(orders), made, is_making: false, used, thread: Some(thread) })
    }

    fn order(&mut self) {
        if !self.is_making {
            // If the thread is gone, whoever looks for the segment learns of it.
            let _ = self.orders.as_ref().map(|orders| orders.send(Order::Make));
            self.is_making = true;
        }
    }

    fn hurry(&self) {
        // A full inbox holds a hurry already.
        let _ = self.orders.as_ref().map(|orders| orders.try_send(Order::Hurry));
    }

    fn poll(&mut self) -> Option<Made<D>> {
        if !self.is_making {
            return None;
        }
        let made = match self.made.try_recv() {
            Ok(made) => made,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(thread_is_gone()),
        };
        self.is_making = false;
        Some(made)
    }

    fn wait(&mut self) -> Made<D> {
        self.order();
        self.hurry();
        self.is_making = false;
        self.made.recv().unwrap_or_else(|_| Err(thread_is_gone()))
    }
}

impl<D: Disk> Drop for Workshop<D> {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It must not touch the folder after the lock is gone. If it panicked, it is gone as well.
            let _ = thread.join();
        }
    }
}

fn thread_is_gone() -> NotMade {
    NotMade::Failed(Failure::new("making a segment", io::Error::other("the thread has ended")))
}

fn work<D: Disk>(
    mut maker: Maker<D>,
    orders: &Receiver<Order>,
    made: &SyncSender<Made<D>>,
    used: &AtomicU64,
) {
    while let Ok(order) = orders.recv() {
        if order == Order::Hurry {
            continue; // It came when the work was done.
        }
        let mut in_a_hurry = false;
        let segment = maker.make(|file, filled| {
            let used = used.load(Ordering::Relaxed);
            if !in_a_hurry && filled > used {
                file.sync()?;
                in_a_hurry = rest(orders, if filled > 2 * used { LONG_REST } else { SHORT_REST })?;
            }
            Ok(())
        });
        if made.send(segment).is_err() {
            return;
        }
    }
}

/// Says whether somebody waits.
fn rest(orders: &Receiver<Order>, time: Duration) -> io::Result<bool> {
    match orders.recv_timeout(time) {
        Ok(_) => Ok(true),
        Err(RecvTimeoutError::Timeout) => Ok(false),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("nobody needs it any more")),
    }
}
