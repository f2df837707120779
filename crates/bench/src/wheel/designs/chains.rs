//! Doubly linked lists in one vector: what the three plain wheels keep their timers in.

/// The end of a chain.
pub const END: u32 = u32::MAX;

#[derive(Clone, Copy)]
pub struct Link {
    pub tick: u64,
    pub item: u32,
    pub prev: u32,
    pub next: u32,
}

pub struct Chains {
    firsts: Vec<u32>,
    links: Vec<Link>,
    free: Vec<u32>,
}

impl Chains {
    pub fn new(count: usize) -> Self {
        Chains { firsts: vec![END; count], links: Vec::new(), free: Vec::new() }
    }

    pub fn first(&self, chain: usize) -> u32 {
        self.firsts[chain]
    }

    pub fn link(&self, index: u32) -> Link {
        self.links[index as usize]
    }

    /// Adds a timer after `prev`, or at the front of the chain if `prev` is the end.
    pub fn insert(&mut self, chain: usize, prev: u32, tick: u64, item: u32) -> u32 {
        let next = if prev == END { self.firsts[chain] } else { self.links[prev as usize].next };
        let index = self.store(Link { tick, item, prev, next });
        *self.next_of(chain, prev) = index;
        if next != END {
            self.links[next as usize].prev = index;
        }
        index
    }

    pub fn remove(&mut self, chain: usize, index: u32) {
        let Link { prev, next, .. } = self.links[index as usize];
        *self.next_of(chain, prev) = next;
        if next != END {
            self.links[next as usize].prev = prev;
        }
        self.free.push(index);
    }

    fn next_of(&mut self, chain: usize, prev: u32) -> &mut u32 {
        if prev == END { &mut self.firsts[chain] } else { &mut self.links[prev as usize].next }
    }

    fn store(&mut self, link: Link) -> u32 {
        if let Some(index) = self.free.pop() {
            self.links[index as usize] = link;
            return index;
        }
        self.links.push(link);
        self.links.len() as u32 - 1
    }
}
