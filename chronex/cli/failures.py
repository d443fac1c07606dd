"""Failures outside of a command, in one sentence with a hint: bad usage, and what the system refused."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted, terminal_safe

_HINTS = {
    errno.ENOSPC: "free some space, then try again",
    errno.EDQUOT: "free some space, then try again",
    errno.ENOENT: "is its directory there?",
    errno.ENOTDIR: "part of its path is a file",
    errno.EISDIR: "name a file in it",
    errno.EROFS: "choose a place that can be written to",
    errno.EACCES: "check who owns it and its permissions",
    errno.EPERM: "check who owns it and its permissions",
    errno.EMFILE: "raise the limit of open files: ulimit -n",
}
_RANGE = re.compile(r"(.*) is not in the range (?:(-?\d+)<=)?x(?:>=(-?\d+))?(?:<=(-?\d+))?$", re.DOTALL)
_EXPRESSIONS = {"explain", "next"}


def is_help(error: Exception) -> bool:
    """A command that was given nothing shows its help."""
    return type(error).__name__ == "NoArgsIsHelpError"


def usage_sentence(error: Any) -> str | None:
    """What is wrong with the command line; None for any other error.

    Typer has a layout of four lines for this; here it is one sentence, as every other error.
    """
    if not hasattr(error, "format_message"):
        return None
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else _typed_command(sys.argv)
    problem = _usage_problem(error, path.split()[-1])
    return terminal_safe(f"{problem}{' See' if problem.endswith('?') else '; see'} {path} --help")


def _typed_command(arguments: Sequence[str]) -> str:
    """The command whose help has the answer: of an option without its value, the parser does not know the command."""
    from chronex.cli.app import COMMANDS
    from chronex.cli.output import COMMAND_GROUPS

    words = [word for word in arguments[1:] if not word.startswith("-")]
    count = 2 if words[:1] and words[0] in COMMAND_GROUPS else 1
    return " ".join(["chronex", *words[:count]]) if words[:1] and words[0] in COMMANDS else "chronex"


def _usage_problem(error: Any, command: str) -> str:
    text = str(error.format_message()).rstrip(".")
    match type(error).__name__:
        case "NoSuchOption":
            near = " or ".join(_alike(error.option_name, error.possibilities or []))
            return f"no option {error.option_name}" + (f"; did you mean {near}?" if near else "")
        case "MissingParameter":
            return f"{_name(error)} is missing"
        case "BadParameter":
            return f"{_name(error)}: {_bad_value(error.message.rstrip('.'))}"
    if extra := re.match(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)$", text, re.DOTALL):
        if "postgres" in extra[1].lower():  # it may hold a password, and is not repeated
            return "unexpected argument; name a store with --store STORE"
        meant = "put the expression in quotes" if command in _EXPRESSIONS else "put what has spaces in quotes"
        return f"unexpected argument {extra[1]!r}; {meant}"
    if unknown := re.match(r"No such command '(.*?)'(?:\. Did you mean (.*)\?)?$", text, re.DOTALL):
        near = (unknown[2] or "").replace("'", "").replace(", ", " or ")
        return f"no command {unknown[1]!r}" + (f"; did you mean {near}?" if near else "")
    if short := re.match(r"Option '(.*?)' (.*)$", text, re.DOTALL):
        needs = short[2].replace("requires an argument", "needs a value")
        needs = re.sub(r"requires (\d+) arguments", r"needs \1 values", needs)
        return f"{short[1]} {needs}"
    return text[:1].lower() + text[1:]


def _alike(option: str, possible: Sequence[str]) -> list[str]:
    """Of what the parser proposes, what may be meant: the beginning of an option, or one that is spelled like it."""
    return [name for name in possible if name.startswith(option) or nearest(option[2:], [name[2:]])]


def _name(error: Any) -> str:
    parameter = error.param
    if parameter is None:
        return "a value"
    is_option = parameter.param_type_name == "option"
    return str(max(parameter.opts, key=len) if is_option else parameter.metavar or parameter.name.upper())


def _bad_value(text: str) -> str:
    if found := _RANGE.match(text):
        value, least, above, most = found.groups()
        limits = [f"at least {least or above}"] * bool(least or above) + [f"at most {most}"] * bool(most)
        return f"{value} is out of range: {' and '.join(limits)}"
    return text.replace("is not a valid int range", "is not a whole number").replace("valid int", "whole number")


def system_sentence(error: OSError) -> str:
    """`/x: permission denied; check who owns it`."""
    what = (error.strerror or os.strerror(error.errno or 0)).lower()
    where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else "cannot write: "
    return terminal_safe(f"{where}{what}; {_HINTS.get(error.errno or 0, 'chronex doctor looks for the cause')}")


def utf8_sentence(error: UnicodeEncodeError) -> str:
    """The system hands over names and arguments of any bytes; records and units hold text."""
    around = error.object[max(error.start - 20, 0) : error.end + 10]
    return f"{quoted(around)}: these are no letters of UTF-8, and Chronex keeps text only; choose another name"
