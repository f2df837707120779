//! Timers wait in a hierarchical timing wheel: each is filed by how soon it is due, and moves nearer as time passes.
//!
//! ```text
//! level 2   slots of 1.05 s    ─┐ when the wheel reaches a slot, its timers are filed again,
//! level 1   slots of 16 ms     ─┤ each at least one level down …
//! level 0   slots of 0.26 ms   ─┘ … and here they are due
//! ```
//!
//! Starting and stopping must cost the same with ten timers and with ten million, because both happen in every life
//! of a task. A heap pays log n for each and cannot stop a timer without searching for it; a wheel with a slot for
//! every millisecond pays memory for the whole future; a wheel that wraps round walks past the same far timers again
//! and again. A hierarchy pays instead by filing a timer anew once per level, at most seven times in its life and
//! usually two or three.
//!
//! The level of a timer is the highest base-64 digit in which its tick differs from the present tick. So whatever is
//! on a lower level is due before anything on a higher one, no slot ever wraps round, and the next thing to do is
//! the first occupied slot of the lowest occupied level: two bit scans, however far away it is.

use crate::time::Timestamp;

/// Microseconds in a tick, as a shift: 256 of them.
const TICK_SHIFT: u32 = 8;
/// Slots in a level, as a shift: 64 of them, one word of occupancy.
const SLOT_SHIFT: u32 = 6;
const SLOTS: usize = 1 << SLOT_SHIFT;
/// Enough for every tick up to [`Timestamp::MAX`], so that no time is too far to be filed.
const LEVELS: usize = 9;

const _: () = assert!(Timestamp::MAX.as_micros() >> TICK_SHIFT < 1 << (SLOT_SHIFT as usize * LEVELS));

/// After everything that can be due.
const NEVER: Timestamp = Timestamp::from_micros(i64::MAX);
/// The end of a list.
const NONE: u32 = u32::MAX;
/// Stands in `prev` of a node that holds no timer.
const FREE: u32 = u32::MAX;
/// Marks `prev` of the first node in a list; the other bits name the list. It lets a timer be stopped without
/// working out where it was filed.
const FIRST: u32 = 1 << 31;

/// Names a timer until it fires or is stopped. After that the same key may name another timer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimerKey(u32);

/// Timers by due time, each carrying a small item.
///
/// A timer never fires early, and at most one tick (256 µs) late if the wheel is advanced when it asks to be.
/// A new wheel owns no memory; one that has been used keeps its memory for the timers to come.
pub struct Wheel<T> {
    /// How far the wheel has advanced.
    now: Timestamp,
    /// When the first occupied slot is reached, or [`NEVER`]. Most calls come before that, and end with it.
    next_at: Timestamp,
    /// Timers and free nodes. A timer keeps its place from start to end, so that its key stays good.
    nodes: Vec<Node<T>>,
    /// The first free node.
    free: u32,
    len: u32,
    /// The first timer of each slot, level after level; only the levels used so far.
    ///
    /// A slot holds timers of ticks after the present one, except the present tick's own slot on level 0:
    /// that holds what was started when it was already due.
    firsts: Vec<u32>,
    /// One bit for each slot that is not empty.
    occupied: [u64; LEVELS],
    /// One bit for each level that is not empty.
    occupied_levels: u32,
}

struct Node<T> {
    prev: u32,
    next: u32,
    at: PackedTimestamp,
    item: T,
}

impl<T: Copy> Wheel<T> {
    /// An empty wheel that has advanced to `now`.
    pub fn new(now: Timestamp) -> Self {
        Wheel {
            now: within_bounds(now),
            next_at: NEVER,
            nodes: Vec::new(),
            free: NONE,
            len: 0,
            firsts: Vec::new(),
            occupied: [0; LEVELS],
            occupied_levels: 0,
        }
    }

    /// Starts a timer. One that is already due fires at the next [`advance`](Self::advance).
    #[inline]
    pub fn start(&mut self, at: Timestamp, item: T) -> TimerKey {
        let at = within_bounds(at);
        let index = self.take_node(at, item);
        self.link(index, self.slot_for(at));
        self.len += 1;
        TimerKey(index)
    }

    /// Stops a timer that has not fired, and hands back its item.
    #[inline]
    pub fn stop(&mut self, key: TimerKey) -> T {
        let node = &self.nodes[key.0 as usize];
        let item = node.item;
        assert!(node.prev != FREE, "{key:?} names no timer: it has fired or was stopped");
        self.unlink(node.prev, node.next);
        self.free_node(key.0);
        item
    }

    /// Moves on to `now` and appends what has come due, tick by tick in order.
    ///
    /// Does nothing if `now` is before [`now`](Self::now): a clock that stepped back needs a [`reset`](Self::reset).
    #[inline]
    pub fn advance(&mut self, now: Timestamp, due: &mut Vec<T>) {
        let now = within_bounds(now);
        if now < self.now {
            return;
        }
        while self.next_at <= now {
            self.enter_next(due);
        }
        self.now = now;
    }

    /// When to advance next: something fires then, or must be filed anew. `None` when there is no timer.
    #[inline]
    pub fn wake_at(&self) -> Option<Timestamp> {
        (self.len > 0).then(|| self.next_at.max(self.now))
    }

    /// Whether every timer of this time, and of any before it, has fired. One may be due and not have fired, for a tick.
    #[inline]
    pub fn has_fired_until(&self, at: Timestamp) -> bool {
        self.next_at > start_of(tick_not_before(within_bounds(at)))
    }

    /// Files every timer anew, as seen from `now`: the wall clock stepped back.
    pub fn reset(&mut self, now: Timestamp) {
        self.now = within_bounds(now);
        self.firsts.fill(NONE);
        self.occupied = [0; LEVELS];
        self.occupied_levels = 0;
        self.next_at = NEVER;
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if node.prev != FREE {
                self.link(index as u32, self.slot_for(node.at.unpack()));
            }
        }
    }

    /// How far the wheel has advanced.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// How many timers are waiting.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no timer is waiting.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where a timer belongs, as seen from the present tick.
    #[inline]
    fn slot_for(&self, at: Timestamp) -> Slot {
        let tick = if at <= self.now { tick_of(self.now) } else { tick_not_before(at) };
        let differing = tick ^ tick_of(self.now);
        // The lowest bit changes no level, and spares the case of no difference.
        let level = (differing | 1).ilog2() / SLOT_SHIFT;
        Slot { level, digit: (tick >> (level * SLOT_SHIFT)) as u32 % SLOTS as u32 }
    }

    /// The occupied slot that is reached first. There must be one.
    #[inline]
    fn next_slot(&self) -> Slot {
        let level = self.occupied_levels.trailing_zeros();
        Slot { level, digit: self.occupied[level as usize].trailing_zeros() }
    }

    #[inline]
    fn find_next(&mut self) {
        self.next_at = if self.occupied_levels == 0 { NEVER } else { self.reached_at(self.next_slot()) };
    }

    /// When the first tick of an occupied slot begins.
    #[inline]
    fn reached_at(&self, slot: Slot) -> Timestamp {
        let shift = slot.level * SLOT_SHIFT;
        let above = tick_of(self.now) >> (shift + SLOT_SHIFT) << SLOT_SHIFT;
        start_of((above | u64::from(slot.digit)) << shift)
    }

    /// Moves on to the first occupied slot, fires what is due there and files the rest further down.
    fn enter_next(&mut self, due: &mut Vec<T>) {
        self.now = self.now.max(self.next_at);
        let slot = self.next_slot();
        let first = std::mem::replace(&mut self.firsts[slot.list()], NONE);
        self.vacate(slot);
        if slot.level == 0 {
            self.fire_list(first, due);
        } else {
            self.file_list(first, due);
        }
    }

    /// Fires a whole list, which becomes the head of the free list just as it is.
    #[inline]
    fn fire_list(&mut self, first: u32, due: &mut Vec<T>) {
        let mut index = first;
        loop {
            let node = &mut self.nodes[index as usize];
            due.push(node.item);
            node.prev = FREE;
            self.len -= 1;
            if node.next == NONE {
                node.next = self.free;
                break;
            }
            index = node.next;
        }
        self.free = first;
    }

    /// Files a list from a higher level anew, and fires what is due in this very tick.
    fn file_list(&mut self, first: u32, due: &mut Vec<T>) {
        let mut index = first;
        while index != NONE {
            let node = &self.nodes[index as usize];
            let (at, item, next) = (node.at.unpack(), node.item, node.next);
            if at <= self.now {
                due.push(item);
                self.free_node(index);
            } else {
                self.link(index, self.slot_for(at));
            }
            index = next;
        }
    }

    #[inline]
    fn link(&mut self, index: u32, slot: Slot) {
        let list = slot.list();
        if list >= self.firsts.len() {
            self.add_levels(slot.level);
        }
        let next = std::mem::replace(&mut self.firsts[list], index);
        let node = &mut self.nodes[index as usize];
        node.prev = FIRST | list as u32;
        node.next = next;
        if next != NONE {
            self.nodes[next as usize].prev = index;
        } else {
            self.occupy(slot);
        }
    }

    /// Closes the gap between two neighbours.
    #[inline]
    fn unlink(&mut self, prev: u32, next: u32) {
        if next != NONE {
            self.nodes[next as usize].prev = prev;
        }
        if prev & FIRST == 0 {
            self.nodes[prev as usize].next = next;
            return;
        }
        let list = prev & !FIRST;
        self.firsts[list as usize] = next;
        if next == NONE {
            self.vacate(Slot::of_list(list));
        }
    }

    #[inline]
    fn occupy(&mut self, slot: Slot) {
        self.occupied[slot.level as usize] |= 1 << slot.digit;
        self.occupied_levels |= 1 << slot.level;
        self.next_at = self.next_at.min(self.reached_at(slot));
    }

    #[inline]
    fn vacate(&mut self, slot: Slot) {
        let digits = &mut self.occupied[slot.level as usize];
        *digits &= !(1 << slot.digit);
        if *digits == 0 {
            self.occupied_levels &= !(1 << slot.level);
        }
        self.find_next();
    }

    #[inline]
    fn take_node(&mut self, at: Timestamp, item: T) -> u32 {
        let index = self.free;
        if index == NONE {
            return self.add_node(at, item);
        }
        let node = &mut self.nodes[index as usize];
        self.free = node.next;
        node.at = PackedTimestamp::pack(at);
        node.item = item;
        index
    }

    #[inline]
    fn free_node(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        node.prev = FREE;
        node.next = self.free;
        self.free = index;
        self.len -= 1;
    }

    #[cold]
    fn add_levels(&mut self, level: u32) {
        self.firsts.resize((level as usize + 1) * SLOTS, NONE);
    }

    fn add_node(&mut self, at: Timestamp, item: T) -> u32 {
        if self.nodes.len() == self.nodes.capacity() {
            self.add_room();
        }
        let index = self.nodes.len() as u32;
        self.nodes.push(Node { prev: FREE, next: NONE, at: PackedTimestamp::pack(at), item });
        index
    }

    /// Grows by a quarter: doubling would leave half of the largest allocation in the process unused.
    #[cold]
    fn add_room(&mut self) {
        let len = self.nodes.len();
        assert!(len < FIRST as usize / 2, "{len} timers in one wheel");
        self.nodes.reserve_exact((len / 4).max(16));
    }
}

/// A place in the wheel: `digit` is that of the tick, base 64, at this level.
#[derive(Clone, Copy)]
struct Slot {
    level: u32,
    digit: u32,
}

impl Slot {
    #[inline]
    fn list(self) -> usize {
        (self.level << SLOT_SHIFT | self.digit) as usize
    }

    #[inline]
    fn of_list(list: u32) -> Slot {
        Slot { level: list >> SLOT_SHIFT, digit: list % SLOTS as u32 }
    }
}

/// A timestamp in two halves, because as one number it would be aligned to eight bytes and make a node of twenty
/// bytes take twenty-four.
#[derive(Clone, Copy)]
struct PackedTimestamp([u32; 2]);

impl PackedTimestamp {
    #[inline]
    fn pack(at: Timestamp) -> Self {
        let micros = at.as_micros() as u64;
        PackedTimestamp([micros as u32, (micros >> 32) as u32])
    }

    #[inline]
    fn unpack(self) -> Timestamp {
        let [low, high] = self.0;
        Timestamp::from_micros((u64::from(high) << 32 | u64::from(low)) as i64)
    }
}

/// Outside its bounds a timestamp means nothing, and its tick would not fit.
#[inline]
fn within_bounds(at: Timestamp) -> Timestamp {
    at.clamp(Timestamp::MIN, Timestamp::MAX)
}

/// The tick that is running at this time.
#[inline]
fn tick_of(at: Timestamp) -> u64 {
    at.as_micros() as u64 >> TICK_SHIFT
}

/// The first tick that begins at this time or later. Rounding up is what keeps a timer from firing early.
#[inline]
fn tick_not_before(at: Timestamp) -> u64 {
    (at.as_micros() as u64 + (1 << TICK_SHIFT) - 1) >> TICK_SHIFT
}

/// The last tick of the calendar begins after its end, and must be reached all the same.
#[inline]
fn start_of(tick: u64) -> Timestamp {
    Timestamp::from_micros((tick << TICK_SHIFT) as i64).min(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_takes_twenty_bytes_and_an_empty_wheel_none_on_the_heap() {
        let wheel = Wheel::<u32>::new(Timestamp::MIN);
        assert_eq!(size_of::<Node<u32>>(), 20);
        assert_eq!(wheel.nodes.capacity() + wheel.firsts.capacity(), 0);
        assert!(size_of_val(&wheel) <= 152, "{} bytes", size_of_val(&wheel));
    }

    #[test]
    fn a_warm_wheel_takes_no_more_memory() {
        let mut wheel = Wheel::new(Timestamp::MIN);
        let mut due = Vec::new();
        for round in 0..1000 {
            for item in 0..16 {
                wheel.start(Timestamp::from_micros(round * 10_000 + item), item);
            }
            wheel.advance(Timestamp::from_micros(round * 10_000 + 5_000), &mut due);
        }
        assert_eq!((due.len(), wheel.nodes.capacity()), (16_000, 16));
    }

    #[test]
    fn a_packed_timestamp_unpacks_to_itself() {
        for at in [Timestamp::MIN, Timestamp::from_micros(u32::MAX as i64 + 7), Timestamp::MAX] {
            assert_eq!(PackedTimestamp::pack(at).unpack(), at);
        }
    }
}
