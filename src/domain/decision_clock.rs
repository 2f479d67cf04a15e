//! Gives the decisions of a machine their times, from the lines of `triage.ndjson` alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{DecisionId, Disposition, MachineName, TeamClock, Time};

/// Clock of a machine's decisions. It follows the times of others. A time that is far ahead waits until the wall clock of an own
/// line comes near it, so nobody can push the clock to its end.
#[derive(Debug, Default)]
pub struct DecisionClock {
    clock: TeamClock,
    /// Latest wall clock of an own line.
    wall: Time,
    /// Times of others that are far ahead, earliest first.
    ahead: BinaryHeap<Reverse<TeamClock>>,
}

impl DecisionClock {
    /// Returns the identity of the next line of the log of `machine`: that of a decision of others, or a new one. A line of the
    /// engine has an identity, too, by which it can be compared; nobody else sees it.
    pub fn identify(&mut self, line: &Disposition, machine: &MachineName) -> DecisionId {
        match &line.team {
            Some(origin) => {
                self.follow(origin.id.clock);
                origin.id.clone()
            }
            None => DecisionId { clock: self.tick(line.at), machine: machine.clone() },
        }
    }

    /// Follows the time of a decision of others.
    fn follow(&mut self, seen: TeamClock) {
        match seen.is_ahead_of(self.wall) {
            true => self.ahead.push(Reverse(seen)),
            false => self.clock = self.clock.max(seen),
        }
    }

    /// Returns the time of an own line.
    fn tick(&mut self, wall: Time) -> TeamClock {
        self.wall = self.wall.max(wall);
        while let Some(Reverse(seen)) = self.ahead.peek().copied()
            && !seen.is_ahead_of(self.wall)
        {
            self.ahead.pop();
            self.clock = self.clock.max(seen);
        }
        self.clock = self.clock.tick(wall);
        self.clock
    }
}
