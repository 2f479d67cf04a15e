//! Installing, inspecting and uninstalling in settings files of every form, byte for byte.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};

use crate::env::{DONE, TestEnvironment, USAGE, err, files_below, lines_with, out, run};

const HOSTS: [&str; 4] = ["claude-code", "codex", "gemini", "opencode"];

/// Existing JSON settings. All but the empty ones are an object with at least one key of somebody else.
const JSON: [&str; 10] = [
    "",
    "\n",
    "{}",
    "{ }\n",
    "{\"theme\":\"dark\"}",
    "{\n    \"theme\": \"dark\"\n}",
    "// mine\n{\n\t/* of the theme */\n\t\"theme\": \"dark\", // why\n\t\"list\": [1, 2,],\n}\n// end\n",
    "{\r\n  \"theme\": \"dark\",\r\n  \"other\": {}\r\n}\r\n",
    "\u{feff}{\n  \"theme\": \"dark\"\n}\n",
    "{\n  \"theme\": \"dark\",\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }\n    ],\n    \
     \"UserPromptSubmit\": [{ \"matcher\": \"\", \"hooks\": [{ \"type\": \"command\", \"command\": \"date\" }] }],\n    \"BeforeAgent\": []\n  },\n  \
     \"mcpServers\": { \"other\": { \"command\": \"x\" } },\n  \"mcp\": { \"other\": { \"type\": \"local\", \"command\": [\"x\"] } }\n}\n",
];

/// Existing TOML settings.
const TOML: [&str; 7] = [
    "",
    "model = \"x\"",
    "# mine\nmodel = \"x\" # why\n\n[mcp_servers.other] # of others\ncommand = \"y\"\n\n# end\n",
    "model = \"x\"\r\n\r\n[tui]\r\ntheme = \"dark\"\r\n",
    "\u{feff}model = \"x\"\n",
    "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"say done\"\n",
    "[hooks.state.\"a:b\"]\ntrusted_hash = \"1\"\n",
];

/// Returns the user's settings files of a host that are JSON and TOML.
fn files(test: &TestEnvironment, host: &str) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let home = folder(test);
    let (json, toml): (&[&str], &[&str]) = match host {
        "claude-code" => (&[".claude/settings.json", ".claude.json"], &[]),
        "codex" => (&[".codex/hooks.json"], &[".codex/config.toml"]),
        "gemini" => (&[".gemini/settings.json"], &[]),
        _ => (&[".config/opencode/opencode.json"], &[]),
    };
    let paths = |names: &[&str]| names.iter().map(|name| home.join(name)).collect();
    (paths(json), paths(toml))
}

/// Returns the user's home folder, which also holds the repository.
fn folder(test: &TestEnvironment) -> PathBuf {
    test.home().parent().expect("a folder").to_owned()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o640)).expect("a mode");
}

/// Returns all settings of assistants below the home folder: path, mode and bytes. Folders count by their files.
fn state(test: &TestEnvironment) -> Vec<(PathBuf, u32, String)> {
    let home = folder(test);
    let mut found: Vec<_> =
        [".claude", ".codex", ".gemini", ".config"].iter().flat_map(|at| files_below(&home.join(at))).collect();
    found.extend(Some(home.join(".claude.json")).filter(|file| file.exists()));
    found.sort();
    let describe = |path: PathBuf| {
        let mode = fs::metadata(&path).expect("a file").permissions().mode() & 0o7777;
        let text = fs::read_to_string(&path).expect("text");
        (path, mode, text)
    };
    found.into_iter().map(describe).collect()
}

/// Returns the state of a host in the user's scope.
fn status(test: &TestEnvironment, host: &str) -> Value {
    let all = test.json(&["hook", "status", "--format", "json"], DONE);
    let is_wanted = |hook: &&Value| hook["host"] == host && hook["scope"] == "user";
    all["hooks"].as_array().expect("hooks").iter().find(is_wanted).expect("the host").clone()
}

/// Checks that the words of `before` are in `after` in the same order, whatever the brackets and spaces between them.
fn assert_kept(before: &str, after: &str, host: &str) {
    let is_between = |c: char| c.is_whitespace() || ['{', '}', '[', ']', ',', '\u{feff}'].contains(&c);
    let mut rest = after.split(is_between);
    for word in before.split(is_between).filter(|word| !word.is_empty()) {
        assert!(rest.any(|other| other == word), "{host}: {word:?} of\n{before}\nis not in\n{after}");
    }
}

#[rstest]
fn a_settings_file_of_any_form_is_extended_and_restored_byte_for_byte(
    #[values("claude-code", "codex", "gemini", "opencode")] host: &str,
) {
    let samples = JSON.len().max(TOML.len());
    for number in 0..=samples {
        let test = TestEnvironment::new();
        let (json, toml) = files(&test, host);
        // The last round has no files at all.
        for file in json.iter().filter(|_| number < samples) {
            write(file, JSON[number % JSON.len()]);
        }
        for file in toml.iter().filter(|_| number < samples) {
            write(file, TOML[number % TOML.len()]);
        }
        let before = state(&test);
        run(&test, &["hook", "install", host, "--yes", "--stop"], DONE);
        let installed = state(&test);
        for (path, mode, text) in &before {
            let (_, new_mode, new) = installed.iter().find(|(other, ..)| other == path).expect("still there");
            assert_eq!(mode, new_mode, "{host} {number}: {}", path.display());
            assert_kept(text, new, host);
            let is_windows = text.contains("\r\n");
            assert_eq!(
                new.matches('\n').count(),
                new.matches("\r\n").count() + if is_windows { 0 } else { new.matches('\n').count() }
            );
        }
        let found = status(&test, host);
        assert_eq!(found["installed"], true, "{host} {number}: {found}");
        for file in found["files"].as_array().expect("files") {
            let is_unused = file["entries"] == json!([]);
            assert_eq!(file["state"], if is_unused { "absent" } else { "current" }, "{host} {number}: {found}");
        }
        run(&test, &["hook", "install", host, "--yes", "--stop"], DONE);
        assert_eq!(state(&test), installed, "{host} {number}: the second installation changes something");
        // Another set of entries starts from the same original.
        run(&test, &["hook", "install", host, "--yes"], DONE);
        run(&test, &["hook", "uninstall", host, "--yes"], DONE);
        assert_eq!(state(&test), before, "{host} {number}");
        assert_eq!(status(&test, host)["installed"], false, "{host} {number}");
        if number >= samples {
            assert!(!folder(&test).join(".codex").exists(), "a made folder stays");
        }
    }
}

#[test]
fn the_entries_are_what_the_assistants_read() {
    let test = TestEnvironment::new();
    let mut said = String::new();
    for host in HOSTS {
        said += &format!("# {host}\n{}", test.output(&["hook", "install", host, "--dry-run"], DONE));
    }
    assert_eq!(state(&test), []);
    assert_snapshot!("entries", said.replace("[revdeck]", "/bin/revdeck"));
    let mut said = String::new();
    for host in HOSTS {
        run(&test, &["hook", "install", host, "--scope", "project", "--yes"], DONE);
    }
    for file in [".claude/settings.json", ".mcp.json", ".codex/hooks.json", ".opencode/plugins/revdeck.js"] {
        let text = fs::read_to_string(test.repo().join(file)).expect("made");
        assert!(!text.contains(env!("CARGO_BIN_EXE_revdeck")), "{file} names a folder of this machine: {text}");
        said += &format!(
            "{file}\n{}\n",
            text.lines().filter(|line| line.contains("revdeck")).collect::<Vec<_>>().join("\n")
        );
    }
    assert_snapshot!("project_entries", said);
    for host in HOSTS {
        run(&test, &["hook", "uninstall", host, "--scope", "project", "--yes"], DONE);
    }
    assert_eq!(test.git(&["status", "--porcelain"]), "");
}

#[test]
fn without_a_terminal_the_changes_are_only_shown() {
    let test = TestEnvironment::new();
    let output = test.revdeck(&["hook", "install", "gemini"]);
    assert_eq!(output.status.code(), Some(USAGE));
    assert!(out(&output).contains("+++ "), "{}", out(&output));
    assert_snapshot!(test.errors(&["hook", "install", "gemini"], USAGE), @"
    error: nothing was changed: there is no terminal to ask on
      hint: add --yes to make these changes, or --dry-run to only see them
    ");
    assert_eq!(state(&test), []);
    assert_snapshot!(test.fails(&["hook", "install", "git", "--stop"], USAGE), @"error: --stop is for the hooks of assistants, not for git");
}

#[rstest]
#[case::cut("{ \"a\": 1")]
#[case::loose("{ a: 1 }")]
#[case::more("{} {}")]
#[case::no_object("[1]")]
#[case::hooks_of_another_form("{ \"hooks\": [] }")]
#[case::hooks_twice("{ \"hooks\": {}, \"hooks\": {} }")]
fn a_damaged_file_is_named_and_nothing_is_touched(#[case] text: &str) {
    let test = TestEnvironment::new();
    for host in ["claude-code", "codex", "gemini"] {
        let (json, _) = files(&test, host);
        write(&json[0], text);
        let before = state(&test);
        let error = test.fails(&["hook", "install", host, "--yes"], USAGE);
        assert!(error.contains(json[0].file_name().and_then(|name| name.to_str()).expect("a name")), "{error}");
        assert!(error.contains("nothing was changed"), "{error}");
        assert_eq!(state(&test), before, "{host}");
    }
}

#[test]
fn damaged_settings_in_toml_are_named() {
    let test = TestEnvironment::new();
    let (_, toml) = files(&test, "codex");
    for text in ["model = ", "mcp_servers = { other = { command = \"x\" } }\n", "hooks = 1\nx = [\n"] {
        write(&toml[0], text);
        let before = state(&test);
        let error = test.fails(&["hook", "install", "codex", "--yes"], USAGE);
        assert!(error.contains(".codex/config.toml"), "{error}");
        assert_eq!(state(&test), before, "{text}");
    }
}

#[test]
fn what_somebody_changed_since_stays() {
    let test = TestEnvironment::new();
    for host in HOSTS {
        let (json, toml) = files(&test, host);
        json.iter().for_each(|file| write(file, JSON[9]));
        toml.iter().for_each(|file| write(file, TOML[2]));
        run(&test, &["hook", "install", host, "--yes"], DONE);
        for file in &json {
            let text = fs::read_to_string(file).expect("a file");
            write(file, &text.replacen("\"theme\": \"dark\"", "\"theme\": \"light\"", 1));
        }
        for file in &toml {
            let text = fs::read_to_string(file).expect("a file");
            write(file, &(text + "\n[more]\nkey = 1\n"));
        }
        let said = test.output(&["hook", "uninstall", host, "--yes"], DONE);
        assert!(said.contains("was changed since; only revdeck's entries taken out, the rest stays"), "{said}");
        for file in &json {
            let text = fs::read_to_string(file).expect("a file");
            let mut wanted: Value = serde_json::from_str(&JSON[9].replace("dark", "light")).expect("json");
            if host == "gemini" {
                // A list that has only revdeck's entry goes with it.
                wanted["hooks"].as_object_mut().expect("hooks").remove("BeforeAgent");
            }
            assert_eq!(serde_json::from_str::<Value>(&text).expect("json"), wanted, "{host}: {text}");
        }
        for file in &toml {
            let text = fs::read_to_string(file).expect("a file");
            assert_eq!(text, format!("{}\n[more]\nkey = 1\n", TOML[2]), "{host}");
        }
    }
}

#[test]
fn entries_of_others_with_the_same_name_stay() {
    let test = TestEnvironment::new();
    let (json, _) = files(&test, "claude-code");
    let line = "{ \"statusLine\": { \"type\": \"command\", \"command\": \"mine.sh; revdeck status --line\" } }\n";
    let server =
        "{ \"mcpServers\": { \"revdeck\": { \"command\": \"docker\", \"args\": [\"run\", \"revdeck\", \"mcp\"] } } }\n";
    write(&json[0], line);
    write(&json[1], server);
    let said = test.output(&["hook", "install", "claude-code", "--yes"], DONE);
    assert_snapshot!(said.lines().filter(|line| line.starts_with("note: [")).collect::<Vec<_>>().join("\n"), @r#"
    note: [folder]/.claude/settings.json: "statusLine" is somebody else's and stays as it is
    note: [folder]/.claude.json: "revdeck" is somebody else's and stays as it is
    "#);
    assert_eq!(fs::read_to_string(&json[1]).expect("a file"), server);
    run(&test, &["hook", "uninstall", "claude-code", "--yes"], DONE);
    assert_eq!(fs::read_to_string(&json[0]).expect("a file"), line);
    // A plugin with the name of revdeck's.
    let plugin = folder(&test).join(".config/opencode/plugins/revdeck.js");
    write(&plugin, "export const Mine = 1\n");
    assert_snapshot!(test.fails(&["hook", "install", "opencode", "--yes"], USAGE), @"
    error: [folder]/.config/opencode/plugins/revdeck.js exists and was not made by revdeck
      hint: nothing was changed: move the file away and run the command again
    ");
}

#[test]
fn links_are_followed_only_below_the_home_folder() {
    let test = TestEnvironment::new();
    let home = folder(&test);
    let (json, _) = files(&test, "gemini");
    let dotfiles = home.join("dotfiles/gemini.json");
    write(&dotfiles, JSON[6]);
    fs::create_dir_all(home.join(".gemini")).expect("a folder");
    symlink(&dotfiles, &json[0]).expect("a link");
    run(&test, &["hook", "install", "gemini", "--yes"], DONE);
    assert_eq!(fs::read_link(&json[0]).expect("still a link"), dotfiles);
    assert!(fs::read_to_string(&dotfiles).expect("a file").contains("hook run gemini"));
    run(&test, &["hook", "uninstall", "gemini", "--yes"], DONE);
    assert_eq!(fs::read_to_string(&dotfiles).expect("a file"), JSON[6]);
    let outside = tempfile::tempdir().expect("a folder");
    let target = outside.path().join("settings.json");
    for text in ["{}", ""] {
        fs::write(&target, text).expect("a file");
        fs::remove_file(&json[0]).expect("removed");
        symlink(&target, &json[0]).expect("a link");
        let error = test.fails(&["hook", "install", "gemini", "--yes"], USAGE);
        assert!(error.contains("outside of"), "{error}");
        assert_eq!(fs::read_to_string(&target).expect("a file"), text);
    }
    // A folder of the repository that leads out of it.
    symlink(outside.path(), test.repo().join(".codex")).expect("a link");
    let error = test.fails(&["hook", "install", "codex", "--scope", "project", "--yes"], USAGE);
    assert!(error.contains("outside of"), "{error}");
    assert_eq!(files_below(outside.path()), [target]);
}

#[test]
fn the_state_says_what_is_outdated_and_what_to_do() {
    let test = TestEnvironment::new();
    run(&test, &["hook", "install", "codex", "--yes"], DONE);
    run(&test, &["hook", "install", "gemini", "--yes", "--stop"], DONE);
    let (json, _) = files(&test, "gemini");
    let text = fs::read_to_string(&json[0]).expect("a file");
    write(&json[0], &text.replace("\"timeout\": 5000", "\"timeout\": 9000"));
    write(&files(&test, "claude-code").0[0], "{");
    assert_snapshot!(test.output(&["hook", "status"], DONE), @"
    git  not in: `revdeck hook install git` puts it in
    claude-code  [folder]/.claude/settings.json is damaged: Unterminated object on line 1 column 1
    codex  ~/.codex/hooks.json: in; hooks.UserPromptSubmit, hooks.SessionStart, hooks.PreCompact; not trusted yet, so codex skips them: start codex, which asks, or open `/hooks` in it
    codex  ~/.codex/config.toml: in; mcp_servers.revdeck
    gemini  ~/.gemini/settings.json: outdated; hooks.BeforeAgent, hooks.SessionStart, hooks.PreCompress, hooks.AfterAgent, mcpServers.revdeck; `revdeck hook install gemini --scope user` updates it
    opencode  not in: `revdeck hook install opencode` puts it in
    ");
    // As Codex notes that its user has trusted a hook.
    let (hooks, settings) = files(&test, "codex");
    let noted =
        format!("\n[hooks.state.\"{}:user_prompt_submit:0:0\"]\ntrusted_hash = \"sha256:0\"\n", hooks[0].display());
    let before = fs::read_to_string(&settings[0]).expect("a file");
    write(&settings[0], &(before + &noted));
    let state = test.output(&["hook", "status"], DONE);
    assert!(state.contains("hooks.PreCompact; trusted in codex, which asks again"), "{state}");
}

#[test]
fn an_installation_in_both_scopes_is_named() {
    let test = TestEnvironment::new();
    let both = |text: &str| lines_with(text, |line| line.contains("calls both"));
    for host in HOSTS {
        let said = test.output(&["hook", "install", host, "--yes"], DONE);
        assert_eq!(both(&said), "", "{host}");
        assert_eq!(both(&test.output(&["hook", "status"], DONE)), "", "{host}");
        let said = test.output(&["hook", "install", host, "--scope", "project", "--yes"], DONE);
        assert_ne!(both(&said), "", "{host}: {said}");
        let state = test.output(&["hook", "status"], DONE);
        let expected = format!(
            "{host}  in your settings and in this repository: {host} calls both at each turn, and the second call prints nothing; \
             `revdeck hook uninstall {host} --scope user` or `--scope project` takes one out"
        );
        assert_eq!(both(&state).trim_end(), expected);
        assert_eq!(status(&test, host)["also_in_other_scope"], true);
        // Calls of both scopes are recognised and taken out.
        run(&test, &["hook", "uninstall", host, "--scope", "project", "--yes"], DONE);
        assert_eq!(both(&test.output(&["hook", "status"], DONE)), "", "{host}");
        run(&test, &["hook", "uninstall", host, "--yes"], DONE);
    }
    assert_eq!(state(&test), []);
}

#[test]
fn a_program_with_another_name_installs_entries_that_it_finds_again() {
    for name in ["revdeck-0.1", ".revdeck-wrapped", "rd"] {
        let test = TestEnvironment::new();
        let program = folder(&test).join("bin").join(name);
        fs::create_dir_all(program.parent().expect("a folder")).expect("a folder");
        let built = env!("CARGO_BIN_EXE_revdeck");
        if fs::hard_link(built, &program).is_err() {
            fs::copy(built, &program).expect("a copy");
        }
        let call = |arguments: &[&str]| {
            let output = test.command(&program).args(arguments).output().expect("revdeck starts");
            assert_eq!(output.status.code(), Some(DONE), "{name} {arguments:?}: {}", err(&output));
            out(&output)
        };
        for host in HOSTS {
            call(&["hook", "install", host, "--yes"]);
            let installed = state(&test);
            assert!(installed.iter().all(|(_, _, text)| !text.trim().is_empty()), "{name} {host}: {installed:?}");
            let all: Value = serde_json::from_str(&call(&["hook", "status", "--format", "json"])).expect("JSON");
            let is_wanted = |hook: &&Value| hook["host"] == host && hook["scope"] == "user";
            let found = all["hooks"].as_array().expect("hooks").iter().find(is_wanted).expect("the host");
            for file in found["files"].as_array().expect("files") {
                assert_eq!(file["state"], "current", "{name} {host}: {found}");
            }
            call(&["hook", "install", host, "--yes"]);
            assert_eq!(state(&test), installed, "{name} {host}: the second installation changes something");
            call(&["hook", "uninstall", host, "--yes"]);
            assert_eq!(state(&test), [], "{name} {host}");
        }
    }
}

#[test]
fn outside_of_a_repository_the_state_of_the_users_settings_is_shown() {
    let test = TestEnvironment::new();
    run(&test, &["hook", "install", "gemini", "--yes"], DONE);
    let outside = tempfile::tempdir().expect("a folder");
    let call = |arguments: &[&str]| {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        let output = command.args(arguments).current_dir(outside.path()).output().expect("revdeck starts");
        assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
        out(&output)
    };
    assert_snapshot!(call(&["hook", "status"]), @"
    claude-code  not in: `revdeck hook install claude-code` puts it in
    codex  not in: `revdeck hook install codex` puts it in
    gemini  ~/.gemini/settings.json: in; hooks.BeforeAgent, hooks.SessionStart, hooks.PreCompress, mcpServers.revdeck
    opencode  not in: `revdeck hook install opencode` puts it in
    ");
    let all: Value = serde_json::from_str(&call(&["hook", "status", "--format", "json"])).expect("JSON");
    let scopes: Vec<&Value> = all["hooks"].as_array().expect("hooks").iter().map(|hook| &hook["scope"]).collect();
    assert_eq!(scopes, ["user"; 4]);
}

#[test]
fn a_plugin_that_somebody_changed_is_named_and_stays() {
    let test = TestEnvironment::new();
    run(&test, &["hook", "install", "opencode", "--yes"], DONE);
    let plugin = folder(&test).join(".config/opencode/plugins/revdeck.js");
    let text = fs::read_to_string(&plugin).expect("a file");
    fs::write(&plugin, format!("{text}// mine\n")).expect("written");
    let shown = test.output(&["hook", "status"], DONE);
    let line = shown.lines().find(|line| line.contains("revdeck.js")).expect("the plugin");
    assert_snapshot!(line, @"opencode  ~/.config/opencode/plugins/revdeck.js: changed by somebody; plugin; remove it by hand, then `revdeck hook install opencode --scope user` makes it anew");
    assert_eq!(status(&test, "opencode")["files"][0]["state"], "edited");
    assert_snapshot!(test.fails(&["hook", "install", "opencode", "--yes"], USAGE), @"
    error: [folder]/.config/opencode/plugins/revdeck.js was made by revdeck and changed since
      hint: nothing was changed: remove the file by hand and run the command again
    ");
    let said = test.output(&["hook", "uninstall", "opencode", "--yes"], DONE);
    assert!(said.contains("revdeck.js: was changed since, so it stays: remove it by hand"), "{said}");
    fs::remove_file(&plugin).expect("removed");
    run(&test, &["hook", "install", "opencode", "--yes"], DONE);
    assert_eq!(fs::read_to_string(&plugin).expect("a file"), text);
}

#[test]
fn links_are_followed_below_the_home_folder_although_a_variable_names_the_usual_place() {
    let test = TestEnvironment::new();
    let home = folder(&test);
    let outside = tempfile::tempdir().expect("a folder");
    let call = |arguments: &[&str], config: &Path| {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.env("CLAUDE_CONFIG_DIR", home.join(".claude")).env("XDG_CONFIG_HOME", config);
        command.args(arguments).output().expect("revdeck starts")
    };
    for (host, file) in [("claude-code", ".claude/settings.json"), ("opencode", ".config/opencode/opencode.json")] {
        let (link, dotfile) = (home.join(file), home.join("dotfiles").join(host));
        write(&dotfile, JSON[6]);
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        symlink(&dotfile, &link).expect("a link");
        let output = call(&["hook", "install", host, "--yes"], &home.join(".config"));
        assert_eq!(output.status.code(), Some(DONE), "{host}: {}", err(&output));
        assert!(fs::read_to_string(&dotfile).expect("a file").contains("revdeck"), "{host}");
        let output = call(&["hook", "uninstall", host, "--yes"], &home.join(".config"));
        assert_eq!(output.status.code(), Some(DONE), "{host}: {}", err(&output));
        assert_eq!(fs::read_to_string(&dotfile).expect("a file"), JSON[6], "{host}");
        // Out of the home folder it leads nowhere that is followed.
        let target = outside.path().join(format!("{host}.json"));
        fs::write(&target, "{}").expect("a file");
        fs::remove_file(&link).expect("removed");
        symlink(&target, &link).expect("a link");
        let output = call(&["hook", "install", host, "--yes"], &home.join(".config"));
        assert_eq!(output.status.code(), Some(USAGE), "{host}: {}", out(&output));
        assert_eq!(fs::read_to_string(&target).expect("a file"), "{}", "{host}");
    }
    // A folder elsewhere, or behind a link out of the home folder, is a place of its own.
    symlink(outside.path(), home.join("elsewhere")).expect("a link");
    let output = call(&["hook", "install", "opencode", "--yes"], &home.join("elsewhere"));
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    assert!(outside.path().join("opencode/opencode.json").exists());
}
