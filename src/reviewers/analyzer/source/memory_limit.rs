//! What tree-sitter may ask for while it parses one text: its allocator, counted per thread.
//!
//! For texts that were made for it, a few kilobytes are enough, one step of the library takes gigabytes or minutes, and
//! it looks at nothing but its allocator meanwhile. A thread that asks for more than it was granted gets no answer: its
//! blocks are given back and it sleeps until the process ends. What is counted is what is asked for, so the same text is
//! stopped at the same place on every machine.
//!
//! Invariant: a block is given back on the thread that asked for it; one that is not stays where it is.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error, realloc};
use std::cell::{Cell, OnceCell};
use std::ffi::c_void;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a thread may ask for beyond what it was granted, for those who look at [`is_spent`] now and then.
const MAX_OVERDRAFT_BYTES: u64 = 16 << 20;

/// What stands before each block; the blocks of a thread are a list.
#[repr(C, align(16))]
struct BlockHeader {
    size: usize,
    before: *mut BlockHeader,
    after: *mut BlockHeader,
    owner: u64,
}

/// What is known of a thread.
struct Thread {
    /// 0 until it is asked for.
    id: Cell<u64>,
    first: Cell<*mut BlockHeader>,
    granted: Cell<u64>,
    asked: Cell<u64>,
}

impl Thread {
    /// No thread has another's, not even that of one that has ended.
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

/// Takes over tree-sitter's memory; to be called before its first use in this process.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let allocator =
            tree_sitter::Allocator { malloc: allocate, calloc: allocate_zeroed, realloc: reallocate, free: release };
        // SAFETY: the four belong together, never return null and align as malloc does. Nothing of tree-sitter lives
        // yet: parsers are made by the one caller of this function.
        unsafe { tree_sitter::set_allocator(Some(allocator)) };
    });
}

/// What this thread does last when it is stopped; the first call stands.
pub fn on_stop(tell: impl Fn() + 'static) {
    STOPPED.with(|stopped| {
        let _ = stopped.set(Box::new(tell));
    });
}

/// From now on this thread may ask for this many bytes in all, given back or not, each block counted with what stands
/// before it. Without a grant a thread may ask for anything.
pub fn grant(bytes: u64) {
    THREAD.with(|thread| {
        thread.asked.set(0);
        thread.granted.set(bytes);
    });
}

/// Whether this thread has asked for all that it was granted.
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

/// Ends this thread's work for ever. Nothing of it runs again, so nobody misses the blocks.
fn stop(thread: &Thread) -> ! {
    let mut next = thread.first.replace(ptr::null_mut());
    while !next.is_null() {
        // SAFETY: every block on the list is one that `linked` put there and that was not given back since.
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

/// The layout of a block of `size` bytes with what stands before it. A size that no memory can hold is refused by the
/// limit long before; were it not, the process ends as it does without memory.
fn block_layout(size: usize) -> Layout {
    let whole = size.checked_add(size_of::<BlockHeader>());
    match whole.and_then(|whole| Layout::from_size_align(whole, align_of::<BlockHeader>()).ok()) {
        Some(layout) => layout,
        None => handle_alloc_error(Layout::new::<BlockHeader>()),
    }
}

/// Puts a new or moved block on this thread's list and says where its bytes start.
///
/// # Safety
/// `block` is null or has room for `size` bytes behind a [`Block`], and is on no list.
unsafe fn link_block(block: *mut BlockHeader, size: usize) -> *mut c_void {
    if block.is_null() {
        handle_alloc_error(block_layout(size));
    }
    THREAD.with(|thread| {
        let after = thread.first.replace(block);
        // SAFETY: `after` is on this thread's list and `block` is ours.
        unsafe {
            block.write(BlockHeader { size, before: ptr::null_mut(), after, owner: thread.id() });
            if !after.is_null() {
                (*after).before = block;
            }
            block.add(1).cast()
        }
    })
}

/// Takes a block from this thread's list; `None` for a block of another thread.
///
/// # Safety
/// `bytes` came from [`linked`] and was not given back.
unsafe fn unlink_block(bytes: *mut c_void) -> Option<*mut BlockHeader> {
    THREAD.with(|thread| {
        // SAFETY: a `Block` stands before the bytes; its neighbours are on the same list, which is this thread's.
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
        // SAFETY: as for any caller.
        return unsafe { allocate(size) };
    }
    charge(size);
    // SAFETY: the block has the layout of its size; one of another thread is copied and left where it is.
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
