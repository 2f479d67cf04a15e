//! Reads the host and the path of a repository from the URL of a git remote.

/// Repository behind a git remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    /// Host without user and port, in lower case.
    pub host: String,
    /// Path without `.git`, for example `group/subgroup/name`.
    pub path: String,
}

/// Parses `https://host/path.git`, `ssh://git@host:22/path` and `git@host:path`. Returns `None` for a local path and for
/// anything without a group and a name.
pub fn parse_remote_url(url: &str) -> Option<RemoteUrl> {
    let url = url.trim();
    let (authority, path) = match url.split_once("://") {
        Some(("https" | "http" | "ssh" | "git" | "git+ssh", rest)) => rest.split_once('/')?,
        Some(_) => return None,
        None => url.split_once(':').filter(|(authority, _)| !authority.contains('/') && authority.len() > 1)?,
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.split_once(':').map_or(host, |(host, _)| host).to_ascii_lowercase();
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    let is_whole = !host.is_empty() && path.split('/').count() >= 2 && path.split('/').all(is_name);
    is_whole.then(|| RemoteUrl { host, path: path.to_owned() })
}

/// Returns `true` for a name of a group or a repository, as GitHub and GitLab allow it.
fn is_name(part: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !part.is_empty() && part != "." && part != ".." && part.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_name_a_host_and_a_repository() {
        for (url, expected) in [
            ("https://github.com/octo/hello.git", Some(("github.com", "octo/hello"))),
            ("https://token@GitHub.com/octo/hello/", Some(("github.com", "octo/hello"))),
            ("git@github.com:octo/hello.git", Some(("github.com", "octo/hello"))),
            ("ssh://git@gitlab.example.com:2222/a/b/c.git", Some(("gitlab.example.com", "a/b/c"))),
            ("https://github.com/hello", None),
            ("/srv/git/hello.git", None),
            ("../hello", None),
            ("C:/work/hello", None),
            ("file:///srv/git/hello", None),
            ("https://github.com/octo/../hello", None),
            ("https://github.com/octo/hel lo", None),
        ] {
            let found = parse_remote_url(url);
            let found = found.as_ref().map(|remote| (remote.host.as_str(), remote.path.as_str()));
            assert_eq!(found, expected, "{url}");
        }
    }
}
