//! Limits the memory that tree-sitter may request while it parses one text, by counting allocations per thread.
//!
//! For a text made for this purpose, a few kilobytes are enough to make one step of the library take gigabytes or
//! minutes, and during the step it calls nothing but its allocator. A thread that requests more than its grant gets no
//! answer: its blocks are freed and it sleeps until the process ends. The limit counts requested bytes, so the same
//! text stops at the same point on every machine.
//!
//! Invariant: a block is freed only on the thread that requested it. If another thread frees it, the block stays
//! allocated.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error, realloc};
use std::cell::{Cell, OnceCell};
use std::ffi::c_void;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a thread may request beyond its grant, so that callers may check [`is_spent`] only from time to time.
const MAX_OVERDRAFT_BYTES: u64 = 16 << 20;

/// Header before each allocation; the blocks of a thread form a doubly linked list.
#[repr(C, align(16))]
struct BlockHeader {
    size: usize,
    before: *mut BlockHeader,
    after: *mut BlockHeader,
    owner: u64,
}

/// Allocation state of one thread.
struct Thread {
    /// 0 until first needed.
    id: Cell<u64>,
    first: Cell<*mut BlockHeader>,
    granted: Cell<u64>,
    asked: Cell<u64>,
}

impl Thread {
    /// Returns the id of the thread. Ids are never reused, even after a thread has ended.
    fn id(&self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        if self.id.get() == 0 {
            self.id.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        }
        self.id.get()
    }
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            id: Cell::new(0),
            first: Cell::new(ptr::null_mut()),
            granted: Cell::new(u64::MAX),
            asked: Cell::new(0),
        }
    };
    static STOPPED: OnceCell<Box<dyn Fn()>> = const { OnceCell::new() };
}

/// Replaces tree-sitter's allocator. Must be called before tree-sitter is first used in this process.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let allocator =
            tree_sitter::Allocator { malloc: allocate, calloc: allocate_zeroed, realloc: reallocate, free: release };
        // SAFETY: the four functions belong together, never return null and align as malloc does. No object of
        // tree-sitter exists yet: only the caller of this function creates parsers.
        unsafe { tree_sitter::set_allocator(Some(allocator)) };
    });
}

/// Sets the function that this thread calls last if it is stopped. Only the first call has an effect.
pub fn on_stop(tell: impl Fn() + 'static) {
    STOPPED.with(|stopped| {
        let _ = stopped.set(Box::new(tell));
    });
}

/// Sets the number of bytes that this thread may request from now on, in total: freed bytes and block headers count
/// too. Without a grant a thread has no limit.
pub fn grant(bytes: u64) {
    THREAD.with(|thread| {
        thread.asked.set(0);
        thread.granted.set(bytes);
    });
}

/// Returns whether this thread has requested more than its grant.
pub fn is_spent() -> bool {
    THREAD.with(|thread| thread.asked.get() > thread.granted.get())
}

fn charge(size: usize) {
    THREAD.with(|thread| {
        let asked = thread.asked.get().saturating_add(size as u64).saturating_add(size_of::<BlockHeader>() as u64);
        thread.asked.set(asked);
        if asked > thread.granted.get().saturating_add(MAX_OVERDRAFT_BYTES) {
            stop(thread);
        }
    });
}

/// Stops this thread forever. None of its code runs again, so nothing uses its blocks after they are freed.
fn stop(thread: &Thread) -> ! {
    let mut next = thread.first.replace(ptr::null_mut());
    while !next.is_null() {
        // SAFETY: every block on the list was put there by `link_block` and was not freed since.
        unsafe {
            let block = next;
            next = (*block).after;
            dealloc(block.cast(), block_layout((*block).size));
        }
    }
    STOPPED.with(|stopped| {
        if let Some(tell) = stopped.get() {
            tell();
        }
    });
    loop {
        std::thread::park();
    }
}

/// Returns the layout of a block: its header and `size` bytes. The limit refuses impossible sizes long before; without
/// the limit the process would end, as it does when memory runs out.
fn block_layout(size: usize) -> Layout {
    let whole = size.checked_add(size_of::<BlockHeader>());
    match whole.and_then(|whole| Layout::from_size_align(whole, align_of::<BlockHeader>()).ok()) {
        Some(layout) => layout,
        None => handle_alloc_error(Layout::new::<BlockHeader>()),
    }
}

/// Puts a new or moved block on this thread's list and returns the address of its bytes.
///
/// # Safety
///
/// `block` is null or has room for a [`BlockHeader`] and `size` bytes after it, and is on no list.
unsafe fn link_block(block: *mut BlockHeader, size: usize) -> *mut c_void {
    if block.is_null() {
        handle_alloc_error(block_layout(size));
    }
    THREAD.with(|thread| {
        let after = thread.first.replace(block);
        // SAFETY: `after` is on this thread's list and `block` is owned by this function.
        unsafe {
            block.write(BlockHeader { size, before: ptr::null_mut(), after, owner: thread.id() });
            if !after.is_null() {
                (*after).before = block;
            }
            block.add(1).cast()
        }
    })
}

/// Removes a block from this thread's list; `None` for a block of another thread.
///
/// # Safety
///
/// `bytes` came from [`link_block`] and was not freed.
unsafe fn unlink_block(bytes: *mut c_void) -> Option<*mut BlockHeader> {
    THREAD.with(|thread| {
        // SAFETY: a `BlockHeader` precedes the bytes. If this thread owns the block, its neighbors are on this thread's
        // list.
        unsafe {
            let block = bytes.cast::<BlockHeader>().sub(1);
            if (*block).owner != thread.id() {
                return None;
            }
            let (before, after) = ((*block).before, (*block).after);
            match before.is_null() {
                true => thread.first.set(after),
                false => (*before).after = after,
            }
            if !after.is_null() {
                (*after).before = before;
            }
            Some(block)
        }
    })
}

unsafe extern "C" fn allocate(size: usize) -> *mut c_void {
    charge(size);
    // SAFETY: the layout is never empty.
    unsafe { link_block(alloc(block_layout(size)).cast(), size) }
}

unsafe extern "C" fn allocate_zeroed(count: usize, size: usize) -> *mut c_void {
    let size = count.saturating_mul(size);
    charge(size);
    // SAFETY: the layout is never empty.
    unsafe { link_block(alloc_zeroed(block_layout(size)).cast(), size) }
}

unsafe extern "C" fn reallocate(bytes: *mut c_void, size: usize) -> *mut c_void {
    if bytes.is_null() {
        // SAFETY: `allocate` may be called with any size.
        return unsafe { allocate(size) };
    }
    charge(size);
    // SAFETY: the block has the layout of its size. A block of another thread is copied and stays allocated.
    unsafe {
        match unlink_block(bytes) {
            Some(block) => {
                link_block(realloc(block.cast(), block_layout((*block).size), block_layout(size).size()).cast(), size)
            }
            None => {
                let kept = (*bytes.cast::<BlockHeader>().sub(1)).size.min(size);
                let copy = link_block(alloc(block_layout(size)).cast(), size);
                ptr::copy_nonoverlapping(bytes.cast::<u8>(), copy.cast(), kept);
                copy
            }
        }
    }
}

unsafe extern "C" fn release(bytes: *mut c_void) {
    if bytes.is_null() {
        return;
    }
    // SAFETY: the block has the layout of its size.
    unsafe {
        if let Some(block) = unlink_block(bytes) {
            dealloc(block.cast(), block_layout((*block).size));
        }
    }
}
