"""Files of every kind, as oddly as they may be written: for trying fixes."""

from __future__ import annotations

import json
import random

from chronex.lint.source_files import Document, open_document

_TEXTS = (
    "*/1 4 * * *", "0 4 * * Monday", "0 4 * January *", "0 4 * * 7", "0 4 * * 1,7", "0 4 ? * *", "0 4 * * ?", "@Daily",
    "daily", "17 4 * * *", "*/15 */1 1 * 7", "TZ=asia/tokyo 0 4 * * *", "CRON_TZ=UTC 0 4 * * 7", "0 22-6 * * sunday",
    "0 4 * * FRI#L", "*/1 * */1 */1 MON", "0 4 */2 * Monday", "5/10 4 * * *", "-5 4 * * Monday", "0 4 * * mon-Friday",
)  # fmt: skip
_ZONES = ("europe/berlin", "America/New York", "utc", "PST", "Asia/Tokyo", "Europe/Bern")
_KINDS = (
    "crontab",
    "cron.d",
    "kubernetes",
    "argo",
    "helm",
    "github",
    "azure",
    "dependabot",
    "trigger",
    "python",
    "toml",
)


def odd_file(dice: random.Random) -> Document:
    path, text = _FORMS[dice.choice(_KINDS)](dice)
    if dice.random() < 0.3:
        text = text.replace("\n", "\r\n")
    if dice.random() < 0.15:
        text = "\ufeff" + text
    if dice.random() < 0.15:
        text = text.rstrip("\r\n")
    return open_document(path, text)


def _comment(dice: random.Random) -> str:
    return dice.choice(["", "", "  # Monday, 7 and */1", " # chronex: ignore[W111]", "\t# 'x' \"y\""])


# -- crontabs -------------------------------------------------------------------------------------------------


def _crontab(dice: random.Random, user: str = "") -> tuple[str, str]:
    blank = dice.choice([" ", " ", "\t", "  "])
    lines = ["MAILTO=Monday", "# */1 daily", f"CRON_TZ={dice.choice(_ZONES)}"]
    for _ in range(3):
        text = blank.join(dice.choice(_TEXTS).split(" "))
        lines.append(f"{dice.choice(['', '', ' '])}{text}{blank}{user}/bin/x Monday 7 */1")
    dice.shuffle(lines)
    return ("cron.d/a" if user else "crontab"), "\n".join(lines) + "\n"


# -- YAML -----------------------------------------------------------------------------------------------------


def _scalar(dice: random.Random, text: str, indent: int) -> str:
    """The text in one of YAML's styles."""
    pad = " " * (indent + 2)
    escaped = text.replace("M", "\\x4d").replace("7", "\\u0037")
    styles = [
        f'"{text}"',
        f"'{text}'",
        f"|\n{pad}{text}",
        f">-\n{pad}{text}",
        f'"{escaped}"',
        f"&a '{text}'",
        f"!!str '{text}'",
    ]
    if text[0] not in "*@-?&!":
        styles.append(text)
    style = dice.choice(styles)
    return style if style[0] in "|>" else style + _comment(dice)


def _kubernetes(dice: random.Random, kind: str = "CronJob", zone_key: str = "timeZone") -> tuple[str, str]:
    key = dice.choice(["schedule", "schedule", '"schedule"', "'schedule'"])
    if dice.random() < 0.15:
        return "a.yaml", f'kind: {kind}\nspec: {{{key}: "{dice.choice(_TEXTS)}", suspend: false}}\n'
    lines = [f"  {key}: {_scalar(dice, dice.choice(_TEXTS), 2)}", f"  suspend: false{_comment(dice)}"]
    if dice.random() < 0.5:
        lines.append(f"  {zone_key}: {_scalar(dice, dice.choice(_ZONES), 2)}")
    dice.shuffle(lines)
    head = dice.choice(["spec:", "spec:", "spec: &all", "spec: !!map", "spec:   # x"])
    return "a.yaml", f"kind: {kind}\n{head}\n" + "\n".join(lines) + "\n"


def _argo(dice: random.Random) -> tuple[str, str]:
    if dice.random() < 0.5:
        return _kubernetes(dice, "CronWorkflow", "timezone")
    items = "".join(f"  - {_scalar(dice, dice.choice(_TEXTS), 2)}\n" for _ in range(3))
    return "a.yaml", f"kind: CronWorkflow\nspec:\n  schedules:\n{items}"


def _helm(dice: random.Random) -> tuple[str, str]:
    path, text = _kubernetes(dice)
    lines = text.split("\n")
    lines.insert(dice.randrange(2, len(lines)), "{{- if .Values.x }}")
    more = dice.choice(
        ["  {{- include `zone` . | nindent 2 }}\n", "  timeZone: {{ .Values.zone }}\n", "{{- end }}\n"]
    )
    return path, "\n".join(lines) + more


def _github(dice: random.Random) -> tuple[str, str]:
    entries = "".join(f"    - cron: {_scalar(dice, dice.choice(_TEXTS), 6)}\n" for _ in range(2))
    if dice.random() < 0.4:
        entries += f"      timezone: {_scalar(dice, dice.choice(_ZONES), 6)}\n"
    if dice.random() < 0.3:
        entries += "    - cron: */15 */1 * * *\n"
    script = "jobs:\n  a:\n    steps:\n    - run: |\n        cron: */1 * * * *\n        # chronex: ignore[W111]\n"
    return ".github/workflows/a.yml", f"on:\n  schedule:\n{entries}" + dice.choice(["", script])


def _azure(dice: random.Random) -> tuple[str, str]:
    return (
        "azure-pipelines.yml",
        f"schedules:\n- cron: {_scalar(dice, dice.choice(_TEXTS), 2)}\n  displayName: Monday\n",
    )


def _dependabot(dice: random.Random) -> tuple[str, str]:
    zone = dice.choice(["", f"    timezone: {dice.choice(_ZONES)}\n"])
    return (
        ".github/dependabot.yml",
        f"updates:\n- schedule:\n    cronjob: {_scalar(dice, dice.choice(_TEXTS), 4)}\n{zone}",
    )


# -- our own --------------------------------------------------------------------------------------------------


def _trigger(dice: random.Random) -> tuple[str, str]:
    text = json.dumps({"id": "Monday", "expression": dice.choice(_TEXTS)}, indent=dice.choice([None, 2]))
    return "triggers.json", text.replace("Mon", dice.choice(["Mon", "M\\u006fn"]))


def _python(dice: random.Random) -> tuple[str, str]:
    text, quote = dice.choice(_TEXTS), dice.choice(["'", '"', '"""', "'''"])
    literals = [
        f"{quote}{text}{quote}",
        f"r{quote}{text}{quote}",
        f"f{quote}{text}{quote}",
        f"'{text[:3]}' '{text[3:]}'",
    ]
    calls = [f"chronex.parse({dice.choice(literals)}){_comment(dice)}" for _ in range(2)]
    return "a.py", "import chronex\n" + "\n".join(calls) + '\n"""\n# chronex: ignore[W111]\n"""\n'


def _toml(dice: random.Random) -> tuple[str, str]:
    text = dice.choice(_TEXTS)
    quote = dice.choice(['"', "'", '"""', "'''"])
    written = dice.choice(
        [f"{quote}{text}{quote}", f"[{quote}{text}{quote}, '17 4 * * *']", '"' + text.replace("M", "\\u004d") + '"']
    )
    lines = [f"schedule = {written}{_comment(dice)}", "run = 'x # chronex: ignore[W111]'"]
    lines += dice.sample(
        ["Overlap = 'skip'", "overlap = 'Skip'", '"Overlap" = "skip"', f"timezone = '{dice.choice(_ZONES)}'"], 2
    )
    if dice.random() < 0.2:
        return "chronex.toml", f"jobs.a = {{ schedule = '{text}', run = 'x', Overlap = 'SKIP' }}\n"
    dice.shuffle(lines)
    return "chronex.toml", dice.choice(["[jobs.a]\n", "[jobs.'Monday 7']\n", "[ jobs . a ] # x\n"]) + "\n".join(
        lines
    ) + "\n"


_FORMS = {
    "crontab": _crontab, "cron.d": lambda dice: _crontab(dice, "root "), "kubernetes": _kubernetes, "argo": _argo, "helm": _helm,
    "github": _github, "azure": _azure, "dependabot": _dependabot, "trigger": _trigger, "python": _python, "toml": _toml,
}  # fmt: skip
