//! A client of the Python package `pygls`, whose types check each message of the server.

use super::*;
use crate::env::{err, out};

/// Variable with a Python that has the package `pygls`.
const PYTHON_VARIABLE: &str = "REVDECK_LSP_PYTHON";

#[test]
#[ignore = "needs programs of others: run .ci/tools/test"]
fn the_python_client_does_everything() {
    let python = std::env::var(PYTHON_VARIABLE).expect("REVDECK_LSP_PYTHON names a Python with the package pygls");
    let test = reviewed();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/lsp/client.py");
    let repo = test.repo();
    let output =
        test.command(python).args([script, env!("CARGO_BIN_EXE_revdeck")]).arg(&repo).output().expect("Python starts");
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    assert_eq!(out(&output), "2 files, 7 actions, cleared\n");
}
