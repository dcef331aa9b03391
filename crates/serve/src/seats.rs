//! How much room is there? Bounds on connections and on handshakes that are not done yet.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::AbortHandle;

/// Connections at once, half of them by one common name; as many handshakes. Fewer where the system allows fewer files.
const MOST_CONNECTIONS: usize = 1024;

/// A connection and a handshake are a file each, and the store, the index and a sweep in this process need some too.
pub(crate) fn most_connections() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let files = files.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    (files / 4).clamp(16, MOST_CONNECTIONS)
}

/// How many connections there are, in all and by certificate: no one peer can take all seats.
#[derive(Debug, Clone)]
pub(crate) struct Seats {
    pub(crate) most: usize,
    taken: Arc<Mutex<HashMap<Vec<u8>, usize>>>,
}

#[derive(Debug)]
pub(crate) struct Seat {
    seats: Seats,
    leaf: Vec<u8>,
}

impl Seats {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    pub(crate) fn take(&self, leaf: Vec<u8>) -> Option<Seat> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = taken.get(&leaf).copied().unwrap_or(0);
        if taken.values().sum::<usize>() >= self.most || mine >= self.most / 2 {
            return None;
        }
        taken.insert(leaf.clone(), mine + 1);
        Some(Seat { seats: self.clone(), leaf })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mine) = taken.get_mut(&self.leaf) {
            *mine -= 1;
            if *mine == 0 {
                taken.remove(&self.leaf);
            }
        }
    }
}

/// Forgets handshakes that are over; where there are still too many, ends the oldest.
pub(crate) fn make_room(handshakes: &mut VecDeque<AbortHandle>, most: usize) {
    while handshakes.front().is_some_and(AbortHandle::is_finished) {
        handshakes.pop_front();
    }
    if handshakes.len() >= most {
        handshakes.retain(|handshake| !handshake.is_finished());
    }
    if handshakes.len() >= most
        && let Some(oldest) = handshakes.pop_front()
    {
        oldest.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_gets_half_of_the_seats_at_most() {
        let seats = Seats::new(4);
        let mut held: Vec<_> = (0..2).map(|_| seats.take(vec![1]).unwrap()).collect();
        assert!(seats.take(vec![1]).is_none());
        held.extend((2..4).map(|leaf| seats.take(vec![leaf]).unwrap()));
        assert!(seats.take(vec![9]).is_none(), "full");
        held.clear();
        assert!(seats.taken.lock().unwrap().is_empty());
        assert!(seats.take(vec![1]).is_some());
    }

    #[test]
    fn the_oldest_handshake_gives_way() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut handshakes = VecDeque::new();
            let tasks: Vec<_> = (0..3).map(|_| tokio::spawn(std::future::pending::<()>())).collect();
            for task in &tasks {
                make_room(&mut handshakes, 2);
                handshakes.push_back(task.abort_handle());
            }
            tokio::task::yield_now().await;
            assert_eq!(tasks.iter().map(|task| task.is_finished()).collect::<Vec<_>>(), [true, false, false]);
        });
    }
}
