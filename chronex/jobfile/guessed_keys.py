"""Keys that people try who know other schedulers: what Chronex calls them, or what to do instead."""

from __future__ import annotations

# What other schedulers and people call our keys; suggested, not accepted.
OTHER_NAMES = {
    "cron": "schedule",
    "expression": "schedule",
    "depends_on": "needs",
    "depends": "needs",
    "dependencies": "needs",
    "requires": "needs",
    "upstream": "after",
    "for_each": "matrix",
    "foreach": "matrix",
    "expand": "matrix",
    "with_items": "matrix",
    "max_parallel": "at_most",
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
    "run_as": "user",
    "runas": "user",
    "username": "user",
    "account": "user",
    "environment_file": "env_file",
    "environmentfile": "env_file",
    "envfile": "env_file",
    "dotenv": "env_file",
    "memory": "limits",
    "memory_limit": "limits",
    "memorymax": "limits",
    "mem_limit": "limits",
    "max_memory": "limits",
    "cpu": "limits",
    "cpus": "limits",
    "ulimit": "limits",
    "resources": "limits",
    "niceness": "nice",
    "exclude": "except",
    "skip_dates": "except",
    "fold": "overlap",
}

_UID = 'user takes a name or a number: user = "www-data"'
_AFTER = 'after = "JOB" starts a job when another one has completed; needs = ["TASK"] is for the tasks of one job'
_CONTAINER = 'commands run on this machine; write run = ["docker", "run", "--rm", "--init", "IMAGE", "command"]'
_PRIORITY = "nice = 10 lets its command give way to other processes; priority = 10 lets its runs start first"
_MATRIX = 'matrix = { region = ["eu", "us"] } on a task makes one run for each value'
_LOCK = (
    'overlap keeps a job from itself; for others write [groups.NAME] with limit = 1, and groups = ["NAME"] in each'
)
_DAYS = 'write [calendars.NAME] with holidays, dates or ics, and except = ["NAME"] in the job'
_NOTIFY_HINT = (
    '[notify.ops] with mail = "…" or webhook = "…", and notify = ["ops"] in the job; or notify = { run = ["…"] }'
)
_OUTPUT = "output is kept by itself: chronex logs JOB shows it; log_limit says how much of it"
_INCLUDE = "apply each file by itself: a store takes the jobs of several"
_BOOT = 'write schedule = "@start": once each time the machine has started'

# Keys of a job that do not belong to one of its tasks, where there is more to say than that.
_PLACES = (
    "a run takes its places for all of its tasks, so that no two can wait for each other: write groups in "
    '[jobs.NAME], or make the task a job of its own with after = "NAME"'
)
ADVICE_FOR_TASKS = {"groups": _PLACES}

# What newcomers look for first: one sentence that helps, instead of a list of all keys.
ADVICE = {
    "uid": _UID,
    **dict.fromkeys(
        ("after", "depends_on", "depends", "needs", "requires", "dependencies", "upstream", "before", "when"), _AFTER
    ),
    **dict.fromkeys(("image", "container", "docker"), _CONTAINER),
    "ionice": _PRIORITY,
    **dict.fromkeys(("matrix", "for_each", "foreach", "expand", "with_items", "parallel"), _MATRIX),
    **dict.fromkeys(("mutex", "lock", "singleton", "pool", "queue", "semaphore", "category"), _LOCK),
    **dict.fromkeys(("calendar", "holidays", "blackout"), _DAYS),
    **dict.fromkeys(("mail", "mailto", "email", "slack", "webhook", "alert", "on_error", "on_success"), _NOTIFY_HINT),
    **dict.fromkeys(("log", "logfile", "log_file", "stdout", "stderr", "output"), _OUTPUT),
    **dict.fromkeys(("include", "includes", "import", "extends"), _INCLUDE),
    **dict.fromkeys(("on_boot", "at_boot", "reboot", "run_on_start", "run_at_start"), _BOOT),
}
