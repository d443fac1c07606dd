"""Bad files: exactly these positions, sentences, hints and codes. «…» marks what is pointed at."""

from __future__ import annotations

import pytest

from chronex.jobfile import JobFileError, Problem, read_job_file
from chronex.jobfile.entries import MAX_PROBLEMS
from chronex.jobfile.job_tables import JOB as JOB_KEYS
from chronex.jobfile.parsing import MAX_BYTES
from chronex.lint.rules import rules
from tests.jobfile.marked import Place, unmarked

JOB = '[jobs.a]\nschedule = "@daily"\nrun = "true"\n'
TASK = '[jobs.a]\nschedule = "@daily"\n[[jobs.a.tasks]]\nname = "t"\nrun = "true"\n'


def problems_of(text: str | bytes, host_zone: str = "Europe/Berlin") -> tuple[Problem, ...]:
    with pytest.raises(JobFileError) as caught:
        read_job_file(text, "chronex.toml", host_zone)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return caught.value.problems


CASES: dict[str, tuple[str, list[tuple[str, str, str]]]] = {
    # -- the text itself
    "no value": ("[scheduler]\ntimezone = «»\n", [("J002", "Invalid value", "put text in quotes")]),
    "an open string": ('[jobs.a]\nschedule = "@daily«»\n', [("J002", "Illegal character '\\n'", "close the quotes")]),
    "an open list": ("[jobs.a]\nrun = [1«»", [("J002", "Unclosed array", "close it with ]")]),
    "no statement": ("«!»\n", [("J002", "Invalid statement", "a line is key = value")]),
    "a word without quotes": ("[jobs.a]\nschedule = «d»aily\n", [("J002", "Invalid value", "put text in quotes")]),
    "a key twice": (
        '[jobs.a]\nschedule = "@daily"\n«schedule» = "@weekly"\nrun = "true"\n',
        [("J018", "the key 'schedule' is given twice", "remove one of them")],
    ),
    "a job twice": (
        '[jobs.a]\nschedule = "@daily"\nrun = "true"\n«[jobs.a]»\nschedule = "@weekly"\nrun = "true"\n',
        [("J018", "the table [jobs.a] is on line 1 already", "rename this one, or remove it")],
    ),
    "too deep": ("a = " + "[" * 31 + "«[»" + "]" * 32, [("J003", "more than 32 levels deep", "no setting")]),
    "an endless number": (
        "[scheduler]\nmax_concurrent_jobs = «" + "9" * 5000 + "»\n",
        [("J014", "a number with thousands of digits", "write a smaller one")],
    ),
    # -- idempotency
    "a place of no key": (
        TASK + 'idempotency_key = «"{job}:{shceduled}"»\n',
        [("J013", "idempotency_key has no place for '{shceduled}'", "did you mean {scheduled}?")],
    ),
    "a time to live of nothing": (
        TASK + '«idempotency_ttl» = "1d"\n',
        [("J024", "idempotency_ttl says how long a key lives", "add idempotency_key")],
    ),
    # -- more than can wait
    "a year of seconds in one window": (
        '[jobs.a]\nschedule = "* * * * * *"\nrun = "true"\nspread = «{ duration = "366d", mode = "before" }»\n',
        [("J024", "within 366d more than 100000 runs would wait for their start", "make the window shorter")],
    ),
    "a year of minutes by chance": (
        '[jobs.a]\nschedule = «"* * * * * {jitter:300d}"»\nrun = "true"\n',
        [("J024", "within 300d more than 100000 runs would wait for their start", "make the window shorter")],
    ),
    # -- unknown keys
    "unknown table": ("[«job».a]\n", [("J010", "unknown key 'job'", "did you mean jobs?")]),
    "unknown job key": (
        JOB + '«overlab» = "skip"\n',
        [("J010", "unknown key 'overlab'", "did you mean overlap?")],
    ),
    "another scheduler's key": (JOB + '«command» = "x"\n', [("J010", "unknown key 'command'", "did you mean run?")]),
    "timeout of a job": (JOB + '«timeout» = "5m"\n', [("J010", "unknown key 'timeout'", "did you mean task_timeout?")]),
    "a key of the job on a task": (
        TASK + '«priority» = 10\n',
        [("J010", "unknown key 'priority'", "priority holds for the whole job: write it in [jobs.NAME], above its tasks")],
    ),
    "groups of a task": (
        TASK + '«groups» = ["a"]\n',
        [("J010", "unknown key 'groups'", "a run takes its places for all of its tasks, so that no two can wait for each other")],
    ),
    "after of a task": (TASK + '«after» = "b"\n', [("J010", "unknown key 'after'", 'after = "JOB" starts a job')]),
    "nothing like it": (
        "[scheduler]\n«xyzzy» = 1\n",
        [("J010", "unknown key 'xyzzy'", "the keys here are blackout, catch_up, grace_period, heartbeat, history, labels, logs, max_concurrent_jobs")],
    ),
    "a quoted key": (
        JOB + '«"ti\\u0007me"» = 1\n',
        [("J010", "unknown key 'ti\\u0007me'", "the keys here are")],
    ),
    "in an inline table": (
        JOB + "retry = { max = 1, «maximum» = 2, «foo» = 3 }\n",
        [("J010", "unknown key 'maximum'", "the keys here are"), ("J010", "unknown key 'foo'", "the keys here are")],
    ),
    "a dotted key": (JOB + 'retry.«intervall» = "1s"\n', [("J010", "unknown key 'intervall'", "did you mean interval?")]),
    # -- types
    "a schedule of digits": (
        '[jobs.a]\nschedule = «5»\nrun = "true"\n',
        [("J011", "schedule takes text, not a whole number", 'write schedule = "0 3 * * *"')],
    ),
    "jobs is no table": ("jobs = «1»\n", [("J011", "jobs takes a table, not a whole number", "write [jobs.NAME]")]),
    "a job is no table": ('[jobs]\na = «"x"»\n', [("J011", "a takes a table, not text", "write [jobs.a]")]),
    "scheduler is a list": ("«[[scheduler]]»\n", [("J011", "scheduler takes a table, not a list", "write [scheduler]")]),
    "enabled as text": (JOB + 'enabled = «"yes"»\n', [("J011", "enabled takes true or false, not text", "write enabled = true")]),
    "a number as text": ("[scheduler]\nmax_concurrent_jobs = «\"5\"»\n", [("J011", "max_concurrent_jobs takes a whole number, not text", "write max_concurrent_jobs = 1")]),
    "a truth as number": ("[scheduler]\nmax_concurrent_jobs = «true»\n", [("J011", "max_concurrent_jobs takes a whole number, not true or false", "write")]),
    "a duration as number": (JOB + "task_timeout = «30»\n", [("J011", "task_timeout takes a duration in text, not a whole number", 'write task_timeout = "30s"')]),
    "a date": (JOB + "description = «2026-01-01 10:00:00»\n", [("J011", "description takes text, not a date or time", "write")]),
    "env with a number": (JOB + "env = { PORT = «8080» }\n", [("J011", "PORT takes text, not a whole number", 'write PORT = "8080"')]),
    "run of numbers": ('[jobs.a]\nschedule = "@daily"\nrun = ["a", «1», «2.5»]\n', [("J011", "run[1] takes text, not a whole number", 'write "1"'), ("J011", "run[2] takes text, not a number", "write")]),
    "run is a table": ('[jobs.a]\nschedule = "@daily"\nrun = «{}»\n', [("J011", "run takes a list of arguments or a line for the shell, not a table", 'write run = ["echo", "hello"]')]),
    "tags as text": (JOB + 'tags = «"a"»\n', [("J011", "tags takes a list, not text", 'write tags = ["…"]')]),
    "schedule as number": ('[jobs.a]\nschedule = «5»\nrun = "x"\n', [("J011", "schedule takes text, not a whole number", "write")]),
    "tasks as a table": ('[jobs.a]\nschedule = "@daily"\ntasks = «{ name = "x" }»\n', [("J011", "tasks takes a list, not a table", "write [[jobs.a.tasks]]")]),
    "a task as text": ('[jobs.a]\nschedule = "@daily"\ntasks = [«"x"»]\n', [("J011", "tasks[0] takes a table, not text", "write tasks = [{")]),
    # -- missing
    "no schedule": ('[jobs.«a»]\nrun = "x"\n', [("J012", "job 'a' has no schedule", 'write for example schedule = "0 3 * * *"')]),
    "no tasks": ('[jobs.«a»]\nschedule = "@daily"\n', [("J012", "job 'a' has no tasks", 'write run = ["echo", "hello"], or add [[jobs.a.tasks]]')]),
    "an empty list of tasks": ('[jobs.«a»]\nschedule = "@daily"\ntasks = []\n', [("J012", "job 'a' has no tasks", "write run")]),
    "a task without name and run": ('[jobs.a]\nschedule = "@daily"\n«[[jobs.a.tasks]]»\nenv = {}\n', [("J012", "a task has no name", 'write for example name = "dump"'), ("J012", "a task has no run", 'write for example run = ["echo", "hello"]')]),
    "bounded without bounds": (JOB + 'recovery = «"bounded"»\n', [("J012", "bounded needs max_count or max_age", "write recovery = {")]),
    # -- choices
    "a crash that is no table": (JOB + 'on_crash = «3»\n', [("J011", "on_crash takes retry, fail or a table with a check, not a whole number", 'write on_crash = { check = ["test", "-e", "/backup/done"] }')]),
    "a crash without a check": (JOB + 'on_crash = «{}»\n', [("J012", "on_crash has no check", 'write on_crash = { check = ["test", "-e", "/backup/done"] }')]),
    "an empty check": (JOB + 'on_crash = { check = «""» }\n', [("J019", "check is empty", 'write a command, such as "make backup"')]),
    "a near choice": (JOB + 'overlap = «"skipp"»\n', [("J013", "overlap cannot be 'skipp'", "did you mean skip?")]),
    "a choice with dashes": (JOB + 'overlap = «"queue-one"»\n', [("J013", "overlap cannot be 'queue-one'", "did you mean queue_one?")]),
    "no choice": (JOB + 'mode = «"foo"»\n', [("J013", "mode cannot be 'foo'", "it is one of sequential, parallel")]),
    "an empty description is fine, an empty tag not": (JOB + 'description = ""\ntags = ["x", «""»]\n', [("J013", "tags[1] is empty", "write something")]),
    "dialect": (JOB + 'dialect = «"quartz"»\n', [("J013", "dialect cannot be 'quartz'", "it is one of chronex, posix")]),
    # -- numbers
    "negative": ("[scheduler]\nmax_concurrent_jobs = «-1»\n", [("J014", "max_concurrent_jobs cannot be -1", "it goes from 1 to 10000")]),
    "overflowing": ("[scheduler]\nmax_concurrent_jobs = «99999999999999999999»\n", [("J014", "max_concurrent_jobs cannot be a number this large", "it goes from 1 to 10000")]),
    "huge in hex": (JOB + "retry = «0x" + "f" * 9000 + "»\n", [("J014", "retry cannot be a number this large", "it goes from 0 to 1000000")]),
    "not a number": (JOB + "retry = { backoff = «nan», jitter = «1.5» }\n", [("J014", "backoff cannot be nan", "it goes from 1 to 1000"), ("J014", "jitter cannot be 1.5", "it goes from 0 to 1")]),
    "infinite": (JOB + "retry = { backoff = «inf» }\n", [("J014", "backoff cannot be inf", "it goes from 1 to 1000")]),
    "an exit code": (TASK + "success_codes = [0, «256», «-1»]\n", [("J014", "success_codes[1] cannot be 256", "it goes from 0 to 255"), ("J014", "success_codes[2] cannot be -1", "it goes")]),
    "no success at all": (TASK + "success_codes = «[]»\n", [("J014", "success_codes names no code", "write [0]")]),
    "a size": ("[scheduler]\nlogs = { max_bytes = «\"10 parsecs\"» }\n", [("J014", "max_bytes cannot be '10 parsecs'", "write bytes")]),
    # -- durations
    "a wordy duration": (JOB + 'execution_timeout = «"1 hour"»\n', [("J015", "execution_timeout: '1 hour' is not a duration", "did you mean 1h?")]),
    "no duration": (JOB + 'execution_timeout = «"soon"»\n', [("J015", "execution_timeout: 'soon' is not a duration", "write a number and ms, s, m, h or d")]),
    "a negative duration": (JOB + 'grace_period = «"-5s"»\n', [("J015", "grace_period: '-5s' is not a duration", "write a number")]),
    "zero": (TASK + 'timeout = «"0s"»\n', [("J015", "timeout must be longer than 0", "write for example 30s")]),
    "too long": (JOB + 'task_timeout = «"999999999999999999999d"»\n', [("J015", "task_timeout: '999999999999999999999d' is too long", "the longest is 36500d")]),
    # -- zones
    "a near zone": ('[scheduler]\ntimezone = «"Europe/Berln"»\n', [("J016", "unknown time zone 'Europe/Berln'", "did you mean Europe/Berlin?")]),
    "no zone": (JOB + 'timezone = «"Mars"»\n', [("J016", "unknown time zone 'Mars'", "use an IANA name such as Europe/Berlin")]),
    "a path as zone": (JOB + 'timezone = «"../../etc/passwd"»\n', [("J016", "unknown time zone '../../etc/passwd'", "use an IANA name")]),
    # -- names
    "a bad job name": ('[jobs.«"my job/../x"»]\nschedule = "@daily"\nrun = "x"\n', [("J017", "'my job/../x' is not a name", "use letters, digits, _ and - only, such as my-job-x")]),
    "a bad name does not hide the rest": ('[jobs.«"a\\u001b"»]\n«cron» = "@daily"\nschedule = "@daily"\n', [("J012", "job 'a\\u001b' has no tasks", "write run"), ("J017", "'a\\u001b' is not a name", "use letters"), ("J010", "unknown key 'cron'", "did you mean schedule?")]),
    "an empty job name": ('[jobs.«""»]\nschedule = "@daily"\nrun = "x"\n', [("J017", "'' is not a name", "use letters, digits, _ and - only, such as nightly-backup")]),
    "a long job name": ("[jobs.«" + "a" * 129 + '»]\nschedule = "@daily"\nrun = "x"\n', [("J017", "job 'aaa", "at most 128 fit")]),
    "a job name that is an option": ('[jobs.«"-rf"»]\nschedule = "@daily"\nrun = "x"\n', [("J017", "'-rf' is not a name", "a command line would take it for an option; write rf")]),
    "a task name that is an option": ('[jobs.a]\nschedule = "@daily"\ntasks = [{ name = «"--store"», run = "x" }]\n', [("J017", "'--store' is not a name", "a command line would take it for an option; write store")]),
    "a bad task name": ('[jobs.a]\nschedule = "@daily"\ntasks = [{ name = «"a b"», run = "x" }]\n', [("J017", "'a b' is not a name", "use letters, digits, _ and - only, such as a-b")]),
    "digits of another script": ('[jobs.a]\nschedule = "@daily"\ntasks = [{ name = «"a٣"», run = "x" }]\n', [("J017", "'a٣' is not a name", "use letters")]),
    # -- twice
    "a task twice": (TASK + '[[jobs.a.tasks]]\nname = «"t"»\nrun = "x"\n', [("J018", "task 't' is given twice", "give it another name")]),
    "tasks that differ by case": (TASK + '[[jobs.a.tasks]]\nname = «"T"»\nrun = "x"\n', [("J018", "task 'T' differs from 't' only by case", "give it another name")]),
    "jobs that differ by case": (JOB + JOB.replace("jobs.a", "jobs.«A»"), [("J018", "job 'A' differs from 'a' only by case", "give it another name")]),
    "a tag twice": (JOB + 'tags = ["x", «"x"»]\n', [("J018", "'x' is given twice", "remove one of them")]),
    "a secret twice": (TASK + 'secrets = ["X", «"X"»]\n', [("J018", "'X' is given twice", "remove one of them")]),
    "failure twice": (JOB + 'on_failure = "continue"\n«failure» = "fail_fast"\n', [("J018", "failure and on_failure mean the same", "remove one of them")]),
    # -- commands
    "an empty line": ('[jobs.a]\nschedule = "@daily"\nrun = «"  "»\n', [("J019", "run is empty", "write a command")]),
    "an empty list": ('[jobs.a]\nschedule = "@daily"\nrun = «[]»\n', [("J019", "run names no program", "name the program first")]),
    "an empty program": (JOB + 'on_start = «["", "x"]»\n', [("J019", "on_start names no program", "name the program first")]),
    "a NUL in a line": ('[jobs.a]\nschedule = "@daily"\nrun = «"a\\u0000b"»\n', [("J019", "run has a NUL character", "remove it")]),
    "a NUL in an argument": ('[jobs.a]\nschedule = "@daily"\nrun = ["a", «"\\u0000"»]\n', [("J019", "run[1] has a NUL character", "remove it")]),
    # -- environments
    "no variable": (TASK + 'env = { «"A=B"» = "x", B = "y", «1» = "z" }\n', [("J020", "'A=B' cannot name a variable", "use letters, digits and _"), ("J020", "'1' cannot name a variable", "use")]),
    "one of ours": (TASK + 'env = { «CHRONEX_JOB» = "x" }\n', [("J020", "CHRONEX_JOB is set by Chronex itself", "choose another name")]),
    "secret and env": (TASK + 'env = { A = "1", B = "2" }\nsecrets = ["C", «"B"»]\n', [("J020", "'B' is both in secrets and in env", "remove it from env")]),
    "a secret shown by a task": (TASK.replace("[[", 'secrets = ["B"]\n[[', 1) + 'env = { «B» = "2" }\n', [("J020", "'B' is both in secrets and in env", "remove it from env")]),
    "a bad secret": (TASK + 'secrets = [«"A B"»]\n', [("J020", "'A B' cannot name a variable", "use letters")]),
    "a secret and nothing else": (TASK + 'secrets = «"X"»\n', [("J011", "secrets takes a table or a list of names, not text", "write secrets = { PGPASSWORD")]),
    "a source as a table": (TASK + 'secrets = { A = «{ file = "/run/a" }» }\n', [("J011", "A takes text, not a table", 'write A = "file:/run/secrets/pg"')]),
    "a secret in the file": (TASK + 'secrets = { A = «"hunter2"» }\n', [("J013", "A names no source: file:, env:, credential: or command:", "write where it comes from")]),
    "a near source": (TASK + 'secrets = { A = «"fil:/x"» }\n', [("J013", "A names no source", "did you mean file:?")]),
    "an empty source": (TASK + 'secrets = { A = «"file: "» }\n', [("J013", "A has nothing after file:", "write for example")]),
    "a credential with a path": (TASK + 'secrets = { A = «"credential:../x"» }\n', [("J013", "A: '../x' cannot name a credential", "use letters")]),
    "a source that is no variable": (TASK + 'secrets = { A = «"env:A B"» }\n', [("J020", "A: 'A B' cannot name a variable", "use letters")]),
    "a secret of ours": (TASK + 'secrets = { «CHRONEX_JOB» = "env:X" }\n', [("J020", "CHRONEX_JOB is set by Chronex itself", "choose another name")]),
    "a secret in a table and in env": (TASK + 'env = { B = "2" }\nsecrets = { «B» = "env:X" }\n', [("J020", "'B' is both in secrets and in env", "remove it from env")]),
    # -- as whom, within what
    "other words for a user": (JOB + '«run_as» = "ann"\n', [("J010", "unknown key 'run_as'", "did you mean user?")]),
    "other words for limits": (JOB + '«memory» = "2G"\n', [("J010", "unknown key 'memory'", "did you mean limits?")]),
    "a bad user": (JOB + 'user = «"www data"»\n', [("J013", "user: 'www data' cannot name a user", 'write its name or its number, such as user = "www-data"')]),
    "a user that is an option": (JOB + 'user = «"-x"»\n', [("J013", "user: '-x' cannot name a user", "write its name")]),
    "a user that is none": (JOB + "user = «true»\n", [("J011", "user takes text, not true or false", "write user")]),
    "a bad group": (TASK + 'group = «"a:b"»\n', [("J013", "group: 'a:b' cannot name a group", "write its name")]),
    "a number as umask": (JOB + "umask = «27»\n", [("J011", "umask takes octal digits in text, not a whole number", 'write umask = "027"')]),
    "a bad umask": (JOB + 'umask = «"0899"»\n', [("J014", "umask cannot be '0899'", "write three octal digits")]),
    "too nice": (JOB + "nice = «20»\n", [("J014", "nice cannot be 20", "it goes from -20 to 19")]),
    "no limits": (JOB + 'limits = «"2G"»\n', [("J011", "limits takes a table, not text", "write limits = { memory")]),
    "an unknown limit": (JOB + 'limits = { «mem» = "2G" }\n', [("J010", "unknown key 'mem'", "")]),
    "every limit": (
        JOB + 'limits = { memory = «"1KiB"», cpu = «"half"», tasks = «0», open_files = «2» }\n',
        [
            ("J014", "memory cannot be less than 4MiB", "write for example"),
            ("J014", "cpu cannot be 'half'", "write percent of one processor"),
            ("J014", "tasks cannot be 0", "it goes from 1 to"),
            ("J014", "open_files cannot be 2", "it goes from 8 to"),
        ],
    ),
    "a number as cpu": (JOB + "limits = { cpu = «2» }\n", [("J011", "cpu takes percent of one processor in text, not a whole number", 'write cpu = "150%"')]),
    "no file of variables": (JOB + 'env_file = [«""»]\n', [("J013", "env_file[0] is empty", "write something")]),
    "a file of variables twice": (JOB + 'env_file = ["a", «"a"»]\n', [("J018", "'a' is given twice", "remove one of them")]),
    "files of variables": (JOB + "env_file = «3»\n", [("J011", "env_file takes a path or a list of paths, not a whole number", "write env_file")]),
    # -- spreads
    "a spread without duration": (JOB + "«spread» = {}\n", [("J012", "spread has no duration", 'write for example duration = "2h"')]),
    "every part of a spread": (
        JOB + 'spread = { mode = «"aftr"», duration = «"2 hours"», distribution = «"skewearly"», seed = «"hourly"» }\n',
        [
            ("J021", "mode: unknown window mode 'aftr'", "it is one of after, around, before, center; did you mean after?"),
            ("J015", "duration: '2 hours' is not a duration", "did you mean 2h?"),
            ("J021", "distribution: unknown distribution 'skewearly'", "it is one of uniform"),
            ("J021", "seed: unknown seed strategy 'hourly'", "it is one of stable"),
        ],
    ),
    "clauses of a spread": (
        JOB + 'spread = { duration = "2h", only = "dow=MON-«FRX»;hours=1", avoid = "«tides»=high" }\n',
        [("J021", "only: dow has no value 'FRX'", "it takes"), ("J021", "avoid: unknown clause 'tides'", "it is one of hours")],
    ),
    "an escaped clause": (
        JOB + 'spread = { duration = "2h", only = «"dow=MON\\u002DFRX"» }\n',
        [("J021", "only: dow has no value 'FRX'", "it takes")],
    ),
    "a parameter of a spread": (
        JOB + 'spread = { duration = "2h", distribution = "skewEarly", parameters = «{ s = -1 }» }\n',
        [("J021", "parameters: s takes a number", "it takes s")],
    ),
    "parameters twice": (
        JOB + 'spread = { duration = "2h", distribution = "skewEarly:3", parameters = «{ s = 3 }» }\n',
        [("J024", "the parameters are given twice", "write them in")],
    ),
    "a spread of years": (JOB + 'spread = { duration = «"400d"» }\n', [("J015", "duration: a window of 400d is too long", "the longest is 366d")]),
    # -- addresses
    "no port": ('[scheduler]\nmetrics = «"localhost"»\n', [("J022", "'localhost' is not an address and port", 'write metrics = "127.0.0.1:9464"')]),
    "a port too far": ('[scheduler]\nmetrics = «"127.0.0.1:99999"»\n', [("J022", "'127.0.0.1:99999' is not", "write")]),
    # -- together
    "run and tasks": (TASK.replace("[[", 'run = "x"\n[[', 1).replace("[[jobs.a.tasks]]", "[[jobs.a.«tasks»]]"), [("J024", "a job has run or tasks, not both", "move run into a task")]),
    "bounds without bounded": (JOB + 'recovery = «{ strategy = "execute_all", max_count = 3 }»\n', [("J024", "max_count and max_age do not go with execute_all", 'write strategy = "bounded"')]),
    "fixed delay of a cron": (JOB + 'cadence = «"fixed_delay"»\n', [("J024", "fixed_delay is for intervals only", "write schedule")]),
    "a code for both": (TASK + "retry_codes = «[0, 75]»\n", [("J024", "exit code 0 is both in success_codes and in retry_codes", "remove it")]),
    # -- expressions
    "every fault of an expression": (
        '[jobs.a]\nschedule = "TZ=«Asia/Soul» «99» * «32» * MON"\nrun = "x"\n',
        [
            ("E011", "timezone: unknown timezone 'Asia/Soul'", "did you mean Asia/Seoul?"),
            ("E002", "minute: value 99 out of range [0, 59]", "try it: chronex explain"),
            ("E004", "dayOfMonth: value 32 out of range [1, 31]", "try it: chronex explain"),
        ],
    ),
    "in single quotes": ("[jobs.a]\nschedule = '0 «25» * * *'\nrun = 'x'\n", [("E003", "hour: value 25", "try it: chronex explain")]),
    "in three quotes": ('[jobs.a]\nschedule = """\n0 «25» * * *"""\nrun = "x"\n', [("E003", "hour: value 25", "try it: chronex explain")]),
    "with escapes": ('[jobs.a]\nschedule = «"0 25 * * \\u002A"»\nrun = "x"\n', [("E003", "hour: value 25", "try it: chronex explain")]),
    "with a fix": ('[jobs.a]\nschedule = "0 9 * * «MONDAY»"\nrun = "x"\n', [("E006", "dayOfWeek: unknown name 'MONDAY'", "did you mean MON?")]),
    "empty": ('[jobs.a]\nschedule = «""»\nrun = "x"\n', [("J013", "schedule is empty", "write something")]),
    "posix": ('[jobs.a]\ndialect = "posix"\nschedule = "«*/5» * * * *"\nrun = "x"\n', [("E007", "minute: '*/5' is not POSIX", "try it: chronex explain")]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_problems(case: str) -> None:
    marked, expected = CASES[case]
    text, marked_positions = unmarked(marked)
    found = problems_of(text)
    # Two things may be wrong at one place, which is marked once.
    assert list(dict.fromkeys(Place(p.line, p.column, p.end_column) for p in found)) == marked_positions, found
    for problem, (code, message, hint) in zip(found, expected, strict=True):
        assert (problem.code, problem.path) == (code, "chronex.toml")
        assert problem.message.startswith(message), problem
        assert problem.hint.startswith(hint), problem
        assert problem.code in rules() or problem.code[0] in "EW"
        assert str(problem).isprintable()


def test_several_problems_come_in_the_order_of_the_file() -> None:
    text, marked_positions = unmarked(
        '[defaults]\noverlap = «"never"»\n'
        '[jobs.b]\nschedule = "«60» * * * *"\n'
        '[[jobs.b.tasks]]\nname = "x"\nrun = «""»\ntimeout = «"x"»\n'
        '[jobs.«a»]\n«cron» = "@daily"\nrun = "y"\n'
        "[scheduler]\nmax_concurrent_jobs = «0»\n"
    )
    assert [Place(p.line, p.column, p.end_column) for p in problems_of(text)] == marked_positions


def test_a_problem_reads_as_one_line() -> None:
    (problem,) = problems_of(JOB + 'overlap = "skipp"\n')
    assert str(problem) == "chronex.toml:4:11: overlap cannot be 'skipp'; did you mean skip?"
    assert problem.to_dict() == {
        "path": "chronex.toml",
        "line": 4,
        "column": 11,
        "end_column": 18,
        "message": "overlap cannot be 'skipp'",
        "hint": "did you mean skip?",
        "code": "J013",
    }


def test_a_name_in_a_hint_cannot_steer_the_terminal() -> None:
    text = '[[jobs.a.tasks]]\nname = "\\u001b[2J"\nrun = "x"\nneeds = ["wxyz"]\n'
    with pytest.raises(JobFileError) as caught:
        read_job_file(text.encode(), "f.toml", "UTC")
    hints = [problem.hint for problem in caught.value.problems]
    assert r"the tasks here are \u001b[2J" in hints


def test_a_path_cannot_steer_the_terminal() -> None:
    with pytest.raises(JobFileError) as caught:
        read_job_file("x", "a\x1b[2J.toml", "UTC")
    assert str(caught.value).startswith("a\\u001b[2J.toml:1:")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_places_do_not_depend_on_line_ends(end: str) -> None:
    text, marked_positions = unmarked(JOB + '# é\nschedulx = """\nb"""\noverlap = «"x"»\n')
    problems = problems_of(text.replace("\n", end))
    assert Place(*problems[-1][1:4]) == marked_positions[-1]


def test_columns_count_characters_and_a_byte_order_mark_is_none() -> None:
    text, marked_positions = unmarked('jobs.a = { schedule = "@daily", description = "日本語é", run = «5» }')
    (problem,) = problems_of("\ufeff" + text)
    assert Place(*problem[1:4]) == marked_positions[0]
    (problem,) = problems_of(("\ufeff" + text).encode())
    assert Place(*problem[1:4]) == marked_positions[0]


def test_bytes_that_are_not_utf8() -> None:
    (problem,) = problems_of(b'[jobs.a]\nx = "\xff"\n')
    assert problem[1:] == (2, 6, 7, "byte 0xff is not UTF-8", "save the file as UTF-8", "J001", None)
    (problem,) = problems_of('[jobs.a]\nx = "\ud800"\n')
    assert (problem.line, problem.column, problem.code) == (2, 6, "J001")


def test_a_file_that_is_too_large() -> None:
    (problem,) = problems_of("#" * (MAX_BYTES + 1))
    assert (problem.line, problem.column, problem.code) == (1, 1, "J001")
    assert problem.message == f"the file has more than {MAX_BYTES} bytes, the most that is read"
    assert read_job_file("#" * MAX_BYTES, "chronex.toml", "UTC").jobs == ()


def test_a_job_that_the_store_cannot_hold() -> None:
    text, marked_positions = unmarked(f'[jobs.«a»]\nschedule = "@daily"\nrun = "{"x" * 65_000}"\n')
    (problem,) = problems_of(text)
    assert (Place(*problem[1:4]), problem.code) == (marked_positions[0], "J023")


def test_a_host_zone_that_no_one_knows_is_a_problem_only_where_it_is_used() -> None:
    (problem,) = problems_of(JOB, host_zone="Nowhere/Land")
    assert (problem.line, problem.column, problem.code) == (1, 1, "J016")
    text, marked_positions = unmarked('[scheduler]\ntimezone = «"local"»\n')
    problem = problems_of(text, host_zone="Nowhere/Land")[-1]
    assert (Place(*problem[1:4]), problem.code) == (marked_positions[0], "J016")
    assert read_job_file('[scheduler]\ntimezone = "UTC"\n' + JOB, "chronex.toml", "Nowhere/Land").jobs


def test_no_one_reads_more_than_a_thousand_problems() -> None:
    text = "".join(f"x{i} = 1\n" for i in range(50_000))
    assert len(problems_of(text)) == MAX_PROBLEMS


def test_a_bad_default_is_told_once_however_many_jobs_inherit_it() -> None:
    jobs = "".join(JOB.replace("jobs.a", f"jobs.a{i}") for i in range(20))
    assert [p.code for p in problems_of('[defaults]\nrecovery = "bounded"\n' + jobs)] == ["J012"]


# What newcomers try first, and a word of the sentence that helps them.
GUESSES = {
    "uid": "user takes a name", "depends_on": "tasks of one job", "needs": "tasks of one job", "image": "docker",
    "memory": "limits", "niceness": "nice", "ionice": "nice = 10", "matrix": "one run for each value", "mutex": "[groups.NAME]", "holidays": "[calendars.NAME]",
    "mailto": "notify =", "dotenv": "env_file", "logfile": "chronex logs", "include": "apply each", "Reboot": "@start",
}  # fmt: skip


def test_a_key_that_newcomers_guess_gets_the_sentence_that_helps() -> None:
    for name, words in GUESSES.items():
        (problem,) = problems_of(f'{JOB}{name} = "x"\n') if name not in JOB_KEYS else (None,)
        if problem is not None:
            assert words in problem.hint, problem
            assert "the keys here are" not in problem.hint


def test_a_guess_is_not_explained_where_it_means_nothing() -> None:
    (problem,) = problems_of(JOB + "retry = { user = 1 }\n")
    assert problem.hint.startswith("the keys here are")
