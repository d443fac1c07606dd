"""One table of files and what is found in them, for the command line and for the language server alike.

Each finding is written `line:column-line:column CODE`, all counted from 1 in characters.
"""

from __future__ import annotations

from typing import NamedTuple

NOW = "2027-01-01T00:00:00+00:00"
NOW_MS = 1_798_761_600_000
ZONE = "Europe/Berlin"


class Case(NamedTuple):
    path: str
    text: str
    findings: tuple[str, ...] = ()


def _workflow(*lines: str) -> str:
    return "on:\n  schedule:\n" + "".join(f"    {line}\n" for line in lines)


def _cron_job(spec: str, name: str = "report") -> str:
    return f"apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: {name}\nspec:\n{spec}"


TIMEOUT = 'task_timeout = "1h"\n'


def _job(schedule: str, more: str = "") -> str:
    return f'[jobs.a]\nschedule = "{schedule}"\nrun = "true"\n{more}{TIMEOUT}'


CASES = (
    Case("toml-clean/chronex.toml", _job("17 4 * * *")),
    Case(
        "toml-errors/chronex.toml",
        _job("99 4 * * MNO {jiter:1m}"),
        ("2:13-2:15 E002", "2:22-2:25 E006", "2:27-2:32 E015"),
    ),
    Case(
        "toml-emoji/chronex.toml",
        '# 😀\n[jobs.a]\ndescription = "😀"\nrun = "true"\nschedule = "*/7 * * * *" # 😀\n' + TIMEOUT,
        ("5:13-5:16 W103",),
    ),
    Case(
        "toml-zone/chronex.toml",
        '[scheduler]\ntimezone = "America/New_York"\n' + _job("30 1 * * *"),
        ("4:13-4:17 W112",),
    ),
    Case(
        "toml-dst/chronex.toml",
        _job("30 2 * * *", 'dst = { gap = "skip" }\ntimezone = "Europe/Berlin"\n'),
        ("2:13-2:17 W111", "2:13-2:17 W112"),
    ),
    Case("toml-posix/chronex.toml", _job("*/5 4 * * *", 'dialect = "posix"\n'), ("2:13-2:16 E007",)),
    Case(
        "toml-keys/chronex.toml",
        _job("17 4 * * *", 'overlab = "skip"\noverlap = "skipp"\n'),
        ("4:1-4:8 J010", "5:11-5:18 J013"),
    ),
    Case(
        "toml-broken/chronex.toml", '[jobs.a]\nschedule = "*/7 4 * * *"\nrun = \n', ("2:13-2:16 W103", "3:7-3:7 J002")
    ),
    Case(
        "toml-inline/chronex.toml", 'jobs = { a = { schedule = "0 25 * * *", run = "true" } }\n', ("1:30-1:32 E003",)
    ),
    Case("toml-escapes/chronex.toml", '[jobs.a]\nschedule = "0\\t25 * * *"\nrun = "true"\n', ("2:12-2:25 E003",)),
    Case("toml-crlf/chronex.toml", _job("0 25 * * *").replace("\n", "\r\n"), ("2:15-2:17 E003",)),
    Case(
        "toml-retry/chronex.toml",
        _job("*/5 * * * *", 'retry = { max = 5, interval = "2m", backoff = 2.0 }\n'),
        ("2:12-2:25 W151",),
    ),
    Case(
        "toml-retry-cascade/chronex.toml",
        "[defaults]\nretry = { max = 5 }\n" + _job("*/5 * * * *", 'retry = { interval = "2m" }\n'),
        ("4:12-4:25 W151",),
    ),
    Case(
        "toml-retry-short/chronex.toml",
        _job("0 4 * * *", 'retry = { max = 5, interval = "0s", max_interval = "999ms" }\n'),
        ("4:31-4:35 J103", "4:52-4:59 J103"),
    ),
    Case(
        "toml-ignored/chronex.toml",
        '[jobs.a]\nschedule = "*/7 * * * *" # chronex: ignore[W103]\nrun = "true"\n' + TIMEOUT,
    ),
    Case(
        "toml-ignore-unused/chronex.toml", "# chronex: ignore-file[W111]\n" + _job("17 4 * * *"), ("1:1-1:29 W142",)
    ),
    Case(
        "toml-no-timeout/chronex.toml",
        '[jobs.a]\nschedule = "17 4 * * *"\nrun = "true"\n[jobs.b]\nschedule = "18 4 * * *"\nrun = "true"\n',
        ("2:12-2:24 W153",),
    ),
    Case(
        "toml-timeouts/chronex.toml",
        '[jobs.a]\nschedule = "17 4 * * *"\nrun = "true"\nexecution_timeout = "off"\n'
        '[jobs.b]\nschedule = "18 4 * * *"\n[[jobs.b.tasks]]\nname = "x"\nrun = "true"\ntimeout = "1m"\n'
        '[jobs.c]\nschedule = "19 4 * * *"\n[[jobs.c.tasks]]\nname = "x"\nrun = "true"\ntimeout = "1m"\n'
        '[[jobs.c.tasks]]\nname = "y"\nrun = "true"\n',
        ("12:12-12:24 W153",),
    ),
    Case(
        "toml-default-timeout/chronex.toml", f'[defaults]\n{TIMEOUT}[jobs.a]\nschedule = "17 4 * * *"\nrun = "true"\n'
    ),
    Case(
        "clean.crontab",
        "SHELL=/bin/sh\n# nightly\n17 4 * * 1-5 /usr/bin/backup --quiet\n@daily\t/usr/bin/rotate\n@reboot /usr/bin/warm\n",
    ),
    Case(
        "ranges.crontab",
        "0 22-4 * * * /usr/bin/a\n0 9 L * * /usr/bin/b\n0 9 ? * MON /usr/bin/c\n0 0 9 * * MON /usr/bin/d\n",
        ("1:3-1:7 E139", "2:5-2:6 E130", "3:5-3:6 E130", "4:1-4:14 E130"),
    ),
    Case(
        "percent.crontab",
        "17 4 * * * tar cf /b/$(date +%Y-%m).tar /srv\n18 4 * * * date +\\%F\n19 4 * * * mail -s hi root%Hello%\n",
        ("1:30-1:31 W134", "1:33-1:34 W134"),
    ),
    Case("no-newline.crontab", "17 4 * * * /usr/bin/a", ("1:1-1:22 W135",)),
    Case(
        "zones.crontab",
        "CRON_TZ=America/New_York\n30 1 * * * /usr/bin/a\nCRON_TZ=Mars/Base\nTZ=Europe/Paris\n",
        ("1:1-1:25 W138", "3:1-3:18 W138", "4:1-4:16 W138"),
    ),
    Case(
        "cronie.crontab",
        "RANDOM_DELAY=5\nCRON_TZ=America/New_York\n30 1 * * * /usr/bin/a\nCRON_TZ=Mars/Base\n0~59 4 * * * /b\n0~99 4 * * * /c\n",
        ("3:1-3:5 W112", "4:9-4:18 E011", "6:1-6:5 E130"),
    ),
    Case("etc/crontabs/root", "0 22-1 * * * /usr/bin/a\n0 9 */2 * * /usr/bin/b\n", ("2:5-2:8 E139",)),
    Case("cron.d/my.job", "17 4 * * * root /usr/bin/a\n", ("1:1-1:27 W145",)),
    Case(
        "traps.crontab",
        "PATH=$PATH:/opt/bin\n5/10 * * * * /usr/bin/a\r\n# monthly\n0 0 * 1 * /usr/bin/b\n",
        ("1:6-1:11 W146", "2:1-2:5 E130", "2:1-2:24 W144", "4:1-4:10 W147"),
    ),
    Case(
        "gap.crontab",
        "30 2 * * * /usr/bin/fixed\n*/30 2 * * * /usr/bin/by-clock\n",
        ("1:1-1:5 W111", "1:1-1:5 W112", "2:1-2:7 W111", "2:1-2:7 W112"),
    ),
    Case(
        "both-days.crontab",
        "0 9 */2 * MON /usr/bin/a\n0 9 13 * FRI /usr/bin/b\n",
        ("1:5-1:8 W103", "1:5-1:8 W106", "2:5-2:13 W102"),
    ),
    Case("own-user.crontab", "17 4 * * * root /usr/bin/a\n17 4 * * *\n", ("1:12-1:16 W148", "2:1-2:11 E136")),
    Case(
        "ignored.crontab",
        "# chronex: ignore[W103]\n*/7 * * * * /usr/bin/a\n# chronex: ignore\n*/7 * * * * /usr/bin/a\n",
        ("3:1-3:18 W141",),
    ),
    Case(
        "nicknames.crontab",
        "@wekly /usr/bin/a\n@every 5m /usr/bin/b\n0~59 4 * * * /usr/bin/c\n",
        ("1:1-1:7 E130", "2:1-2:7 E130", "3:1-3:5 E139"),
    ),
    Case(
        "cron.d/backup",
        "17 4 * * * root /usr/bin/a\n17 4 * * * /usr/bin/a\n17 4 * * * root\n@daily www-data /usr/bin/b\n",
        ("2:12-2:22 E136", "3:12-3:16 E136"),
    ),
    Case(
        ".github/workflows/shapes.yml",
        _workflow("- crn: '17 4 * * *'", "- '17 4 * * *'", "- cron: '17 4 * * *'", "  branch: main", "- cron: ''"),
        ("3:7-3:10 E150", "4:7-4:19 E150", "6:7-6:13 E150", "7:14-7:14 E010"),
    ),
    Case(
        ".github/workflows/mapping.yml",
        "on:\n  schedule:\n    cron: '17 4 * * *'\n",
        ("3:5-3:6 E150",),
    ),
    Case(".github/workflows/block.yml", _workflow("- cron: |", "    0 99 * * *"), ("3:13-5:1 E003",)),
    Case(
        "argo.yaml",
        "kind: CronWorkflow\nspec:\n  schedules:\n    - '0 25 * * *'\n    - '17 4 * * *'\n  timezone: Europe/Berln\n",
        ("4:10-4:12 E003", "6:13-6:25 E011"),
    ),
    Case(
        "argo-single.yaml",
        "kind: CronWorkflow\nspec:\n  schedule: '17 4 * * 8'\n  timezone: UTC\n",
        ("3:23-3:24 E006",),
    ),
    Case(
        "azure-pipelines.yml",
        "schedules:\n- cron: '0 25 * * *'\n  displayName: nightly\n- cron: '@daily'\n- cron: 17 4 * * Mon-Fri\n",
        ("2:12-2:14 E003", "4:10-4:16 E130"),
    ),
    Case(
        ".github/dependabot.yml",
        "version: 2\nupdates:\n- schedule:\n    interval: cron\n    cronjob: '0 25 * * *'\n- schedule:\n    interval: cron\n"
        "    cronjob: 'every day at 5pm'\n    timezone: Mars/Base\n- schedule:\n    interval: weekly\n",
        ("5:17-5:19 E003",),
    ),
    Case(
        "templates/cronjob.yaml",
        "{{- if .Values.on }}\nkind: CronJob\nmetadata:\n  name: {{ .Release.Name }}-x\nspec:\n  schedule: '0 25 * * *'\n"
        "  timeZone: {{ .Values.zone | quote }}\n{{- end }}\n---\nkind: CronJob\nspec:\n  schedule: {{ .Values.when }}\n",
        ("6:16-6:18 E003",),
    ),
    Case(
        "templates/either.yaml",
        "kind: CronJob\nspec:\n  {{- if .Values.often }}\n  schedule: '17 * * * *'\n  {{- else }}\n  schedule: '0 25 * * *'\n"
        "  {{- end }}\n  timeZone: Etc/UTC\n---\nkind: CronWorkflow\nspec:\n  {{- if .Values.a }}\n  schedule: '0 99 * * *'\n"
        "  {{- else }}\n  schedule: '0 24 * * *'\n  {{- end }}\n",
        ("6:16-6:18 E003", "13:16-13:18 E003", "15:16-15:18 E003"),
    ),
    Case(  # each branch with its own zone
        "templates/zones.yaml",
        "kind: CronJob\nspec:\n  {{- if .Values.here }}\n  schedule: '30 2 * * *'\n  timeZone: Europe/Berlin\n  {{- else }}\n"
        "  schedule: '30 2 * * *'\n  timeZone: Asia/Tokyo\n  {{- end }}\n",
        ("4:14-4:18 W111", "4:14-4:18 W112"),
    ),
    Case(
        "k8s/alias.yaml",
        "x: &late '0 25 * * *'\nkind: CronJob\nspec:\n  schedule: *late\n  timeZone: Etc/UTC\n",
        ("4:13-4:18 E003",),
    ),
    Case(  # by a whole mapping, by a merge, and an anchor that is not there
        "k8s/aliases.yaml",
        "kind: List\nitems:\n- kind: CronJob\n  spec: &s\n    schedule: '17 4 * * 8'\n    timeZone: Etc/UTC\n- kind: CronJob\n"
        "  spec: *s\n- kind: CronJob\n  spec:\n    <<: *s\n    timeZone: Mars/Base\n- kind: CronJob\n  spec: *nowhere\n",
        ("5:25-5:26 E006", "12:15-12:24 E011"),
    ),
    Case(
        ".github/workflows/alias.yml",
        "x: &c '17 25 * * *'\ny: &all\n  - cron: '0 99 * * *'\n  - cron: *c\non:\n  schedule: *all\n",
        ("3:14-3:16 E003", "4:11-4:13 E003"),
    ),
    Case("k8s/hourly.yaml", _cron_job("  schedule: '17 * * * *'\n")),
    Case(".github/workflows/clean.yml", _workflow("- cron: '17 4 * * *'", "- cron: 37 5 * * MON-FRI")),
    Case(
        ".github/workflows/often.yml",
        _workflow("- cron: '*/2 * * * *'", "- cron: '0 4 * * *'", "- cron: '@daily'", "- cron: '17 4 * * 7'"),
        ("3:14-3:25 W131", "4:14-4:15 W132", "5:14-5:20 E130", "6:23-6:24 E130"),
    ),
    Case(".github/workflows/star.yml", _workflow("- cron: */15 * * * *"), ("3:13-3:25 E137",)),
    Case(
        ".github/workflows/zone.yml",
        _workflow(
            "- cron: '30 2 * * *'", "  timezone: Europe/Berlin", '- {cron: "17 4 * * *", timezone: Europe/Berln}'
        ),
        ("3:14-3:18 W111", "5:38-5:50 E011"),
    ),
    Case(
        ".github/workflows/emoji.yml",
        _workflow("- {name: 😀, cron: '17 25 * * *'}"),
        ("3:8-3:12 E150", "3:27-3:29 E003"),
    ),
    Case(
        ".github/workflows/quoted.yml",
        'name: 😀 nightly\n"on":\n  push:\n  schedule:\n    - cron: "17\\x2025 * * *"\n',
        ("5:13-5:29 E003",),
    ),
    Case(".github/workflows/broken.yml", "on:\n  schedule: [\n", ("3:1-3:1 E140",)),
    Case("k8s/clean.yaml", _cron_job('  schedule: "17 4 * * ?"\n  timeZone: Etc/UTC\n')),
    Case(
        "k8s/zone.yaml",
        _cron_job('  schedule: "CRON_TZ=Europe/Berlin 17 4 * * *"\n')
        + "---\n"
        + _cron_job("  schedule: 17 4 * * 7\n  timeZone: EST\n"),
        ("6:14-6:36 E133", "13:22-13:23 E130", "14:13-14:16 W113"),
    ),
    Case(
        "k8s/list.yaml",
        "kind: List\napiVersion: v1\nitems:\n  - kind: ConfigMap\n  - kind: CronJob\n    spec:\n      timeZone: Europe/Berlin\n      schedule: 30 2 * * *\n",
        ("8:17-8:21 W111", "8:17-8:21 W112"),
    ),
    Case("k8s/no-zone.yaml", _cron_job("  schedule: 17 4 31 * *\n"), ("6:13-6:24 W114", "6:18-6:20 W105")),
    Case("k8s/helm.yaml", _cron_job('  schedule: "{{ .Values.schedule }}"\n')),
    Case("k8s/deployment.yaml", "kind: Deployment\nspec:\n  schedule: 99 99 * * *\n"),
    Case(
        "clean.timer",
        "[Timer]\nOnCalendar=Mon..Fri 09:00\nOnCalendar=\nOnCalendar=*-*-01 04:17:00 UTC\nPersistent=true\n",
    ),
    Case(
        "wrong.timer",
        "[Unit]\nOnCalendar=nonsense\n[Timer]\nOnCalendar=Fri..Mon 09:00\nOnCalendar=*:0/5 Europe/Berln\nOnCalendar=*-02-30\n",
        ("4:12-4:20 E161", "5:18-5:30 E161", "6:12-6:19 W101"),
    ),
    Case("gap.timer", "[Timer]\nOnCalendar=02:30 Europe/Berlin\n", ("2:12-2:31 W111", "2:12-2:31 W112")),
    Case(
        "triggers.json",
        '[{"id": "a", "expression": "@every 15m {stagger:3m}"}, {"id": "b", "expression": "0 25 * * *"}]\n',
        ("1:85-1:87 E003",),
    ),
    Case("trigger.json", '{"id": "a", "expression": }\n', ("1:27-1:28 J002",)),
    Case("trigger.json", "", ("1:1-1:1 J002",)),
    Case("chronex-jobs.json", '{"id": "a",\n "expression": ', ("2:16-2:16 J002",)),
    Case("chronex-package.json", '{"name": }\n'),
    Case("a.triggers.json", '{"$schema": "x", "id": "a", "expression": "@daily", "owner": 1}\n', ("1:53-1:60 J102",)),
    Case(
        "calls.py",
        'import chronex\nchronex.parse("17 4 * * *")\nx = "😀"; chronex.parse("0 25 * * *")\nchronex.parse(x)\n',
        ("3:27-3:29 E003",),
    ),
    Case(
        "alias.py",
        "from chronex import parse as p\np(r'0 9 * * MNO')\np('0 9 * *' ' MNO')\np('30 1 * * *', tz='America/New_York')\n",
        ("2:13-2:16 E006", "3:3-3:19 E006", "4:4-4:8 W112"),
    ),
    Case(
        "engine.py",
        "import chronex\nengine = chronex.Engine('state')\n@engine.job('0 25 * * *')\ndef f(): ...\n"
        "engine.add('x', '0 9 * * MNO', f)\nengine.job(schedule='30 1 * * *', timezone='America/New_York')(f)\n"
        "engine.job('tides', dialect='custom')(f)\nother.job('0 25 * * *')\nengine.add(f)\n",
        ("3:16-3:18 E003", "5:26-5:29 E006", "6:22-6:26 W112"),
    ),
    Case(
        "with_engine.py",
        "from chronex import Engine as E\nwith E('s') as one:\n    one.job('0 25 * * *')\nx: E = E('s')\nx.job('0 26 * * *')\n",
        ("3:16-3:18 E003", "5:10-5:12 E003"),
    ),
    Case("old_mac.py", "import chronex\rx = 1\n\f\nchronex.parse('*/1 9 * * *')\n", ("3:16-3:19 W107",)),
    Case("other.py", "from json import loads as parse\nparse('0 25 * * *')  # chronex\n"),
    Case("compose.yaml", "services:\n  job:\n    schedule: 99 99 * * *\n"),
    Case("pyproject.toml", '[jobs.a]\nschedule = "99"\n'),
)
