//! The merging that byte-pair encodings and SentencePiece have in common: adjacent pieces are joined, best pair
//! first and the leftmost of equals, until no pair can be joined.
//!
//! Short words are scanned for their best pair each time, which beats any structure; from [`LONG`] pieces on a heap
//! of pairs and a linked list of pieces keep the work at O(n log n). A pair in the heap is outdated when the pair
//! that now starts at the same piece has another priority; equal priority at the same place means the same rank, so
//! nothing else needs comparing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// From this many pieces on the heap is used.
const LONG: usize = 48;

/// A piece that no symbol stands for.
pub(crate) const NO_SYMBOL: u32 = u32::MAX;

/// What joining two adjacent pieces would give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Join {
    /// Lower ones are joined first.
    pub(crate) priority: u32,
    /// The symbol of the joined piece.
    pub(crate) symbol: u32,
}

impl Join {
    const NONE: Join = Join {
        priority: u32::MAX,
        symbol: NO_SYMBOL,
    };
}

/// Which pairs may be joined.
pub(crate) trait Rules {
    /// The join of the pieces with these symbols, which together cover `text`.
    fn join(&self, left: u32, right: u32, text: &[u8]) -> Option<Join>;
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u32,
    symbol: u32,
    /// The join with the next piece.
    join: Join,
}

/// Buffers of the merging, to be reused from word to word.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    pieces: Vec<Piece>,
    /// Neighbours, by index into `pieces`; only used for long words.
    links: Vec<(u32, u32)>,
    heap: BinaryHeap<Reverse<u64>>,
}

/// Words are cut to this many bytes, so that positions fit 32 bits with room to spare.
pub(crate) const LONGEST_WORD_BYTES: usize = 1 << 30;

impl Merger {
    /// Forgets the last word.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Adds an initial piece of the word, which starts at byte `start`.
    #[inline]
    pub(crate) fn push(&mut self, start: usize, symbol: u32) {
        debug_assert!(start < LONGEST_WORD_BYTES);
        self.pieces.push(Piece {
            start: start as u32,
            symbol,
            join: Join::NONE,
        });
    }

    /// Joins all that can be joined in `word`, whose initial pieces were pushed before.
    pub(crate) fn run(&mut self, rules: &impl Rules, word: &[u8]) {
        for index in 1..self.pieces.len() {
            let (left, right) = (self.pieces[index - 1], self.pieces[index]);
            let end = self
                .pieces
                .get(index + 1)
                .map_or(word.len(), |next| next.start as usize);
            let joined = &word[left.start as usize..end];
            self.pieces[index - 1].join = rules
                .join(left.symbol, right.symbol, joined)
                .unwrap_or(Join::NONE);
        }
        if self.pieces.len() < LONG {
            self.run_short(rules, word);
        } else {
            self.run_long(rules, word);
        }
    }

    /// The symbol and place of each piece.
    pub(crate) fn pieces(&self, word_len: usize) -> impl Iterator<Item = (u32, Range<usize>)> {
        let ends = self
            .pieces
            .iter()
            .skip(1)
            .map(|piece| piece.start as usize)
            .chain([word_len]);
        self.pieces
            .iter()
            .zip(ends)
            .map(|(piece, end)| (piece.symbol, piece.start as usize..end))
    }

    fn run_short(&mut self, rules: &impl Rules, word: &[u8]) {
        let pieces = &mut self.pieces;
        let join_at = |pieces: &[Piece], index: usize| {
            let (Some(left), Some(right)) = (pieces.get(index), pieces.get(index + 1)) else {
                return Join::NONE;
            };
            let end = pieces
                .get(index + 2)
                .map_or(word.len(), |next| next.start as usize);
            rules
                .join(left.symbol, right.symbol, &word[left.start as usize..end])
                .unwrap_or(Join::NONE)
        };
        loop {
            let mut best = 0;
            let mut priority = u32::MAX;
            for (index, piece) in pieces.iter().enumerate() {
                if piece.join.priority < priority {
                    (best, priority) = (index, piece.join.priority);
                }
            }
            if priority == u32::MAX {
                return;
            }
            pieces[best].symbol = pieces[best].join.symbol;
            pieces.remove(best + 1);
            pieces[best].join = join_at(pieces, best);
            if best > 0 {
                pieces[best - 1].join = join_at(pieces, best - 1);
            }
        }
    }

    fn run_long(&mut self, rules: &impl Rules, word: &[u8]) {
        let n_pieces = self.pieces.len();
        // The neighbour after the last piece is `n_pieces`; before the first it is u32::MAX.
        self.links.clear();
        self.links
            .extend((0..n_pieces as u32).map(|index| (index.wrapping_sub(1), index + 1)));
        let queue = self
            .pieces
            .iter()
            .enumerate()
            .filter(|(_, piece)| piece.join.priority != u32::MAX);
        let mut heap: Vec<_> = std::mem::take(&mut self.heap).into_vec();
        heap.clear();
        heap.extend(queue.map(|(index, piece)| heap_entry(piece.join, index as u32)));
        self.heap = BinaryHeap::from(heap);

        while let Some(Reverse(entry)) = self.heap.pop() {
            let (priority, index) = ((entry >> 32) as u32, entry as u32);
            let join = self.pieces[index as usize].join;
            if join.priority != priority {
                continue;
            }
            self.join_with_next(index, join.symbol);
            self.find_join(rules, word, index);
            let before = self.links[index as usize].0;
            if before != u32::MAX {
                self.find_join(rules, word, before);
            }
        }
        self.drop_joined();
    }

    /// Gives piece `index` the symbol of its join and takes the next piece out of the list.
    fn join_with_next(&mut self, index: u32, symbol: u32) {
        let next = self.links[index as usize].1;
        let after = self.links[next as usize].1;
        self.pieces[index as usize].symbol = symbol;
        self.pieces[next as usize].join = Join::NONE;
        self.links[index as usize].1 = after;
        self.links[next as usize].0 = JOINED;
        if let Some(link) = self.links.get_mut(after as usize) {
            link.0 = index;
        }
    }

    /// Works out the join of piece `index` with its present neighbour.
    fn find_join(&mut self, rules: &impl Rules, word: &[u8], index: u32) {
        let start_of = |index: u32| {
            self.pieces
                .get(index as usize)
                .map_or(word.len(), |piece| piece.start as usize)
        };
        let next = self.links[index as usize].1;
        let left = self.pieces[index as usize];
        let join = self.pieces.get(next as usize).and_then(|right| {
            let after = self.links[next as usize].1;
            rules.join(
                left.symbol,
                right.symbol,
                &word[left.start as usize..start_of(after)],
            )
        });
        self.pieces[index as usize].join = join.unwrap_or(Join::NONE);
        if let Some(join) = join {
            self.heap.push(heap_entry(join, index));
        }
    }

    fn drop_joined(&mut self) {
        let mut links = self.links.iter();
        self.pieces
            .retain(|_| links.next().is_some_and(|(before, _)| *before != JOINED));
    }
}

/// Marks, in place of the neighbour before, a piece that was joined to that neighbour.
const JOINED: u32 = u32::MAX - 1;

fn heap_entry(join: Join, index: u32) -> Reverse<u64> {
    Reverse(u64::from(join.priority) << 32 | u64::from(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Joins "ab"-like texts whose length and first byte pass a rule; priorities depend on the text.
    struct ToyRules;

    impl Rules for ToyRules {
        fn join(&self, _: u32, _: u32, text: &[u8]) -> Option<Join> {
            let sum: u32 = text.iter().map(|byte| u32::from(*byte) * 7 + 3).sum();
            (text.len() <= 6 && !sum.is_multiple_of(5)).then_some(Join {
                priority: sum % 11,
                symbol: sum,
            })
        }
    }

    fn run(word: &[u8], long: bool) -> Vec<(u32, Range<usize>)> {
        let mut merger = Merger::default();
        for (start, byte) in word.iter().enumerate() {
            merger.push(start, u32::from(*byte));
        }
        for start in 0..word.len().saturating_sub(1) {
            merger.pieces[start].join = ToyRules
                .join(0, 0, &word[start..start + 2])
                .unwrap_or(Join::NONE);
        }
        if long {
            merger.run_long(&ToyRules, word)
        } else {
            merger.run_short(&ToyRules, word)
        }
        merger.pieces(word.len()).collect()
    }

    proptest! {
        #[test]
        fn both_ways_give_the_same_pieces(word in "[a-d]{0,120}") {
            prop_assert_eq!(run(word.as_bytes(), true), run(word.as_bytes(), false));
        }
    }

    #[test]
    fn nothing_to_join() {
        assert!(run(b"", true).is_empty());
        assert_eq!(run(b"a", true), vec![(97, 0..1)]);
    }
}
