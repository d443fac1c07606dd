"""The commands as plain values, read from what is declared."""

from __future__ import annotations

from typing import Any, NamedTuple

from typer.main import get_command

from chronex.cli.app import COMMANDS, whole_app


class OptionInfo(NamedTuple):
    names: tuple[str, ...]
    value: str  # the placeholder of its value; empty for a switch
    help: str


class ArgumentInfo(NamedTuple):
    name: str
    help: str
    required: bool


class CommandInfo(NamedTuple):
    """`help` is a paragraph; `example` what the help shows as one."""

    name: str
    help: str
    example: str
    options: tuple[OptionInfo, ...]
    arguments: tuple[ArgumentInfo, ...]
    commands: tuple[CommandInfo, ...] = ()

    @property
    def summary(self) -> str:
        return self.help.partition(". ")[0].rstrip(".")


def program() -> CommandInfo:
    """The whole program, with every command in the order of the help."""
    root = _read("chronex", get_command(whole_app()))
    order = list(COMMANDS)
    return root._replace(commands=tuple(sorted(root.commands, key=lambda command: order.index(command.name))))


def _read(name: str, declared: Any) -> CommandInfo:
    text, _, example = (declared.help or "").partition("Example:")
    parameters = [parameter for parameter in declared.params if not getattr(parameter, "hidden", False)]
    return CommandInfo(
        name=name,
        help=" ".join(text.split()),
        example=" ".join(example.split()),
        options=tuple(_option(p) for p in parameters if p.param_type_name == "option"),
        arguments=tuple(_argument(p) for p in parameters if p.param_type_name == "argument"),
        commands=tuple(_read(each, below) for each, below in getattr(declared, "commands", {}).items()),
    )


def _option(parameter: Any) -> OptionInfo:
    kind = "N" if parameter.type.name.startswith("int") else "TEXT"
    value = "" if parameter.is_flag else parameter.metavar or kind
    return OptionInfo((*parameter.opts, *parameter.secondary_opts), value, parameter.help or "")


def _argument(parameter: Any) -> ArgumentInfo:
    return ArgumentInfo(
        parameter.metavar or parameter.name.upper(), getattr(parameter, "help", "") or "", parameter.required
    )
