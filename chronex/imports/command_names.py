"""Names that a person would give: what a command line is for, behind its wrappers, conditions and interpreters."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

NO_NAME = "job"
_OPERATORS = frozenset({";", "&", "&&", "|", "||", "(", ")", ";;", "\n", "|&"})
_KEYWORDS = frozenset({
    "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "{", "}", "exec", "time", "builtin",
    "nohup", "setsid", "chronic", "unbuffer", "ifne", "eatmydata", "nocache",
})  # fmt: skip
# Simple commands that prepare something or ask for something, and say nothing of what the line is for.
_ASIDE = frozenset({
    "test", "[", "[[", "cd", "sleep", "true", ":", "export", "set", "umask", "ulimit", ".", "source", "command",
    "which", "type", "hash", "exit", "wait", "read", "for", "unset", "shopt", "trap", "false", "return", "hostname",
    "pushd", "popd",
})  # fmt: skip
# They often only feed the next command; alone they are what the line is for.
_FEEDING = frozenset({"echo", "printf", "cat", "date", "mkdir", "yes", "tee", "logger", "grep"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9]*(?:[-:][a-z0-9]+)*")
_ENDING = re.compile(r"\.(?:sh|bash|py|pl|rb|php|js|exe|bin|cgi|jar)$")
_CRON_DIRECTORY = re.compile(r"/cron\.([a-z]+)/?$")


class _Wrapper(NamedTuple):
    """A command that runs another one: which of its options take a value, and how many words precede the other."""

    with_value: frozenset[str] = frozenset()
    words: int = 0
    script: frozenset[str] = frozenset()  # options whose value is a command line


def _wrapper(with_value: str = "", words: int = 0, script: str = "") -> _Wrapper:
    return _Wrapper(frozenset(with_value.split()), words, frozenset(script.split()))


_WRAPPERS: Mapping[str, _Wrapper] = {
    "nice": _wrapper("-n --adjustment"),
    "ionice": _wrapper("-c -n -p --class --classdata"),
    "timeout": _wrapper("-k -s --kill-after --signal", 1),
    "flock": _wrapper("-w -E --timeout --wait --conflict-exit-code", 1, "-c --command"),
    "sudo": _wrapper("-u -g -p -C -h --user --group"),
    "su": _wrapper("-s --shell -g", 1, "-c --command"),
    "runuser": _wrapper("-u -g -s --user --group", 0, "-c --command"),
    "env": _wrapper("-u --unset -C --chdir"),
    "stdbuf": _wrapper("-i -o -e"),
    "chrt": _wrapper("", 1),
    "taskset": _wrapper("", 1),
    "setpriv": _wrapper("--reuid --regid"),
    "systemd-cat": _wrapper("-t -p --identifier --priority"),
    "systemd-run": _wrapper("-p -u --unit --property --slice"),
    "cpulimit": _wrapper("-l -p"),
    "xargs": _wrapper("-n -P -I -L -d"),
    "lockrun": _wrapper("--lockfile"),
    "sh": _wrapper("-o", 0, "-c"), "bash": _wrapper("-o -O", 0, "-c"), "dash": _wrapper("-o", 0, "-c"),
    "zsh": _wrapper("-o", 0, "-c"), "ksh": _wrapper("-o", 0, "-c"),
    "busybox": _wrapper(),
}  # fmt: skip
_INTERPRETERS = re.compile(r"(?:python|perl|ruby|php|node|java|Rscript|tclsh|lua)[0-9.]*")
_NO_SUBCOMMANDS = frozenset({
    "mail", "mailx", "tar", "rsync", "find", "wget", "curl", "rm", "cp", "mv", "ls", "touch", "ping", "sort",
})  # fmt: skip
_QUIET = frozenset({"-q", "-qq", "-v", "-y", "-n", "--quiet", "--verbose"})
_MOST_DEPTH = 4


def name_of_command(command: str) -> str:
    """A name for the job that runs this line; NO_NAME where nothing in it tells."""
    return _name(command, 0) or NO_NAME


def _name(command: str, depth: int) -> str:
    feeding = ""
    for words in _simple_commands(command):
        name = _of_words(words, depth)
        if name and words[0] not in _FEEDING:
            return name
        feeding = feeding or name
    return feeding


def _simple_commands(command: str) -> Iterator[list[str]]:
    """The words of each simple command, without what comes before its program and without redirections."""
    words: list[str] = []
    tokens = iter(_tokens(command))
    for token in tokens:
        if token in _OPERATORS:
            yield from _begun(words)
            words = []
        elif token and set(token) <= set("<>&|"):  # a redirection: its target follows
            next(tokens, None)
            if words and words[-1].isdecimal():
                words.pop()
        else:
            words.append(token)
    yield from _begun(words)


def _tokens(command: str) -> list[str]:
    lexer = shlex.shlex(command.replace("\\%", "%"), posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # quotes that are not closed
        return command.split()


def _begun(words: list[str]) -> Iterator[list[str]]:
    while words and (words[0] in _KEYWORDS or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    if words:
        yield words


def _of_words(words: list[str], depth: int) -> str:
    program = os.path.basename(words[0].rstrip("/")) or words[0]
    if program in _ASIDE or depth > _MOST_DEPTH or program.startswith(("-", "]")):
        return ""  # the last are what follows a $(…) inside of a test
    if program in _WRAPPERS:
        return _wrapped(_WRAPPERS[program], program, words[1:], depth)
    if _INTERPRETERS.fullmatch(program):
        return _script(program, words[1:])
    if program == "run-parts":
        place = next((match for word in words[1:] if (match := _CRON_DIRECTORY.search(word))), None)
        return f"cron-{place[1]}" if place else program
    stem = _ENDING.sub("", program)
    if not re.search(r"[A-Za-z]", stem):
        return ""
    second = next((word for word in words[1:] if word not in _QUIET), "")
    has_subcommand = (
        len(second) > 2
        and program not in _NO_SUBCOMMANDS | _FEEDING
        and stem == program
        and _SUBCOMMAND.fullmatch(second)
    )
    return f"{stem}-{second.replace(':', '-')}" if has_subcommand else stem


def _wrapped(wrapper: _Wrapper, program: str, words: list[str], depth: int) -> str:
    left, rest = wrapper.words, list(words)
    while rest:
        word = rest.pop(0)
        if word in wrapper.script or (word.startswith("-") and word[1:2] != "-" and _ends_in(word, wrapper.script)):
            return _name(rest[0], depth + 1) if rest else ""
        if word in wrapper.with_value:
            rest[:1] = []
        elif word.startswith("-") or _ASSIGNMENT.match(word):
            continue
        elif left and not (program == "su" and _has_script(rest, wrapper)):
            left -= 1
        elif program == "su" and _has_script(rest, wrapper):
            continue  # the user
        else:
            return _of_words([word, *rest], depth + 1)
    return ""


def _ends_in(word: str, script: frozenset[str]) -> bool:
    """`-lc` of a shell is `-l -c`."""
    return any(len(option) == 2 and word.endswith(option[1]) for option in script)


def _has_script(words: list[str], wrapper: _Wrapper) -> bool:
    return any(word in wrapper.script for word in words)


def _script(program: str, words: list[str]) -> str:
    """What an interpreter runs: its module or its file; text that stands in the line itself has no name."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ("-m", "-jar", "-f") and rest:
            return _ENDING.sub("", os.path.basename(rest[0]))
        if re.fullmatch(r"-[A-Za-z]*[ecr]", word):
            return ""
        if not word.startswith("-"):
            return _ENDING.sub("", os.path.basename(word))
    return program
