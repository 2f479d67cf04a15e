//! Disks that are full or read-only, and locks that cannot be taken: each command ends with an error that names the place,
//! and the store is sound as soon as the trouble is over.
//!
//! The campaign mounts small file systems and therefore needs root; without it, it says so and ends:
//! `cargo test --test it -- --ignored campaign_of_disks --nocapture`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use rstest::rstest;

use crate::chance::{Dice, variable};
use crate::env::{DONE, TestEnvironment, err, out, run};

/// A file system in memory at a folder, unmounted on drop.
pub struct SmallDisk<'a>(&'a Path);

fn mount(arguments: &[&str]) -> bool {
    Command::new("mount").args(arguments).output().is_ok_and(|output| output.status.success())
}

impl<'a> SmallDisk<'a> {
    /// Mounts the file system; `None` when the user may not.
    pub fn mount(folder: &'a Path, kilobytes: u64) -> Option<Self> {
        std::fs::create_dir_all(folder).expect("a folder");
        let size = format!("size={kilobytes}k,mode=0700");
        mount(&["-t", "tmpfs", "-o", &size, "none", folder.to_str().expect("text")]).then_some(Self(folder))
    }

    fn change(&self, option: &str) {
        assert!(mount(&["-o", &format!("remount,{option}"), self.0.to_str().expect("text")]), "{option}");
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

fn code(name: &str) -> String {
    format!("import os\ndef {name}(x):\n    try:\n        return x\n    except:\n        pass\n")
}

fn findings(test: &TestEnvironment) -> BTreeSet<String> {
    let found = test.json(&["findings", "--status", "all", "--format", "json"], DONE);
    let all = found["findings"].as_array().cloned().unwrap_or_default();
    all.iter().map(|finding| finding["finding_id"].as_str().expect("an id").to_owned()).collect()
}

/// Checks that a command that failed says why, in words and without a report of a fault.
fn check_refusal(output: &Output, hint: &str) {
    let said = format!("{}{}", out(output), err(output));
    assert!(output.status.code().is_some_and(|code| code <= 3), "{hint}: {:?}\n{said}", output.status);
    assert!(!said.contains("panicked") && !said.contains("please report"), "{hint}\n{said}");
}

/// Works on a full disk of this size, then on a larger one. Returns the number of commands that failed.
fn try_small_disk(kilobytes: u64, dice: &mut Dice) -> Option<usize> {
    let test = TestEnvironment::new();
    let home = test.home();
    let disk = SmallDisk::mount(&home, kilobytes)?;
    let mut failed = 0;
    for number in 0..4 {
        test.write(&format!("m{number}.py"), code(&format!("f{number}")));
        test.commit("more");
        let known = findings_if_readable(&test);
        let finding = known.iter().next().cloned().unwrap_or_else(|| "f_0000000000000000".to_owned());
        let commands: [&[&str]; 4] = [
            &["review", "--commit", "HEAD", "--wait"],
            &["triage", &finding, "dismissed", "--reason", "on purpose"],
            &["undo"],
            &["runs"],
        ];
        for arguments in commands {
            let output = test.revdeck(arguments);
            check_refusal(&output, &format!("{kilobytes} KB, {arguments:?}"));
            failed += usize::from(!output.status.success());
        }
        if dice.below(2) == 0 {
            check_refusal(&test.revdeck(&["store", "repair"]), "repair on a full disk");
        }
    }
    let before = findings_if_readable(&test);
    disk.change("size=64m");
    run(&test, &["runs"], DONE);
    run(&test, &["store", "repair"], DONE);
    run(&test, &["store", "verify"], DONE);
    assert!(before.is_subset(&findings(&test)), "{kilobytes} KB: findings are lost");
    let waited = test.revdeck(&["review", "--commit", "HEAD", "--wait", "--force"]);
    assert!(waited.status.success(), "{kilobytes} KB: {}{}", out(&waited), err(&waited));
    Some(failed)
}

fn findings_if_readable(test: &TestEnvironment) -> BTreeSet<String> {
    let output = test.revdeck(&["findings", "--status", "all", "--format", "json"]);
    if output.status.success() { findings(test) } else { BTreeSet::new() }
}

/// Each place of a lock, replaced by a folder, which cannot be locked.
#[rstest]
#[case::of_the_store("store.lock")]
#[case::of_runs("locks")]
fn a_lock_that_cannot_be_taken_is_named(#[case] lock: &str) {
    let test = TestEnvironment::new();
    test.write("a.py", code("a"));
    test.commit("one");
    run(&test, &["review", "--wait"], DONE);
    let before = findings(&test);
    let path = test.store().root().join(lock);
    let aside = path.with_extension("aside");
    std::fs::rename(&path, &aside).expect("renamed");
    match lock {
        "locks" => std::fs::write(&path, "in the way").expect("a file"),
        _ => std::fs::create_dir(&path).expect("a folder"),
    }
    test.write("b.py", code("b"));
    for arguments in
        [&["review", "--worktree", "--wait"][..], &["triage", before.iter().next().expect("one"), "addressed"]]
    {
        let output = test.revdeck(arguments);
        check_refusal(&output, lock);
        if lock == "store.lock" {
            assert!(!output.status.success() && err(&output).contains(lock), "{arguments:?}: {}", err(&output));
        }
    }
    assert_eq!(findings(&test), before, "reading needs no lock");
    match lock {
        "locks" => std::fs::remove_file(&path).expect("removed"),
        _ => std::fs::remove_dir(&path).expect("removed"),
    }
    std::fs::rename(&aside, &path).expect("renamed");
    run(&test, &["review", "--worktree", "--wait"], DONE);
}

#[test]
#[ignore = "needs root and takes minutes"]
#[allow(clippy::print_stdout, reason = "the figures are what one looks for")]
fn campaign_of_disks() {
    let mut dice = Dice(variable("REVDECK_TEST_SEED", 0x5eed) as u64);
    let sizes: Vec<u64> = (0..variable("REVDECK_TEST_DISKS", 24)).map(|n| 4 * (1 + n as u64 * n as u64 / 3)).collect();
    let mut failed = 0;
    for kilobytes in &sizes {
        let Some(more) = try_small_disk(*kilobytes, &mut dice) else {
            println!("no file system could be mounted: run the campaign as root");
            return;
        };
        failed += more;
    }
    // Read-only: everything is shown, nothing is written, each refusal names the way out.
    let test = TestEnvironment::new();
    let home = test.home();
    let disk = SmallDisk::mount(&home, 64 << 10).expect("mounted");
    test.write("a.py", code("a"));
    test.commit("one");
    run(&test, &["review", "--wait"], DONE);
    let before = findings(&test);
    disk.change("ro");
    assert_eq!(findings(&test), before);
    for arguments in [&["review", "--wait", "--force"][..], &["undo"], &["runs"], &["doctor"], &["store", "repair"]] {
        check_refusal(&test.revdeck(arguments), &format!("read-only, {arguments:?}"));
    }
    disk.change("rw");
    run(&test, &["store", "verify"], DONE);
    println!(
        "{} full disks of {} to {} KB: {failed} commands refused in words, no finding lost; a read-only store is shown",
        sizes.len(),
        sizes.first().expect("a size"),
        sizes.last().expect("a size")
    );
}
