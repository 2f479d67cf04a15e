//! Records the runs of other machines of the team.
//!
//! The id of a run has one maker. A run of this machine, and one that was received before, keep their ids: another machine that claims
//! such an id is refused. Of several machines that claim a new id in one import, the first by name gets it, whatever the order in which
//! their records came. Nothing in a record proves who made a run first, so over several exchanges the first one received stays.
//! Once its machine is forgotten, another one may claim the id, and its run replaces the other.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::extents::TrackedFile;
use super::files::{self, ExistingPolicy, SyncPolicy};
use super::{Store, StoreError, lines};
use crate::domain::{Finding, FindingId, MachineName, RunId, RunOrigin, RunOutput};
use crate::parallel;

/// Maximum number of received results that are synced one by one. The first exchange with a team brings thousands, which the
/// received records can tell again, see [`Store::find_lost_team_results`].
const MAX_SYNCED_RESULTS: usize = 200;

/// Maximum number of claims of an import that are compared with the stored results. Each one costs a search in `runs.ndjson`.
const MAX_COMPARED_CLAIMS: usize = 500;

/// Outcome of an import of runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TeamRunImport {
    /// Number of new runs.
    pub count: usize,
    /// True if runs of forgotten machines were replaced, and `runs.ndjson` was rewritten.
    pub is_rewritten: bool,
    /// Runs that were refused because their ids belong to other runs.
    pub refused: Vec<RefusedTeamRun>,
}

/// Run that claims the id of another one.
#[derive(Debug, PartialEq, Eq)]
pub struct RefusedTeamRun {
    /// Id that is claimed.
    pub run: RunId,
    /// Machine that claims it.
    pub claimant: MachineName,
    /// Machine that has made the run of this id; `None` for this machine.
    pub maker: Option<MachineName>,
}

impl Store {
    /// Records completed runs of other machines: their results first, then their lines in `runs.ndjson`. Skips a run that
    /// is known. Runs of `forgotten` machines lose their ids to others that claim them.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn import_team_runs(
        &self,
        outputs: Vec<(RunOutput, RunOrigin)>,
        forgotten: &[MachineName],
    ) -> Result<TeamRunImport, StoreError> {
        if outputs.is_empty() {
            return Ok(TeamRunImport::default());
        }
        self.with_lock(|locked| {
            let view = locked.runs_view()?;
            let ids = outputs.iter().map(|(output, _)| &output.run.run_id);
            let known: HashSet<RunId> = ids.filter(|id| view.run_index(id.as_str()).is_some()).cloned().collect();
            let makers = if known.is_empty() { HashMap::new() } else { self.find_run_makers(&known)? };
            let owners = assign_run_ids(&outputs, &makers, forgotten);
            let sync = if outputs.len() <= MAX_SYNCED_RESULTS { SyncPolicy::Now } else { SyncPolicy::Later };
            let mut import = TeamRunImport::default();
            let mut claims = Vec::new();
            let mut taken: HashSet<RunId> = HashSet::new();
            let mut replaced: HashSet<RunId> = HashSet::new();
            let mut records = Vec::new();
            let mut unwritten = Vec::new();
            for (mut output, origin) in outputs {
                let id = output.run.run_id.clone();
                let owner = owners.get(&id).cloned().flatten();
                if owner.as_ref() != Some(&origin.machine) {
                    claims.push((output, RefusedTeamRun { run: id, claimant: origin.machine, maker: owner }));
                    continue;
                }
                if !taken.insert(id.clone()) {
                    continue;
                }
                let is_known = makers.get(&id).is_some_and(|maker| *maker == owner);
                if makers.contains_key(&id) && !is_known {
                    replaced.insert(id.clone());
                }
                output.run.team = Some(origin);
                // A known run may have lost its result.
                let is_there = std::fs::metadata(self.output_path(id.as_str())).is_ok_and(|seen| seen.len() > 0);
                if !is_known {
                    serde_json::to_writer(&mut records, &output.run)
                        .map_err(|source| StoreError::Encode { what: "a run", source })?;
                    records.push(b'\n');
                    import.count += 1;
                }
                if !is_known || !is_there {
                    unwritten.push(output);
                }
            }
            // On all cores: a first exchange writes thousands.
            let written = parallel::map(&unwritten, |output| self.write_team_output(output, sync));
            written.into_iter().collect::<Result<(), _>>()?;
            if !replaced.is_empty() {
                self.remove_run_lines(&replaced)?;
                import.is_rewritten = true;
            }
            if import.count > 0 {
                self.append_tracked(TrackedFile::Runs, &records)?;
            }
            for (index, (output, claim)) in claims.into_iter().enumerate() {
                // A machine that was renamed sends its reviews again.
                if index >= MAX_COMPARED_CLAIMS || !self.has_same_findings(&output)? {
                    import.refused.push(claim);
                }
            }
            Ok(import)
        })
    }

    /// Returns true if an import of this many results leaves it to the system when they reach the disk.
    pub fn leaves_results_unsynced(results: usize) -> bool {
        results > MAX_SYNCED_RESULTS
    }

    fn write_team_output(&self, output: &RunOutput, sync: SyncPolicy) -> Result<(), StoreError> {
        let json =
            serde_json::to_vec(output).map_err(|source| StoreError::Encode { what: "a run's output", source })?;
        let path = self.output_path(output.run.run_id.as_str());
        files::write_beside(&path, ExistingPolicy::Replace, sync, |file| std::io::Write::write_all(file, &json))
    }

    /// Returns the machines that have made these runs; `None` for this machine.
    fn find_run_makers(&self, runs: &HashSet<RunId>) -> Result<HashMap<RunId, Option<MachineName>>, StoreError> {
        #[derive(Deserialize)]
        struct MakerFields {
            run_id: RunId,
            #[serde(default)]
            team: Option<RunOrigin>,
        }
        let path = self.runs_path();
        let mut makers = HashMap::new();
        let Some(file) = files::open_read(&path)? else { return Ok(makers) };
        lines::read_forwards(&file, 0, |_, line| {
            if let Ok(MakerFields { run_id, team }) = serde_json::from_slice(line)
                && runs.contains(&run_id)
            {
                makers.insert(run_id, team.map(|origin| origin.machine));
            }
        })
        .map_err(StoreError::io("read", &path))?;
        Ok(makers)
    }

    /// Removes all lines of these runs from `runs.ndjson`. The caller must hold the store's lock.
    fn remove_run_lines(&self, runs: &HashSet<RunId>) -> Result<(), StoreError> {
        #[derive(Deserialize)]
        struct RunIdField {
            run_id: RunId,
        }
        let Some(bytes) = files::read(&self.runs_path())? else { return Ok(()) };
        let is_of_them =
            |line: &[u8]| serde_json::from_slice::<RunIdField>(line).is_ok_and(|field| runs.contains(&field.run_id));
        let kept: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').filter(|&line| !is_of_them(line)).collect();
        self.rewrite_tracked(TrackedFile::Runs, &kept.concat())
    }

    /// Returns true if the stored result of the run of this id has the same findings.
    fn has_same_findings(&self, claimed: &RunOutput) -> Result<bool, StoreError> {
        let Some(stored) = self.output(&claimed.run.run_id)? else { return Ok(false) };
        Ok(stored.damage.is_none() && list_findings(&stored.findings) == list_findings(&claimed.findings))
    }
}

/// Returns the machine to which each id of an import belongs; `None` for this machine.
fn assign_run_ids(
    outputs: &[(RunOutput, RunOrigin)],
    makers: &HashMap<RunId, Option<MachineName>>,
    forgotten: &[MachineName],
) -> HashMap<RunId, Option<MachineName>> {
    let mut owners: HashMap<RunId, Option<MachineName>> = HashMap::new();
    for (output, origin) in outputs {
        let id = &output.run.run_id;
        match makers.get(id) {
            Some(maker) if maker.as_ref().is_none_or(|maker| !maker.is_forgotten(forgotten)) => {
                owners.insert(id.clone(), maker.clone());
            }
            _ => {
                let owner = owners.entry(id.clone()).or_insert_with(|| Some(origin.machine.clone()));
                if owner.as_ref().is_some_and(|known| origin.machine < *known) {
                    *owner = Some(origin.machine.clone());
                }
            }
        }
    }
    owners
}

/// Returns what makes the findings of two results the same, in any order.
fn list_findings(findings: &[Finding]) -> HashSet<(&FindingId, &str)> {
    findings.iter().map(|finding| (&finding.finding_id, finding.title.as_str())).collect()
}
