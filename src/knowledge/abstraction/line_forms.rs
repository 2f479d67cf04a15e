//! What stands on lines that somebody says something about.

use super::node_marks::{NodeMark, NodeMarks};
use super::node_roles::BLOCK;
use super::sites::{build_form, is_site};
use super::{AbstractionDetail, is_informative};
use crate::domain::LineRange;
use crate::knowledge::form::Form;
use crate::reviewers::analyzer::source::{NodeIndex, ParsedFile};

/// Nodes between code and the site that it is in, at most. Own: deeper is no code that somebody wrote.
const MAX_SITE_STEPS: usize = 256;

/// A file's code by its lines. Made once of a file, however often it is asked.
pub struct LineForms<'s, 'a> {
    marks: NodeMarks<'s, 'a>,
    /// The nodes that tokens are made of, in document order.
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

    /// The form of the smallest site that all code of these lines is in. `None` where there is no code, more than a
    /// statement, or nothing that says something.
    pub fn form_at(&self, lines: LineRange) -> Option<Form> {
        let nodes = &self.marks.source.nodes;
        let (start, end) = (lines.start.saturating_sub(1), lines.end.saturating_sub(1));
        let first = self.leaves.partition_point(|&leaf| nodes[leaf].end_row < start);
        let after = self.leaves.partition_point(|&leaf| nodes[leaf].row <= end);
        // A line that is only the end of a block is about no code.
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
