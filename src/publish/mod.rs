//! Publishes findings as comments of pull requests (GitHub) and merge requests (GitLab).
//!
//! - The host is the only memory. Each comment begins with a hidden marker that names its finding, so that another run,
//!   on any machine, finds the comments that are there already.
//! - A marker counts only in the first line of a comment, and only if the account of the token wrote the comment.
//! - A request that creates a comment is repeated only after the comments were listed again, unless the host said that
//!   it stored nothing.
//! - Text of findings is data: masked, escaped, without mentions, commands of bots, images and HTML.
//!
//! [`plan`], [`comment`] and [`diff_lines`] are pure. A host is one file that implements [`host::ReviewHost`]: it builds
//! requests and reads answers; [`api_client`] sends the requests, and [`publisher`] decides what follows.

mod api_client;
mod comment;
mod diff_lines;
mod error;
mod github;
mod gitlab;
mod host;
mod plan;
mod publisher;
mod remote_url;
#[cfg(test)]
mod test_support;

pub(crate) use api_client::{ApiClient, ApiConnection, DEFAULT_MAX_WAIT};
pub(crate) use comment::PublishableFinding;
pub(crate) use error::PublishError;
pub(crate) use github::{GithubAddress, GithubHost};
pub(crate) use gitlab::{GitlabAddress, GitlabHost};
pub(crate) use host::{CommentedLines, ReviewHost};
pub(crate) use publisher::{PublishReport, PublishRequest, SkippedFinding, SummaryOutcome, publish_findings};
pub(crate) use remote_url::{RemoteUrl, parse_remote_url};
