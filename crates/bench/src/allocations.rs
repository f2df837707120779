//! How often and how much is allocated, thread by thread, at the cost of a nanosecond or two.
//!
//! Counters that all threads share would cost more than the allocation they count. So each thread has counters of
//! its own: a test sees exactly what it did itself, whatever other tests do beside it.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What was allocated and freed up to a moment, or between two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// How often something was allocated or grown.
    pub allocations: u64,
    /// How many bytes were asked for.
    pub bytes: u64,
    /// How many bytes were given back.
    pub freed_bytes: u64,
}

impl Count {
    /// By this thread, since it began.
    pub fn of_this_thread() -> Count {
        SHARDS[shard()].read()
    }

    /// By all threads. Exact only while the others rest.
    pub fn of_all_threads() -> Count {
        SHARDS.iter().map(Shard::read).fold(Count::default(), Count::add)
    }

    /// Bytes allocated and not freed. Negative when more was freed than allocated.
    pub fn live_bytes(self) -> i64 {
        self.bytes as i64 - self.freed_bytes as i64
    }
}

impl Add for Count {
    type Output = Count;

    fn add(self, more: Count) -> Count {
        Count {
            allocations: self.allocations + more.allocations,
            bytes: self.bytes + more.bytes,
            freed_bytes: self.freed_bytes + more.freed_bytes,
        }
    }
}

impl Sub for Count {
    type Output = Count;

    fn sub(self, before: Count) -> Count {
        Count {
            allocations: self.allocations - before.allocations,
            bytes: self.bytes - before.bytes,
            freed_bytes: self.freed_bytes - before.freed_bytes,
        }
    }
}

/// More threads than this at once would share counters, and lose some counts.
const SHARD_COUNT: usize = 256;

static SHARDS: [Shard; SHARD_COUNT] = [const { Shard::new() }; SHARD_COUNT];

/// The counters of one thread, on cache lines of their own.
#[repr(align(128))]
struct Shard {
    allocations: AtomicU64,
    bytes: AtomicU64,
    freed_bytes: AtomicU64,
}

impl Shard {
    const fn new() -> Shard {
        Shard { allocations: AtomicU64::new(0), bytes: AtomicU64::new(0), freed_bytes: AtomicU64::new(0) }
    }

    fn read(&self) -> Count {
        Count {
            allocations: self.allocations.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            freed_bytes: self.freed_bytes.load(Ordering::Relaxed),
        }
    }
}

fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    SHARD.with(|shard| {
        if shard.get() == usize::MAX {
            shard.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARD_COUNT);
        }
        shard.get()
    })
}

/// Only the thread that owns the counter writes it, so nothing need be locked.
fn add(counter: &AtomicU64, more: usize) {
    counter.store(counter.load(Ordering::Relaxed) + more as u64, Ordering::Relaxed);
}

struct Counting;

impl Counting {
    fn allocated(&self, bytes: usize) {
        let shard = &SHARDS[shard()];
        add(&shard.allocations, 1);
        add(&shard.bytes, bytes);
    }

    fn freed(&self, bytes: usize) {
        add(&SHARDS[shard()].freed_bytes, bytes);
    }
}

#[expect(unsafe_code, reason = "an allocator cannot be written without; every call is passed on unchanged")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.allocated(layout.size());
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.allocated(layout.size());
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.allocated(size);
        self.freed(layout.size());
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.freed(layout.size());
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }
}
