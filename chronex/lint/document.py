"""A file as the linter reads it: its text, its lines, and what kind of file it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath

from chronex.jobfile.positions import LineIndex

BYTE_ORDER_MARK = "\ufeff"
# What stands for a file's name when expressions are given as arguments.
ARGUMENTS = "<expression>"
KINDS = ("chronex", "crontab", "cron.d", "github", "k8s", "systemd", "trigger", "python")
_CRONJOB = re.compile(r"""^(?:\s*-)?\s*["']?kind["']?\s*:\s*["']?CronJob(?:List)?["']?\s*(?:#.*)?$""", re.MULTILINE)
_CRONJOB_IN_FLOW = re.compile(r"""["']kind["']\s*:\s*["']CronJob(?:List)?["']""")
_PARSE_CALL = re.compile(r"\bchronex\b")
_CRON_NAME = re.compile(r"crontab|.+\.(?:crontab|cron)")
_CRON_EDITED = re.compile(r"crontab\.[A-Za-z0-9]+")  # what `crontab -e` opens in a temporary directory
_TRIGGER_NAME = re.compile(r"(?:.*[._-])?triggers?\.json|chronex.*\.json")
_READ_BY_CRON = re.compile(r"(?!README)[A-Za-z0-9_-]+|[A-Za-z0-9_.-]+\.(?:crontab|cron)")
# What a template engine or a shell puts a value in place of, before any scheduler sees the file.
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\$[{(]|@[A-Z_]+@")


@dataclass(frozen=True)
class Document:
    """`text` has no byte order mark; `kind` is None for a file that holds no schedules."""

    path: str
    text: str
    kind: str | None
    has_mark: bool = field(default=False)

    @cached_property
    def lines(self) -> LineIndex:
        return LineIndex(self.text)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both counted from 1."""
        return self.lines.line_and_column(offset)

    def line(self, number: int) -> str:
        start = self.lines.start_of_line(number)
        return self.text[start : self.lines.end_of_line(number)].rstrip("\r")

    def with_text(self, text: str) -> Document:
        return Document(self.path, text, self.kind, self.has_mark)


def is_template(text: str) -> bool:
    """A value that is not written yet: `{{ .Values.schedule }}`, `${SCHEDULE}`, `@HOUR@`."""
    return _TEMPLATE.search(text) is not None


def open_document(path: str, text: str, kind: str | None = None, language: str = "") -> Document:
    """`kind` when the user says it; otherwise by the name, and for YAML and Python by what is in it."""
    has_mark = text.startswith(BYTE_ORDER_MARK)
    plain = text.removeprefix(BYTE_ORDER_MARK)
    return Document(path, plain, kind or kind_of(path, plain, language), has_mark)


def kind_of(path: str, text: str, language: str = "") -> str | None:
    kind = kind_by_name(path, language)
    if kind == "yaml":
        is_cron_job = _CRONJOB.search(text) or ("CronJob" in text and _CRONJOB_IN_FLOW.search(text))
        return "k8s" if is_cron_job else None
    if kind == "python":
        return "python" if _PARSE_CALL.search(text) else None
    return kind


def kind_by_name(path: str, language: str = "") -> str | None:
    """The kind by the name alone; of `yaml` and `python` the content decides."""
    parts = PurePath(path.replace("\\", "/")).parts
    name = parts[-1] if parts else ""
    folders = parts[:-1]
    if name == "chronex.toml" or name.endswith(".chronex.toml"):
        return "chronex"
    if folders[-1:] == ("cron.d",):
        return "cron.d" if _READ_BY_CRON.fullmatch(name) else None
    if name == "crontab" and folders[-1:] == ("etc",):
        return "cron.d"
    if language == "crontab" or _is_crontab(name, folders):
        return "crontab"
    if name.endswith(".timer") or (name.endswith(".conf") and folders and folders[-1].endswith(".timer.d")):
        return "systemd"
    if name.endswith((".yml", ".yaml")):
        return "github" if folders[-2:] == (".github", "workflows") else "yaml"
    if name.endswith(".json"):
        return "trigger" if _TRIGGER_NAME.fullmatch(name) else None
    return "python" if name.endswith(".py") else None


def _is_crontab(name: str, folders: tuple[str, ...]) -> bool:
    if _CRON_NAME.fullmatch(name) or folders[-3:-1] == ("spool", "cron"):
        return True
    return _CRON_EDITED.fullmatch(name) is not None and folders[-1:] == ("tmp",)
