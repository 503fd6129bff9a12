//! The memory map: the only unsafe code of this crate.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;

use memmap2::Mmap;

/// A file mapped read-only.
#[derive(Debug)]
pub(crate) struct Mapping {
    map: Mmap,
}

impl Mapping {
    /// Maps the whole file.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the map is read-only and shared, and nothing in this process writes to the file. Another process
        // that changes the file while it is mapped can change the bytes seen (each byte is valid as `u8` whatever it
        // is, and what was checked was copied out of the map, so wrong weights are the worst of it), or truncate it,
        // which ends this process with a bus error. That is the known price of mapping model files, and the public
        // `GgufFile::open` documents it.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self { map })
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Tells the system that the pages which lie wholly inside `range` are not needed for now.
    ///
    /// A hint: their memory is given up, and the next access reads them from the file (or its cache) again.
    #[cfg(unix)]
    pub(crate) fn release(&self, range: Range<usize>) {
        let Some(range) = whole_pages(range, page_bytes()) else {
            return;
        };
        // SAFETY: `DontNeed` may change what a private or anonymous mapping holds, so it is unsafe in general; on a
        // shared read-only mapping of a file the pages come back from the file with the same bytes. The range is
        // checked against the map's length by memmap2, and an error of a mere hint can be ignored.
        let _ = unsafe {
            self.map.unchecked_advise_range(
                memmap2::UncheckedAdvice::DontNeed,
                range.start,
                range.len(),
            )
        };
    }

    #[cfg(not(unix))]
    pub(crate) fn release(&self, _range: Range<usize>) {}
}

#[cfg(unix)]
fn page_bytes() -> usize {
    // SAFETY: `sysconf` with a constant name reads a number and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes)
        .ok()
        .filter(|n| n.is_power_of_two())
        .unwrap_or(1 << 16)
}

/// The part of `range` made of whole pages, `None` if there is none.
#[cfg(unix)]
fn whole_pages(range: Range<usize>, page_bytes: usize) -> Option<Range<usize>> {
    let start = range.start.checked_next_multiple_of(page_bytes)?;
    let end = range.end.checked_sub(range.end.checked_rem(page_bytes)?)?;
    (start < end).then_some(start..end)
}

#[cfg(all(test, unix))]
mod tests {
    use super::whole_pages;

    #[test]
    fn only_whole_pages_are_released() {
        assert_eq!(whole_pages(0..8192, 4096), Some(0..8192));
        assert_eq!(whole_pages(1..8191, 4096), None);
        assert_eq!(whole_pages(1..8192, 4096), Some(4096..8192));
        assert_eq!(whole_pages(4095..12289, 4096), Some(4096..12288));
        assert_eq!(whole_pages(usize::MAX - 1..usize::MAX, 4096), None);
    }
}
