//! `revdeck team budget`: shows and sets what a team may spend in a day.

use serde_json::json;

use super::BudgetArgs;
use super::place::to_cli_error;
use crate::cli::args::PlainFormat;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::cli::session::Session;
use crate::config::Dollars;
use crate::domain::text::format_thousands;
use crate::report::TextOptions;
use crate::team::postgres::{Database, DatabaseAddress, TeamBudget, is_database};

/// Sets the limits that are given, and shows the budget.
pub(super) fn run(session: Session, limits: &BudgetArgs) -> Result<CliExitCode, CliError> {
    let (services, look) = session.into_runner();
    let team = services.team().membership()?;
    if !is_database(&team.place) {
        return Err(CliError::usage("only a team with a database has a budget: a git remote cannot hold machines to one")
            .hint("`budget.day_cost` of the settings limits this machine; `revdeck team join postgres://...` takes a database"));
    }
    let day_cost = match limits.day_cost {
        Some(amount) => {
            Some(Dollars::new(amount).ok_or_else(|| CliError::usage(format!("{amount} is no amount of money")))?)
        }
        None => None,
    };
    let address = DatabaseAddress::parse(&team.place).map_err(to_cli_error)?;
    let database = Database::connect(&address).map_err(to_cli_error)?;
    if limits.none || day_cost.is_some() || limits.day_tokens.is_some() {
        let before = database.read_budget(&team.project).map_err(to_cli_error)?;
        // A limit that is not named stays.
        let (cost, tokens) = match limits.none {
            true => (None, None),
            false => (day_cost.map(Dollars::as_f64).or(before.day_cost), limits.day_tokens.or(before.day_tokens)),
        };
        database.set_budget(&team.project, cost, tokens).map_err(to_cli_error)?;
    }
    let budget = database.read_budget(&team.project).map_err(to_cli_error)?;
    match limits.format {
        PlainFormat::Text => output::print(&describe(&budget, &look))?,
        PlainFormat::Json => output::print_json(&crate::report::json::build_versioned([
            ("project", json!(team.project)),
            ("cost", json!(budget.cost)),
            ("tokens", json!(budget.tokens)),
            ("day_cost", json!(budget.day_cost)),
            ("day_tokens", json!(budget.day_tokens)),
        ]))?,
    }
    Ok(CliExitCode::Done)
}

fn describe(budget: &TeamBudget, look: &TextOptions) -> String {
    let dot = look.separator();
    let cost = match budget.day_cost {
        Some(limit) => format!("${:.2} of ${limit:.2}", budget.cost),
        None => format!("${:.2}, no limit", budget.cost),
    };
    let tokens = match budget.day_tokens {
        Some(limit) => format!("{} of {} tokens", format_thousands(budget.tokens), format_thousands(limit)),
        None => format!("{} tokens, no limit", format_thousands(budget.tokens)),
    };
    format!("the team has spent today (UTC): {cost}{dot}{tokens}\n")
}
