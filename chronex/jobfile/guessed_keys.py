"""Keys that people try who know other schedulers: what Chronex calls them, or what to do instead."""

from __future__ import annotations

# What other schedulers and people call our keys; suggested, not accepted.
OTHER_NAMES = {
    "cron": "schedule",
    "expression": "schedule",
    "when": "schedule",
    "cmd": "run",
    "command": "run",
    "exec": "run",
    "script": "run",
    "shell": "run",
    "tz": "timezone",
    "zone": "timezone",
    "cwd": "directory",
    "workdir": "directory",
    "working_directory": "directory",
    "environment": "env",
    "retries": "retry",
    "max_retries": "retry",
    "catchup": "recovery",
    "catch_up": "recovery",
    "misfire": "recovery",
    "concurrency": "overlap",
    "concurrency_policy": "overlap",
    "disabled": "enabled",
    "delay": "interval",
    "factor": "backoff",
    "steps": "tasks",
    "id": "name",
    "execution_mode": "mode",
    "max_concurrent": "max_concurrent_jobs",
    "window": "duration",
    "dist": "distribution",
    "params": "parameters",
    "fold": "overlap",
}

_USER = 'jobs run as the user of the daemon; for another one: run = ["runuser", "-u", "NAME", "--", "command"]'
_AFTER = "a job starts by its schedule; steps that follow each other are tasks of one job, in their order"
_CONTAINER = 'commands run on this machine; write run = ["docker", "run", "--rm", "--init", "IMAGE", "command"]'
_LIMITS = 'limit it in the command: run = ["systemd-run", "--user", "--scope", "-p", "MemoryMax=2G", "command"]'
_NICE = 'write run = ["nice", "-n", "10", "command"]'
_MATRIX = "write a job for each value, or loop over the values in the command"
_LOCK = 'overlap keeps a job from itself; against others write run = ["flock", "/tmp/NAME.lock", "command"]'
_DAYS = 'write spread = { duration = "0s", avoid = "date=2026-12-25" }'
_TOLD = 'notify = ["command"] runs when the job fails and when it is well again; on_complete after every run'
_ENV_FILE = 'write env = { NAME = "value" }, secrets = ["NAME"] for what the daemon has, or read it in the command'
_OUTPUT = "output is kept by itself: chronex logs JOB shows it; log_limit says how much of it"
_INCLUDE = "apply each file by itself: a store takes the jobs of several"
_BOOT = 'schedule = "@once +1s" runs once; what belongs to every boot is started by the service manager'

# What newcomers look for first: one sentence that helps, instead of a list of all keys.
ADVICE = {
    **dict.fromkeys(("user", "run_as", "runas", "username", "uid", "account"), _USER),
    **dict.fromkeys(
        ("after", "depends_on", "depends", "needs", "requires", "dependencies", "upstream", "before"), _AFTER
    ),
    **dict.fromkeys(("image", "container", "docker"), _CONTAINER),
    **dict.fromkeys(
        ("memory", "memory_limit", "mem_limit", "max_memory", "cpu", "cpus", "limits", "resources"), _LIMITS
    ),
    **dict.fromkeys(("nice", "priority", "niceness", "ionice"), _NICE),
    **dict.fromkeys(("matrix", "for_each", "foreach", "expand", "with_items", "parallel"), _MATRIX),
    **dict.fromkeys(("mutex", "lock", "singleton", "group", "pool", "queue", "semaphore", "category"), _LOCK),
    **dict.fromkeys(("calendar", "holidays", "exclude", "except", "skip_dates", "blackout"), _DAYS),
    **dict.fromkeys(("mail", "mailto", "email", "slack", "webhook", "alert", "on_error", "on_success"), _TOLD),
    **dict.fromkeys(("env_file", "envfile", "dotenv"), _ENV_FILE),
    **dict.fromkeys(("log", "logfile", "log_file", "stdout", "stderr", "output"), _OUTPUT),
    **dict.fromkeys(("include", "includes", "import", "extends"), _INCLUDE),
    **dict.fromkeys(("on_boot", "at_boot", "reboot", "run_on_start", "run_at_start"), _BOOT),
}
