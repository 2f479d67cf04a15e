//! Measures how well reports of several reviewers are merged, with the labelled reports in `tests/merging` and with the sentences
//! of the pattern files in `tests/knowledge`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use revdeck::domain::{Confidence, Finding, FindingId, FindingStatus, Kind, Priority, RunId, Severity, Time};
use revdeck::review::{FindingIdentities, merge_reports};
use serde::Deserialize;

/// Lower bounds of precision and recall; project requirements.
const MIN_PRECISION: f64 = 0.95;
const MIN_RECALL: f64 = 0.85;

/// Lower bound of the precision where nothing but the two reports is known: no report of the same reviewer fits better.
/// Holds the present level.
const MIN_PRECISION_ALONE: f64 = 0.93;

const HALVES: [(&str, &str); 2] =
    [("tuning", include_str!("../merging/tuning.toml")), ("held out", include_str!("../merging/held_out.toml"))];

#[derive(Debug, Deserialize)]
struct LabelledReports {
    scene: Vec<Scene>,
}

/// Reports about one file.
#[derive(Debug, Deserialize)]
struct Scene {
    path: String,
    /// What the code is, for the reader of the file.
    about: String,
    report: Vec<LabelledReport>,
}

#[derive(Debug, Deserialize)]
struct LabelledReport {
    problem: String,
    by: String,
    at: (u32, u32),
    kind: Kind,
    title: String,
    text: String,
    code: String,
}

/// File of `tests/knowledge`: examples of defects in one language.
#[derive(Debug, Deserialize)]
struct PatternFile {
    pattern: Vec<PatternExample>,
}

#[derive(Debug, Deserialize)]
struct PatternExample {
    kind: Kind,
    /// What is wrong.
    description: String,
    /// What to do about it.
    instruction: String,
    /// Code with the defect.
    before: String,
}

/// Empty lines between two examples, as between functions.
const LINES_BETWEEN_EXAMPLES: u32 = 3;

impl PatternFile {
    /// Returns the examples as a scene: one reviewer says of each what is wrong, and the other what to do. So the two have few
    /// words in common, as the reports of different models.
    fn to_scene(&self, language: &str) -> Scene {
        let mut scene =
            Scene { path: format!("src/{language}"), about: "examples of patterns".to_owned(), report: Vec::new() };
        let mut line = 1;
        for (number, example) in self.pattern.iter().enumerate() {
            let code = example.before.trim_matches('\n').to_owned();
            let end = line + u32::try_from(code.lines().count()).expect("a few lines").max(1) - 1;
            for (by, title) in [("a", &example.description), ("b", &example.instruction)] {
                scene.report.push(LabelledReport {
                    problem: number.to_string(),
                    by: by.to_owned(),
                    at: (line, end),
                    kind: example.kind,
                    title: title.clone(),
                    text: String::new(),
                    code: code.clone(),
                });
            }
            line = end + 1 + LINES_BETWEEN_EXAMPLES;
        }
        scene
    }
}

/// Returns a scene for each file of `tests/knowledge`.
fn pattern_scenes() -> Vec<Scene> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/knowledge");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let scene = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).expect("a pattern file");
        let patterns: PatternFile = toml::from_str(&text).expect("patterns");
        patterns.to_scene(&file.file_stem().expect("a name").to_string_lossy())
    };
    files.iter().map(scene).collect()
}

impl LabelledReport {
    fn to_finding(&self, path: &str) -> Finding {
        let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id");
        Finding {
            // As the engines give it: from kind, path and code. Different problems at the same code share it, until one
            // run tells them apart; see `build_findings`.
            finding_id: FindingId::from_parts(self.kind.word(), path, &self.code, 0),
            first_run_id: run.clone(),
            last_run_id: run,
            priority: Priority::P2,
            severity: Severity::Medium,
            confidence: Confidence::Medium,
            kind: self.kind,
            title: self.title.clone(),
            explanation: self.text.clone(),
            repo_relative_path: path.to_owned(),
            line_start: self.at.0,
            line_end: self.at.1,
            quoted_code: self.code.clone(),
            suggestion: None,
            pattern: None,
            status: FindingStatus::Open,
            detail_ref: String::new(),
            reported_at: Time::UNIX_EPOCH,
            lowered: None,
            voices: Vec::new(),
            steps: Vec::new(),
            disputed: Vec::new(),
            symbol: None,
        }
    }
}

/// Counts of pairs.
#[derive(Debug, Default)]
struct PairCounts {
    merged_rightly: u32,
    merged_wrongly: u32,
    missed: u32,
    kept_apart: u32,
    wrong_pairs: String,
}

impl PairCounts {
    fn add(&mut self, scene: &Scene, one: &LabelledReport, other: &LabelledReport, is_merged: bool) {
        let is_one = one.problem == other.problem;
        let count = match (is_merged, is_one) {
            (true, true) => &mut self.merged_rightly,
            (true, false) => &mut self.merged_wrongly,
            (false, true) => &mut self.missed,
            (false, false) => &mut self.kept_apart,
        };
        *count += 1;
        if is_merged != is_one {
            let what = if is_merged { "merged two problems" } else { "missed one problem" };
            let side = |report: &LabelledReport| {
                format!("{}-{} {} {:?} {:?}", report.at.0, report.at.1, report.kind, report.title, report.text)
            };
            let _ = writeln!(self.wrong_pairs, "{what} in {}:\n    {}\n    {}", scene.path, side(one), side(other));
        }
    }

    fn precision(&self) -> f64 {
        f64::from(self.merged_rightly) / f64::from(self.merged_rightly + self.merged_wrongly)
    }

    fn recall(&self) -> f64 {
        f64::from(self.merged_rightly) / f64::from(self.merged_rightly + self.missed)
    }

    /// Prints the figures and the wrong pairs, and fails below the minima.
    #[allow(clippy::print_stdout, reason = "the figures are what one looks for")]
    fn check(&self, name: &str, min_precision: f64, min_recall: f64) {
        let one_problem = self.merged_rightly + self.missed;
        let pairs = one_problem + self.merged_wrongly + self.kept_apart;
        let (precision, recall) = (self.precision(), self.recall());
        let figures = format!(
            "{name}: {pairs} pairs, {one_problem} of one problem: precision {precision:.3}, recall {recall:.3}\n{}",
            self.wrong_pairs
        );
        println!("{figures}");
        assert!(one_problem >= 40 && pairs >= 120, "too few pairs: {figures}");
        assert!(precision >= min_precision && recall >= min_recall, "{figures}");
    }
}

fn scenes(text: &str) -> Vec<Scene> {
    let labelled: LabelledReports = toml::from_str(text).expect("labelled reports");
    assert!(labelled.scene.iter().all(|scene| !scene.about.is_empty()));
    labelled.scene
}

/// Calls `visit` with each pair of reports of different reviewers.
fn for_pairs<'a>(scene: &'a Scene, mut visit: impl FnMut(&'a LabelledReport, &'a LabelledReport)) {
    for (at, one) in scene.report.iter().enumerate() {
        scene.report[at + 1..].iter().filter(|other| other.by != one.by).for_each(|other| visit(one, other));
    }
}

/// Builds the findings of one reviewer that reports all of this in one answer: its run gives different problems at the same
/// code ids of their own.
fn build_findings(scene: &Scene, reports: &[&LabelledReport]) -> Vec<Finding> {
    let mut identities = FindingIdentities::default();
    identities.begin_answer();
    let mut findings: Vec<Finding> = reports.iter().map(|report| report.to_finding(&scene.path)).collect();
    findings.iter_mut().for_each(|finding| identities.assign(finding, |_| None, |_| false));
    findings
}

/// Merges the reports of all reviewers of each scene, as a panel does.
fn count_in_panels(scenes: &[Scene]) -> PairCounts {
    let mut counts = PairCounts::default();
    for scene in scenes {
        let mut reviewers: Vec<&str> = scene.report.iter().map(|report| report.by.as_str()).collect();
        reviewers.sort_unstable();
        reviewers.dedup();
        let of_reviewer = |name: &&str| scene.report.iter().filter(|report| report.by == *name).collect::<Vec<_>>();
        let reports: Vec<Vec<&LabelledReport>> = reviewers.iter().map(of_reviewer).collect();
        let findings: Vec<Vec<Finding>> = reports.iter().map(|reports| build_findings(scene, reports)).collect();
        let members: Vec<&[Finding]> = findings.iter().map(Vec::as_slice).collect();
        let groups = merge_reports(&members);
        let group_of = |wanted: &LabelledReport| {
            groups
                .iter()
                .position(|group| group.iter().any(|place| std::ptr::eq(reports[place.member][place.finding], wanted)))
        };
        for_pairs(scene, |one, other| counts.add(scene, one, other, group_of(one) == group_of(other)));
    }
    counts
}

/// Compares each pair of reports alone, without the other reports of their reviewers.
fn count_alone(scenes: &[Scene]) -> PairCounts {
    let mut counts = PairCounts::default();
    for scene in scenes {
        for_pairs(scene, |one, other| {
            let findings = [one, other].map(|report| [report.to_finding(&scene.path)]);
            let is_merged = merge_reports(&[&findings[0], &findings[1]]).len() == 1;
            counts.add(scene, one, other, is_merged);
        });
    }
    counts
}

#[test]
fn reports_of_a_panel_are_merged_by_problem() {
    for (name, text) in HALVES {
        count_in_panels(&scenes(text)).check(name, MIN_PRECISION, MIN_RECALL);
    }
}

#[test]
fn sentences_of_the_pattern_files_are_merged_by_problem() {
    count_in_panels(&pattern_scenes()).check("pattern files", MIN_PRECISION, MIN_RECALL);
}

#[test]
fn two_reports_alone_are_merged_by_problem() {
    for (name, text) in HALVES {
        count_alone(&scenes(text)).check(name, MIN_PRECISION_ALONE, MIN_RECALL);
    }
}
