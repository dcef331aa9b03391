//! A worker and nothing else, for the tests of this crate: `bastion` itself plays this part in production.

fn main() -> std::process::ExitCode {
    bastion_extract::worker_main()
}
