//! Arguments, one file per command, and the one place that turns errors into words and exit codes.
