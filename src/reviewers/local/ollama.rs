//! The models of Ollama: `GET /api/tags` lists them, `GET /api/ps` those in memory with their windows, and
//! `POST /api/show` describes one: its abilities, its own parameters and the window it was trained for. Source: Ollama,
//! `docs/api.md` and `docs/openapi.yaml`.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::json_access::{items_at, number_at, str_at};
use super::client::{LoopbackClient, RequestProblem};
use super::{LocalModel, LocalModels, MAX_MODELS, shorten};

/// Number of models that are asked about at once.
const MODELS_AT_ONCE: usize = 8;

/// Lists the models of Ollama.
pub async fn list_models(client: &LoopbackClient) -> Result<LocalModels, RequestProblem> {
    let tags = client.get("api/tags").await?;
    // An old server has no such list.
    let running = client.get("api/ps").await.unwrap_or_default();
    let listed: Vec<&Value> = items_at(&tags, "/models").take(MAX_MODELS).collect();
    let mut models = LocalModels::default();
    for some in listed.chunks(MODELS_AT_ONCE) {
        let mut asked = JoinSet::new();
        for (index, model) in some.iter().enumerate() {
            let (client, request) = (client.clone(), json!({ "model": model_id(model) }));
            asked.spawn(async move { (index, client.post("api/show", &request).await.unwrap_or_default()) });
        }
        let mut described = asked.join_all().await;
        described.sort_by_key(|(index, _)| *index);
        for (listed, (_, shown)) in some.iter().zip(&described) {
            add_model(&mut models, listed, shown, &running);
        }
    }
    Ok(models)
}

fn model_id(listed: &Value) -> &str {
    match str_at(listed, "/model") {
        "" => str_at(listed, "/name"),
        id => id,
    }
}

/// Adds a model as it is listed and shown, or omits it because it cannot review on this machine.
fn add_model(models: &mut LocalModels, listed: &Value, shown: &Value, running: &Value) {
    let id = model_id(listed);
    let remote = [listed, shown].map(|value| str_at(value, "/remote_host")).into_iter().find(|host| !host.is_empty());
    if let Some(host) = remote {
        return models.omit(id, &format!("it runs on another machine, {}", shorten(host)));
    }
    let has_ability = |name: &str| {
        let abilities = shown.get("capabilities")?.as_array()?;
        Some(abilities.iter().any(|ability| ability.as_str() == Some(name)))
    };
    if has_ability("completion") == Some(false) {
        return models.omit(id, "it answers no questions: its server says that it makes vectors or images");
    }
    let loaded = items_at(running, "/models").find(|model| model_id(model) == id);
    let architecture = str_at(shown, "/model_info/general.architecture");
    let information = shown.get("model_info");
    let trained = information.and_then(|information| information.get(format!("{architecture}.context_length")));
    let is_positive = |tokens: &u64| (1..=u64::from(u32::MAX)).contains(tokens);
    let share = loaded.and_then(|model| {
        let (size, video) = (model.get("size")?.as_u64()?, model.get("size_vram")?.as_u64()?);
        (size > 0 && video > 0).then(|| (u128::from(video.min(size)) * 100 / u128::from(size)) as u64)
    });
    let details = ["/details/parameter_size", "/details/quantization_level"].map(|pointer| str_at(listed, pointer));
    models.push(LocalModel {
        id: id.to_owned(),
        size: shorten(details.join(" ").trim()),
        is_loaded: loaded.is_some(),
        served_window: loaded
            .and_then(|model| number_at(model, "/context_length"))
            .filter(is_positive)
            .or_else(|| configured_window(str_at(shown, "/parameters"))),
        trained_window: trained.and_then(Value::as_u64).filter(is_positive),
        declares_tools: has_ability("tools"),
        video_memory_percent: share,
    });
}

/// Returns the window that the model's own configuration asks for: the line `num_ctx` of its parameters.
fn configured_window(parameters: &str) -> Option<u64> {
    let line = parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx"))?;
    line.trim().parse().ok().filter(|tokens| (1..=u64::from(u32::MAX)).contains(tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(listed: &Value, shown: &Value, running: &Value) -> LocalModels {
        let mut models = LocalModels::default();
        add_model(&mut models, listed, shown, running);
        models
    }

    #[test]
    fn the_window_is_the_one_in_memory_then_the_configured_one() {
        let listed = json!({ "name": "a:1b", "details": { "parameter_size": "1B", "quantization_level": "Q4_0" } });
        let shown = json!({ "capabilities": ["completion", "tools"], "parameters": "stop  \"x\"\nnum_ctx    8192\n",
            "model_info": { "general.architecture": "qwen3", "qwen3.context_length": 40960 } });
        let running = json!({ "models": [{ "name": "a:1b", "context_length": 16384, "size": 200, "size_vram": 150 }] });
        let expected = LocalModel {
            id: "a:1b".to_owned(),
            size: "1B Q4_0".to_owned(),
            is_loaded: true,
            served_window: Some(16384),
            trained_window: Some(40960),
            declares_tools: Some(true),
            video_memory_percent: Some(75),
        };
        assert_eq!(add(&listed, &shown, &running).usable, std::slice::from_ref(&expected));
        let not_loaded =
            LocalModel { is_loaded: false, served_window: Some(8192), video_memory_percent: None, ..expected };
        assert_eq!(add(&listed, &shown, &json!({})).usable, [not_loaded]);
        let unknown = add(&listed, &json!(null), &json!([])).usable.remove(0);
        assert_eq!((unknown.served_window, unknown.trained_window, unknown.declares_tools), (None, None, None));
    }

    #[test]
    fn models_of_other_machines_and_models_that_make_vectors_are_left_out() {
        for (listed, shown) in [
            (json!({ "name": "big-cloud", "remote_host": "https://ollama.com:443" }), json!({})),
            (json!({ "name": "big-cloud" }), json!({ "remote_host": "https://ollama.com:443\u{1b}[31m" })),
            (json!({ "name": "vectors" }), json!({ "capabilities": ["embedding"] })),
        ] {
            let models = add(&listed, &shown, &json!({}));
            assert_eq!((models.usable.len(), models.omitted.len()), (0, 1), "{listed}");
            assert!(!models.omitted[0].reason.contains('\u{1b}'));
        }
    }
}
