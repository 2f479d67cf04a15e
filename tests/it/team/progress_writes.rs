//! Number of times that an exchange writes how far it has come: each time costs two syncs of the disk.

use std::mem::MaybeUninit;

use rustix::fd::OwnedFd;
use rustix::fs::inotify;
use rustix::io::Errno;

use super::{Team, ids, review, sync};
use crate::env::{DONE, TestEnvironment, run};

/// Watch of a store's folder.
struct StoreWatch(OwnedFd);

impl StoreWatch {
    fn begin(machine: &TestEnvironment) -> Self {
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).expect("inotify");
        // The kernel joins equal events that follow each other; the temporary files part them.
        let flags = inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::CREATE;
        inotify::add_watch(&watch, machine.store().root(), flags).expect("a watch");
        Self(watch)
    }

    /// Returns how often `team.json` was replaced since the last call.
    fn count_writes(&self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut buffer);
        let mut count = 0;
        loop {
            match events.next() {
                Ok(event) => count += usize::from(event.file_name() == Some(c"team.json")),
                Err(Errno::WOULDBLOCK) => return count,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn an_exchange_that_sends_nothing_writes_its_progress_once() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    let watch = StoreWatch::begin(&bob);
    for received in [1, 0] {
        assert_eq!(sync(&bob)["received"]["reviews"], received);
        assert_eq!(watch.count_writes(), 1, "{received} reviews received");
    }
    // Records are noted before they are sent, and again afterwards.
    run(&bob, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    assert_eq!(sync(&bob)["sent"]["decisions"], 1);
    assert_eq!(watch.count_writes(), 2);
}
