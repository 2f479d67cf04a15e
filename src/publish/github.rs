//! Pull requests of GitHub and GitHub Enterprise: REST for comments, GraphQL for threads.
//!
//! Inline comments are posted as reviews of up to [`MAX_BATCH`] comments: one request, one notification, and all of them
//! or none.

use std::collections::{HashMap, HashSet};

use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::api_client::{ApiClient, ApiConnection, ApiFailure, ApiRequest, ApiResponse, join_url};
use super::comment::{CommentMarker, SuggestionSyntax, parse_marker};
use super::diff_lines::{DiffLines, FileDiff};
use super::error::PublishError;
use super::host::{
    CommentedLines, InlineComment, PublishedComment, PublishedComments, PublishedSummary, ResolveFailure, ReviewHost,
    ReviewedChange,
};
use crate::reviewers::http::ApiKey;

/// Base address of the public service.
const OFFICIAL_API: &str = "https://api.github.com";
/// Maximum number of comments in one review. The service takes longer reviews for abuse.
const MAX_BATCH: usize = 30;
/// Rows of a page, the maximum of the API.
const PAGE_ROWS: u32 = 100;
/// Login of the account of the token that GitHub Actions gives to a job.
const ACTIONS_LOGIN: &str = "github-actions[bot]";

const VIEWER_QUERY: &str = "query{viewer{login}}";
const THREADS_QUERY: &str = "query($owner:String!,$name:String!,$number:Int!,$after:String){repository(owner:$owner,name:$name){pullRequest(number:$number){reviewThreads(first:100,after:$after){pageInfo{hasNextPage endCursor} nodes{id isResolved comments(first:1){nodes{databaseId}}}}}}}";
const RESOLVE_MUTATION: &str =
    "mutation($thread:ID!){resolveReviewThread(input:{threadId:$thread}){thread{id isResolved}}}";

/// Place of a pull request.
#[derive(Debug, Clone)]
pub struct GithubAddress {
    /// Base address of the REST API.
    pub base: Url,
    /// Owner of the repository.
    pub owner: String,
    /// Name of the repository.
    pub name: String,
    /// Number of the pull request.
    pub number: u64,
}

impl GithubAddress {
    /// Base address of the public service.
    pub const OFFICIAL_API: &str = OFFICIAL_API;

    /// Returns the connection for the address.
    pub fn connection(&self, key: ApiKey, address_name: &str) -> ApiConnection {
        ApiConnection {
            base: self.base.clone(),
            address_name: address_name.to_owned(),
            key,
            key_header: ("authorization", "Bearer "),
            headers: vec![("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")],
        }
    }
}

/// A pull request of GitHub.
#[derive(Debug)]
pub struct GithubHost {
    address: GithubAddress,
    /// Login of the account of the token, once it is known.
    login: Option<String>,
}

impl GithubHost {
    /// Creates the host. Sends nothing.
    pub fn new(address: GithubAddress) -> Self {
        Self { address, login: None }
    }

    fn url(&self, rest: &[&str]) -> Url {
        let repository = ["repos", &self.address.owner, &self.address.name];
        join_url(&self.address.base, &[&repository, rest].concat())
    }

    fn pull_url(&self, rest: &[&str]) -> Url {
        self.url(&[&["pulls", &self.address.number.to_string()], rest].concat())
    }

    /// Returns the address of GraphQL: beside `v3` on Enterprise, below the base on the public service.
    fn graphql_url(&self) -> Url {
        let mut url = self.address.base.clone();
        let path = url.path().trim_end_matches('/').to_owned();
        match path.strip_suffix("/v3") {
            Some(api) => url.set_path(&format!("{api}/graphql")),
            None => url.set_path(&format!("{path}/graphql")),
        }
        url
    }

    fn graphql(&self, query: &str, variables: Value) -> ApiRequest {
        ApiRequest::write(Method::POST, self.graphql_url(), json!({ "query": query, "variables": variables }))
    }

    /// Finds out who the token belongs to. The tokens of apps may not ask `GET /user`; GraphQL knows them.
    fn find_login(&self, client: &mut ApiClient) -> Result<String, PublishError> {
        let failed = |failure| PublishError::from_failure("find out whose token this is", failure);
        let login = |value: &Value| value.as_str().filter(|login| !login.is_empty()).map(str::to_owned);
        match client.send(&ApiRequest::read(join_url(&self.address.base, &["user"]))) {
            Ok(answer) => login(&answer.body["login"]).ok_or_else(|| {
                failed(ApiFailure::Unavailable {
                    message: "the host does not name the account of the token".to_owned(),
                })
            }),
            Err(ApiFailure::Refused { status: 403 | 404, .. }) => {
                let found = match client.send(&self.graphql(VIEWER_QUERY, json!({}))) {
                    Ok(answer) => login(&answer.body["data"]["viewer"]["login"]),
                    Err(ApiFailure::Refused { .. }) => None,
                    // With a wrong name every comment would be posted again.
                    Err(failure) => return Err(failed(failure)),
                };
                Ok(match found {
                    Some(found) if found.ends_with("[bot]") => found,
                    Some(found) => format!("{found}[bot]"),
                    None => ACTIONS_LOGIN.to_owned(),
                })
            }
            Err(failure) => Err(failed(failure)),
        }
    }
}

impl ReviewHost for GithubHost {
    fn describe(&self) -> String {
        let GithubAddress { owner, name, number, .. } = &self.address;
        format!("pull request {number} of {owner}/{name}")
    }

    fn fetch_command(&self) -> String {
        format!("git fetch origin pull/{}/head", self.address.number)
    }

    fn syntax(&self) -> SuggestionSyntax {
        SuggestionSyntax::CommentLines
    }

    fn max_batch(&self) -> usize {
        MAX_BATCH
    }

    fn load_change(&mut self, client: &mut ApiClient) -> Result<ReviewedChange, PublishError> {
        let failed = |failure| PublishError::from_failure("read the pull request", failure);
        let answer = client.send(&ApiRequest::read(self.pull_url(&[]))).map_err(failed)?;
        let head = answer.body["head"]["sha"].as_str().unwrap_or_default().to_owned();
        let failed = |failure| PublishError::from_failure("read the diff of the pull request", failure);
        let mut diff = DiffLines::default();
        for file in client.read_list(&self.pull_url(&["files"]), PAGE_ROWS).map_err(failed)? {
            // A file without a patch is binary or too large: its findings have no place beside the code.
            let (Some(path), Some(patch)) = (file["filename"].as_str(), file["patch"].as_str()) else { continue };
            let old_path = file["previous_filename"].as_str().unwrap_or(path);
            if file["status"] != "removed" {
                diff.insert(path.to_owned(), FileDiff::parse(old_path, patch));
            }
        }
        Ok(ReviewedChange { head, diff })
    }

    fn list_comments(&mut self, client: &mut ApiClient) -> Result<PublishedComments, PublishError> {
        let login = match &self.login {
            Some(login) => login.clone(),
            None => self.find_login(client)?,
        };
        let is_own = |comment: &&Value| {
            comment["user"]["login"].as_str().is_some_and(|author| author.eq_ignore_ascii_case(&login))
        };
        let failed = |failure| PublishError::from_failure("list the comments of the pull request", failure);
        let mut known = PublishedComments::default();
        let comments = client.read_list(&self.pull_url(&["comments"]), PAGE_ROWS).map_err(failed)?;
        let answered: HashSet<u64> = comments.iter().filter_map(|comment| comment["in_reply_to_id"].as_u64()).collect();
        for comment in comments.iter().filter(is_own) {
            let marker = comment["body"].as_str().and_then(parse_marker);
            // An answer in a thread begins none.
            if let (Some(CommentMarker::Finding(finding)), Some(id), true) =
                (marker, comment["id"].as_u64(), comment["in_reply_to_id"].is_null())
            {
                let lines = CommentedLines::from_parts(
                    &comment["original_commit_id"],
                    &comment["path"],
                    &comment["original_start_line"],
                    &comment["original_line"],
                );
                known.inline.push(PublishedComment {
                    finding,
                    comment: id.to_string(),
                    thread: None,
                    is_resolved: false,
                    lines,
                    has_answers: answered.contains(&id),
                });
            }
        }
        let issue_comments = self.url(&["issues", &self.address.number.to_string(), "comments"]);
        for comment in client.read_list(&issue_comments, PAGE_ROWS).map_err(failed)?.iter().filter(is_own) {
            let body = comment["body"].as_str().unwrap_or_default();
            if let (Some(CommentMarker::Summary), Some(id), None) =
                (parse_marker(body), comment["id"].as_u64(), &known.summary)
            {
                known.summary = Some(PublishedSummary { comment: id.to_string(), body: body.to_owned() });
            }
        }
        self.login = Some(login);
        Ok(known)
    }

    fn load_threads(&self, client: &mut ApiClient, known: &mut PublishedComments) -> Result<(), ApiFailure> {
        let GithubAddress { owner, name, number, .. } = &self.address;
        let mut threads: HashMap<String, (String, bool)> = HashMap::new();
        let mut after = Value::Null;
        loop {
            let variables = json!({ "owner": owner, "name": name, "number": number, "after": after });
            let answer = client.send(&self.graphql(THREADS_QUERY, variables))?;
            let list = &answer.body["data"]["repository"]["pullRequest"]["reviewThreads"];
            if list.is_null() {
                return Err(ApiFailure::Refused { status: 200, message: describe_errors(&answer.body) });
            }
            for thread in list["nodes"].as_array().into_iter().flatten() {
                let first = &thread["comments"]["nodes"][0]["databaseId"];
                if let (Some(id), Some(first)) = (thread["id"].as_str(), first.as_u64()) {
                    threads.insert(first.to_string(), (id.to_owned(), thread["isResolved"] == true));
                }
            }
            let cursor = list["pageInfo"]["endCursor"].clone();
            if list["pageInfo"]["hasNextPage"] != true || cursor.is_null() || cursor == after {
                break;
            }
            after = cursor;
        }
        for comment in &mut known.inline {
            if let Some((thread, is_resolved)) = threads.remove(&comment.comment) {
                (comment.thread, comment.is_resolved) = (Some(thread), is_resolved);
            }
        }
        Ok(())
    }

    fn inline_request(&self, head: &str, comments: &[InlineComment]) -> ApiRequest {
        let comments: Vec<Value> = comments.iter().map(encode_comment).collect();
        let review = json!({ "commit_id": head, "event": "COMMENT", "body": "", "comments": comments });
        ApiRequest::create(self.pull_url(&["reviews"]), review)
    }

    fn summary_request(&self, known: Option<&PublishedSummary>, body: &str) -> ApiRequest {
        let body = json!({ "body": body });
        match known {
            Some(known) => ApiRequest::write(Method::PATCH, self.url(&["issues", "comments", &known.comment]), body),
            None => ApiRequest::create(self.url(&["issues", &self.address.number.to_string(), "comments"]), body),
        }
    }

    fn resolve_request(&self, thread: &str) -> ApiRequest {
        self.graphql(RESOLVE_MUTATION, json!({ "thread": thread }))
    }

    fn remove_request(&self, comment: &PublishedComment) -> ApiRequest {
        ApiRequest::remove(self.url(&["pulls", "comments", &comment.comment]))
    }

    fn check_resolved(&self, answer: Result<ApiResponse, ApiFailure>) -> Result<(), ResolveFailure> {
        const NOT_ALLOWED: &str = "the token may not resolve threads: it needs `contents: write`";
        match answer {
            Ok(answer) if answer.body["data"]["resolveReviewThread"]["thread"]["isResolved"] == true => Ok(()),
            Ok(answer) if answer.body["errors"][0]["type"] == "FORBIDDEN" => {
                Err(ResolveFailure::NotAllowed(NOT_ALLOWED.to_owned()))
            }
            Ok(answer) => Err(ResolveFailure::Failed(describe_errors(&answer.body))),
            Err(ApiFailure::Refused { status: 403, .. }) => Err(ResolveFailure::NotAllowed(NOT_ALLOWED.to_owned())),
            Err(failure) => Err(ResolveFailure::Failed(failure.to_string())),
        }
    }

    fn is_line_refusal(&self, status: u16, message: &str) -> bool {
        // An account may have one unfinished review of a pull request, and a head may move on.
        let is_other = ["pending review", "commit_id", "end_commit_oid"].iter().any(|other| message.contains(other));
        status == 422 && !is_other
    }
}

fn encode_comment(comment: &InlineComment) -> Value {
    let lines = comment.lines;
    let mut encoded = json!({ "path": comment.path, "side": "RIGHT", "line": lines.end, "body": comment.body });
    // The API refuses a start that is not before the end.
    if lines.start < lines.end {
        encoded["start_line"] = lines.start.into();
        encoded["start_side"] = "RIGHT".into();
    }
    encoded
}

/// Describes the errors of an answer of GraphQL, which have a status of success.
fn describe_errors(body: &Value) -> String {
    let said = body["errors"][0]["message"].as_str().unwrap_or("no answer");
    let said: String = crate::domain::text::sanitize_line(said).chars().take(300).collect();
    format!("GraphQL answered: {said}")
}
