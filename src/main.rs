//! Hands over to [`revdeck::cli`] and turns the result into an exit code.

fn main() -> std::process::ExitCode {
    revdeck::cli::main()
}
