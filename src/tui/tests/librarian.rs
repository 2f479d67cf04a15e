//! Tests the effect of knowledge requests on files, and what is read back.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::support::*;
use crate::config::ClockAndIds;
use crate::domain::{Finding, Kind, MuteAction, PatternId, RunOutput, RunRecord, Time};
use crate::knowledge::cache::{KnowledgeCache, PatternObservation};
use crate::knowledge::pattern::{EditKind, PatternEvidence, PatternStance};
use crate::store::{RepoInfo, Store, StoreView};
use crate::syntax::language::Language;
use crate::tui::page_data::PageData;
use crate::tui::views::knowledge::{CacheWatcher, KnowledgeWorker};
use crate::tui::views::knowledge::{
    ExportOverwrite, KnowledgeOrder, KnowledgeOutcome, LearningMode, PatternLibrary, RankedPattern,
};

/// Knowledge worker with home, store and cache in a temporary folder.
struct KnowledgeFixture {
    folder: tempfile::TempDir,
    librarian: KnowledgeWorker,
}

fn moment() -> Time {
    Time::from_millisecond(NOW).expect("a moment")
}

/// Adds a pattern learned from a finding.
fn store_pattern(cache: &KnowledgeCache) -> PatternId {
    let (broken, fixed) = ("FUNCTION_NAME ( NUMBER )", "FUNCTION_NAME_2 ( NUMBER )");
    let observation = PatternObservation {
        language: Language::Python,
        stance: PatternStance::Mistake,
        broken: broken.parse().expect("a form"),
        fixed: fixed.parse().expect("a form"),
        edit: EditKind::WrongCall,
        kind: Kind::Correctness,
        evidence: PatternEvidence::Addressed,
        source: "f_1".into(),
        at: moment(),
    };
    let learned = cache.learn(&[observation], moment()).expect("learned");
    assert_eq!(learned.new, 1, "{learned:?}");
    PatternId::from_forms("python", broken, fixed)
}

impl KnowledgeFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "billing".into(), common_dir: "/billing".into() };
        let librarian = KnowledgeWorker {
            cache: KnowledgeCache::open(folder.path().join("knowledge")),
            folder: folder.path().join("knowledge"),
            store: Store::open(&folder.path().join("state"), info).expect("a store"),
            learning: LearningMode::On,
            ambient: ClockAndIds::system(),
            home: Some(folder.path().to_owned()),
        };
        Self { folder, librarian }
    }

    /// Creates a worker with one learned pattern.
    fn with_pattern() -> (Self, PatternId) {
        let desk = Self::new();
        let id = store_pattern(&desk.librarian.cache);
        (desk, id)
    }

    fn read(&self) -> PatternLibrary {
        let view: Arc<StoreView> = self.librarian.store.view().expect("a view");
        self.librarian.read_library(&view)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn export(&self, path: &str, existing: ExportOverwrite) -> KnowledgeOutcome {
        self.librarian.execute(&KnowledgeOrder::Export { path: path.to_owned(), existing }).expect("an outcome")
    }
}

fn is_muted(library: &PatternLibrary, id: &PatternId) -> Option<bool> {
    library.pattern(id).map(|known| known.pattern.muted)
}

fn failed(outcome: &KnowledgeOutcome) -> &str {
    match outcome {
        KnowledgeOutcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_language_is_read_the_most_useful_first() {
    let (desk, id) = KnowledgeFixture::with_pattern();
    let library = desk.read();
    assert_eq!(library.troubles, Vec::<String>::new());
    let python = &library.languages[0];
    assert_eq!(python.language, Language::Python, "what was seen comes first");
    assert!(library.languages.len() > 1, "other languages have what came with revdeck");
    let known = |known: &RankedPattern| (known.pattern.id == id).then(|| known.seen());
    assert_eq!(python.patterns.iter().find_map(known), Some(1));
    let now = ClockAndIds::system().now();
    let useful: Vec<f64> =
        python.patterns.iter().map(|known| crate::knowledge::rank::usefulness(&known.pattern, now)).collect();
    assert!(useful.is_sorted_by(|a, b| a >= b), "{useful:?}");
}

#[test]
fn a_file_of_a_newer_revdeck_is_said_and_the_other_languages_are_there() {
    let (desk, id) = KnowledgeFixture::with_pattern();
    let file = desk.path("knowledge").join("go_accumulated.json");
    fs::write(&file, r#"{"version": 99, "language": "go", "patterns": []}"#).expect("written");
    let library = desk.read();
    assert!(matches!(&library.troubles[..], [one] if one.contains("go_accumulated.json")), "{:?}", library.troubles);
    assert!(library.pattern(&id).is_some());
}

#[test]
fn muting_and_forgetting_are_stored() {
    let (desk, id) = KnowledgeFixture::with_pattern();
    for (action, expected) in [(MuteAction::Mute, true), (MuteAction::Unmute, false)] {
        let order = KnowledgeOrder::Mute { language: Language::Python, pattern: id.clone(), action };
        assert!(matches!(desk.librarian.execute(&order), Some(KnowledgeOutcome::Done(_))));
        assert_eq!(is_muted(&desk.read(), &id), Some(expected));
    }
    let order = KnowledgeOrder::Forget { language: Language::Python, pattern: id.clone() };
    assert!(matches!(desk.librarian.execute(&order), Some(KnowledgeOutcome::Done(_))));
    assert_eq!(is_muted(&desk.read(), &id), None);
    // Another process forgot the pattern: an outcome is still reported.
    assert!(desk.librarian.execute(&order).is_some());
}

#[test]
fn an_export_is_whole_and_replaces_nothing_unasked() {
    let (desk, id) = KnowledgeFixture::with_pattern();
    let file = desk.path("team.json");
    let KnowledgeOutcome::Done(said) = desk.export("~/team.json", ExportOverwrite::Keep) else { panic!("exported") };
    assert!(said.starts_with("1 pattern in ") && said.contains(file.to_str().expect("text")), "{said}");
    let text = fs::read_to_string(&file).expect("a file");
    assert!(text.contains(id.as_str()) && text.ends_with('\n'), "{text}");
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    fs::write(&file, "mine").expect("written");
    let KnowledgeOutcome::Exists(path) = desk.export("~/team.json", ExportOverwrite::Keep) else {
        panic!("a question")
    };
    assert_eq!(fs::read_to_string(&file).expect("a file"), "mine", "nothing is replaced unasked");
    assert!(matches!(desk.export(&path, ExportOverwrite::Replace), KnowledgeOutcome::Done(_)));
    assert_eq!(fs::read_to_string(&file).expect("a file"), text);
}

#[test]
fn an_export_that_cannot_be_says_why_and_leaves_nothing() {
    let (desk, _) = KnowledgeFixture::with_pattern();
    let before = fs::read_dir(desk.folder.path()).expect("a folder").count();
    assert!(failed(&desk.export("~/", ExportOverwrite::Keep)).contains("is a folder"));
    assert!(failed(&desk.export("~/no/where.json", ExportOverwrite::Keep)).contains("there is no folder"));
    assert_eq!(fs::read_dir(desk.folder.path()).expect("a folder").count(), before);
    assert!(
        failed(&KnowledgeFixture::new().export("~/a.json", ExportOverwrite::Keep)).contains("nothing that was learned")
    );
}

#[test]
fn the_newest_finding_of_a_pattern_says_where_it_was() {
    let (desk, id) = KnowledgeFixture::with_pattern();
    for (number, path) in [(1, "old.py"), (2, "new.py"), (3, "other.py")] {
        let at = Time::from_millisecond(NOW + i64::from(number) * 1000).expect("a moment");
        let record: RunRecord = serde_json::from_value(serde_json::json!({
            "run_id": run_id(number), "status": "completed", "attempt": 1, "source": "cli", "scope": "worktree",
            "created_at": at, "updated_at": at, "reviewer": "builtin",
            "finding_counts": { "p0": 0, "p1": 1, "p2": 0, "p3": 0 },
        }))
        .expect("a record");
        desk.librarian.store.with_lock(|locked| locked.create_run(&record)).expect("a run");
        let PageData::Finding(page) = *page(number, number) else { unreachable!("a page of a finding") };
        let finding = Finding {
            repo_relative_path: path.into(),
            pattern: (number < 3).then(|| id.clone()),
            reported_at: at,
            ..page.finding
        };
        let output = RunOutput { findings: vec![finding], ..RunOutput::new(record) };
        desk.librarian.store.write_output(&output).expect("an output");
    }
    let place = desk.read().locations.remove(&id).expect("a place");
    assert_eq!((place.path.as_str(), place.line), ("new.py", 31));
}

/// Time after which a waiting test fails.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn what_others_learn_or_mute_is_seen() {
    // The folder does not exist yet; its creation is noticed too.
    let desk = KnowledgeFixture::new();
    let (touched, touches) = channel();
    let mut eye = CacheWatcher::new(&desk.librarian.folder, touched).expect("notifications");
    eye.update_watch();
    store_pattern(&KnowledgeCache::open(&desk.librarian.folder));
    touches.recv_timeout(PATIENCE).expect("the folder is made");
    drop(eye);

    let (desk, id) = KnowledgeFixture::with_pattern();
    let (touched, touches) = channel();
    let mut eye = CacheWatcher::new(&desk.librarian.folder, touched).expect("notifications");
    eye.update_watch();
    let other = KnowledgeCache::open(&desk.librarian.folder);
    other.mute(Language::Python, std::slice::from_ref(&id), MuteAction::Mute, moment()).expect("muted");
    touches.recv_timeout(PATIENCE).expect("a file is written");
    assert_eq!(is_muted(&desk.read(), &id), Some(true));
}
