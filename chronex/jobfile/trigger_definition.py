"""A trigger definition as a value, for programs that bind a handler to it: what is to be done is not part of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from chronex.errors import ChronexError
from chronex.jobfile.job_tables import ONLY_TASK
from chronex.jobfile.reader import read_triggers
from chronex.model.job import Job, Task, Work

_OWN = ("id", "expression", "enabled", "metadata")


@dataclass(frozen=True)
class TriggerDefinition:
    """An id, an expression, whether it is enabled, metadata that its handler is given, and further keys of a job.

    It is checked when it is made, by the reader of trigger files: JobFileError has every problem. `timezone` in
    `keys`, or else `zone`, is for an expression that names none.
    """

    id: str
    expression: str
    enabled: bool = True
    metadata: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    zone: str = "UTC"

    def __post_init__(self) -> None:
        object.__setattr__(self, "_job", _read(json.dumps(self.to_dict()), f"definition {self.id}", self.zone))

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], zone: str = "UTC") -> TriggerDefinition:
        """From what JSON gives; keys that are not read, such as `$schema`, are left out."""
        try:
            return cls.from_json(json.dumps(dict(table)), zone, "definition")
        except (TypeError, ValueError) as problem:
            if isinstance(problem, ChronexError):
                raise
            raise ChronexError(f"a trigger definition holds what JSON can hold: {problem}") from None

    @classmethod
    def from_json(cls, text: str | bytes, zone: str = "UTC", path: str = "definition") -> TriggerDefinition:
        _read(text, path, zone)
        found = json.loads(text)
        table: dict[str, Any] = found[0] if isinstance(found, list) else found
        own = {key: table[key] for key in _OWN if key in table}
        keys = {key: value for key, value in table.items() if key not in _OWN}
        return cls(**own, keys=keys, zone=zone)

    @classmethod
    def from_file(cls, path: Path | str, zone: str = "UTC") -> TriggerDefinition:
        """From a file of one definition."""
        try:
            text = Path(path).read_bytes()
        except OSError as problem:
            reason = (problem.strerror or str(problem)).lower()
            raise ChronexError(f"cannot read {str(path)!r}: {reason}; name a trigger file") from None
        return cls.from_json(text, zone, str(path))

    def to_dict(self) -> dict[str, Any]:
        table = {
            "id": self.id,
            "expression": self.expression,
            "enabled": self.enabled,
            "metadata": dict(self.metadata),
        }
        return {**table, **self.keys}

    def job(self, work: Work) -> Job:
        """The job that does `work` when the definition says so."""
        found: Job = self.__dict__["_job"]
        return replace(found, source="", tasks=(Task(name=ONLY_TASK, run=work),))


def _read(text: str | bytes, path: str, zone: str) -> Job:
    found = read_triggers(text, path, zone).jobs
    if len(found) != 1:
        raise ChronexError(f"{path} has {len(found)} trigger definitions; register them one by one")
    if found[0].tasks:
        hint = "remove run and tasks, or give it to chronex apply"
        raise ChronexError(f"the trigger definition {found[0].id!r} says itself what to run; {hint}")
    return found[0]


DefinitionSource = TriggerDefinition | Mapping[str, Any] | str | Path


def trigger_definition(source: DefinitionSource | object, zone: str = "UTC") -> TriggerDefinition:
    """A definition, a dict, a text of JSON, or the path of a file."""
    if isinstance(source, TriggerDefinition):
        return source
    if isinstance(source, Mapping):
        return TriggerDefinition.from_dict(source, zone)
    if isinstance(source, str) and source.lstrip()[:1] in ("{", "["):
        return TriggerDefinition.from_json(source, zone)
    if isinstance(source, str | Path):
        return TriggerDefinition.from_file(source, zone)
    raise ChronexError(
        f"a trigger definition is a dict, JSON text or the path of a file, not {type(source).__name__}"
    )
