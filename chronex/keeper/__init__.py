"""The keeper: a small process that holds commands, so that they and their exit codes outlive the scheduler."""
