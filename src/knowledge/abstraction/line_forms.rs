//! Finds the form of given lines, for example of a finding.

use super::node_marks::{NodeMark, NodeMarks};
use super::node_roles::BLOCK;
use super::sites::{build_form, is_site};
use super::{AbstractionDetail, is_informative};
use crate::domain::LineRange;
use crate::knowledge::form::Form;
use crate::syntax::source::{NodeIndex, ParsedFile};

/// Maximum number of nodes between code and its site; deeper code is not written by hand.
const MAX_SITE_STEPS: usize = 256;

/// Code of a file by line. Built once per file, for any number of queries.
pub struct LineForms<'s, 'a> {
    marks: NodeMarks<'s, 'a>,
    /// Nodes that tokens are made of, in document order.
    leaves: Vec<NodeIndex>,
}

impl<'s, 'a> LineForms<'s, 'a> {
    pub fn new(source: &'s ParsedFile<'a>) -> Self {
        let marks = NodeMarks::new(source);
        let mut leaves = Vec::new();
        let mut at = 0;
        while at < source.nodes.len() {
            let mark = marks.mark(at);
            if mark == NodeMark::Descend {
                at += 1;
                continue;
            }
            if mark != NodeMark::Skipped {
                leaves.push(at);
            }
            at = source.nodes[at].end_index as usize;
        }
        Self { marks, leaves }
    }

    /// Returns the form of the smallest site that contains all code of these lines. `None` if there is no code, more
    /// than one statement, or no informative form.
    pub fn form_at(&self, lines: LineRange) -> Option<Form> {
        let nodes = &self.marks.source.nodes;
        let (start, end) = (lines.start.saturating_sub(1), lines.end.saturating_sub(1));
        let first = self.leaves.partition_point(|&leaf| nodes[leaf].end_row < start);
        let after = self.leaves.partition_point(|&leaf| nodes[leaf].row <= end);
        // Lines that hold only the end of a block may have no leaves.
        let those = self.leaves.get(first..after)?;
        let (mut node, last) = (*those.first()?, *those.last()?);
        let mut steps = 0;
        while (nodes[node].end_index as usize) <= last || !is_site(&self.marks, node) {
            node = self.marks.parent(node)?;
            steps += 1;
            if self.marks.has_role(node, BLOCK) || steps == MAX_SITE_STEPS {
                return None;
            }
        }
        AbstractionDetail::ALL
            .into_iter()
            .filter_map(|detail| build_form(&self.marks, node, detail))
            .find(is_informative)
    }
}
