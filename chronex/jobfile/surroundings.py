"""What a task runs in: each level adds to the environment and replaces the rest."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from chronex.expr.faults import quote
from chronex.jobfile import commands
from chronex.jobfile.entries import Entry, Reader
from chronex.jobfile.values import codes, filled_text
from chronex.model.records import ONLY_ZERO


def _success_codes(entry: Entry) -> tuple[int, ...]:
    found = codes(entry)
    if not found:
        entry.refuse(f"{entry.label} names no code, so nothing would succeed", "write [0]", "J014")
    return found


SURROUNDINGS: dict[str, Reader] = {
    "env": commands.environment,
    "secrets": commands.secrets,
    "directory": filled_text,
    "success_codes": _success_codes,
    "retry_codes": codes,
}


class Surroundings(Struct, frozen=True):
    env: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    directory: str | None = None
    success_codes: tuple[int, ...] = ONLY_ZERO
    retry_codes: tuple[int, ...] | None = None

    def within(self, entry: Entry, given: dict[str, Any]) -> Surroundings:
        """These, as the level of `entry` changes them."""
        own = {key: given[key] for key in SURROUNDINGS if key in given}
        env = {**self.env, **own.get("env", {})}
        secrets = tuple(dict.fromkeys((*self.secrets, *own.get("secrets", ()))))
        merged = replace(self, **{**own, "env": env, "secrets": secrets})
        _check_secrets_apart(entry, own, merged)
        _check_codes_apart(entry, own, merged)
        return merged


def _check_secrets_apart(entry: Entry, own: dict[str, Any], merged: Surroundings) -> None:
    """A secret whose value also stands in the file would be none."""
    hint = "remove it from env; the daemon's environment has it"
    reported = set[str]()
    for index, name in enumerate(own.get("secrets", ())):
        if name in merged.env:
            entry.child("secrets").child(index).report(f"{quote(name)} is both in secrets and in env", hint, "J020")
            reported.add(name)
    for name in own.get("env", {}):
        if name in merged.secrets and name not in reported:
            place = entry.child("env").child(name)
            place.report(f"{quote(name)} is both in secrets and in env", hint, "J020", place.key_span)


def _check_codes_apart(entry: Entry, own: dict[str, Any], merged: Surroundings) -> None:
    key = "retry_codes" if "retry_codes" in own else "success_codes"
    both = sorted(set(merged.success_codes) & set(merged.retry_codes or ()))
    if key in own and both:
        message = f"exit code {both[0]} is both in success_codes and in retry_codes"
        entry.child(key).report(message, "remove it from one of them", "J024")
