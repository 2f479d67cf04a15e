//! Tests the embedded model table, the matching of model ids and the precedence of the layers.

use rstest::rstest;

use super::*;
use Encoding::{Cl100kBase, O200kBase};

fn approximate(percent: u32) -> Encoding {
    Encoding::Approximate { percent }
}

fn dollars(amount: f64) -> Dollars {
    Dollars::new(amount).expect("an amount")
}

fn reviewer(kind: ReviewerKind, model: &str, base_url: Option<&str>) -> ReviewerSettings {
    ReviewerSettings { model: model.to_owned(), base_url: base_url.map(str::to_owned), ..ReviewerSettings::new(kind) }
}

/// Returns the table with a user's file merged over it.
fn with_file(text: &str) -> Result<ModelCatalog, ConfigError> {
    let home = tempfile::tempdir().expect("a folder");
    let paths = Paths::from_home(home.path());
    std::fs::write(paths.models_file(), text).expect("a file");
    ModelCatalog::load(&paths)
}

#[test]
fn the_embedded_table_is_whole() {
    let written: ModelTable = toml::from_str(embedded::MODELS).expect("TOML");
    assert_eq!(written, ModelCatalog::default().embedded, "the build changes nothing");
    let models = ModelCatalog::default();
    assert_eq!(models.find_broken_reference(), None);
    for (name, entry) in &models.embedded.models {
        assert_eq!(models.find_name(name), Some(name.as_str()), "no other name hides it");
        let family = entry.family.as_ref().and_then(|family| models.embedded.families.get(family));
        let entry = family.map_or_else(|| entry.clone(), |family| entry.merge_over(family));
        assert!(
            entry.context_window.is_some()
                && entry.max_output < entry.context_window
                && entry.encoding.is_some()
                && entry.tools.is_some()
                && entry.temperature.is_some(),
            "{name} leaves something to a guess: {entry:?}"
        );
        if let Some(price) = entry.price {
            assert!(entry.seller.is_some(), "{name} has a price of nobody");
            assert!(price.cached.unwrap_or(price.input) <= price.input && price.input < price.output, "{name}");
        }
    }
    for (name, seller) in &models.embedded.sellers {
        let date = seller.checked.parse::<jiff::civil::Date>();
        assert!(date.is_ok() && !seller.hosts.is_empty(), "{name}");
    }
    for family in models.embedded.families.keys() {
        let used = models.embedded.models.values().any(|entry| entry.family.as_ref() == Some(family));
        assert!(used, "the family {family} has no model");
    }
}

#[rstest]
#[case("gpt-5", "gpt-5", true)]
#[case("gpt-5-2025-08-07", "gpt-5", true)]
#[case("gpt-5-turbo", "gpt-5", true)]
#[case("gpt-5-6-sol", "gpt-5", false)]
#[case("gpt-50", "gpt-5", false)]
#[case("gpt-4o", "gpt-4", false)]
#[case("gpt-4-1", "gpt-4", false)]
#[case("gpt-4-0613", "gpt-4", true)]
#[case("claude-opus-4-5-20251101", "claude-opus-4-5", true)]
#[case("claude-opus-4-9", "claude-opus-4", false)]
#[case("claude-opus-4@20250514", "claude-opus-4", true)]
#[case("qwen3:8b", "qwen3", true)]
#[case("qwen3-8b", "qwen3", true)]
#[case("qwen3:8", "qwen3", true)]
#[case("llama3-1", "llama3", false)]
#[case("my-gpt-5", "gpt-5", false)]
#[case("", "gpt-5", false)]
fn an_id_is_of_a_name_but_not_of_another_version(#[case] id: &str, #[case] name: &str, #[case] expected: bool) {
    assert_eq!(is_name_match(id, name), expected);
}

#[rstest]
#[case("gpt-4o-2024-11-20", "gpt-4o", 128_000, O200kBase, Some(2.5))]
#[case("gpt-4-0613", "gpt-4", 8192, Cl100kBase, Some(30.0))]
#[case("openai/gpt-4.1-mini", "gpt-4.1-mini", 1_047_576, O200kBase, Some(0.4))]
#[case("o3", "o3", 200_000, O200kBase, Some(2.0))]
#[case("gpt-5.1-codex-max", "gpt-5.1-codex-max", 400_000, O200kBase, Some(1.25))]
#[case("gpt-5.6-sol", "gpt-5.6", 1_050_000, O200kBase, Some(4.0))]
#[case("gpt-6.2-sol-2026-11-17", "gpt-6.2-sol", 1_050_000, O200kBase, Some(2.0))]
#[case("claude-3-5-sonnet-20241022", "claude-3-5-sonnet", 200_000, approximate(135), Some(3.0))]
#[case("claude-sonnet-4-20250514", "claude-sonnet-4", 200_000, approximate(135), Some(3.0))]
#[case("anthropic/claude-opus-4.5", "claude-opus-4-5", 200_000, approximate(135), Some(5.0))]
#[case("Claude-Opus-5-5", "claude-opus-5-5", 1_000_000, approximate(175), Some(4.0))]
#[case("models/gemini-2.5-flash-lite", "gemini-2.5-flash-lite", 1_048_576, approximate(130), Some(0.1))]
#[case("gemini-2.5-pro-preview-06-05", "gemini-2.5-pro", 1_048_576, approximate(130), Some(1.25))]
#[case("deepseek/deepseek-chat-v3.1:free", "deepseek-chat-v3.1", 128_000, approximate(115), None)]
#[case("deepseek-r1:32b", "deepseek-r1", 128_000, approximate(115), None)]
#[case("qwen/qwen3-coder:free", "qwen3-coder", 262_144, approximate(110), None)]
#[case("qwen2.5-coder:7b-instruct-q4_K_M", "qwen2.5-coder", 32_768, approximate(110), None)]
#[case("meta-llama/llama-3.3-70b-instruct", "llama-3.3", 128_000, approximate(105), None)]
#[case("llama3.2:3b", "llama3.2", 128_000, approximate(105), None)]
#[case("mistralai/mistral-small-3.2-24b-instruct", "mistral-small-3.2", 128_000, approximate(115), None)]
#[case("mistral:latest", "mistral", 32_768, approximate(115), None)]
#[case("gpt-oss:20b", "gpt-oss", 131_072, O200kBase, None)]
fn well_known_ids_are_found(
    #[case] id: &str,
    #[case] name: &str,
    #[case] window: u64,
    #[case] encoding: Encoding,
    #[case] input: Option<f64>,
) {
    let facts = ModelCatalog::default().resolve_facts(id, "other").0;
    assert_eq!(facts.known, ModelMatch::Name(name.to_owned()));
    assert_eq!((facts.context_window, facts.encoding), (window, encoding));
    assert_eq!(facts.price.map(|price| price.input.as_f64()), input);
}

#[test]
fn an_unknown_model_works_with_a_guess() {
    let models = ModelCatalog::default();
    let facts = models.resolve_facts("brand-new-model", "other").0;
    assert_eq!((facts.known, facts.price), (ModelMatch::Guess, None));
    assert_eq!((facts.context_window, facts.max_output), (32_000, 4096));
    assert!(facts.effort.is_empty() && !facts.temperature && facts.encoding.is_approximate());
    for (kind, base_url, window) in [
        (ReviewerKind::Anthropic, None, 200_000),
        (ReviewerKind::Anthropic, Some("https://proxy.example.org"), 32_000),
        (ReviewerKind::Openai, None, 128_000),
        (ReviewerKind::OpenaiResponses, None, 128_000),
        (ReviewerKind::Gemini, None, 200_000),
        (ReviewerKind::Ollama, None, 32_768),
    ] {
        let facts = models.facts_for_reviewer(&reviewer(kind, "brand-new-model", base_url));
        assert_eq!((facts.context_window, facts.known), (window, ModelMatch::Guess), "{kind:?} at {base_url:?}");
    }
}

#[test]
fn a_price_holds_where_it_is_asked() {
    let models = ModelCatalog::default();
    let input = |kind, model, base_url: Option<&str>| {
        models.facts_for_reviewer(&reviewer(kind, model, base_url)).price.map(|price| price.input.as_f64())
    };
    use ReviewerKind::{Anthropic, Ollama, Openai};
    for (kind, model, base_url, expected) in [
        (Anthropic, "claude-sonnet-5-5", None, Some(2.0)),
        (Openai, "anthropic/claude-sonnet-5.5", Some("https://openrouter.ai/api/v1"), Some(2.0)),
        (Openai, "claude-sonnet-5-5", None, None),
        (Openai, "gpt-4o", Some("http://localhost:4000/v1"), None),
        (Openai, "deepseek-v4-pro", Some("https://api.deepseek.com"), Some(1.32)),
        (Openai, "deepseek/deepseek-v4-pro", Some("https://openrouter.ai/api/v1"), None),
        (Ollama, "llama3.1:8b", None, Some(0.0)),
        (Ollama, "brand-new", Some("http://192.168.1.5:11434"), Some(0.0)),
    ] {
        assert_eq!(input(kind, model, base_url), expected, "{kind:?} {model} at {base_url:?}");
    }
}

#[test]
fn a_reviewers_own_keys_win() {
    let models = ModelCatalog::default();
    let own = ReviewerSettings {
        context_window: Some(64_000),
        max_output: Some(50_000),
        encoding: Some(O200kBase),
        price_input: Dollars::new(7.0),
        price_output: Dollars::new(8.0),
        tools: Some(false),
        ..reviewer(ReviewerKind::Anthropic, "claude-haiku-5-5", None)
    };
    let facts = models.facts_for_reviewer(&own);
    assert_eq!((facts.context_window, facts.encoding, facts.tools), (64_000, O200kBase, ToolUse::No));
    assert_eq!(facts.max_output, 32_000, "an answer leaves room for the question");
    let price = facts.price.expect("a price");
    assert_eq!((price.input, price.cached, price.output), (dollars(7.0), dollars(7.0), dollars(8.0)));
    assert_eq!((price.written_percent, price.long), (100, None), "nothing is left of the list's price");
    let cached = ReviewerSettings { price_cached: Dollars::new(0.5), ..own };
    assert_eq!(models.facts_for_reviewer(&cached).price.map(|price| price.cached), Dollars::new(0.5));

    let ollama =
        ReviewerSettings { context_window: Some(100_000), ..reviewer(ReviewerKind::Ollama, "qwen3-coder", None) };
    assert_eq!(models.facts_for_reviewer(&ollama).context_window, 100_000, "Ollama is asked for what is set");
    let ollama = ReviewerSettings { context_window: None, ..ollama };
    assert_eq!(models.facts_for_reviewer(&ollama).context_window, 32_768, "and else for what most machines bear");

    let with_tools = ReviewerSettings {
        tools: Some(true),
        ..reviewer(ReviewerKind::Openai, "deepseek-r1", Some("http://localhost:1"))
    };
    assert_eq!(models.facts_for_reviewer(&with_tools).tools, ToolUse::Yes);
}

#[rstest]
#[case::plain("gpt-4o", 1_000_000, 0, 100_000, 2.5 + 1.0)]
#[case::cached("gpt-4o", 1_000_000, 800_000, 0, 0.5 + 1.0)]
#[case::written("claude-opus-4-5", 100_000, 0, 0, 0.5 * 1.25)]
#[case::long("gpt-6.2-sol", 300_000, 200_000, 100_000, 2.0 * (0.1 * 2.0 * 1.25 + 0.2 * 0.1) + 1.5)]
#[case::not_yet_long("gpt-6.2-sol", 272_000, 272_000, 0, 0.0272)]
#[case::more_cached_than_sent("gpt-4o", 10, 1_000_000, 0, 10.0 * 1.25 / 1e6)]
fn costs_are_those_of_the_list(
    #[case] model: &str,
    #[case] input: u64,
    #[case] cached: u64,
    #[case] output: u64,
    #[case] expected: f64,
) {
    let price = ModelCatalog::default().resolve_facts(model, "other").0.price.expect("a price");
    let cost = price.cost(&Usage { input, cached, output, ..Usage::default() });
    assert!((cost - expected).abs() < 1e-9, "{cost} is not {expected}");
    let thinking = price.cost(&Usage { input, cached, reasoning: output, ..Usage::default() });
    assert!((thinking - expected).abs() < 1e-9, "thinking costs as output");
}

#[test]
fn the_users_table_lies_over_the_embedded_one() {
    let models = with_file(
        "[sellers.us]\nhosts = [\"models.example.org\"]\nchecked = \"2026-01-01\"\n\
         [models.\"gpt-4o\"]\ncontext_window = 9000\nprice = { input = 1, output = 2 }\n\
         [models.\"our-model\"]\nfamily = \"qwen\"\nseller = \"us\"\nprice = { input = 3, output = 4 }\n\
         [models.\"small\"]\ncontext_window = 5000\nencoding = \"approximate\"\nfactor = 1.5\n\
         [guesses.other]\nmax_output = 1000\n",
    )
    .expect("sound");
    let known = models.resolve_facts("gpt-4o", "other").0;
    assert_eq!((known.context_window, known.max_output), (9000, 16_384));
    assert_eq!(known.price.expect("a price").cached, dollars(1.0), "a price is replaced as a whole");
    let ours = models.facts_for_reviewer(&reviewer(
        ReviewerKind::Openai,
        "team/our-model",
        Some("https://models.example.org/v1"),
    ));
    assert_eq!((ours.context_window, ours.encoding), (32_768, approximate(110)));
    assert_eq!(ours.price.expect("a price").from, "us, 2026-01-01");
    let small = models.resolve_facts("small-2", "other").0;
    assert_eq!(small.known, ModelMatch::Guess, "another version");
    let small = models.resolve_facts("small:2b", "other").0;
    assert_eq!((small.context_window, small.encoding, small.max_output), (5000, approximate(150), 1000));
}

#[rstest]
#[case::syntax("[models\n", "models.toml:1:")]
#[case::field("[models.a]\ncontxt_window = 1\n", "models.toml:2:1: unknown field `contxt_window`")]
#[case::range("[models.a]\ncontext_window = 10\n", "models.toml:2:18: 10 is not from 4000 to 10000000")]
#[case::sort("[models.a]\ntools = true\n", "models.toml:2:9: ")]
#[case::word("[models.a]\neffort = [\"huge\"]\n", "models.toml:2:11: unknown variant `huge`")]
#[case::money("[models.a]\nprice = { input = -1, output = 2 }\n", "models.toml:2:19: -1 is no amount of money")]
#[case::price("[models.a]\nprice = { input = 1 }\n", "missing field `output`")]
#[case::family("\n[models.a]\nfamily = \"b\"\n", "models.toml:2:9: a: there is no family \"b\"")]
#[case::seller("[models.a]\nseller = \"b\"\n", "a: there is no seller \"b\"")]
#[case::factor("[models.a]\nencoding = \"approximate\"\n", "a: encoding = \"approximate\" needs a factor")]
fn what_a_users_table_cannot_mean_is_told_with_its_place(#[case] text: &str, #[case] problem: &str) {
    let error = with_file(text).expect_err(text).to_string();
    assert!(error.contains(problem), "{error}");
}
