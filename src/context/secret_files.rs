//! Files whose whole purpose is to hold a secret: by their name, since no mask knows every secret.
//!
//! Their content is never put before a model, also where the change under review is about them. Names of source files
//! are not taken for such: `credentials.rs` is code.

/// Names, in lower case.
const NAMES: [&str; 25] = [
    ".boto",
    ".dockercfg",
    ".dockerconfigjson",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".mylogin.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".terraformrc",
    ".vault-token",
    ".vault_pass",
    "_netrc",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "id_rsa",
    "kubeconfig",
    "wp-config.php",
];
/// Endings of private keys, key stores, and states that hold what they manage.
const EXTENSIONS: [&str; 15] = [
    "agekey", "jks", "kdb", "kdbx", "key", "keystore", "ovpn", "p12", "p8", "pem", "pfx", "pk8", "ppk", "tfstate",
    "env",
];
/// Of data files the part before the ending, or what it begins with.
const STEMS: [&str; 4] = ["credential", "credentials", "secret", "secrets"];
const STEM_STARTS: [&str; 5] =
    ["service-account", "service_account", "serviceaccount", "client_secret", "client-secret"];
const DATA_EXTENSIONS: [&str; 13] =
    ["", "cfg", "conf", "csv", "enc", "ini", "json", "plist", "properties", "toml", "txt", "yaml", "yml"];
const FOLDERS: [&str; 2] = [".gnupg", ".ssh"];
/// Names that are telling in their folder only.
const PATH_SUFFIXES: [&str; 2] = [".docker/config.json", ".kube/config"];
/// Patterns for others to fill in.
const TEMPLATES: [&str; 6] = [".example", ".sample", ".template", ".tmpl", ".dist", ".defaults"];
/// What copies of a file are called.
const COPIES: [&str; 6] = ["~", ".bak", ".backup", ".old", ".orig", ".save"];

/// Whether a file is kept from models, by its path.
pub fn is_secret_file(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let mut parts = lower.rsplit('/');
    let mut name = parts.next().unwrap_or_default();
    let is_there = |known: &str| lower.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    if parts.any(|folder| FOLDERS.contains(&folder)) || PATH_SUFFIXES.iter().any(|known| is_there(known)) {
        return true;
    }
    while let Some(shorter) = COPIES.iter().find_map(|copy| name.strip_suffix(copy)) {
        name = shorter;
    }
    if TEMPLATES.iter().any(|template| name.ends_with(template)) {
        return false;
    }
    // A name such as `.env` is all ending.
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    NAMES.contains(&name)
        || name.starts_with(".env.")
        || EXTENSIONS.contains(&ending)
        || (DATA_EXTENSIONS.contains(&ending)
            && (STEMS.contains(&stem) || STEM_STARTS.iter().any(|start| stem.starts_with(start))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_files_are_known_by_their_names() {
        for path in [
            ".env",
            "app/.env.production",
            "prod.env",
            ".envrc",
            ".ENV",
            ".env.bak",
            "certs/server.pem",
            "server.pem.old",
            "tls.key",
            "config/master.key",
            "a/id_rsa",
            "id_ed25519~",
            ".ssh/config",
            "home/.aws/credentials",
            "credentials",
            "credentials.json",
            "config/secrets.yml",
            "secret.yaml",
            "service-account-prod.json",
            ".npmrc",
            ".netrc",
            "terraform.tfstate",
            "terraform.tfstate.backup",
            "store.jks",
            "home/.docker/config.json",
            ".kube/config",
            "x.p12",
        ] {
            assert!(is_secret_file(path), "{path}");
        }
        for path in [
            ".env.example",
            "app/.env.sample",
            "src/credentials.rs",
            "secrets.py",
            "src/secret/mod.rs",
            "id_rsa.pub",
            "environment.ts",
            "src/env.rs",
            "key.rs",
            "docs/keys.md",
            "keyboard.json",
            "cert.crt",
            "src/pem.go",
            "Makefile",
            "secretary.json",
            "aws/main.tf",
            "docker/Dockerfile",
            ".docker/php/Dockerfile",
            "x.docker/config.json",
            "token.rs",
            "",
            "monkey",
        ] {
            assert!(!is_secret_file(path), "{path}");
        }
    }
}
