"""The rules on expressions that Chronex would take and their host refuses: E130 and E133."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.expr.diagnostics import ERROR, SAME_MEANING, SAME_WORD, Diagnostic, Example, Message, Rule, diagnostic
from chronex.expr.fields import DAY_OF_WEEK, ELEMENT, FIVE_FIELDS, SIX_FIELDS, FieldSpec, read_field, value_of
from chronex.lint.cron_programs import SUPERCRONIC, CronProgram
from chronex.lint.findings import Edit, Fix, LintFinding, finding
from chronex.lint.hosts import ScheduleHost
from chronex.lint.kubernetes_grammar import KubernetesReading, read_for_kubernetes
from chronex.lint.rules import WORKFLOW, cronjob, crontab, workflow
from chronex.text.durations import parse_duration
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted

_WORD = re.compile(r"[^ \t]+")
_PLAINEST = re.compile(r"[*0-9,/]+(?: [*0-9,/]+){4}")
_LONE_SEVEN = re.compile(r"(?<![0-9/#-])7(?![0-9/#-])")
_UNKNOWN_NICKNAME = "{host} does not know {value}"

E130 = Rule(
    "E130",
    "refused by the program that reads the file",
    ERROR,
    "The expression is valid elsewhere, but the program that reads this file refuses it: L, W and "
    "#, ranges that run backwards, seconds, options, nicknames, a Sunday written as 7.",
    bad=workflow('"17 4 * * FRI-MON"'),
    good=workflow('"17 4 * * FRI,SAT,SUN,MON"'),
    messages={
        "zone": Message("{host} takes no zone here"),
        "options": Message("options in brackets are Chronex's own", "{host} does not take them"),
        "misspelt nickname": Message(_UNKNOWN_NICKNAME, "did you mean {meant}?", fix_is=SAME_WORD),
        "unknown nickname": Message(_UNKNOWN_NICKNAME, "it takes {known}"),
        "no nicknames": Message(_UNKNOWN_NICKNAME, "write five fields such as 17 4 * * *"),
        "seconds": Message("6 fields, but {host} reads 5: it has no seconds"),
        "sixth column": Message(
            "6 fields, but cron reads 5: it has no seconds, and takes the sixth for a command or a user"
        ),
        "carriage return": Message(
            "{host} takes the carriage return of an empty line for a schedule", "save the file with Unix line ends"
        ),
        "star for a command": Message("{host} takes no command that begins with *"),
        "day rule": Message("{value}: {host} does not know L, W and #"),
        "question mark": Message("{host} does not know '?'", "use *", fix_is=SAME_MEANING),
        "backwards": Message("{value} runs backwards, which {host} refuses"),
        "backwards in two parts": Message(
            "{value} runs backwards, which {host} refuses", "write {low}-{top},{bottom}-{high}"
        ),
        "step on one value": Message("{value}: {host} takes a step after * or a range only", "write {meant}"),
        "step on one name": Message("{value}: {host} takes a step after * or a range only"),
        "random with a step": Message("{value}: {host} takes no step after a random range"),
        "random backwards": Message("{value}: a random range runs from the lower value to the higher one"),
        "out of range": Message("{value} is out of range [{low}, {high}]"),
        "not a value": Message("{host} does not understand {value}"),
        "days in a duration": Message(
            "{value}: durations of {host} have hours, minutes and seconds", "write {meant}"
        ),
        "random interval": Message("{value}: {host} has no random intervals"),
        "blanks around a nickname": Message(
            "{host} takes no blanks around {value}", "remove them", fix_is=SAME_MEANING
        ),
        "seven": Message("{host} counts weekdays from 0 (Sunday) to 6", "7 is refused", fix_is=SAME_MEANING),
    },
)


E139 = Rule(
    "E139",
    "read otherwise than it is written",
    ERROR,
    "The program takes the line and makes something else of it. Debian's cron leaves out what follows a value: "
    "`4~59` is 4, `FRI#2` is every Friday; of a variable it reads 998 bytes. Vixie's crons take a range that runs"
    " backwards and match nothing with it, and a NUL character for the end of a line. BusyBox counts the days of "
    "`*/2` from 0, and leaves out the step of `5/10`. supercronic takes a range that runs backwards if it has a "
    "step, reads a weekday with a zero in front as Sunday, and `0-7` as 0-0.",
    bad=crontab("0 22-6 * * * /usr/local/bin/poll\n"),
    good=crontab("0 22-23,0-6 * * * /usr/local/bin/poll\n"),
    messages={
        "rest left out": Message("{host} reads {value} as {kept} and leaves out the rest"),
        "random range left out": Message(
            "{host} reads {value} as {kept}, without any chance in it", "random ranges are for cronie"
        ),
        "backwards": Message(
            "{value} runs backwards: {host} takes the line and never runs it", "write it in two parts"
        ),
        "backwards in a list": Message("{value} runs backwards: {host} leaves it out", "write it in two parts"),
        "days from 0": Message(
            "{host} counts days from 0, so that {value} is {days} and so on; other crons begin with 1", "write 1-31/n"
        ),
        "step without effect": Message("{host} leaves out the step of {value}", "write a range before the slash"),
        "weekday with a zero": Message(
            "{host} reads {value} as Sunday: its parser knows no zero in front of a weekday", "write {meant}"
        ),
        "NUL": Message("{host} ends the line at this NUL character and reads what follows as a line of its own"),
        "cut off": Message("{host} reads {most} bytes of this line and leaves out the rest"),
        "seven in a range": Message("{host} reads {value} as {kept}, because its 7 is 0", "write {meant}"),
        "no value": Message("{value} names no value: {host} takes it and never runs"),
        "taken for": Message("{host} takes {value} for {kept}"),
        "both days": Message(
            "{host} runs it only when both day fields match; other crons run it when either does",
            "write * in one of them",
        ),
    },
)


def refused(text: str, host: ScheduleHost) -> list[Diagnostic]:
    """Every part of the text that this host will not take. Empty also for text that is wrong everywhere."""
    if _PLAINEST.fullmatch(text) and (host.takes_seven or "7" not in text):
        return []  # most lines of most files: nothing that hosts disagree on
    stripped = text.strip(" \t")
    if stripped.startswith("@"):
        return list(_nickname(text, stripped, host))
    if stripped.startswith(("TZ=", "CRON_TZ=")):
        prefix = text[: len(stripped.split(" ")[0])]
        return [diagnostic(E130, "expression", prefix, 0, "zone", host=host.title)]
    for bracket in "{<":
        if (at := text.find(bracket)) >= 0:
            return [diagnostic(E130, "expression", text[at:].rstrip(), at, "options", host=host.title)]
    words = list(_WORD.finditer(text))
    if len(words) == 6 and _reads(SIX_FIELDS, words):
        return [_sixth_field(text, words, host)]
    if len(words) != 5:
        return []
    return [d for spec, word in zip(FIVE_FIELDS, words, strict=True) for d in _field(spec, word, host)]


def _reads(specs: tuple[FieldSpec, ...], words: list[re.Match[str]]) -> bool:
    return all(read_field(spec, word[0]) is not None for spec, word in zip(specs, words, strict=True))


def _nickname(text: str, stripped: str, host: ScheduleHost) -> Iterator[Diagnostic]:
    word = stripped.split(maxsplit=1)[0]
    if word in host.nicknames:
        return
    meant = nearest(word, host.nicknames)
    case = "misspelt nickname" if meant else "unknown nickname"
    if not host.nicknames:
        case = "no nicknames"
    names = {"host": host.title, "value": quoted(word), "meant": meant, "known": ", ".join(sorted(host.nicknames))}
    yield diagnostic(E130, "expression", word, text.index(word), case, fix=meant, **names)


def _sixth_field(text: str, words: list[re.Match[str]], host: ScheduleHost) -> Diagnostic:
    """Six fields where five are read. A zero in front can only have meant the seconds."""
    first, second = words[0], words[1]
    all_fields = text[first.start() : words[-1].end()]
    fix = text[second.start() : words[-1].end()] if first[0].strip("0") == "" else None
    return diagnostic(E130, "expression", all_fields, first.start(), "seconds", fix=fix, host=host.title)


def _field(spec: FieldSpec, word: re.Match[str], host: ScheduleHost) -> Iterator[Diagnostic]:
    read = read_field(spec, word[0])
    if read is None:
        return  # the parser says what is wrong with it
    if word[0] == "?" and not host.takes_question_mark:
        yield diagnostic(E130, spec.name, word[0], word.start(), "question mark", fix="*", host=host.title)
    elif word[0] != "?":
        yield from _elements(spec, word, host)


def _elements(spec: FieldSpec, word: re.Match[str], host: ScheduleHost) -> Iterator[Diagnostic]:
    at = word.start()
    for element in word[0].split(","):
        match = ELEMENT.fullmatch(element.upper())
        if match is None:  # the field is read, so that it can only be a day by its place
            value = quoted(element)
            case = "not a value" if host.program is SUPERCRONIC else "day rule"  # it knows others of them
            yield diagnostic(E130, spec.name, element, at, case, value=value, host=host.title)
        else:
            first, last, _ = match.groups()
            low, high = value_of(spec, first), value_of(spec, last or first)
            if low is not None and high is not None and low > high and not host.takes_wrapped_ranges:
                yield _backwards(spec, element, at, low, high, host)
            elif spec is DAY_OF_WEEK and 7 in (low, high) and not host.takes_seven:
                fix = "0" if _LONE_SEVEN.fullmatch(element) else None
                yield diagnostic(E130, spec.name, element, at, "seven", fix=fix, host=host.title)
        at += len(element) + 1


def _backwards(spec: FieldSpec, element: str, at: int, low: int, high: int, host: ScheduleHost) -> Diagnostic:
    top = spec.wrap_high
    case = "backwards in two parts" if low <= top else "backwards"
    names = {"value": quoted(element), "host": host.title}
    return diagnostic(
        E130, spec.name, element, at, case, **names, fix=None, low=low, top=top, bottom=spec.low, high=high
    )


def refused_by_kubernetes(text: str, host: ScheduleHost) -> Diagnostic:
    """E130 for a text that Chronex would take: days in `@every`, a random interval, blanks around a word."""
    stripped = " ".join(text.split())
    names = {"host": host.title, "value": quoted(stripped)}
    if stripped != text and read_for_kubernetes(stripped) is not None:
        return diagnostic(E130, "expression", text, 0, "blanks around a nickname", fix=stripped, **names)
    if (ms := parse_duration(stripped.removeprefix("@every "))) is not None:
        minutes, seconds = divmod(ms // 1000, 60)
        parts = ((minutes // 60, "h"), (minutes % 60, "m"), (seconds, "s"), (ms % 1000, "ms"))
        meant = "@every " + "".join(f"{count}{unit}" for count, unit in parts if count)
        return diagnostic(E130, "every", text, 0, "days in a duration", fix=meant, meant=meant, **names)
    return diagnostic(E130, "expression", text, 0, "random interval" if "-" in text else "not a value", **names)


def misread_by_kubernetes(text: str, taken: KubernetesReading, host: ScheduleHost) -> Diagnostic:
    """E139 for `*-5`, which is `*` to it, a lone comma, and an interval that it rounds or makes a second of."""
    part = taken.misread or text
    case = "taken for" if taken.text is not None else "no value"
    names = {"host": host.title, "value": quoted(part), "kept": quoted(taken.taken_as)}
    return diagnostic(E139, "expression", part, text.index(part), case, **names)


def sixth_column(start: int, end: int) -> LintFinding:
    """E130 for a crontab line whose sixth column looks like one more field of the schedule."""
    return finding(E130, start, end, "sixth column")


def line_cut_off(start: int, end: int, program: CronProgram) -> LintFinding:
    """E139 for a variable that is longer than the program has a place for."""
    return finding(E139, start, end, "cut off", host=program.title, most=program.longest_line)


def line_ended_by_nul(at: int, host: str) -> LintFinding:
    """E139 for what stands behind a NUL character: another line, which may be a job that no editor shows."""
    return finding(E139, at, at + 1, "NUL", host=host)


def return_for_a_schedule(start: int, host: str) -> LintFinding:
    """E130 for an empty line of a file with carriage returns."""
    return finding(E130, start, start + 1, "carriage return", host=host)


def star_for_a_command(start: int, host: str) -> LintFinding:
    """E130 for a command that begins with a star: one field too many, or a nickname with fields after it."""
    return finding(E130, start, start + 1, "star for a command", host=host)


E150 = Rule(
    "E150",
    "schedule of the wrong shape",
    ERROR,
    "`on.schedule` of a workflow is a list, each entry of which has a `cron` and may have a `timezone`. GitHub "
    "refuses anything else, and with it the workflow.",
    bad=Example("on:\n  schedule:\n    - crn: '17 4 * * *'\n", WORKFLOW),
    good=workflow("'17 4 * * *'"),
    messages={
        "no list": Message("schedule is a list", "write - cron: '17 4 * * *' below it"),
        "no mapping": Message("an entry of schedule has keys", "write cron: before it"),
        "unknown key": Message("GitHub does not know {key} in a schedule", "the keys are cron and timezone"),
        "no cron": Message("there is no cron in this entry of schedule"),
    },
)


def schedule_of_the_wrong_shape(start: int, end: int, case: str, key: str = "") -> LintFinding:
    return finding(E150, start, end, case, key=quoted(key))


E133 = Rule(
    "E133",
    "zone inside a Kubernetes schedule",
    ERROR,
    "The Kubernetes API server refuses a CronJob with TZ= or CRON_TZ= in its schedule; timeZone is the place for it.",
    bad=cronjob('"TZ=Europe/Berlin 0 4 * * *"', ""),
    good=cronjob('"0 4 * * *"', "Europe/Berlin"),
    messages={
        "": Message(
            "Kubernetes refuses a zone inside the schedule", "write timeZone: {zone} beside it", fix_is=SAME_MEANING
        )
    },
)


def zone_inside_schedule(zone: str, start: int, end: int, edits: tuple[Edit, ...]) -> LintFinding:
    """The API server refuses to create such a CronJob; `edits` move the zone into timeZone, where they can."""
    fix = Fix("move the zone into timeZone", edits) if edits else None
    return finding(E133, start, end, fix=fix, zone=zone)


REFUSAL_RULES = (E130, E133, E139, E150)
