//! The snippets of docs/editors.md.

/// Returns the code blocks of a language.
fn snippets(language: &str) -> Vec<&'static str> {
    let page = include_str!("../../../docs/editors.md");
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

#[test]
fn settings_are_well_formed_and_start_the_server() {
    let helix: toml::Table = snippets("toml")[0].parse().expect("TOML");
    let server = &helix["language-server"]["revdeck"];
    assert_eq!((server["command"].as_str(), server["args"][0].as_str()), (Some("revdeck"), Some("lsp")));
    let package: serde_json::Value = serde_json::from_str(snippets("json")[0]).expect("JSON");
    assert_eq!(package["main"], "./extension.js");
    assert_eq!((snippets("lua").len(), snippets("js").len()), (3, 1));
    assert!(snippets("js")[0].contains(r#"command: "revdeck", args: ["lsp"]"#));
    assert!(snippets("lua")[0].contains("cmd = { 'revdeck', 'lsp' }"));
}
