//! KV blocks: who may write and read which.
//!
//! A [`Block`] is a counted reference; the block is free again when the last reference is dropped, so a sequence
//! that goes, for whatever reason, cannot keep or lose one. Allocation and release are a pop and a push. The block
//! freed last is used first: the memory that is ever touched is the most that was in use at once.

use std::cell::RefCell;
use std::rc::Rc;

use dynalm_model::BLOCK_TOKENS;

/// Blocks that hold `n_tokens` tokens.
pub(crate) fn blocks_for(n_tokens: usize) -> usize {
    n_tokens.div_ceil(BLOCK_TOKENS)
}

/// One KV block in use. Cloning shares it.
pub(crate) type Block = Rc<OwnedBlock>;

/// Gives its id back when dropped.
#[derive(Debug)]
pub(crate) struct OwnedBlock {
    id: u32,
    free: FreeList,
}

type FreeList = Rc<RefCell<Vec<u32>>>;

impl Drop for OwnedBlock {
    fn drop(&mut self) {
        self.free.borrow_mut().push(self.id);
    }
}

/// All blocks of one KV cache.
#[derive(Debug)]
pub(crate) struct BlockPool {
    free: FreeList,
    n_blocks: usize,
}

impl BlockPool {
    /// A pool of the ids `0..n_blocks`, all free.
    pub(crate) fn new(n_blocks: u32) -> Self {
        Self {
            free: Rc::new(RefCell::new((0..n_blocks).rev().collect())),
            n_blocks: n_blocks as usize,
        }
    }

    pub(crate) fn n_free(&self) -> usize {
        self.free.borrow().len()
    }

    pub(crate) fn n_used(&self) -> usize {
        self.n_blocks - self.n_free()
    }

    /// A free block, or `None` when all are in use.
    pub(crate) fn allocate(&self) -> Option<Block> {
        let id = self.free.borrow_mut().pop()?;
        Some(Rc::new(OwnedBlock {
            id,
            free: Rc::clone(&self.free),
        }))
    }
}

/// The blocks of one sequence in the order of its positions.
#[derive(Debug, Default)]
pub(crate) struct BlockTable {
    blocks: Vec<Block>,
    /// Their ids, as the model takes them.
    ids: Vec<u32>,
}

impl BlockTable {
    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }

    pub(crate) fn push(&mut self, block: Block) {
        self.ids.push(block.id);
        self.blocks.push(block);
    }

    /// Adds blocks until `n_tokens` tokens fit. False when the pool runs out; those added by then stay.
    pub(crate) fn grow(&mut self, n_tokens: usize, pool: &BlockPool) -> bool {
        while self.ids.len() < blocks_for(n_tokens) {
            let Some(block) = pool.allocate() else {
                return false;
            };
            self.push(block);
        }
        true
    }

    /// Lets all blocks go, the last first, so that they are handed out again in the order of their positions.
    pub(crate) fn clear(&mut self) {
        self.ids.clear();
        while self.blocks.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_come_back_when_their_last_owner_goes() {
        let pool = BlockPool::new(2);
        let first = pool.allocate().expect("free");
        let shared = Block::clone(&first);
        let second = pool.allocate().expect("free");
        assert!(pool.allocate().is_none());
        drop(first);
        assert_eq!(pool.n_free(), 0, "still shared");
        drop(shared);
        assert_eq!(pool.n_free(), 1);
        drop(second);
        assert_eq!((pool.n_free(), pool.n_used()), (2, 0));
    }

    #[test]
    fn a_table_grows_by_whole_blocks() {
        let pool = BlockPool::new(3);
        let mut table = BlockTable::default();
        for (n_tokens, n_blocks) in [(0, 0), (1, 1), (BLOCK_TOKENS, 1), (BLOCK_TOKENS + 1, 2)] {
            assert!(table.grow(n_tokens, &pool));
            assert_eq!(table.ids().len(), n_blocks);
        }
        assert_eq!(table.ids(), [0, 1]);
        assert!(!table.grow(BLOCK_TOKENS * 4, &pool));
        table.clear();
        assert_eq!(pool.n_free(), 3);
        assert_eq!(
            pool.allocate().expect("free").id,
            0,
            "the block used first is reused first"
        );
    }

    proptest! {
        #[test]
        fn no_block_is_owned_twice_and_none_is_lost(operations in prop::collection::vec((0..3_u8, 0..8_usize), 0..200)) {
            let pool = BlockPool::new(5);
            let mut owners: Vec<Block> = Vec::new();
            for (operation, index) in operations {
                match operation {
                    0 => {
                        let taken: Vec<u32> = owners.iter().map(|block| block.id).collect();
                        if let Some(block) = pool.allocate() {
                            prop_assert!(!taken.contains(&block.id));
                            owners.push(block);
                        }
                    }
                    1 if index < owners.len() => owners.push(Block::clone(&owners[index])),
                    2 if index < owners.len() => drop(owners.swap_remove(index)),
                    _ => {}
                }
                let mut distinct: Vec<u32> = owners.iter().map(|block| block.id).collect();
                distinct.sort_unstable();
                distinct.dedup();
                prop_assert_eq!(pool.n_used(), distinct.len());
            }
        }
    }
}
