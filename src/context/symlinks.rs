//! Resolves symbolic links of a snapshot by their text. No file is opened.

/// Returns the path that the link at `path` points to, with `/` as separator. `None` if it leaves the repository. The
/// empty path is the repository's root.
pub fn resolve_target(path: &str, link: &str) -> Option<String> {
    if link.starts_with(['/', '~']) || link.contains(['\\', '\0']) {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_on_paper_and_never_out() {
        for (path, link, expected) in [
            ("a", "b", Some("b")),
            ("a/b/c", "../d", Some("a/d")),
            ("a/b", "./../x//y", Some("x/y")),
            ("a/b", "..", Some("")),
            ("a", "..", None),
            ("a/b", "../../etc/passwd", None),
            ("a/b", "../../a/b", None),
            ("a", "/etc/passwd", None),
            ("a", "~/x", None),
            ("a", "C:\\x", None),
        ] {
            assert_eq!(resolve_target(path, link).as_deref(), expected, "{path} -> {link}");
        }
    }
}
