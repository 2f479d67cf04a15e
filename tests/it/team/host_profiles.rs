//! Bare repositories that are set up as git hosts set up theirs: what works there, and what `sync` says where they refuse the
//! logs. docs/teams.md names the sources of the settings and the words.

use serde_json::json;

use super::http_remote::{HttpRefusal, HttpRemote, RefusedRequests};
use super::{Team, ids, join, review, status, sync, with_variable};
use crate::env::{DONE, INCOMPLETE, TestEnvironment, err, executable, run};

/// Repository of a host.
struct HostProfile {
    name: &'static str,
    /// Settings of its repositories, besides those of git.
    settings: &'static [(&'static str, &'static str)],
    /// Hooks by name.
    hooks: &'static [(&'static str, &'static str)],
    /// Refs that nobody may push, with what the host says.
    refused: &'static [(&'static str, &'static str)],
}

const PROFILES: [HostProfile; 4] = [
    HostProfile {
        name: "GitHub",
        settings: &[
            ("receive.hideRefs", "refs/pull/"),
            ("receive.hideRefs", "refs/gh/"),
            ("receive.hideRefs", "refs/__gh__"),
            ("transfer.fsckObjects", "true"),
            ("receive.maxInputSize", "2147483648"),
            ("receive.autogc", "false"),
            ("uploadpack.allowFilter", "true"),
            ("uploadpack.allowAnySHA1InWant", "true"),
        ],
        hooks: &[],
        refused: &[("refs/pull/1/head", "deny updating a hidden ref"), ("refs/gh/x", "deny updating a hidden ref")],
    },
    HostProfile {
        name: "GitLab",
        settings: &[
            ("core.alternateRefsCommand", "exit 0 #"),
            ("receive.advertisePushOptions", "true"),
            ("receive.hideRefs", "refs/environments/"),
            ("receive.hideRefs", "refs/keep-around/"),
            ("receive.hideRefs", "refs/merge-requests/"),
            ("receive.hideRefs", "refs/pipelines/"),
            ("receive.hideRefs", "refs/remotes/"),
            ("receive.hideRefs", "refs/tmp/"),
            ("transfer.fsckObjects", "true"),
            ("receive.fsck.badTimezone", "ignore"),
            ("receive.fsck.missingSpaceBeforeDate", "ignore"),
            ("receive.fsck.zeroPaddedFilemode", "ignore"),
            ("receive.autogc", "false"),
            ("uploadpack.allowFilter", "true"),
            ("uploadpack.allowAnySHA1InWant", "true"),
            ("uploadpack.hideRefs", "refs/keep-around/"),
            ("uploadpack.hideRefs", "refs/remotes/"),
            ("uploadpack.hideRefs", "refs/tmp/"),
        ],
        hooks: &[],
        refused: &[
            ("refs/merge-requests/1/head", "deny updating a hidden ref"),
            ("refs/remotes/origin/main", "deny updating a hidden ref"),
        ],
    },
    HostProfile {
        name: "Gitea",
        settings: &[
            ("core.commitGraph", "true"),
            ("gc.writeCommitGraph", "true"),
            ("receive.advertisePushOptions", "true"),
            ("receive.procReceiveRefs", "refs/for"),
            ("uploadpack.allowFilter", "true"),
            ("uploadpack.allowAnySHA1InWant", "true"),
        ],
        hooks: &[
            ("pre-receive", "#!/bin/sh\necho\ncat > /dev/null\n"),
            ("update", "#!/bin/sh\ncase $1 in refs/pull/*) exit 1 ;; esac\n"),
            ("post-receive", "#!/bin/sh\ngit update-server-info\ncat > /dev/null\n"),
        ],
        refused: &[("refs/pull/1/head", "hook declined")],
    },
    HostProfile {
        name: "gitolite with RW+ = @all",
        settings: &[],
        hooks: &[("update", "#!/bin/sh\nexit 0\n")],
        refused: &[],
    },
];

impl HostProfile {
    fn set_up(&self, team: &Team) {
        for (key, value) in self.settings {
            team.git(&["config", "--add", key, value]);
        }
        for (name, script) in self.hooks {
            executable(team.remote().join("hooks").join(name), script);
        }
    }
}

/// Program in the place of ssh, which runs git as a server does. Refuses the commands of a pattern, with the words in a file.
fn ssh_program(refused: &str) -> String {
    format!(
        "#!/bin/sh\nfor command; do :; done\ncase $command in\n  {refused}) cat \"$0.words\" >&2; exit 1 ;;\nesac\n\
         eval \"git ${{command#git-}}\"\n"
    )
}

/// Lets a machine reach the remote over ssh, whose server refuses the commands of a pattern with these words.
fn use_ssh(machine: &TestEnvironment, team: &Team, refused: &str, words: &str) {
    let program = machine.home().join("ssh.sh");
    executable(&program, ssh_program(refused));
    std::fs::write(program.with_extension("sh.words"), words).expect("written");
    machine.git(&["config", "core.sshCommand", program.to_str().expect("text")]);
    machine.git(&["config", "ssh.variant", "ssh"]);
    machine.git(&["remote", "set-url", "origin", &format!("ssh://git@git.example.org{}", team.remote().display())]);
}

/// Has machines of three people review, decide, undo, forget and exchange, and the host collect garbage.
fn converge(name: &str, team: &Team, connect: &dyn Fn(&TestEnvironment, &str)) {
    let machine = |person: &str| {
        let machine = team.machine(person);
        let client = format!("{}-1", person.to_lowercase());
        connect(&machine, &client);
        join(&machine, &client);
        machine
    };
    let (ada, bob) = (machine("Ada"), machine("Bob"));
    let found = ids(&review(&ada));
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 1, "reviews": 1}), "{name}");
    assert_eq!(sync(&bob)["received"], json!({"decisions": 1, "reviews": 1}), "{name}");
    assert_eq!(review(&bob)["decision"]["action"], "reuse", "{name}");
    assert_eq!(status(&bob, &found[0]), "dismissed", "{name}");
    run(&ada, &["undo"], DONE);
    run(&bob, &["triage", &found[1], "addressed"], DONE);
    for machine in [&ada, &bob, &ada] {
        sync(machine);
    }
    // The host keeps what the refs name.
    team.git(&["gc", "-q", "--prune=now"]);
    team.git(&["fsck", "--strict", "--no-dangling"]);
    let carol = machine("Carol");
    assert_eq!(sync(&carol)["received"]["reviews"], 1, "{name}");
    for machine in [&ada, &bob, &carol] {
        let seen: Vec<String> = found.iter().map(|id| status(machine, id)).collect();
        assert_eq!(seen, ["open", "addressed"], "{name}");
    }
    run(&carol, &["team", "forget", "bob-1"], DONE);
    assert_eq!(status(&carol, &found[1]), "open", "{name}");
    assert_eq!(team.logs(), ["ada-1", "bob-1"], "{name}");
}

/// Checks that the settings of a profile do what they do at the host.
fn check_refused_refs(profile: &HostProfile, team: &Team) {
    let eve = team.machine("Eve");
    for (reference, words) in profile.refused {
        let pushed = eve.command("git").args(["push", "origin", &format!("HEAD:{reference}")]).output();
        let pushed = pushed.expect("git starts");
        assert!(!pushed.status.success() && err(&pushed).contains(words), "{}: {}", profile.name, err(&pushed));
    }
}

#[test]
fn machines_converge_over_http_with_repositories_that_are_set_up_as_hosts_do() {
    for profile in &PROFILES {
        let team = Team::new();
        profile.set_up(&team);
        let Some(remote) = HttpRemote::start(&team.remote()) else { return };
        converge(profile.name, &team, &|machine, client| {
            machine.git(&["remote", "set-url", "origin", &remote.url(client)]);
        });
        check_refused_refs(profile, &team);
    }
}

#[test]
fn machines_converge_over_ssh_with_repositories_that_are_set_up_as_hosts_do() {
    for profile in &PROFILES {
        let team = Team::new();
        profile.set_up(&team);
        converge(profile.name, &team, &|machine, _| use_ssh(machine, &team, "none", ""));
    }
}

/// Hook of a host whose rules let nothing but branches and tags through. Its words stand in a file beside it.
const BRANCHES_AND_TAGS: &str = "#!/bin/sh\nwhile read -r old new name; do\n  case $name in\n    refs/heads/* | refs/tags/*) ;;\n    \
     *) cat \"$0.words\" >&2; exit 1 ;;\n  esac\ndone\n";

#[test]
fn hooks_of_hosts_that_refuse_the_logs_are_quoted_with_the_way_out() {
    let team = Team::new();
    let ada = team.member("Ada");
    review(&ada);
    let hook = team.remote().join("hooks/pre-receive");
    executable(&hook, BRANCHES_AND_TAGS);
    let elsewhere = "`revdeck team join REMOTE`";
    for (words, said, way_out) in [
        (
            "GitLab: You are not allowed to push code to this project.\n",
            "GitLab: You are not allowed to push code to this project.",
            "a remote of its own for the records works",
        ),
        (
            "GitLab: Commit must be signed with a GPG key\n",
            "GitLab: Commit must be signed with a GPG key",
            "`[team] sign = \"always\"`",
        ),
        (
            "\nGitea: User permission denied for writing.\n",
            "Gitea: User permission denied for writing.",
            "a remote of its own for the records works",
        ),
        (
            "error: GH013: Repository rule violations found for refs/revdeck/team/ada-1.\n\
             Review all repository rules at https://github.com/o/r/rules\n\n- Commits must have verified signatures.\n\n",
            "error: GH013: Repository rule violations found for refs/revdeck/team/ada-1. Review all repository rules at \
             https://github.com/o/r/rules - Commits must have verified signatures.",
            "`[team] sign = \"always\"`",
        ),
        (
            "error: GH007: Your push would publish a private email address.\nYou can make your email public or disable this \
             protection by visiting:\nhttps://github.com/settings/emails\n",
            "error: GH007: Your push would publish a private email address. You can make your email public or disable this \
             protection by visiting: https://github.com/settings/emails",
            "`git config user.email ADDRESS`",
        ),
        (
            "\n========================================================================\n\n\
             The rules of this server.\n\n========================================================================\n",
            "The rules of this server.",
            "a remote of its own for the records works",
        ),
    ] {
        std::fs::write(hook.with_file_name("pre-receive.words"), words).expect("written");
        let failed = ada.errors(&["sync"], INCOMPLETE);
        let expected = format!(
            "error: origin refuses the ref refs/revdeck/team/ada-1: [remote rejected] (pre-receive hook declined): {said}"
        );
        assert_eq!(failed.lines().next(), Some(expected.as_str()), "{failed}");
        assert!(failed.contains(way_out) && failed.contains(elsewhere), "{failed}");
    }
    // gitolite, with `RW+ refs/heads/ = @all`, and a hook without words.
    std::fs::remove_file(&hook).expect("removed");
    for (script, said) in [
        (
            "#!/bin/sh\ncase $1 in refs/heads/*) exit 0 ;; esac\necho \"FATAL: W $1 team ada DENIED by fallthru\" >&2\nexit 1\n",
            "(hook declined): FATAL: W refs/revdeck/team/ada-1 team ada DENIED by fallthru",
        ),
        ("#!/bin/sh\nexit 1\n", "(hook declined)"),
    ] {
        executable(team.remote().join("hooks/update"), script);
        let failed = ada.errors(&["sync"], INCOMPLETE);
        let expected = format!("error: origin refuses the ref refs/revdeck/team/ada-1: [remote rejected] {said}");
        assert_eq!(failed.lines().next(), Some(expected.as_str()), "{failed}");
        assert!(failed.contains("a remote of its own for the records works"), "{failed}");
    }
    // The way out, after which nothing is lost.
    let other = Team::new();
    run(&ada, &["team", "join", other.remote().to_str().expect("text")], DONE);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
}

#[test]
fn servers_behind_ssh_and_ssh_itself_are_quoted_with_the_way_out() {
    let team = Team::new();
    let ada = team.member("Ada");
    review(&ada);
    let no_push = "the remote may be read here, but not written to";
    for (refused, words, said, way_out) in [
        (
            "git-receive-pack*",
            "ERROR: Permission to o/r.git denied to ada.\n",
            "ERROR: Permission to o/r.git denied to ada.",
            no_push,
        ),
        (
            "git-receive-pack*",
            "ERROR: The key you are authenticating with has been marked as read only.\n",
            "ERROR: The key you are authenticating with has been marked as read only.",
            no_push,
        ),
        (
            "git-receive-pack*",
            "remote: \nremote: ========================================================================\nremote: \n\
             remote: You are not allowed to push code to this project.\nremote: \n\
             remote: ========================================================================\nremote: \n",
            "You are not allowed to push code to this project.",
            no_push,
        ),
        (
            "git-receive-pack*",
            "Gitea: User: 2:ada with Key: 1:laptop is not authorized to write to o/r.\n",
            "Gitea: User: 2:ada with Key: 1:laptop is not authorized to write to o/r.",
            no_push,
        ),
        (
            "git-receive-pack*",
            "FATAL: W any team ada DENIED by fallthru\n(or you mis-spelled the reponame)\n",
            "FATAL: W any team ada DENIED by fallthru (or you mis-spelled the reponame)",
            no_push,
        ),
        (
            "*",
            "FATAL: R any team ada DENIED by fallthru\n(or you mis-spelled the reponame)\n",
            "FATAL: R any team ada DENIED by fallthru (or you mis-spelled the reponame)",
            "the remote may not be read here",
        ),
        ("*", "ERROR: Repository not found.\n", "ERROR: Repository not found.", "hosts say the same of both"),
        (
            "*",
            "Warning: Permanently added 'git.example.org' (ED25519) to the list of known hosts.\n\
             git@git.example.org: Permission denied (publickey).\n",
            "git@git.example.org: Permission denied (publickey).",
            "use an ssh agent or a credential helper",
        ),
        ("*", "Host key verification failed.\n", "Host key verification failed.", "`ssh HOST` shows it"),
        (
            "*",
            "ssh: connect to host git.example.org port 22: Connection refused\n",
            "ssh: connect to host git.example.org port 22: Connection refused",
            "nothing is lost",
        ),
    ] {
        use_ssh(&ada, &team, refused, words);
        let task = if refused == "*" { "ls-remote" } else { "push" };
        let failed = ada.errors(&["sync"], INCOMPLETE);
        let expected = format!("error: git {task} with origin failed in [repo]: {said}");
        assert_eq!(failed.lines().next(), Some(expected.as_str()), "{failed}");
        assert!(failed.contains(way_out), "{failed}");
    }
    use_ssh(&ada, &team, "none", "");
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
}

#[test]
fn servers_in_front_of_git_are_quoted_with_the_way_out() {
    let team = Team::new();
    let Some(remote) = HttpRemote::start(&team.remote()) else { return };
    let ada = team.machine("Ada");
    run(&ada, &["team", "join", &remote.url("ada-1"), "--machine", "ada-1"], DONE);
    review(&ada);
    let no_push = "the remote may be read here, but not written to";
    for (requests, state, text, said, way_out) in [
        (
            RefusedRequests::Pushes,
            "403 Forbidden",
            "Permission to o/r.git denied to ada.",
            "returned error: 403: Permission to o/r.git denied to ada.",
            no_push,
        ),
        (
            RefusedRequests::Pushes,
            "403 Forbidden",
            "You are not allowed to push code to this project.",
            "returned error: 403: You are not allowed to push code to this project.",
            no_push,
        ),
        (
            RefusedRequests::All,
            "404 Not Found",
            "Repository not found.",
            "not found: Repository not found.",
            "hosts say the same of both",
        ),
        (
            RefusedRequests::Objects,
            "413 Request Entity Too Large",
            "",
            "RPC failed; HTTP 413 curl 22 The requested URL returned error: 413",
            "client_max_body_size",
        ),
        (
            RefusedRequests::Objects,
            "502 Bad Gateway",
            "",
            "RPC failed; HTTP 502 curl 22 The requested URL returned error: 502",
            "nothing is lost",
        ),
        (
            RefusedRequests::Pushes,
            "429 Too Many Requests",
            "You have exceeded a rate limit",
            "returned error: 429: You have exceeded a rate limit",
            "nothing is lost",
        ),
    ] {
        remote.refuse("ada-1", Some(HttpRefusal { requests, state, text }));
        let failed = ada.errors(&["sync"], INCOMPLETE);
        let first = failed.lines().next().unwrap_or_default();
        assert!(first.ends_with(said) && failed.contains(way_out), "{state}: {failed}");
    }
    remote.refuse("ada-1", None);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
}

#[test]
fn a_shared_repository_of_another_owner_is_named_with_the_command_that_trusts_it() {
    let team = Team::new();
    let ada = team.member("Ada");
    review(&ada);
    let output = with_variable(&ada, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1", &["sync"]);
    assert_eq!(output.status.code(), Some(INCOMPLETE), "{}", err(&output));
    let failed = err(&output);
    let trusted =
        failed.split_once("run `git config --global --add safe.directory ").and_then(|(_, rest)| rest.split_once('`'));
    let (trusted, _) = trusted.unwrap_or_else(|| panic!("{failed}"));
    assert!(failed.contains("detected dubious ownership") && trusted.ends_with("team.git"), "{failed}");
    // What the error says helps.
    ada.git(&["config", "--global", "--add", "safe.directory", trusted]);
    let output = with_variable(&ada, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1", &["sync"]);
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    assert_eq!(team.logs(), ["ada-1"]);
}

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
