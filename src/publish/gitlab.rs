//! Merge requests of GitLab: discussions for inline comments, a note for the summary.

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
const OFFICIAL_API: &str = "https://gitlab.com/api/v4";
/// Rows of a page of discussions, the maximum of the API.
const PAGE_ROWS: u32 = 100;
/// Rows of a page of diffs. Servers before version 18 fail for more.
const DIFF_PAGE_ROWS: u32 = 30;

/// Place of a merge request.
#[derive(Debug, Clone)]
pub struct GitlabAddress {
    /// Base address of the REST API.
    pub base: Url,
    /// Number of the project, or its path with groups.
    pub project: String,
    /// Number of the merge request in the project.
    pub number: u64,
    /// `true` for the token of a CI job.
    pub is_job_token: bool,
}

impl GitlabAddress {
    /// Base address of the public service.
    pub const OFFICIAL_API: &str = OFFICIAL_API;

    /// Returns the connection for the address.
    pub fn connection(&self, key: ApiKey, address_name: &str) -> ApiConnection {
        ApiConnection {
            base: self.base.clone(),
            address_name: address_name.to_owned(),
            key,
            key_header: (if self.is_job_token { "job-token" } else { "private-token" }, ""),
            headers: vec![("accept", "application/json")],
        }
    }
}

/// Commits that the position of a comment names.
#[derive(Debug, Default)]
struct DiffRefs {
    base: String,
    start: String,
}

/// A merge request of GitLab.
#[derive(Debug)]
pub struct GitlabHost {
    address: GitlabAddress,
    refs: DiffRefs,
    /// Name of the account of the token, once it is known.
    username: Option<String>,
}

impl GitlabHost {
    /// Creates the host. Sends nothing.
    pub fn new(address: GitlabAddress) -> Self {
        Self { address, refs: DiffRefs::default(), username: None }
    }

    fn url(&self, rest: &[&str]) -> Url {
        let number = self.address.number.to_string();
        let merge_request = ["projects", &self.address.project, "merge_requests", &number];
        join_url(&self.address.base, &[&merge_request, rest].concat())
    }

    /// Finds out who the token belongs to. The token of a job may not ask `GET /user`, but knows its job.
    fn find_username(&self, client: &mut ApiClient) -> Result<String, PublishError> {
        let (path, pointer) = if self.address.is_job_token { ("job", "/user/username") } else { ("user", "/username") };
        let failed = |failure| PublishError::from_failure("find out whose token this is", failure);
        let answer = client.send(&ApiRequest::read(join_url(&self.address.base, &[path]))).map_err(failed)?;
        let name = answer.body.pointer(pointer).and_then(Value::as_str).filter(|name| !name.is_empty());
        name.map(str::to_owned).ok_or_else(|| {
            failed(ApiFailure::Unavailable { message: "the host does not name the account of the token".to_owned() })
        })
    }
}

impl ReviewHost for GitlabHost {
    fn describe(&self) -> String {
        format!("merge request {} of {}", self.address.number, self.address.project)
    }

    fn fetch_command(&self) -> String {
        format!("git fetch origin merge-requests/{}/head", self.address.number)
    }

    fn syntax(&self) -> SuggestionSyntax {
        SuggestionSyntax::LinesAbove
    }

    fn max_batch(&self) -> usize {
        1
    }

    fn load_change(&mut self, client: &mut ApiClient) -> Result<ReviewedChange, PublishError> {
        let failed = |failure| PublishError::from_failure("read the merge request", failure);
        let answer = client.send(&ApiRequest::read(self.url(&[]))).map_err(failed)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let refs = &answer.body["diff_refs"];
        self.refs = DiffRefs { base: text(&refs["base_sha"]), start: text(&refs["start_sha"]) };
        let head = text(&refs["head_sha"]);
        let failed = |failure| PublishError::from_failure("read the diff of the merge request", failure);
        let mut diff = DiffLines::default();
        for file in client.read_list(&self.url(&["diffs"]), DIFF_PAGE_ROWS).map_err(failed)? {
            // The diff of a large file is empty: its findings have no place beside the code.
            let (Some(path), Some(patch)) = (file["new_path"].as_str(), file["diff"].as_str()) else { continue };
            let old_path = file["old_path"].as_str().unwrap_or(path);
            if file["deleted_file"] != true {
                diff.insert(path.to_owned(), FileDiff::parse(old_path, patch));
            }
        }
        Ok(ReviewedChange { head, diff })
    }

    fn list_comments(&mut self, client: &mut ApiClient) -> Result<PublishedComments, PublishError> {
        let username = match &self.username {
            Some(username) => username.clone(),
            None => self.find_username(client)?,
        };
        let failed = |failure| PublishError::from_failure("list the threads of the merge request", failure);
        let mut known = PublishedComments::default();
        for discussion in client.read_list(&self.url(&["discussions"]), PAGE_ROWS).map_err(failed)? {
            // Later notes are answers.
            let note = &discussion["notes"][0];
            let is_own = note["author"]["username"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(&username));
            let (Some(body), Some(id), true) = (note["body"].as_str(), note["id"].as_u64(), is_own) else { continue };
            let comment = id.to_string();
            match parse_marker(body) {
                Some(CommentMarker::Finding(finding)) => known.inline.push(PublishedComment {
                    finding,
                    comment,
                    thread: discussion["id"].as_str().map(str::to_owned),
                    is_resolved: note["resolved"] == true,
                    lines: CommentedLines::from_parts(
                        &note["position"]["head_sha"],
                        &note["position"]["new_path"],
                        &Value::Null,
                        &note["position"]["new_line"],
                    ),
                    has_answers: discussion["notes"].as_array().is_some_and(|notes| notes.len() > 1),
                }),
                Some(CommentMarker::Summary) if known.summary.is_none() => {
                    known.summary = Some(PublishedSummary { comment, body: body.to_owned() });
                }
                _ => {}
            }
        }
        self.username = Some(username);
        Ok(known)
    }

    fn load_threads(&self, _: &mut ApiClient, _: &mut PublishedComments) -> Result<(), ApiFailure> {
        // Listing told them.
        Ok(())
    }

    fn inline_request(&self, head: &str, comments: &[InlineComment]) -> ApiRequest {
        // A request holds one comment, see `max_batch`.
        let body = comments.first().map_or(Value::Null, |comment| {
            let mut position = json!({
                "position_type": "text", "base_sha": self.refs.base, "start_sha": self.refs.start, "head_sha": head,
                "old_path": comment.old_path, "new_path": comment.path, "new_line": comment.lines.end,
            });
            // An unchanged line has a number on both sides.
            if let Some(old_line) = comment.old_line {
                position["old_line"] = old_line.into();
            }
            json!({ "body": comment.body, "position": position })
        });
        ApiRequest::create(self.url(&["discussions"]), body)
    }

    fn summary_request(&self, known: Option<&PublishedSummary>, body: &str) -> ApiRequest {
        let body = json!({ "body": body });
        match known {
            Some(known) => ApiRequest::write(Method::PUT, self.url(&["notes", &known.comment]), body),
            None => ApiRequest::create(self.url(&["notes"]), body),
        }
    }

    fn resolve_request(&self, thread: &str) -> ApiRequest {
        ApiRequest::write(Method::PUT, self.url(&["discussions", thread]), json!({ "resolved": true }))
    }

    fn remove_request(&self, comment: &PublishedComment) -> ApiRequest {
        ApiRequest::remove(self.url(&["notes", &comment.comment]))
    }

    fn check_resolved(&self, answer: Result<ApiResponse, ApiFailure>) -> Result<(), ResolveFailure> {
        match answer {
            Ok(_) => Ok(()),
            Err(ApiFailure::Refused { status: 401 | 403, .. }) => {
                Err(ResolveFailure::NotAllowed("the token may not resolve threads".to_owned()))
            }
            Err(failure) => Err(ResolveFailure::Failed(failure.to_string())),
        }
    }

    fn is_line_refusal(&self, status: u16, _: &str) -> bool {
        matches!(status, 400 | 422)
    }
}
