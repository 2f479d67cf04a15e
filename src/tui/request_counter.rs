//! Numbers requests that another thread answers, so that a late answer never replaces a newer one.

/// Serial numbers of the newest request and of the newest accepted answer; 0 before the first.
///
/// Answers may arrive late, in another order, or never. An answer counts if it is newer than the one on the screen, so
/// a user who types faster than the thread answers still sees results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCounter {
    asked: u64,
    answered: u64,
}

impl RequestCounter {
    /// Serial number of the first request.
    pub const FIRST: u64 = 1;

    /// Begins a request and returns its serial number.
    pub fn begin(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    /// Accepts an answer. Returns false if it is no newer than the last accepted one and must be dropped.
    pub fn accept(&mut self, serial: u64) -> bool {
        let newer = serial > self.answered;
        if newer {
            self.answered = serial;
        }
        newer
    }

    /// Returns true if the newest request is not answered yet.
    pub fn is_waiting(&self) -> bool {
        self.asked != self.answered
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing_asked(0, &[], &[], false)]
    #[case::not_answered(1, &[], &[], true)]
    #[case::answered(1, &[1], &[true], false)]
    #[case::answered_in_order(3, &[1, 2, 3], &[true, true, true], false)]
    #[case::an_older_answer_is_shown_meanwhile(3, &[2], &[true], true)]
    #[case::an_older_answer_comes_late(3, &[3, 1, 2], &[true, false, false], false)]
    #[case::an_answer_comes_twice(2, &[2, 2], &[true, false], false)]
    #[case::an_answer_is_lost(3, &[1, 3], &[true, true], false)]
    fn only_newer_answers_count(
        #[case] requests: u64,
        #[case] answers: &[u64],
        #[case] accepted: &[bool],
        #[case] waiting: bool,
    ) {
        let mut counter = RequestCounter::default();
        for serial in RequestCounter::FIRST..=requests {
            assert_eq!(counter.begin(), serial);
        }
        let verdicts: Vec<bool> = answers.iter().map(|serial| counter.accept(*serial)).collect();
        assert_eq!((verdicts.as_slice(), counter.is_waiting()), (accepted, waiting));
    }
}
