"""Completion scripts for bash, zsh and fish. A script is complete in itself: pressing TAB starts no program, except
for the names of jobs."""

from __future__ import annotations

from collections.abc import Iterator

from chronex.cli.command_tree import CommandInfo, OptionInfo

SHELLS = ("bash", "zsh", "fish")
# Where the first argument is the name of a job.
_JOB = "JOB"
# The values of --format are the same for nearly all commands; a wrong one is refused with the right ones.
_FORMATS = "text json"


def completion_script(shell: str, program: CommandInfo) -> str:
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](program)


def _flat(program: CommandInfo) -> Iterator[tuple[str, CommandInfo]]:
    """Every command with the words that lead to it."""
    for command in program.commands:
        yield command.name, command
        for below in command.commands:
            yield f"{command.name} {below.name}", below


def _takes_a_job(command: CommandInfo) -> bool:
    return bool(command.arguments) and command.arguments[0].name == _JOB


def _names(command: CommandInfo) -> str:
    return " ".join(name for option in command.options for name in option.names)


def _bash(program: CommandInfo) -> str:
    cases = "\n".join(
        f'    "{path}") words="{_names(command)} {" ".join(c.name for c in command.commands)}"'
        f"{'; jobs=1' if _takes_a_job(command) else ''} ;;"
        for path, command in _flat(program)
    )
    groups = "|".join(command.name for command in program.commands if command.commands)
    return f"""# chronex completion for bash: source it, or put it where bash-completion looks.
_chronex() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words="" jobs=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(c.name for c in program.commands)} --help --version" -- "$current"))
    return
  fi
  case "$previous" in
    --format) COMPREPLY=($(compgen -W "{_FORMATS}" -- "$current")); return ;;
    --store) COMPREPLY=($(compgen -d -- "$current")); return ;;
    --config) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  local path="${{COMP_WORDS[1]}}"
  case "$path" in
    {groups or "''"}) [ "$COMP_CWORD" -gt 2 ] && path="$path ${{COMP_WORDS[2]}}" ;;
  esac
  case "$path" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words --help" -- "$current"))
  case "$current" in
    -*) ;;
    *) if [ -n "$jobs" ]; then
         COMPREPLY+=($(compgen -W "$(chronex list --format names 2>/dev/null)" -- "$current"))
       else
         COMPREPLY+=($(compgen -f -- "$current"))
       fi ;;
  esac
}}
complete -o filenames -F _chronex chronex
"""


def _zsh(program: CommandInfo) -> str:
    described = "\n".join(f"    {_single(f'{c.name}:{c.summary}')}" for c in program.commands)
    cases = "\n".join(_zsh_case(command) for command in program.commands)
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
_chronex_jobs() {{
  local -a jobs
  jobs=(${{(f)"$(chronex list --format names 2>/dev/null)"}})
  compadd -a jobs
}}
compdef _chronex chronex
"""


def _zsh_case(command: CommandInfo) -> str:
    if not command.commands:
        return f"    {command.name}) {_zsh_arguments(command)} ;;"
    below = " ".join(_single(f"{each.name}:{each.summary}") for each in command.commands)
    cases = " ".join(f"{each.name}) {_zsh_arguments(each)} ;;" for each in command.commands)
    choice = f"local -a below; below=({below}); _describe 'command' below"
    return (
        f'    {command.name}) if (( CURRENT == 2 )); then {choice}; else case "${{words[2]}}" in {cases} esac; fi ;;'
    )


def _zsh_arguments(command: CommandInfo) -> str:
    options = [_single(spec) for option in command.options for spec in _zsh_option(option)]
    rest = "'*:job:_chronex_jobs'" if _takes_a_job(command) else "'*:file:_files'"
    return " ".join(["_arguments", *options, rest])


def _zsh_option(option: OptionInfo) -> Iterator[str]:
    help_text = option.help.replace("[", "(").replace("]", ")").replace(":", " ")
    for name in option.names:
        yield f"{name}[{help_text}]" + (f":{option.value.lower()}:_files" if option.value else "")


def _fish(program: CommandInfo) -> str:
    lines = ["# chronex completion for fish: save it as ~/.config/fish/completions/chronex.fish"]
    lines += [
        f"complete -c chronex -n __fish_use_subcommand -f -a {command.name} -d {_single(command.summary)}"
        for command in program.commands
    ]
    for path, command in _flat(program):
        words = path.split()
        under = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in words)
        lines += [_fish_option(option, under) for option in command.options]
        lines += [
            f"complete -c chronex -n {_single(under)} -f -a {below.name} -d {_single(below.summary)}"
            for below in command.commands
        ]
        if _takes_a_job(command):
            lines.append(
                f"complete -c chronex -n {_single(under)} -f -a '(chronex list --format names 2>/dev/null)' -d job"
            )
    return "\n".join(lines) + "\n"


def _fish_option(option: OptionInfo, under: str) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    needs = " -r" if option.value else ""
    return f"complete -c chronex -n {_single(under)} {names}{needs} -d {_single(option.help)}"


def _single(text: str) -> str:
    """One word in single quotes, for all three shells: fish reads a backslash there, the others need a detour."""
    return "'" + text.replace("\\", "").replace("'", "’") + "'"
