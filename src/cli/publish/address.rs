//! Finds the change, the address and the token in arguments, environment and git's settings.

use secrecy::SecretString;

use super::super::error::CliError;
use super::super::session::read_variable;
use crate::config::ApiKeySource;
use crate::domain::text::sanitize_line;
use crate::git::Repo;
use crate::publish::{
    ApiConnection, GithubAddress, GithubHost, GitlabAddress, GitlabHost, RemoteUrl, ReviewHost, parse_remote_url,
};
use crate::reviewers::http::{ApiKey, read_key};

const GITHUB_TOKENS: [&str; 3] = ["REVDECK_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"];
/// Variable with the token of a CI job, which travels in another header.
const GITLAB_JOB_TOKEN: &str = "CI_JOB_TOKEN";
const GITLAB_TOKENS: [&str; 3] = ["REVDECK_GITLAB_TOKEN", "GITLAB_TOKEN", GITLAB_JOB_TOKEN];
/// Variables with the address of GitHub's API. GitHub Actions sets the second.
const GITHUB_APIS: [&str; 2] = ["REVDECK_GITHUB_API", "GITHUB_API_URL"];
/// Variables with the address of GitLab's API. GitLab CI sets the second.
const GITLAB_APIS: [&str; 2] = ["REVDECK_GITLAB_API", "CI_API_V4_URL"];

/// Host with its connection.
pub type OpenedHost = (Box<dyn ReviewHost>, ApiConnection);

/// Finds a pull request of GitHub.
///
/// # Errors
///
/// Returns an error that names the argument or variable that is missing or unusable.
pub fn open_github(repo: &Repo, number: Option<u64>, given: Option<&str>) -> Result<OpenedHost, CliError> {
    let (address, address_name) = find_address(&GITHUB_APIS, GithubAddress::OFFICIAL_API);
    let base = ApiConnection::parse_base(&address, address_name)?;
    let is_known = address_name != GithubAddress::OFFICIAL_API;
    let path = match given.map(str::to_owned).or_else(|| variable("GITHUB_REPOSITORY")) {
        Some(path) => path,
        None => find_remote(repo, (!is_known).then_some("github.com"), GITHUB_APIS[0])?.path,
    };
    let Some((owner, name)) = path.split_once('/').filter(|(owner, name)| is_name(owner) && is_name(name)) else {
        return Err(CliError::usage(format!("{:?} is no repository of GitHub", sanitize_line(&path)))
            .hint("write --repo OWNER/NAME"));
    };
    let from_ref = || {
        let reference = variable("GITHUB_REF")?;
        reference.strip_prefix("refs/pull/")?.split('/').next()?.parse().ok()
    };
    let number = number.or_else(from_ref).ok_or_else(|| {
        CliError::usage("the number of the pull request is not known")
            .hint("write --pr N; in GitHub Actions, GITHUB_REF names it for the event pull_request")
    })?;
    let (key, _) = find_token(&GITHUB_TOKENS)?;
    let address = GithubAddress { base, owner: owner.to_owned(), name: name.to_owned(), number };
    let connection = address.connection(key, address_name);
    Ok((Box::new(GithubHost::new(address)), connection))
}

/// Finds a merge request of GitLab.
///
/// # Errors
///
/// Returns an error that names the argument or variable that is missing or unusable.
pub fn open_gitlab(repo: &Repo, number: Option<u64>, given: Option<&str>) -> Result<OpenedHost, CliError> {
    let (address, address_name) = find_address(&GITLAB_APIS, GitlabAddress::OFFICIAL_API);
    let base = ApiConnection::parse_base(&address, address_name)?;
    let is_known = address_name != GitlabAddress::OFFICIAL_API;
    let project = match given.map(str::to_owned).or_else(|| variable("CI_PROJECT_ID")) {
        Some(project) => project,
        None => find_remote(repo, (!is_known).then_some("gitlab.com"), GITLAB_APIS[0])?.path,
    };
    if !project.split('/').all(is_name) {
        return Err(CliError::usage(format!("{:?} is no project of GitLab", sanitize_line(&project)))
            .hint("write --repo GROUP/NAME, or the number of the project"));
    }
    let from_job = || variable("CI_MERGE_REQUEST_IID")?.parse().ok();
    let number = number.or_else(from_job).ok_or_else(|| {
        CliError::usage("the number of the merge request is not known")
            .hint("write --mr N; in GitLab CI, pipelines of merge requests set CI_MERGE_REQUEST_IID")
    })?;
    let (key, token) = find_token(&GITLAB_TOKENS)?;
    let address = GitlabAddress { base, project, number, is_job_token: token == GITLAB_JOB_TOKEN };
    let connection = address.connection(key, address_name);
    Ok((Box::new(GitlabHost::new(address)), connection))
}

/// Reads a variable; an empty one counts as not set.
fn variable(name: &str) -> Option<String> {
    read_variable(name).filter(|value| !value.trim().is_empty())
}

/// Returns the address of the API and the variable that gives it; the official address names itself.
fn find_address(names: &[&'static str], official: &'static str) -> (String, &'static str) {
    let found = names.iter().find_map(|name| Some((variable(name)?, *name)));
    found.unwrap_or_else(|| (official.to_owned(), official))
}

/// Returns the first token that is set, with its variable.
fn find_token(names: &[&'static str]) -> Result<(ApiKey, &'static str), CliError> {
    let Some(name) = names.iter().copied().find(|name| variable(name).is_some()) else {
        return Err(CliError::usage(format!("there is no token: {} is not set", names[0])).hint(format!(
            "put a token into {}; {} are read, too",
            names[0],
            names[1..].join(" and ")
        )));
    };
    let key: Option<SecretString> = read_key(ApiKeySource::Variable(name), &read_variable)
        .map_err(|error| CliError::usage(format!("{name}: {}", error.summary)))?;
    Ok((ApiKey::new(key), name))
}

/// Returns the repository of the remote `origin`. `expected` is the host of the official service, which a token for it may
/// be sent about; `None` if the user has given another address.
fn find_remote(repo: &Repo, expected: Option<&str>, api: &str) -> Result<RemoteUrl, CliError> {
    let unknown = |message: String| CliError::usage(message).hint("write --repo with the name of the repository");
    let url = repo.remote_url("origin").ok_or_else(|| unknown("there is no remote `origin`".to_owned()))?;
    let remote = parse_remote_url(&url)
        .ok_or_else(|| unknown("the remote `origin` names no repository of a code host".to_owned()))?;
    match expected.filter(|expected| *expected != remote.host) {
        Some(expected) => {
            let message = format!("the remote `origin` is at {}, not at {expected}", sanitize_line(&remote.host));
            Err(CliError::usage(message).hint(format!("set {api} to the address of its API, or write --repo")))
        }
        None => Ok(remote),
    }
}

/// Returns `true` for a name of an owner, a group or a repository.
fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !matches!(name, "" | "." | "..") && name.chars().all(is_allowed)
}
