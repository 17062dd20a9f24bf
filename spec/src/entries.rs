//! The queue of a store that orders its entries, as etcd does: an acquisition has an entry, and the first entry has the
//! lock. The search runs it with small numbers, a history with the revisions of a server.

/// An entry of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry<N, I> {
    /// The revision that made it.
    pub revision: N,
    /// Its number in the queue. Numbers begin again when the queue was empty.
    pub number: N,
    /// Whose it is.
    pub id: I,
}

/// Makes an entry at the end of the queue.
pub fn join<N: Copy + From<u8> + std::ops::Add<Output = N>, I>(
    queue: &mut Vec<Entry<N, I>>,
    revision: N,
    id: I,
) {
    let number = queue.last().map_or(N::from(0), |it| it.number + N::from(1));
    queue.push(Entry {
        revision,
        number,
        id,
    });
}

/// Deletes entries; returns them.
pub fn remove<N, I>(
    queue: &mut Vec<Entry<N, I>>,
    is_gone: impl Fn(&I) -> bool,
) -> Vec<Entry<N, I>> {
    let (gone, left) = queue.drain(..).partition(|it| is_gone(&it.id));
    *queue = left;
    gone
}

/// The own entry, and the revisions of those ahead of it. With none ahead, it has the lock.
pub fn look<'a, N: Copy + PartialOrd, I: PartialEq>(
    queue: &'a [Entry<N, I>],
    id: &I,
) -> (Option<&'a Entry<N, I>>, Vec<N>) {
    let own = queue.iter().find(|it| it.id == *id);
    let is_ahead = |it: &&Entry<N, I>| own.is_none_or(|own| it.revision < own.revision);
    let ahead = queue.iter().filter(is_ahead).map(|it| it.revision);
    (own, ahead.collect())
}
