//! Sums up the run of a panel from the runs of its members, as far as the view of the store and the heartbeats have them.

use super::app::App;
use super::pages::{format_brief, format_dollars, format_thousands};
use super::theme::Role;
use crate::domain::{Panel, Priority, RequestDecision, RunStatus};
use crate::store::RunRow;

/// Member of a panel, with the run that answers for it.
#[derive(Debug, Clone, Copy)]
pub struct PanelMemberRun<'a> {
    /// Id of the run.
    pub id: &'a str,
    /// Name of the reviewer; the id of the run while the name is not known.
    pub name: &'a str,
    pub decision: RequestDecision,
    /// The run; `None` if the view of the store does not have it.
    pub run: Option<RunRow<'a>>,
}

impl PanelMemberRun<'_> {
    /// Returns true if the panel asked for the run. Another request paid for a run that was adopted or reused.
    pub fn is_paid_by_panel(&self) -> bool {
        is_paid_by_panel(self.decision)
    }

    /// Returns true if the run gets no further findings.
    fn is_done(&self) -> bool {
        match self.run {
            Some(run) => run.status.is_terminal(),
            None => self.decision == RequestDecision::Reuse,
        }
    }
}

/// Returns true for a decision after which the cost of the member's run is that of the panel.
pub fn is_paid_by_panel(decision: RequestDecision) -> bool {
    !matches!(decision, RequestDecision::Adopt | RequestDecision::Reuse)
}

/// Sums over the members of a panel.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PanelSums {
    /// Number of members, and of those that have ended.
    pub members: usize,
    pub done: usize,
    /// Number of members whose spending is in `tokens` and `cost`: those that no other run has answered.
    pub paying: usize,
    /// Numbers of findings by priority: those of the list once the panel has ended, else those of all members.
    pub counts: [u32; 4],
    pub hunks_covered: u32,
    pub hunks_total: u32,
    /// Tokens and US dollars that the panel has spent, second opinions included.
    pub tokens: u64,
    pub cost: f64,
}

impl PanelSums {
    /// Describes the progress: `3 of 4 done`.
    pub fn describe_done(&self) -> String {
        format!("{} of {} done", self.done, self.members)
    }

    /// Describes what was spent, and by how many members: `41,000 tokens, $0.02 by 3 of 4 members`.
    pub fn describe_spending_by_members(&self) -> String {
        let mut spent = match self.tokens {
            0 => "no tokens".to_owned(),
            tokens => format!("{} tokens", format_thousands(tokens)),
        };
        if self.cost > 0.0 {
            spent.push_str(&format!(", {}", format_dollars(self.cost)));
        }
        match self.paying {
            all if all == self.members => format!("{spent} by all members"),
            0 => format!("{spent}; other runs answered its members"),
            some => format!("{spent} by {some} of {} members", self.members),
        }
    }

    /// Describes what was spent: `41k tokens, $0.02`; empty for nothing.
    pub fn describe_spending(&self) -> String {
        let tokens = (self.tokens > 0).then(|| format!("{} tokens", format_brief(self.tokens)));
        let cost = (self.cost > 0.0).then(|| format_dollars(self.cost));
        tokens.into_iter().chain(cost).collect::<Vec<_>>().join(", ")
    }
}

impl App {
    /// Lists the members of a panel in the order of the settings; none for another run.
    pub fn list_panel_members<'a>(&'a self, panel: &RunRow<'a>) -> Vec<PanelMemberRun<'a>> {
        let view = &self.store.view;
        let member = |(id, decision): (&'a str, RequestDecision)| {
            let run = view.run_index(id).map(|index| view.run(index));
            PanelMemberRun { id, name: run.map_or(id, |run| run.reviewer), decision, run }
        };
        panel.panel_members().map(member).collect()
    }

    /// Lists the members of a panel as its record has them.
    pub fn list_recorded_members<'a>(&'a self, panel: &'a Panel) -> Vec<PanelMemberRun<'a>> {
        let view = &self.store.view;
        let members = panel.members.iter().map(|member| {
            let id = member.run_id.as_str();
            let run = view.run_index(id).map(|index| view.run(index));
            PanelMemberRun { id, name: member.reviewer.as_str(), decision: member.decision, run }
        });
        members.collect()
    }

    /// Adds up the members of a panel.
    pub fn sum_panel(&self, panel: &RunRow<'_>) -> PanelSums {
        let (tokens, cost) = self.run_spending(panel);
        let mut sums = PanelSums { tokens, cost, ..PanelSums::default() };
        for member in self.list_panel_members(panel) {
            sums.members += 1;
            // The members of a panel of another machine stay there.
            sums.done += usize::from(member.is_done() || panel.status.is_terminal());
            let Some(run) = member.run else { continue };
            for (sum, count) in sums.counts.iter_mut().zip(run.counts) {
                *sum = sum.saturating_add(count);
            }
            sums.hunks_covered = sums.hunks_covered.saturating_add(run.hunks_covered);
            sums.hunks_total = sums.hunks_total.saturating_add(run.hunks_total.max(run.hunks_covered));
            if member.is_paid_by_panel() {
                let (tokens, cost) = self.run_spending(&run);
                sums.tokens = sums.tokens.saturating_add(tokens);
                sums.cost += cost;
                // Another machine may have reviewed the same before the member sent a request.
                sums.paying += usize::from(run.reused_from.is_empty() || tokens > 0 || cost > 0.0);
            }
        }
        if panel.status.is_terminal() {
            sums.counts = panel.counts;
        }
        sums
    }

    /// Returns the tokens and US dollars that a run itself has spent. The heartbeat of a working run is newer than its row.
    pub fn run_spending(&self, run: &RunRow<'_>) -> (u64, f64) {
        let pulse = self.pulse(run.id).filter(|_| run.status.is_working());
        pulse.map_or((run.tokens, run.cost), |pulse| (pulse.tokens.total(), pulse.cost))
    }

    /// Returns glyph, word and style of a panel whose members work or have just ended; `None` for a panel without progress
    /// of its members, and for another run.
    pub fn panel_state(&self, run: &RunRow<'_>) -> Option<(&'static str, &'static str, Role)> {
        if !run.is_panel() || run.status.is_terminal() || run.is_paused() || self.pulse(run.id).is_some() {
            return None;
        }
        let members = self.list_panel_members(run);
        let has_begun =
            |member: &PanelMemberRun<'_>| member.is_done() || member.run.is_some_and(|run| run.status.is_working());
        let word = match members.iter().all(PanelMemberRun::is_done) {
            true => "merging",
            false => members.iter().any(has_begun).then_some(RunStatus::Reviewing.word())?,
        };
        Some((self.display.glyphs.run_status(RunStatus::Reviewing), word, Role::from_run_status(RunStatus::Reviewing)))
    }

    /// Returns glyph, words and style of the state of a panel's member: `reused`, `reviewing, adopted`, `failed`.
    pub fn member_state(&self, member: &PanelMemberRun<'_>) -> (&'static str, String, Role) {
        let Some(run) = member.run else {
            return (self.display.glyphs.dash, "not listed".to_owned(), Role::Faint);
        };
        let (glyph, word, role) = self.run_state(&run);
        let origin = describe_origin(member.decision);
        let words = match (run.status == RunStatus::Completed && run.shortfall().is_none(), origin) {
            (_, "") => word.to_owned(),
            (true, origin) => origin.to_owned(),
            (false, origin) => format!("{word}, {origin}"),
        };
        (glyph, words, role)
    }

    /// Describes the turn of a working run: `3/20`; empty while no turn is known.
    pub fn describe_run_turn(&self, run: &RunRow<'_>) -> String {
        let Some(pulse) = self.pulse(run.id).filter(|pulse| run.status.is_working() && pulse.turn > 0) else {
            return String::new();
        };
        match self.session.turn_limits.of_reviewer(run.reviewer) {
            limit if pulse.turn <= limit => format!("{}/{limit}", pulse.turn),
            _ => pulse.turn.to_string(),
        }
    }
}

/// Returns the word for a member whose run another request asked for; empty for the others.
pub fn describe_origin(decision: RequestDecision) -> &'static str {
    match decision {
        RequestDecision::Adopt => "adopted",
        RequestDecision::Reuse => "reused",
        RequestDecision::Launch | RequestDecision::Resume | RequestDecision::Skip => "",
    }
}

/// Returns the number of findings with the role of the most urgent one.
pub fn describe_total(counts: [u32; 4]) -> (u64, Role) {
    let total = counts.iter().copied().map(u64::from).sum();
    let worst = Priority::ALL.into_iter().find(|priority| counts[priority.index()] > 0);
    (total, worst.map_or(Role::Faint, Role::from_priority))
}
