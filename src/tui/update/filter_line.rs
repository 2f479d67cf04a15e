//! Applies the line of a filter: while it is typed, and when the user accepts it.

use super::super::app::App;
use super::super::filter::{self, FindingFilter};
use super::super::message::AppCommand;
use super::super::saved_filters::{self, FilterChange};
use super::data;

/// Filters by a text with saved filters; that of a filter which is about to be saved counts as well.
pub fn apply_filter(app: &mut App, text: &str, commands: &mut Vec<AppCommand>) {
    let change = saved_filters::parse_change(text).and_then(Result::ok);
    let text = change.map_or_else(|| text.to_owned(), |change| change.text.unwrap_or_default());
    let text = saved_filters::expand(&text, &app.finding_list.saved_filters);
    if text != app.finding_list.filter_text {
        app.finding_list.filter_text = text;
        data::refilter(app, commands);
    }
}

/// Checks a filter that the user accepts, and saves or removes it if it ends with `=@NAME`.
///
/// # Errors
///
/// Returns the reason if a term, a name or a saved filter means nothing; the prompt stays.
pub fn accept_filter(app: &mut App, text: &str, commands: &mut Vec<AppCommand>) -> Result<(), String> {
    let change = saved_filters::parse_change(text).transpose()?;
    let filter = change.as_ref().map_or(text, |change| change.text.as_deref().unwrap_or_default());
    let saved = &mut app.finding_list.saved_filters;
    if let Some(unknown) = saved_filters::describe_unknown(filter, saved) {
        return Err(unknown);
    }
    let filter = saved_filters::expand(filter, saved);
    if let Some(fault) = FindingFilter::parse(&filter).describe_fault(&app.store.view) {
        return Err(fault);
    }
    let Some(change) = change else {
        // The line then names what the list shows.
        let meant = filter::without_replaced_default(&filter);
        if meant != filter {
            app.finding_list.filter_text = meant.to_owned();
            data::refilter(app, commands);
        }
        return Ok(());
    };
    let change = FilterChange { text: change.text.map(|_| filter), ..change };
    match &change.text {
        Some(text) => drop(saved.insert(change.name.clone(), text.clone())),
        None if saved.remove(&change.name).is_none() => return Err(format!("there is no filter @{}", change.name)),
        None => {
            app.finding_list.filter_text = filter::DEFAULT.to_owned();
            data::refilter(app, commands);
        }
    }
    commands.push(AppCommand::SaveFilter(change));
    Ok(())
}
