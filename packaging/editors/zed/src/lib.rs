//! Tells Zed how to start `chronex lsp`; everything else is the server's.
use zed_extension_api::{self as zed, Command, Extension, LanguageServerId, Result, Worktree};

struct Chronex;

impl Extension for Chronex {
    fn new() -> Self {
        Chronex
    }

    fn language_server_command(
        &mut self,
        _id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Command> {
        let command = worktree
            .which("chronex")
            .ok_or("chronex is not on the path; install it with its language server")?;
        Ok(Command {
            command,
            args: vec!["lsp".into()],
            env: worktree.shell_env(),
        })
    }
}

zed::register_extension!(Chronex);
