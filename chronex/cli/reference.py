"""The command line described by itself: completion scripts and the manual page, from what is declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from typer.main import get_command

from chronex.cli.app import COMMANDS, whole_app
from chronex.cli.completion_values import KINDS, is_path, kind_of, known_words
from chronex.version import __version__

# -- the commands as plain values, read from what is declared -----------------------------------------------------


class OptionInfo(NamedTuple):
    names: tuple[str, ...]
    value: str  # the placeholder of its value; empty for a switch
    help: str
    default: str = ""  # as the help shows it; empty where there is none to tell


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
    root = _read_command("chronex", get_command(whole_app()))
    order = list(COMMANDS)
    return root._replace(commands=tuple(sorted(root.commands, key=lambda command: order.index(command.name))))


def _read_command(name: str, declared: Any) -> CommandInfo:
    text, _, example = (declared.help or "").partition("Example:")
    parameters = [parameter for parameter in declared.params if not getattr(parameter, "hidden", False)]
    return CommandInfo(
        name=name,
        help=" ".join(text.split()),
        example=" ".join(example.split()),
        options=tuple(_option(p) for p in parameters if p.param_type_name == "option"),
        arguments=tuple(_argument(p) for p in parameters if p.param_type_name == "argument"),
        commands=tuple(_read_command(each, below) for each, below in getattr(declared, "commands", {}).items()),
    )


def _option(parameter: Any) -> OptionInfo:
    kind = "N" if parameter.type.name.startswith("int") else "TEXT"
    value = "" if parameter.is_flag else parameter.metavar or kind
    has_default = bool(value) and isinstance(parameter.default, str | int | float) and parameter.default != ""
    default = str(parameter.default) if has_default else ""
    return OptionInfo((*parameter.opts, *parameter.secondary_opts), value, parameter.help or "", default)


def _argument(parameter: Any) -> ArgumentInfo:
    return ArgumentInfo(
        parameter.metavar or parameter.name.upper(), getattr(parameter, "help", "") or "", parameter.required
    )


# -- completion scripts -------------------------------------------------------------------------------------------
#
# A script is complete in itself: pressing TAB starts no program, except for names of the store, zones and rules.

SHELLS = ("bash", "zsh", "fish")


def completion_script(shell: str, program: CommandInfo) -> str:
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](program)


def _flat(program: CommandInfo) -> Iterator[tuple[str, CommandInfo]]:
    """Every command with the words that lead to it."""
    for command in program.commands:
        yield command.name, command
        for below in command.commands:
            yield f"{command.name} {below.name}", below


class Values(NamedTuple):
    """What fits somewhere: known words, names of one kind, files."""

    words: tuple[str, ...] = ()
    kind: str = ""
    has_files: bool = False


def _values(placeholder: str, option: str = "") -> Values:
    known = known_words()
    words = known.get(option, known.get(placeholder, ()))
    return Values(words, kind_of(placeholder), is_path(placeholder))


def _option_values(path: str, option: OptionInfo) -> Values:
    return _values(option.value, f"{path} {option.names[-1]}")


def _argument_values(command: CommandInfo) -> Values:
    """Of the first argument and what it acts on: the second of `nodes`, the file of `import`."""
    found = [_values(argument.name) for argument in command.arguments]
    words = found[0].words if found else ()
    return Values(words, next((one.kind for one in found if one.kind), ""), any(one.has_files for one in found))


def _names(command: CommandInfo) -> str:
    return " ".join(name for option in command.options for name in option.names)


def _bash_case(path: str, command: CommandInfo) -> str:
    words, kind, has_files = _argument_values(command)
    offered = " ".join((*(c.name for c in command.commands), *words))
    more = f"; kind={'files' if has_files else kind}" if has_files or kind else ""
    return f'    "{path}") words="{_names(command)} {offered}"{more} ;;'


def _bash_values(program: CommandInfo) -> Iterator[str]:
    """A line for each placeholder: the options that take it, and what they take."""
    where: dict[Values, list[str]] = {}
    for path, command in _flat(program):
        for option in command.options:
            if any(found := _option_values(path, option)):
                where.setdefault(found, []).extend(f'"{path} {name}"' for name in option.names)
    for (words, kind, has_files), options in where.items():
        offered = f"$(chronex names {kind} 2>/dev/null)" if kind else " ".join(words)
        what = "-f" if has_files else f'-W "{offered}"'
        yield f'    {"|".join(options)}) COMPREPLY=($(compgen {what} -- "$current")); return ;;'


def _bash(program: CommandInfo) -> str:
    cases = "\n".join(_bash_case(path, command) for path, command in _flat(program))
    values = "\n".join(_bash_values(program))
    groups = "|".join(command.name for command in program.commands if command.commands)
    return f"""# chronex completion for bash: source it, or put it where bash-completion looks.
_chronex() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words="" kind=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(c.name for c in program.commands)} --help --version" -- "$current"))
    return
  fi
  local path="${{COMP_WORDS[1]}}"
  case "$path" in
    {groups or "''"}) [ "$COMP_CWORD" -gt 2 ] && path="$path ${{COMP_WORDS[2]}}" ;;
  esac
  case "$path $previous" in
{values}
  esac
  case "$path" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words --help" -- "$current"))
  case "$current" in
    -*) ;;
    *) case "$kind" in
         "") ;;
         files) COMPREPLY+=($(compgen -f -- "$current")) ;;
         *) COMPREPLY+=($(compgen -W "$(chronex names "$kind" 2>/dev/null)" -- "$current")) ;;
       esac ;;
  esac
}}
complete -o filenames -F _chronex chronex
"""


def _zsh(program: CommandInfo) -> str:
    described = "\n".join(f"    {_single(f'{c.name}:{c.summary}')}" for c in program.commands)
    cases = "\n".join(_zsh_case(command) for command in program.commands)
    names = "\n".join(_zsh_names(kind) for kind in KINDS)
    return f"""#compdef chronex
# chronex completion for zsh: save it as _chronex in a directory of $fpath.
_chronex() {{
  local -a commands
  commands=(
{described}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local command="${{words[2]}}"
  shift words
  (( CURRENT-- ))
  case "$command" in
{cases}
  esac
}}
{names}
compdef _chronex chronex
"""


def _zsh_names(kind: str) -> str:
    read = f'names=(${{(f)"$(chronex names {kind} 2>/dev/null)"}})'
    return f"_chronex_{kind}() {{\n  local -a names\n  {read}\n  compadd -a names\n}}"


def _zsh_action(values: Values) -> str:
    """What completes a value: a function for names, a list of words, files, or nothing."""
    if values.kind:
        return f"_chronex_{values.kind}"
    if values.has_files:
        return "_files"
    return f"({' '.join(values.words)})" if values.words else " "


def _zsh_case(command: CommandInfo) -> str:
    if not command.commands:
        return f"    {command.name}) {_zsh_arguments(command.name, command)} ;;"
    below = " ".join(_single(f"{each.name}:{each.summary}") for each in command.commands)
    paths = [(f"{command.name} {each.name}", each) for each in command.commands]
    cases = " ".join(f"{each.name}) {_zsh_arguments(path, each)} ;;" for path, each in paths)
    choice = f"local -a below; below=({below}); _describe 'command' below"
    return (
        f'    {command.name}) if (( CURRENT == 2 )); then {choice}; else case "${{words[2]}}" in {cases} esac; fi ;;'
    )


def _zsh_arguments(path: str, command: CommandInfo) -> str:
    options = [_single(spec) for option in command.options for spec in _zsh_option(path, option)]
    values = _argument_values(command)
    has_more = bool(values.kind) or values.has_files
    first = [f"'1:word:({' '.join(values.words)})'"] if values.words and has_more else []
    rest = f"'*:value:{_zsh_action(values)}'"
    return " ".join(["_arguments", *options, *first, rest])


def _zsh_option(path: str, option: OptionInfo) -> Iterator[str]:
    help_text = option.help.replace("[", "(").replace("]", ")").replace(":", " ")
    value = ""
    if option.value:
        value = f":{option.value.lower().replace(':', ' ')}:{_zsh_action(_option_values(path, option))}"
    for name in option.names:
        yield f"{name}[{help_text}]{value}"


def _fish(program: CommandInfo) -> str:
    lines = ["# chronex completion for fish: save it as ~/.config/fish/completions/chronex.fish"]
    lines += [
        f"complete -c chronex -n __fish_use_subcommand -f -a {command.name} -d {_single(command.summary)}"
        for command in program.commands
    ]
    for path, command in _flat(program):
        words = path.split()
        under = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in words)
        lines += [_fish_option(path, option, under) for option in command.options]
        lines += [
            f"complete -c chronex -n {_single(under)} -f -a {below.name} -d {_single(below.summary)}"
            for below in command.commands
        ]
        lines += [
            f"complete -c chronex -n {_single(under)} -f -a {_single(offered)}"
            for offered in _fish_values(_argument_values(command))
        ]
    return "\n".join(lines) + "\n"


def _fish_option(path: str, option: OptionInfo, under: str) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    offered = " ".join(_fish_values(_option_values(path, option)))
    needs = f" -x -a {_single(offered)}" if offered else " -r" if option.value else ""
    return f"complete -c chronex -n {_single(under)} {names}{needs} -d {_single(option.help)}"


def _fish_values(values: Values) -> list[str]:
    names = [f"(chronex names {values.kind} 2>/dev/null)"] if values.kind else []
    return [" ".join(values.words), *names] if values.words else names


def _single(text: str) -> str:
    """One word in single quotes, for all three shells: fish reads a backslash there, the others need a detour."""
    return "'" + text.replace("\\", "").replace("'", "’") + "'"


# -- the manual page chronex(1), as roff --------------------------------------------------------------------------

_EXITS = (
    ("0", "all is well"),
    ("1", "something was found, or failed"),
    ("2", "the command or its input was not understood; nothing changed"),
    ("75", "another daemon holds the store"),
)
_VARIABLES = (
    ("CHRONEX_CONFIG", "the job file, where no --config is given"),
    ("CHRONEX_STORE", "the directory of the store, where no --store is given"),
    ("CHRONEX_CRON", "the cron that reads the crontabs of this machine, for lint and import"),
    ("NO_COLOR", "when set, output has no colour"),
    ("TZ", "the zone of the host, for expressions that name none"),
)


_DESCRIPTION = (
    "Chronex runs jobs at the times that a job file gives them, records what became of each due time and why, and "
    "shows it in a terminal.",
    "An expression has five fields, minute, hour, day of the month, month and day of the week, or six with seconds "
    "in front; or it is @daily and its like, or @every 15m. TZ=Asia/Seoul in front of it names its time zone. "
    "`chronex explain` says what one means, and `chronex lint` what is wrong with it.",
)
_FILES = (
    (
        "chronex.toml",
        "the job file, in the current directory; else chronex/chronex.toml below the user's configuration",
    ),
    (".chronex-lint.toml", "settings of lint for the files below it"),
    ("~/.local/state/chronex/store", "the store, where neither --store nor CHRONEX_STORE names one"),
)
_EXAMPLES = (
    ('chronex explain "TZ=Asia/Seoul 0 9 * * MON-FRI"', "what it means, and when it fires next"),
    ("chronex lint", "the schedules of all files below this directory"),
    ("chronex init && chronex run", "begin with a commented job file"),
    ("chronex why backup", "why the last run was as it was, and when the next one is"),
)
_SEE_ALSO = "crontab(5), systemd.time(7), systemd.timer(5)"


def manual(program: CommandInfo) -> str:
    return "\n".join(_manual_lines(program)) + "\n"


def _manual_lines(program: CommandInfo) -> Iterator[str]:
    yield f'.TH CHRONEX 1 "" "Chronex {__version__}" "User Commands"'
    yield from (".SH NAME", f"chronex \\- {_roff(program.help.rstrip('.').lower())}")
    yield from (".SH SYNOPSIS", ".B chronex", "\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]")
    yield ".SH DESCRIPTION"
    for paragraph in _DESCRIPTION:
        yield from (".PP", _roff(paragraph))
    yield ".SH COMMANDS"
    for command in program.commands:
        yield from _manual_command(f"chronex {command.name}", command)
    yield ".SH EXIT STATUS"
    yield from _manual_table(_EXITS)
    yield ".SH ENVIRONMENT"
    yield from _manual_table(_VARIABLES)
    yield ".SH FILES"
    yield from _manual_table(_FILES)
    yield ".SH EXAMPLES"
    yield from _manual_table(_EXAMPLES)
    yield from (".SH SEE ALSO", _roff(_SEE_ALSO))


def _manual_command(path: str, command: CommandInfo) -> Iterator[str]:
    if command.commands:
        yield from (f".SS {_roff(path)}", _roff(command.help))
        for below in command.commands:
            yield from _manual_command(f"{path} {below.name}", below)
        return
    arguments = " ".join(a.name if a.required else f"[{a.name}]" for a in command.arguments)
    yield from (f'.SS "{_roff(f"{path} {arguments}".strip())}"', _roff(command.help))
    for argument in command.arguments:
        if argument.help:
            yield from (".TP", f"\\fI{_roff(argument.name)}\\fR", _roff(argument.help))
    for option in command.options:
        value = f" \\fI{_roff(option.value)}\\fR" if option.value else ""
        names = ", ".join(f"\\fB{_roff(name)}\\fR" for name in option.names)
        default = f" (default: {option.default})" if option.default else ""
        yield from (".TP", f"{names}{value}", _roff(f"{option.help}{default}"))
    if command.example:
        yield from (".P", "Example:", ".nf", f".RS\n{_roff(command.example)}\n.RE", ".fi")


def _manual_table(rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name, meaning in rows:
        yield from (".TP", f"\\fB{_roff(name)}\\fR", _roff(meaning))


def _roff(text: str) -> str:
    """Backslashes and hyphens as roff wants them; no line may begin with a dot or a quote of its own."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in escaped)
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
