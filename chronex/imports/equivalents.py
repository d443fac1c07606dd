"""The same schedule for another program: the text to write there, or why there is none.

A text is made from the meaning of the expression and then proven: the instants of the next five years, by Chronex
and by an evaluator of the other program that shares no code with it, are compared one by one. A text that differs
anywhere is no equivalent, and the first difference is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import Enum
from heapq import merge
from itertools import groupby, islice, pairwise, takewhile, zip_longest
from typing import NamedTuple

from chronex.expr.fields import Anchor, DayRule, FieldSet
from chronex.expr.meaning import Cron, Meaning, Once
from chronex.imports import oracle, quartz_calendar
from chronex.imports.oracle import CronRules, five_years, rules_of
from chronex.lint.cron_programs import CronProgram
from chronex.lint.systemd_calendar import calendar_schedule
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import Zone

TARGETS = ("systemd", "quartz", "kubernetes", "cron")
_DAY = 86_400
# Of what fires more often than this in sixty days, five days and those around clock changes are compared.
_OFTEN, _SAMPLE_DAYS = 10_000, 60
_LONG_RUN = 3
_MOST_FROM_THE_END = 27  # days before the last one: systemd counts up to 28 from the end, the last included
_SURE_DAY = 28  # in a month without the day, Quartz may do as it likes
_QUARTZ_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SYSTEMD_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class NoEquivalent(Enum):
    """Why another program has no text for a schedule."""

    SECONDS = "seconds"  # it knows whole minutes only
    EITHER_DAY = "either day"  # it cannot join the day fields by OR
    DAY_BY_PLACE = "day by its place"  # it has no such L, W or #
    LIST_BY_PLACE = "list of days by their place"  # it has them, but not in lists
    ANCHORED = "anchored"  # the instants depend on when the job was made
    PERIOD = "period"  # periods of ISO 8601
    MOMENT = "moment"  # it knows no years
    PASSED = "moment passed"
    BOUNDS = "bounds"  # from, until and max
    NEVER = "never"  # nothing to compare
    CLOCK_CHANGE = "clock change"  # it does not say what happens
    DIFFERS = "differs"  # it fires at other instants


class Equivalent(NamedTuple):
    """What to write for the other program in `lines`, none where there is a `reason`.

    `tried` is what comes nearest and first differs at the UTC second `differs_at`; `only_there` says whether it is
    the other program that fires then. `left_out` names options of the expression that the text does not have.
    """

    target: str
    zone: str
    lines: tuple[str, ...] = ()
    reason: NoEquivalent | None = None
    compared: int = 0
    is_whole: bool = True
    left_out: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    differs_at: int | None = None
    only_there: bool = False


class _Candidate(NamedTuple):
    lines: tuple[str, ...]
    seconds: Callable[[int, int], Iterator[int]]  # UTC seconds in [start, end)


class _NoTextError(Exception):
    def __init__(self, reason: NoEquivalent) -> None:
        self.reason = reason


def equivalent(meaning: Meaning, zone: Zone, target: str, program: CronProgram, now_s: int) -> Equivalent:
    """The text for `target` (one of TARGETS) of a schedule in a zone; `program` is the cron that is meant."""
    options = meaning.options
    # None of these moves a nominal time.
    left_out = tuple(name for name in ("jitter", "stagger", "window") if getattr(options, name))
    answer = Equivalent(target, zone.name, left_out=left_out)
    if options.from_ or options.until or options.max:
        return answer._replace(reason=NoEquivalent.BOUNDS)
    try:
        candidates = _candidates(meaning, zone, target, program, now_s)
    except _NoTextError as none:
        return answer._replace(reason=none.reason)
    own = Occurrences(meaning, zone)
    verdicts: list[Equivalent] = []
    for candidate in candidates:
        verdicts.append(_compare(answer, candidate, own, now_s))
        if verdicts[-1].reason is None:
            return verdicts[-1]
    return verdicts[0]


# -- the proof ------------------------------------------------------------------------------------------------


def _compare(answer: Equivalent, candidate: _Candidate, own: Occurrences, now_s: int) -> Equivalent:
    """The answer with the lines of the candidate, or with the first instant at which it differs."""
    start, end = five_years(now_s)
    spans, is_whole = [(start, end)], True
    soon = own.between(start * 1000, (start + _SAMPLE_DAYS * _DAY) * 1000)
    if sum(1 for _ in islice(soon, _OFTEN + 1)) > _OFTEN:
        changes = own.zone.changes(start, end)
        spans, is_whole = [(start, start + 5 * _DAY), *((c.at - _DAY, c.at + _DAY) for c in changes)], False
    compared = 0
    for first, last in spans:
        ours = (ms // 1000 for ms in own.between(first * 1000, last * 1000 - 1))
        for mine, theirs in zip_longest(ours, candidate.seconds(first, last)):
            if mine != theirs:
                is_there = mine is None or (theirs is not None and theirs < mine)
                at = theirs if is_there else mine
                answer = answer._replace(tried=candidate.lines, differs_at=at, only_there=is_there)
                return answer._replace(reason=NoEquivalent.DIFFERS, compared=compared)
            compared += 1
    if not compared:
        return answer._replace(reason=NoEquivalent.NEVER, tried=candidate.lines)
    return answer._replace(lines=candidate.lines, compared=compared, is_whole=is_whole)


# -- what could be written ------------------------------------------------------------------------------------


def _candidates(meaning: Meaning, zone: Zone, target: str, program: CronProgram, now_s: int) -> list[_Candidate]:
    body = meaning.body
    if meaning.is_anchored:
        raise _NoTextError(NoEquivalent.ANCHORED)
    if isinstance(body, Once):
        return [_once(meaning, zone, target, now_s)]
    if not isinstance(body, Cron):
        raise _NoTextError(NoEquivalent.PERIOD)
    if target == "systemd":
        return [_systemd(body, zone)]
    if target == "quartz":
        return [_quartz(body, zone, now_s)]
    rules = oracle.KUBERNETES if target == "kubernetes" else rules_of(program)
    texts = _five_fields(body)
    return [_of_cron(text, rules, zone, is_kubernetes=target == "kubernetes") for text in texts]


def _once(meaning: Meaning, zone: Zone, target: str, now_s: int) -> _Candidate:
    if target != "systemd":
        raise _NoTextError(NoEquivalent.MOMENT)
    at = next(Occurrences(meaning, zone).between(now_s * 1000, 2**53), None)
    if at is None:
        raise _NoTextError(NoEquivalent.PASSED)
    text = f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%d %H:%M:%S}"
    if at % 1000:
        raise _NoTextError(NoEquivalent.SECONDS)
    return _calendar_events([f"{text} UTC"], zone)


# -- systemd --------------------------------------------------------------------------------------------------


def _systemd(cron: Cron, zone: Zone) -> _Candidate:
    fields = ((cron.hour, 23), (cron.minute, 59), (cron.second, 59))
    time = ":".join(_systemd_list(field.values, 0, high) for field, high in fields)
    months = _systemd_list(cron.month.values, 1, 12)
    days = _systemd_days(cron)
    return _calendar_events([f"{weekdays}*-{months}{day} {time} {zone.name}" for weekdays, day in days], zone)


def _calendar_events(events: list[str], zone: Zone) -> _Candidate:
    """Several lines of a timer are united: an instant that two of them name is one."""
    schedules = [calendar_schedule(event, zone) for event in events]
    assert None not in schedules, f"systemd does not read {events}"

    def seconds(start: int, end: int) -> Iterator[int]:
        found = merge(*(schedule.instants(start * 1000 - 1) for schedule in schedules if schedule is not None))
        return (ms // 1000 for ms, _ in groupby(takewhile(lambda ms: ms < end * 1000, found)))

    return _Candidate(tuple(f"OnCalendar={event}" for event in events), seconds)


def _systemd_days(cron: Cron) -> list[tuple[str, str]]:
    """Weekdays and the end of the date, one pair for each line: systemd joins the two by AND, its lines by OR."""
    dom, dow = cron.day_of_month, cron.day_of_week
    if _is_every_day(cron):
        return [("", "-*")]
    found: list[tuple[str, str]] = []
    if not dom.is_star:
        found += [("", f"-{_systemd_list(dom.values, 1, 31)}")] if dom.values else []
        found += [("", _systemd_rule(rule)) for rule in dom.rules]
    if not dow.is_star:
        found += [(f"{_systemd_weekdays(dow.values)} ", "-*")] if dow.values else []
        found += [
            (f"{_SYSTEMD_DAYS[(rule.weekday - 1) % 7]} ", _systemd_weekday_rule(rule)) for rule in dow.added_rules
        ]
    return found


def _systemd_rule(rule: DayRule) -> str:
    if rule.anchor is not Anchor.LAST_DAY or rule.number > _MOST_FROM_THE_END:
        raise _NoTextError(NoEquivalent.DAY_BY_PLACE)
    return f"~{rule.number + 1:02}"


def _systemd_weekday_rule(rule: DayRule) -> str:
    """The n-th one lies within seven days of the month, the last one within its last seven."""
    if rule.anchor is Anchor.LAST_OF_WEEKDAY:
        return "~07/1"
    first = rule.number * 7 - 6
    return f"-{first:02}..{min(first + 6, 31):02}"


def _systemd_list(values: int, low: int, high: int) -> str:
    numbers = [value for value in range(low, high + 1) if values >> value & 1]
    if len(numbers) == high - low + 1:
        return "*"
    if (step := _even_step(numbers, low, high)) is not None:
        return f"{low:02}/{step}"
    return ",".join(_spans(numbers, "..", "{:02}"))


def _systemd_weekdays(values: int) -> str:
    days = [day for day in range(7) if values >> (day + 1) % 7 & 1]  # systemd's week begins with Monday
    return ",".join(
        f"{_SYSTEMD_DAYS[first]}..{_SYSTEMD_DAYS[last]}" if last - first > 1 else _pair(_SYSTEMD_DAYS, first, last)
        for first, last in _runs(days)
    )


# -- five fields ----------------------------------------------------------------------------------------------


def _of_cron(text: str, rules: CronRules, zone: Zone, *, is_kubernetes: bool) -> _Candidate:
    pattern = oracle.pattern_of(text, rules)
    assert pattern is not None, f"{rules.name} does not read {text}"

    def seconds(start: int, end: int) -> Iterator[int]:
        return oracle.instants(pattern, rules, zone, start, end)

    lines = (f'schedule: "{text}"', f"timeZone: {zone.name}") if is_kubernetes else (text,)
    return _Candidate(lines, seconds)


def _five_fields(cron: Cron) -> list[str]:
    """With stars and steps, and with every hour and minute written out: where a clock is set, cron treats what begins
    with a star otherwise than what does not."""
    if cron.second.values != 1:
        raise _NoTextError(NoEquivalent.SECONDS)
    if cron.day_of_month.rules or cron.day_of_week.added_rules:
        raise _NoTextError(NoEquivalent.DAY_BY_PLACE)
    every_day = _is_every_day(cron)
    days = "*" if every_day or cron.day_of_month.is_star else _plain_list(cron.day_of_month.values, 1, 31)
    weekdays = "*" if every_day or cron.day_of_week.is_star else _plain_list(cron.day_of_week.values, 0, 6)
    months = _starred_list(cron.month.values, 1, 12)
    texts = []
    for written in (_starred_list, _plain_list):
        minute, hour = written(cron.minute.values, 0, 59), written(cron.hour.values, 0, 23)
        texts.append(f"{minute} {hour} {days} {months} {weekdays}")
    return list(dict.fromkeys(texts))


def _starred_list(values: int, low: int, high: int) -> str:
    numbers = [value for value in range(low, high + 1) if values >> value & 1]
    if len(numbers) == high - low + 1:
        return "*"
    step = _even_step(numbers, low, high)
    return f"*/{step}" if step is not None else _plain_list(values, low, high)


def _plain_list(values: int, low: int, high: int) -> str:
    numbers = [value for value in range(low, high + 1) if values >> value & 1]
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) > _LONG_RUN and len(steps) == 1 and steps != {1}:
        return f"{numbers[0]}-{numbers[-1]}/{steps.pop()}"
    return ",".join(_spans(numbers, "-", "{}"))


# -- Quartz ---------------------------------------------------------------------------------------------------


def _quartz(cron: Cron, zone: Zone, now_s: int) -> _Candidate:
    times = [_starred_list(f.values, 0, high) for f, high in ((cron.second, 59), (cron.minute, 59), (cron.hour, 23))]
    days, weekdays = _quartz_days(cron)
    text = " ".join([*times, days, _starred_list(cron.month.values, 1, 12), weekdays])
    pattern = quartz_calendar.read_quartz(text)
    assert pattern is not None, f"Quartz does not read {text}"
    if quartz_calendar.unclear_change(pattern, zone, *five_years(now_s)) is not None:
        raise _NoTextError(NoEquivalent.CLOCK_CHANGE)
    return _Candidate((text,), lambda start, end: quartz_calendar.instants(pattern, zone, start, end))


def _quartz_days(cron: Cron) -> tuple[str, str]:
    dom, dow = cron.day_of_month, cron.day_of_week
    if _is_every_day(cron):
        return "*", "?"
    if not dom.is_star and not dow.is_star:
        raise _NoTextError(NoEquivalent.EITHER_DAY)
    field = dow if dom.is_star else dom
    rules = field.added_rules
    if rules and (field.values or len(rules) > 1):
        raise _NoTextError(NoEquivalent.LIST_BY_PLACE)
    if dom.is_star:
        return "?", _quartz_weekday_rule(rules[0]) if rules else _quartz_weekdays(field)
    return _quartz_rule(rules[0]) if rules else _plain_list(field.values, 1, 31), "?"


def _quartz_rule(rule: DayRule) -> str:
    if rule.anchor is Anchor.NEAREST_WEEKDAY and rule.number <= _SURE_DAY:
        return f"{rule.number}W"
    if rule.anchor is Anchor.LAST_WEEKDAY and rule.number == 0:
        return "LW"
    if rule.anchor is Anchor.LAST_DAY and rule.number <= _MOST_FROM_THE_END:
        return f"L-{rule.number}" if rule.number else "L"
    raise _NoTextError(NoEquivalent.DAY_BY_PLACE)


def _quartz_weekday_rule(rule: DayRule) -> str:
    name = _QUARTZ_DAYS[rule.weekday]
    return f"{name}L" if rule.anchor is Anchor.LAST_OF_WEEKDAY else f"{name}#{rule.number}"


def _quartz_weekdays(field: FieldSet) -> str:
    days = [day for day in range(7) if field.values >> day & 1]
    return ",".join(
        f"{_QUARTZ_DAYS[first]}-{_QUARTZ_DAYS[last]}" if last - first > 1 else _pair(_QUARTZ_DAYS, first, last)
        for first, last in _runs(days)
    )


# -- lists ----------------------------------------------------------------------------------------------------


def _is_every_day(cron: Cron) -> bool:
    """Are all days of the month named, or all weekdays? Beside such a field the other one adds nothing."""
    dom, dow = cron.day_of_month, cron.day_of_week
    full = (dom.values.bit_count() == 31, dow.values.bit_count() == 7)
    return any(full) if not dom.is_star and not dow.is_star else all(full)


def _even_step(numbers: Sequence[int], low: int, high: int) -> int | None:
    """The step of values that go from the lowest to the highest one of a field, three of them or more."""
    if len(numbers) < _LONG_RUN or numbers[0] != low:
        return None
    step = numbers[1] - numbers[0]
    return step if list(numbers) == list(range(low, high + 1, step)) else None


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _spans(numbers: Sequence[int], dash: str, form: str) -> Iterator[str]:
    for first, last in _runs(numbers):
        if last - first + 1 >= _LONG_RUN:
            yield form.format(first) + dash + form.format(last)
        else:
            yield from (form.format(number) for number in dict.fromkeys((first, last)))


def _pair(names: Sequence[str], first: int, last: int) -> str:
    return ",".join(dict.fromkeys((names[first], names[last])))
