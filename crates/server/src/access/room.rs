//! Room for bodies: how many bytes of requests are held at once, over all of them.

use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::units::KIB;

/// The room that there is. Clones are the same.
#[derive(Clone)]
pub struct Room(Arc<Semaphore>);

impl Room {
    /// Room for so many bytes.
    pub fn new(bytes_max: usize) -> Room {
        Room(Arc::new(Semaphore::new((bytes_max / KIB).clamp(1, Semaphore::MAX_PERMITS))))
    }
}

/// What one request holds of the room, until it is answered.
#[derive(Default)]
pub struct Held(Mutex<Option<OwnedSemaphorePermit>>);

impl Held {
    /// Holds room for that many bytes in all; `false` if there is not so much left.
    pub fn hold(&self, room: &Room, bytes: usize) -> bool {
        let mut held = self.0.lock().expect("nothing panics while it is held");
        let kib = u32::try_from(bytes.div_ceil(KIB)).unwrap_or(u32::MAX);
        let more = kib.saturating_sub(held.as_ref().map_or(0, |held| held.num_permits() as u32));
        let Ok(more) = room.0.clone().try_acquire_many_owned(more) else { return false };
        match &mut *held {
            Some(held) => held.merge(more),
            nothing => *nothing = Some(more),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_held_until_the_request_is_answered() {
        let room = Room::new(10 * KIB);
        let (one, other) = (Held::default(), Held::default());
        assert!(one.hold(&room, 4 * KIB) && one.hold(&room, 6 * KIB), "it grows to six");
        assert!(!other.hold(&room, 5 * KIB) && other.hold(&room, 4 * KIB));
        drop(one);
        assert!(other.hold(&room, 10 * KIB));
        assert!(!other.hold(&room, 11 * KIB));
    }
}
