//! Names a repository among those that share a database.

/// Returns the name of the repository behind a URL, the same for all ways to reach it: host and path, without user, port and
/// `.git`. Returns the last part of a local path; `None` if nothing is left.
pub fn project_name(url: &str) -> Option<String> {
    let rest = match url.split_once("://") {
        Some(("file", path)) => return last_part(path),
        Some((_, rest)) => rest.to_owned(),
        // `git@host:path`, as against a path.
        None => match url.split_once(':') {
            Some((host, path)) if !host.contains(['/', '\\']) && host.len() > 1 => {
                format!("{host}/{}", path.trim_start_matches('/'))
            }
            _ => return last_part(url),
        },
    };
    let (host, path) = rest.split_once('/')?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host);
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!host.is_empty() && !path.is_empty()).then(|| format!("{}/{path}", host.to_ascii_lowercase()))
}

fn last_part(path: &str) -> Option<String> {
    let last = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next()?;
    let name = last.strip_suffix(".git").unwrap_or(last);
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://github.com/acme/api.git", Some("github.com/acme/api"))]
    #[case("https://ada:x@GitHub.com/acme/api", Some("github.com/acme/api"))]
    #[case("git@github.com:acme/api.git", Some("github.com/acme/api"))]
    #[case("ssh://git@github.com:22/acme/api/", Some("github.com/acme/api"))]
    #[case("git@gitlab.example.org:/team/sub/api.git", Some("gitlab.example.org/team/sub/api"))]
    #[case("/srv/git/api.git", Some("api"))]
    #[case("file:///srv/git/api", Some("api"))]
    #[case("../api.git/", Some("api"))]
    #[case("C:\\git\\api", Some("api"))]
    #[case("https://github.com/", None)]
    #[case("", None)]
    fn a_repository_has_one_name_however_it_is_reached(#[case] url: &str, #[case] expected: Option<&str>) {
        assert_eq!(project_name(url).as_deref(), expected);
    }
}
