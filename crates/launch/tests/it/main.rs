//! The launcher as a whole: real files, real processes, and a program that answers as the OpenShell program does.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod build;
mod consent;
mod examples;
mod faults;
mod gateway;
mod interrupt;
mod parsing;
mod payload;
mod planning;
mod refreshing;
mod running;
mod settings;
mod signing;
mod world;
