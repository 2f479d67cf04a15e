//! Resolves scopes to commits: revisions, ranges, and the base of a branch.

use git2::{BranchType, Commit, Oid};

use super::{GitError, Repo};
use crate::domain::Scope;

/// A scope with its names resolved to commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResolvedScope {
    Worktree,
    Staged,
    All,
    /// The change between two existing commits; without a base, all content of `tip` is new.
    Commits {
        base: Option<Oid>,
        tip: Oid,
        scope: Scope,
    },
}

impl Repo {
    pub(super) fn resolve_scope(&self, scope: &Scope) -> Result<ResolvedScope, GitError> {
        Ok(match scope {
            Scope::Worktree => ResolvedScope::Worktree,
            Scope::Staged => ResolvedScope::Staged,
            Scope::All => ResolvedScope::All,
            Scope::Commit(text) => {
                let tip = self.find_commit(text)?;
                let scope = Scope::Commit(self.stable_name(text, tip.id()));
                ResolvedScope::Commits { base: tip.parent_id(0).ok(), tip: tip.id(), scope }
            }
            Scope::Range { from, to } => {
                let (base, tip) = (self.find_commit(from)?.id(), self.find_commit(to)?.id());
                let scope = Scope::Range { from: self.stable_name(from, base), to: self.stable_name(to, tip) };
                ResolvedScope::Commits { base: Some(base), tip, scope }
            }
            Scope::Since { from, to } => {
                let (one, tip) = (self.find_commit(from)?.id(), self.find_commit(to)?.id());
                let base = self.find_merge_base((from, one), (to, tip))?;
                let scope = Scope::Since { from: self.stable_name(from, one), to: self.stable_name(to, tip) };
                ResolvedScope::Commits { base: Some(base), tip, scope }
            }
            Scope::Branch(base) => {
                let tip = self.find_commit("HEAD")?.id();
                let (name, one) = match base {
                    Some(name) => {
                        let id = self.find_commit(name)?.id();
                        (self.stable_name(name, id), id)
                    }
                    None => self.guess_base()?,
                };
                let base = self.find_merge_base((&name, one), ("HEAD", tip))?;
                ResolvedScope::Commits { base: Some(base), tip, scope: Scope::Branch(Some(name)) }
            }
        })
    }

    /// Returns the commit that a revision names, in any syntax that git accepts.
    pub(super) fn find_commit(&self, text: &str) -> Result<Commit<'_>, GitError> {
        if matches!(text, "HEAD" | "@") && self.head_id().is_none() {
            return Err(GitError::Unborn { path: self.root() });
        }
        self.check_revision(text)?;
        let is_shallow = self.inner.is_shallow();
        let unknown =
            || GitError::UnknownRevision { text: text.to_owned(), path: self.root(), is_shallow: self.is_shallow() };
        let object = self.inner.revparse_single(text).map_err(|_| unknown())?;
        object.peel_to_commit().map_err(|_| unknown())
    }

    pub(super) fn commit_id(&self, text: &str) -> Result<Oid, GitError> {
        Ok(self.find_commit(text)?.id())
    }

    /// Returns a name of a revision that stays valid later. Branches, tags and hashes stay as typed; relative revisions
    /// such as `HEAD~2` or `@{yesterday}` become a short hash.
    fn stable_name(&self, text: &str, id: Oid) -> String {
        let is_hash = text.len() >= 4 && id.to_string().starts_with(&text.to_ascii_lowercase());
        let is_ref = || {
            let reference = self.inner.resolve_reference_from_short_name(text).ok();
            reference.is_some_and(|found| found.is_branch() || found.is_tag() || found.is_remote())
                && !matches!(text, "HEAD" | "@")
        };
        if is_hash || is_ref() { text.to_owned() } else { self.short_id(id) }
    }

    /// Returns the shortest unique prefix of an id in this repository, at least 7 digits long.
    pub(super) fn short_id(&self, id: Oid) -> String {
        let short = self.inner.find_object(id, None).and_then(|object| object.short_id());
        match short.as_ref().map(|text| text.as_str()) {
            Ok(Ok(text)) => text.to_owned(),
            _ => id.to_string(),
        }
    }

    fn find_merge_base(&self, (one, a): (&str, Oid), (other, b): (&str, Oid)) -> Result<Oid, GitError> {
        self.inner.merge_base(a, b).map_err(|_| GitError::NoMergeBase {
            one: one.to_owned(),
            other: other.to_owned(),
            path: self.root(),
            is_shallow: self.is_shallow(),
        })
    }

    /// Guesses the base of the branch: its upstream, then `origin/HEAD`, then main or master, local first and then at
    /// origin. The branch itself, or the remote branch with the same name, is used only as a last resort, because the
    /// change against it would be empty.
    fn guess_base(&self) -> Result<(String, Oid), GitError> {
        let branch = self.branch();
        let mut tried = Vec::new();
        let mut itself = None;
        let is_readable = |name: &str| self.check_revision(name).is_ok();
        let local = self.inner.find_branch(&branch, BranchType::Local).ok();
        // The name of the upstream comes from the settings; its reference is opened to get the short name.
        let upstream = local
            .filter(|local| is_readable(&self.upstream_name(local)))
            .and_then(|local| local.upstream().ok())
            .and_then(|upstream| shorthand(upstream.get()));
        let origin_head = Some("refs/remotes/origin/HEAD").filter(|name| is_readable(name));
        let origin_head = origin_head.and_then(|name| self.inner.find_reference(name).ok());
        let origin_head = origin_head.and_then(|head| head.resolve().ok()).and_then(|head| shorthand(&head));
        let named = ["main", "master", "origin/main", "origin/master"].map(|name| Some(name.to_owned()));
        tried.push("its upstream".to_owned());
        tried.push("origin/HEAD".to_owned());
        for (place, name) in [upstream, origin_head].into_iter().chain(named).enumerate() {
            let Some(name) = name else { continue };
            if place >= 2 {
                tried.push(name.clone());
            }
            let Some(id) = self.branch_tip(&name) else { continue };
            let twin = name.split_once('/').is_some_and(|(remote, rest)| {
                rest == branch && self.inner.find_branch(&name, BranchType::Remote).is_ok() && !remote.is_empty()
            });
            if !branch.is_empty() && (name == branch || twin) {
                itself = itself.or(Some((name, id)));
                continue;
            }
            return Ok((name, id));
        }
        itself.ok_or_else(|| GitError::NoBase { tried, path: self.root() })
    }

    /// Returns the full name of a branch's upstream; empty when there is none.
    fn upstream_name(&self, branch: &git2::Branch<'_>) -> String {
        let name = branch.get().name().unwrap_or_default();
        let upstream = self.inner.branch_upstream_name(name).ok();
        upstream.and_then(|name| name.as_str().ok().map(str::to_owned)).unwrap_or_default()
    }

    /// Returns the commit of a local or remote branch; tags of that name are ignored.
    fn branch_tip(&self, name: &str) -> Option<Oid> {
        self.check_revision(name).ok()?;
        let local = self.inner.find_branch(name, BranchType::Local);
        let branch = local.or_else(|_| self.inner.find_branch(name, BranchType::Remote)).ok()?;
        branch.get().peel_to_commit().ok().map(|commit| commit.id())
    }
}

fn shorthand(reference: &git2::Reference) -> Option<String> {
    reference.shorthand().ok().map(str::to_owned)
}
