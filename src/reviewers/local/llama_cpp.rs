//! The server of llama.cpp, and the list of models of servers with OpenAI's format.
//!
//! `GET /props` has the window of a request in `default_generation_settings.n_ctx` and the abilities of the chat template
//! in `chat_template_caps`; `GET /v1/models` has the models. A server in router mode loads models on demand and describes
//! each with `GET /props?model=ID`. Source: llama.cpp, `tools/server/README.md`.

use serde_json::Value;

use super::super::json_access::{items_at, number_at, str_at};
use super::client::{LoopbackClient, RequestProblem};
use super::{LocalModel, LocalModels, shorten};

/// Returns true if these are the properties of a llama.cpp server.
pub fn is_llama_cpp(properties: &Value) -> bool {
    properties.pointer("/default_generation_settings").is_some_and(Value::is_object)
        || str_at(properties, "/role") == "router"
}

/// Returns true if the list of models is llama.cpp's. A server with a key shows the list, but not its properties.
pub fn is_list_of_llama_cpp(list: &Value) -> bool {
    items_at(list, "/data").any(|model| str_at(model, "/owned_by") == "llamacpp")
}

/// Lists the models of a llama.cpp server with its properties.
pub async fn list_models(client: &LoopbackClient, properties: &Value) -> Result<LocalModels, RequestProblem> {
    let list = client.get("v1/models").await?;
    let mut models = read_list(&list);
    let is_single = models.usable.len() == 1 && str_at(properties, "/role") != "router";
    for model in models.usable.iter_mut().filter(|model| model.is_loaded) {
        if is_single {
            add_properties(model, properties);
        } else if let Ok(properties) = client.get_for_model("props", &model.id).await {
            add_properties(model, &properties);
        }
    }
    Ok(models)
}

fn add_properties(model: &mut LocalModel, properties: &Value) {
    model.served_window = number_at(properties, "/default_generation_settings/n_ctx").filter(|tokens| *tokens > 0);
    let ability = |name: &str| properties.pointer("/chat_template_caps").and_then(|caps| caps.get(name)?.as_bool());
    // A template without tools drops them silently; one that has them calls them.
    model.declares_tools = match (ability("supports_tools"), ability("supports_tool_calls")) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), _) | (_, Some(true)) => Some(true),
        (None, None) => None,
    };
}

/// Reads a list of models in OpenAI's format, with the additions of llama.cpp (`meta`, `status`) and vLLM
/// (`max_model_len`).
pub fn read_list(list: &Value) -> LocalModels {
    let is_llama_cpp = is_list_of_llama_cpp(list);
    let mut models = LocalModels::default();
    for item in items_at(list, "/data") {
        let status = str_at(item, "/status/value");
        let served_window = number_at(item, "/max_model_len").filter(|tokens| *tokens > 0);
        let parameters = number_at_any(item, "/meta/n_params").map(format_parameters);
        models.push(LocalModel {
            id: str_at(item, "/id").to_owned(),
            size: parameters.unwrap_or_default(),
            // Other servers may load a model only when it is asked; one with a window of its own is loaded.
            is_loaded: match status {
                "" => is_llama_cpp || served_window.is_some(),
                status => status == "loaded",
            },
            served_window,
            trained_window: number_at(item, "/meta/n_ctx_train").filter(|tokens| *tokens > 0),
            ..LocalModel::default()
        });
    }
    models
}

/// Returns a number that may be larger than a token count.
fn number_at_any(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// Formats a number of parameters as model cards do: `8.0B`.
fn format_parameters(parameters: u64) -> String {
    shorten(&format!("{:.1}B", parameters as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_list_tells_what_is_loaded_and_how_large_it_is() {
        let list = json!({ "data": [
            { "id": "../models/a.gguf", "owned_by": "llamacpp", "meta": { "n_ctx_train": 131072, "n_params": 8030261312u64 } },
            { "id": "b", "owned_by": "llamacpp", "status": { "value": "unloaded" } },
            { "id": "c", "owned_by": "llamacpp", "status": { "value": "loaded" }, "max_model_len": -1 },
        ]});
        let models = read_list(&list).usable;
        let told = models.iter().map(|model| (model.is_loaded, model.size.as_str(), model.trained_window));
        assert_eq!(told.collect::<Vec<_>>(), [(true, "8.0B", Some(131_072)), (false, "", None), (true, "", None)]);
        let other = read_list(&json!({ "data": [{ "id": "d" }, { "id": "e", "max_model_len": 8192 }, 5, {}] }));
        let told = other.usable.iter().map(|model| (model.is_loaded, model.served_window));
        assert_eq!((told.collect::<Vec<_>>(), other.omitted.len()), (vec![(false, None), (true, Some(8192))], 2));
    }

    #[test]
    fn a_template_without_tools_is_told_from_one_that_says_nothing() {
        for (caps, expected) in [
            (json!({ "supports_tools": true, "supports_tool_calls": true }), Some(true)),
            (json!({ "supports_tools": false, "supports_tool_calls": true }), Some(false)),
            (json!({ "supports_tool_calls": true }), Some(true)),
            (json!({}), None),
            (json!("yes"), None),
        ] {
            let mut model = LocalModel::default();
            let properties = json!({ "chat_template_caps": caps, "default_generation_settings": { "n_ctx": 8192 } });
            add_properties(&mut model, &properties);
            assert_eq!((model.declares_tools, model.served_window), (expected, Some(8192)), "{properties}");
        }
    }
}
