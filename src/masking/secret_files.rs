//! Detects files whose purpose is to hold a secret by their name, because no mask detects every secret.
//!
//! Their content is never sent to a model, even if the reviewed change is about them. Source files are not detected by
//! such names: `credentials.rs` is code.

/// File names, in lower case.
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
/// Extensions of private keys, key stores and files that hold secrets in clear, such as Terraform state.
const EXTENSIONS: [&str; 15] = [
    "agekey", "jks", "kdb", "kdbx", "key", "keystore", "ovpn", "p12", "p8", "pem", "pfx", "pk8", "ppk", "tfstate",
    "env",
];
/// Names of data files without the extension, and beginnings of such names. They count only with [`DATA_EXTENSIONS`].
const STEMS: [&str; 4] = ["credential", "credentials", "secret", "secrets"];
const STEM_STARTS: [&str; 5] =
    ["service-account", "service_account", "serviceaccount", "client_secret", "client-secret"];
const DATA_EXTENSIONS: [&str; 13] =
    ["", "cfg", "conf", "csv", "enc", "ini", "json", "plist", "properties", "toml", "txt", "yaml", "yml"];
/// Folders whose files are all secret.
const FOLDERS: [&str; 2] = [".gnupg", ".ssh"];
/// Ends of paths that are secret only in their folder.
const PATH_SUFFIXES: [&str; 2] = [".docker/config.json", ".kube/config"];
/// Endings of templates, which hold no real secret.
const TEMPLATES: [&str; 6] = [".example", ".sample", ".template", ".tmpl", ".dist", ".defaults"];
/// Endings of backup copies. They are removed before the name is checked.
const COPIES: [&str; 6] = ["~", ".bak", ".backup", ".old", ".orig", ".save"];

/// Returns true if the content of the file at `path` must not be sent to a model.
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
    // A name like `.env` has no stem.
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
