"""The manual page chronex(1), as roff."""

from __future__ import annotations

from collections.abc import Iterator

from chronex.cli.command_tree import CommandInfo
from chronex.version import __version__

_EXITS = (
    ("0", "all is well"),
    ("1", "something was found, or failed"),
    ("2", "the command or its input was not understood; nothing changed"),
    ("75", "another daemon holds the store"),
)
_VARIABLES = (
    ("CHRONEX_CONFIG", "the job file, where no --config is given"),
    ("CHRONEX_STORE", "the directory of the store, where no --store is given"),
    ("NO_COLOR", "when set, output has no colour"),
    ("TZ", "the zone of the host, for expressions that name none"),
)


def manual(program: CommandInfo) -> str:
    return "\n".join(_lines(program)) + "\n"


def _lines(program: CommandInfo) -> Iterator[str]:
    yield f'.TH CHRONEX 1 "" "Chronex {__version__}" "User Commands"'
    yield from (".SH NAME", f"chronex \\- {_text(program.help.rstrip('.').lower())}")
    yield from (".SH SYNOPSIS", ".B chronex", "\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]")
    yield ".SH COMMANDS"
    for command in program.commands:
        yield from _command(f"chronex {command.name}", command)
    yield ".SH EXIT STATUS"
    yield from _table(_EXITS)
    yield ".SH ENVIRONMENT"
    yield from _table(_VARIABLES)


def _command(path: str, command: CommandInfo) -> Iterator[str]:
    if command.commands:
        yield from (f".SS {_text(path)}", _text(command.help))
        for below in command.commands:
            yield from _command(f"{path} {below.name}", below)
        return
    arguments = " ".join(a.name if a.required else f"[{a.name}]" for a in command.arguments)
    yield from (f'.SS "{_text(f"{path} {arguments}".strip())}"', _text(command.help))
    for argument in command.arguments:
        if argument.help:
            yield from (".TP", f"\\fI{_text(argument.name)}\\fR", _text(argument.help))
    for option in command.options:
        value = f" \\fI{_text(option.value)}\\fR" if option.value else ""
        names = ", ".join(f"\\fB{_text(name)}\\fR" for name in option.names)
        yield from (".TP", f"{names}{value}", _text(option.help))
    if command.example:
        yield from (".P", "Example:", ".nf", f".RS\n{_text(command.example)}\n.RE", ".fi")


def _table(rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name, meaning in rows:
        yield from (".TP", f"\\fB{_text(name)}\\fR", _text(meaning))


def _text(text: str) -> str:
    """Backslashes and hyphens as roff wants them; no line may begin with a dot or a quote of its own."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in escaped)
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
