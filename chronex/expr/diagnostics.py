"""What is wrong with an expression, where, and what to write instead: rules, messages and findings as data.

A rule is one value: its code, title, severity, explanation, examples and every message that it can give. The rules
on expressions stand in syntax_rules.py and advice_rules.py, those on files in chronex/lint/rules. A diagnostic names
its rule and keeps the arguments of the message; the sentence is written only when somebody reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from chronex.text.suggestions import is_respelling

ERROR = "error"
WARNING = "warning"
INFO = "info"
# The host of every program that reads five fields of plain cron and nothing else of Chronex's language.
PLAIN = "plain"
_MOST_GUESSES = 50
# How far the fix of a message can be trusted (`Message.fix_is`). A safe fix cannot change when something runs.
GUESS = "a guess"  # what was probably meant: for people to decide
SAME_WORD = "the same word"  # safe where only case or separators differ, a guess otherwise
SAME_MEANING = "the same meaning"  # the host reads both texts alike, or refused a text that has one reading


class HostMessage(NamedTuple):
    """What is said instead where another program reads the text.

    `host` is the key of one host, or PLAIN for all that read plain cron. `keeps_fix` is False where the fix is
    something that only Chronex understands.
    """

    host: str
    problem: str
    hint: str = ""
    keeps_fix: bool = True
    severity: str | None = None


class Message(NamedTuple):
    """Templates of what is wrong and what to do about it; `{name}` stands for an argument of that name."""

    problem: str
    hint: str = ""
    elsewhere: tuple[HostMessage, ...] = ()
    fix_is: str = GUESS

    def for_host(self, host: str) -> HostMessage | None:
        """The host's own message, else that of all plain hosts, else None: the message holds as it is."""
        by_host = {message.host: message for message in self.elsewhere}
        return by_host.get(host) or by_host.get(PLAIN)


class Example(NamedTuple):
    """A file with a name by which its kind is recognised, or, without a path, an expression alone."""

    text: str
    path: str = ""


class Rule(NamedTuple):
    """Everything there is to say about one code.

    `messages` has the message of each case that the rule tells apart; a rule with one message has the case "".
    `bad` is None where no short text can show the fault. `silent_for` names the hosts where the finding would not be
    true.
    """

    code: str
    title: str
    severity: str
    explanation: str
    bad: Example | None
    good: Example | None
    messages: Mapping[str, Message] = MappingProxyType({})
    silent_for: frozenset[str] = frozenset()

    def __hash__(self) -> int:
        return hash(self.code)


def with_hint(problem: str, hint: str) -> str:
    """A problem and its hint as one line."""
    return f"{problem}; {hint}" if hint else problem


class Diagnostic(NamedTuple):
    """One finding. `start` and `end` are 0-based offsets in the given text; `fix` replaces that span.

    `host` is the program whose words are used; empty for Chronex itself.
    """

    rule: Rule
    case: str
    arguments: tuple[tuple[str, object], ...]
    field: str
    value: str
    start: int
    end: int
    fix: str | None
    severity: str
    host: str = ""

    @property
    def code(self) -> str:
        return self.rule.code

    @property
    def problem(self) -> str:
        return self._template.problem.format(**dict(self.arguments))

    @property
    def hint(self) -> str:
        """What to do about it; empty where there is nothing more to say than the problem."""
        return self._template.hint.format(**dict(self.arguments))

    @property
    def message(self) -> str:
        return with_hint(self.problem, self.hint)

    @property
    def is_error(self) -> bool:
        return self.severity == ERROR

    @property
    def position(self) -> int:
        return self.start

    @property
    def labelled_problem(self) -> str:
        """The problem with the name of its field, where it has one."""
        return self.problem if self.field == "expression" else f"{self.field}: {self.problem}"

    def __str__(self) -> str:
        return with_hint(self.labelled_problem, self.hint)

    def to_dict(self) -> dict[str, Any]:
        names = ("code", "severity", "field", "message", "value", "start", "end", "fix")
        return {name: getattr(self, name) for name in names}

    def for_host(self, host: str) -> Diagnostic:
        """The same finding where the program `host` reads the text."""
        own = self.rule.messages[self.case].for_host(host)
        if own is None:
            return self
        fix = self.fix if own.keeps_fix else None
        return self._replace(host=host, fix=fix, severity=own.severity or self.severity)

    @property
    def is_fix_safe(self) -> bool:
        """Does the host read the fixed text like the old one, or can the refused text mean nothing else?"""
        return self.fix is not None and is_safe(self.rule.messages[self.case], self.value, self.fix)

    @property
    def _template(self) -> Message | HostMessage:
        message = self.rule.messages[self.case]
        return (message.for_host(self.host) if self.host else None) or message


def is_safe(message: Message, old: str, new: str) -> bool:
    """May the fix of this message be applied without asking?"""
    if message.fix_is == SAME_WORD:
        return is_respelling(old, new)
    return message.fix_is == SAME_MEANING


def diagnostic(
    rule: Rule, where: str, text: str, start: int, case: str = "", /, *, fix: str | None = None, **arguments: object
) -> Diagnostic:
    """A finding of the rule at `text`, which stands at `start`; `arguments` fill the message of the case."""
    end = start + len(text)
    return Diagnostic(rule, case, tuple(arguments.items()), where, text, start, end, fix, rule.severity)


class ValidationResult(NamedTuple):
    """The verdict on one expression: valid when there are no errors; warnings never block."""

    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def is_valid(self) -> bool:
        return not self.errors

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted((*self.errors, *self.warnings), key=lambda d: (d.start, d.end, d.code)))

    def to_list(self) -> list[dict[str, Any]]:
        return [diagnostic.to_dict() for diagnostic in self.diagnostics]


class ParseReport:
    """Collects diagnostics while a text is read."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def add(
        self,
        rule: Rule,
        where: str,
        text: str,
        start: int,
        case: str = "",
        /,
        *,
        fix: str | None = None,
        **arguments: object,
    ) -> None:
        self.found.append(diagnostic(rule, where, text, start, case, fix=fix, **arguments))

    @property
    def may_guess(self) -> bool:
        """Guessing what was meant is slow, and useless where a text has more faults than a typing error makes."""
        return len(self.found) < _MOST_GUESSES

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.found if d.is_error)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.found if not d.is_error)
