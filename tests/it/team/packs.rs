//! Exchanges leave few loose objects and few packs in a repository, however many exchanges there were.

use std::collections::HashSet;
use std::path::PathBuf;

use revdeck::git::{Repo, SigningMode};
use serde_json::json;

use super::hostile::decision;
use super::{Team, ids, review, sync};
use crate::env::{TestEnvironment, files_below};

/// Number of loose objects that exchanges may leave: a hundred commits, each with a tree and a segment.
const MAX_LOOSE: usize = 300;

/// Log of a machine that commits often.
struct BusyLog<'a> {
    machine: &'a TestEnvironment,
    repo: Repo,
    finding: &'a str,
    tip: Option<String>,
    commits: usize,
}

impl BusyLog<'_> {
    /// Appends commits of one decision each, and sends them at once.
    fn append(&mut self, commits: usize) {
        for _ in 0..commits {
            self.commits += 1;
            let mut decision = decision("eve-1", self.finding, &format!("intended {}", self.commits));
            decision["clock"][1] = json!(self.commits);
            let segment = (format!("{:06}-x.ndjson", self.commits), format!("{decision}\n").into_bytes());
            let commit = self.repo.write_log_commit(&[segment], self.tip.as_deref(), SigningMode::Never);
            self.tip = Some(commit.expect("a commit"));
        }
        let tip = self.tip.as_deref().expect("a commit");
        self.machine.git(&["push", "-q", "origin", &format!("{tip}:refs/revdeck/team/eve-1")]);
    }
}

/// Returns the numbers of loose objects and of packs of a repository.
fn count_objects(machine: &TestEnvironment) -> (usize, usize) {
    let text = machine.git(&["count-objects", "-v"]);
    let figure = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<usize>().ok());
        found.expect("a figure")
    };
    (figure("count:"), figure("packs:"))
}

/// Returns the files that hold objects.
fn object_files(machine: &TestEnvironment) -> HashSet<PathBuf> {
    let folder = machine.repo().join(".git/objects");
    let mut files: HashSet<PathBuf> = files_below(&folder).into_iter().collect();
    files.retain(|path| !path.starts_with(folder.join("info")));
    files
}

#[test]
fn exchanges_leave_few_loose_objects_and_packs_and_touch_no_others() {
    let team = Team::new();
    let (ada, eve) = (team.member("Ada"), team.machine("Eve"));
    let found = ids(&review(&ada));
    sync(&ada);
    // Ada has objects of her own, in a pack and loose.
    ada.git(&["repack", "-a", "-d", "-q"]);
    ada.write("own.py", "own = 1\n");
    ada.commit("Own");
    let own = object_files(&ada);
    let (own_loose, own_packs) = count_objects(&ada);
    assert!(own_loose >= 3 && own_packs == 1, "{own_loose} loose objects and {own_packs} packs");
    // A log that points to her commit makes it no part of the records.
    ada.git(&["push", "-q", "origin", "HEAD:refs/revdeck/team/eve-2"]);
    let repo = Repo::discover(&eve.repo()).expect("a repository");
    let mut log = BusyLog { machine: &eve, repo, finding: &found[0], tip: None, commits: 0 };
    // Ten exchanges that git leaves as loose objects, and four that it leaves as a pack each.
    for commits in [20; 10].into_iter().chain([40; 4]) {
        log.append(commits);
        sync(&ada);
        let (loose, packs) = count_objects(&ada);
        assert!(loose <= own_loose + MAX_LOOSE, "{loose} loose objects after {} commits", log.commits);
        assert!(packs <= own_packs + 1, "{packs} packs after {} commits", log.commits);
    }
    let (loose, packs) = count_objects(&ada);
    assert_eq!((loose, packs), (own_loose, own_packs + 1));
    // Nothing is lost, neither of the log nor of what is hers.
    let commits = ada.git(&["rev-list", "--count", "--glob=refs/revdeck/team-logs/*/eve-1"]);
    assert_eq!(commits.trim(), log.commits.to_string());
    ada.git(&["fsck", "--no-dangling", "--no-progress"]);
    assert!(own.is_subset(&object_files(&ada)), "an object of Ada's has moved");
    // Exchanges go on.
    log.append(1);
    assert_eq!(sync(&ada)["received"]["decisions"], 1);
}

#[test]
fn a_pack_with_other_objects_or_to_be_kept_stays() {
    let team = Team::new();
    let (ada, eve) = (team.member("Ada"), team.machine("Eve"));
    let found = ids(&review(&ada));
    sync(&ada);
    let repo = Repo::discover(&eve.repo()).expect("a repository");
    let mut log = BusyLog { machine: &eve, repo, finding: &found[0], tip: None, commits: 0 };
    let pack_files = || -> HashSet<PathBuf> {
        object_files(&ada).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "pack")).collect()
    };
    // The first pack is marked by a person, the second one is put together with the third.
    log.append(40);
    sync(&ada);
    let first: Vec<PathBuf> = pack_files().into_iter().collect();
    assert_eq!(first.len(), 1);
    std::fs::write(first[0].with_extension("keep"), "").expect("a mark");
    for _ in 0..2 {
        log.append(40);
        sync(&ada);
    }
    assert!(pack_files().contains(&first[0]), "a kept pack is gone");
    assert_eq!(pack_files().len(), 2);
    // An index of many packs names them.
    ada.git(&["multi-pack-index", "write"]);
    let listed = pack_files();
    log.append(40);
    sync(&ada);
    assert!(listed.is_subset(&pack_files()), "a listed pack is gone");
    ada.git(&["fsck", "--no-dangling", "--no-progress"]);
}
