//! Bare repositories that are set up as git hosts set up theirs.

use super::{Team, review, sync};
use crate::env::executable;

/// Hook that refuses the first push of a log as git 2.50 and later does when another push was quicker, and takes the next ones.
const RACING_HOOK: &str = r#"#!/bin/sh
read_packet() {
  size=$(dd bs=1 count=4 2>/dev/null)
  case $size in 0000 | '') return 1 ;; esac
  packet=$(dd bs=1 count=$((0x$size - 4)) 2>/dev/null | tr -d '\0')
}
write_packet() { printf '%04x%s\n' $((${#1} + 5)) "$1"; }
while read_packet; do :; done
write_packet version=1
printf 0000
while read_packet; do
  set -- $packet
  if [ -e raced ]; then
    git update-ref "$3" "$2" "$1" && write_packet "ok $3"
  else
    touch raced
    write_packet "ng $3 REASON"
  fi
done
printf 0000
"#;

#[test]
fn a_log_that_another_job_has_moved_is_read_and_sent_again() {
    for reason in [
        "incorrect old value provided",
        "reference already exists",
        "cannot lock ref 'refs/revdeck/team/ci': is at 1 but expected 2",
    ] {
        let team = Team::new();
        team.git(&["config", "receive.procReceiveRefs", "refs/revdeck"]);
        executable(team.remote().join("hooks/proc-receive"), RACING_HOOK.replace("REASON", reason));
        let ada = team.member("Ada");
        review(&ada);
        assert_eq!(sync(&ada)["sent"]["reviews"], 1, "{reason}");
        assert!(team.remote().join("raced").exists() && team.logs() == ["ada-1"], "{reason}");
    }
}

#[test]
fn a_name_with_characters_that_git_leaves_out_is_no_missing_name() {
    let team = Team::new();
    let ada = team.member("Ada");
    ada.git(&["config", "user.name", "Ada <Countess> Lovelace"]);
    team.git(&["config", "transfer.fsckObjects", "true"]);
    review(&ada);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
    let author = team.git(&["log", "-1", "--format=%an <%ae>", "refs/revdeck/team/ada-1"]);
    assert_eq!(author.trim(), "Ada Countess Lovelace <ada@example.org>");
}
