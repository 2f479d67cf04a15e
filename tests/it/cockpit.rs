//! Integration tests: cockpit.
