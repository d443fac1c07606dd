"""What a host makes of an expression: its findings, its words, its next runs, its next clock change."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from chronex.errors import ExpressionError, UnknownZoneError
from chronex.expr.describe import describe
from chronex.expr.diagnostics import Diagnostic
from chronex.expr.meaning import Cron, Meaning
from chronex.lint.findings import ScheduleSite
from chronex.lint.hosts import KUBERNETES, SYSTEMD, ScheduleHost, as_read_by, needs_both_days, policy_for
from chronex.lint.rules.refusals import refused
from chronex.text.instants import LAST_MS
from chronex.timing import parse, read, validate
from chronex.timing.advice import advise
from chronex.timing.clock_changes import effect_of, wall_date
from chronex.timing.dst import DstPolicy
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import Zone, load_zone, utc_zone

if TYPE_CHECKING:  # the records need a library that a linter of crontabs does without
    from chronex.model.calendars import CalendarRules
    from chronex.timing.job_schedule import Schedule

_DAY = 86_400
_MOST_DAYS = 10_000


class HostSchedule(Protocol):
    """What a person wants to know about an expression that its host takes."""

    @property
    def zone(self) -> Zone: ...

    def words(self) -> str: ...

    def upcoming(self, after_ms: int, count: int) -> list[int]: ...

    def clock_note(self, after_ms: int) -> str: ...


def zone_or_utc(name: str) -> Zone:
    try:
        return load_zone(name)
    except UnknownZoneError:
        return utc_zone()


def judge(site: ScheduleSite, reference_ms: int) -> tuple[Diagnostic, ...]:
    """Everything that is wrong or surprising with the expression, as its host reads it."""
    return _judged(site.text, site.host, site.zone.name, site.policy, reference_ms)


@lru_cache(maxsize=4096)
def _judged(
    text: str, host: ScheduleHost, zone_name: str, policy: DstPolicy | None, reference_ms: int
) -> tuple[Diagnostic, ...]:
    zone = zone_or_utc(zone_name)
    if host is SYSTEMD:
        from chronex.lint.systemd_calendar import judge_calendar

        return judge_calendar(text, zone, reference_ms)
    if host.program is not None:
        from chronex.lint.crontab_schedules import judge_crontab

        return tuple(judge_crontab(text, host, zone, reference_ms))
    if not host.is_plain:
        return validate(text, host.dialect, zone.tzinfo, reference_ms, policy=policy).diagnostics
    return tuple(_plain(text, host, zone, reference_ms))


def forget_judgements() -> None:
    """For benchmarks: as if no expression had been seen before."""
    _judged.cache_clear()


def _plain(text: str, host: ScheduleHost, zone: Zone, reference_ms: int) -> Iterator[Diagnostic]:
    if host.key == KUBERNETES.key:
        yield from _for_kubernetes(text, host, zone, reference_ms)
    else:
        yield from _by_our_reading(text, host, zone, reference_ms)


def _for_kubernetes(text: str, host: ScheduleHost, zone: Zone, reference_ms: int) -> Iterator[Diagnostic]:
    """Its own parser says whether it takes the text; our reading says what is wrong, or surprising, with it."""
    from chronex.lint.kubernetes_grammar import read_for_kubernetes
    from chronex.lint.rules.refusals import misread_by_kubernetes, refused_by_kubernetes

    ours = list(_by_our_reading(text, host, zone, reference_ms))
    has_error = any(d.is_error for d in ours)
    taken = read_for_kubernetes(text)
    if taken is None:
        is_blank = read_for_kubernetes(" ".join(text.split())) is not None
        yield from ours if has_error and not is_blank else [refused_by_kubernetes(text, host)]
    elif taken.misread is not None:
        yield misread_by_kubernetes(text, taken, host)
    elif not has_error:
        yield from ours


def _by_our_reading(text: str, host: ScheduleHost, zone: Zone, reference_ms: int) -> Iterator[Diagnostic]:
    if faults := refused(text, host):
        yield from faults
        return
    parsed = read(text)
    if parsed.meaning is None:
        yield from (d.for_host(host.key) for d in parsed.report.found)
        return
    meaning = as_read_by(host, parsed.meaning)
    advice = advise(parsed._replace(meaning=meaning), zone, reference_ms, policy_for(host, meaning))
    for d in (*parsed.report.warnings, *advice):
        if host.key not in d.rule.silent_for:
            yield d.for_host(host.key)


def schedule_of(site: ScheduleSite, reference_ms: int) -> HostSchedule | None:
    """The schedule; None when its host refuses it, or when it has no next runs: @reboot, random ranges."""
    if any(d.is_error for d in judge(site, reference_ms)):
        return None
    zone = zone_or_utc(site.zone.name)
    if site.host is SYSTEMD:
        from chronex.lint.systemd_calendar import calendar_schedule

        return calendar_schedule(site.text, zone)
    if site.host.program is not None:
        return _crontab_schedule(site, zone)
    text: str | None = site.text
    if site.host.key == KUBERNETES.key:
        from chronex.lint.kubernetes_grammar import read_for_kubernetes

        taken = read_for_kubernetes(site.text)
        text = None if taken is None else taken.text
    try:
        expression = parse(text or "", site.host.dialect, zone.tzinfo, reference_ms)
    except ExpressionError:
        return None
    meaning = as_read_by(site.host, expression.meaning)
    applies = load_zone(meaning.zone) if meaning.zone else zone
    policy = site.policy or policy_for(site.host, meaning)
    return CronSchedule(meaning, applies, policy, needs_both_days(site.host, meaning), site.calendars)


def _crontab_schedule(site: ScheduleSite, zone: Zone) -> CronSchedule | None:
    from chronex.lint.cron_grammar import CronReading, read_schedule
    from chronex.lint.crontab_schedules import meaning_of

    host = site.host
    assert host.program is not None
    reading = read_schedule(site.text, host.program)
    meaning = meaning_of(read(site.text), reading, host) if isinstance(reading, CronReading) else None
    if meaning is None:
        return None
    return CronSchedule(meaning, zone, policy_for(host, meaning), needs_both_days(host, meaning))


class CronSchedule(NamedTuple):
    meaning: Meaning
    zone: Zone
    policy: DstPolicy | None
    both_days: bool = False
    calendars: CalendarRules | None = None

    def words(self) -> str:
        words = describe(self.meaning) if not self.both_days else self._words_of_both()
        if self.calendars is None:
            return words
        from chronex.timing.calendar_days import rules_in_words

        return f"{words}; {rules_in_words(self.calendars)}"

    def upcoming(self, after_ms: int, count: int) -> list[int]:
        """The next instants; `@every` counts from `after_ms`."""
        limit = min(count, self.meaning.options.max or count)
        if self.calendars is not None:
            return list(islice(self._with_calendars(self.calendars, after_ms).between(after_ms, LAST_MS), limit))
        if not self.both_days:
            return list(islice(self._timing(self.meaning).between(after_ms + 1, LAST_MS, after_ms), limit))
        return list(islice(self._on_both_days(after_ms + 1), limit))

    def _with_calendars(self, rules: CalendarRules, after_ms: int) -> Schedule:
        """Without what the job's calendars exclude, and without what a blackout skips."""
        from chronex.model.calendars import CalendarRules
        from chronex.timing.calendar_schedule import with_calendars
        from chronex.timing.job_schedule import ExpressionSchedule

        left = with_calendars(ExpressionSchedule(self._timing(self.meaning), after_ms), rules, self.zone)
        return with_calendars(left, CalendarRules(excluded=rules.blackout), self.zone)

    def clock_note(self, after_ms: int) -> str:
        change = self.zone.next_change(after_ms // 1000)
        if change is None:
            return f"{self.zone.name} does not change its clock."
        effect = effect_of(self._timing(self.meaning), change)
        return f"Clock change on {wall_date(change.at + change.before)} ({self.zone.name}): {effect.text}."

    def _timing(self, meaning: Meaning) -> Occurrences:
        return Occurrences(meaning, self.zone, self.policy)

    def _with_star(self, field: str) -> Meaning:
        body = self.meaning.body
        assert isinstance(body, Cron)
        star = getattr(body, field)._replace(text="*", is_star=True)
        return self.meaning._replace(body=body._replace(**{field: star}))

    def _on_both_days(self, bound: int) -> Iterator[int]:
        """The runs on days of the month that are days of the week too; other days are passed over as a whole."""
        body = self.meaning.body
        assert isinstance(body, Cron)
        timing = self._timing(self._with_star("day_of_week"))
        passed_over = 0
        while passed_over < _MOST_DAYS and (found := timing.nearest(bound, 1)) is not None:
            wall = found // 1000 + self.zone.offset_at(found // 1000)
            if body.day_of_week.values >> (wall // _DAY + 4) % 7 & 1:
                yield found
                bound, passed_over = found + 1, 0
            else:
                # The next midnight; on the day of a clock change the earlier of two guesses, which costs a step.
                offset = max(self.zone.offset_at(found // 1000), self.zone.offset_at(found // 1000 + _DAY))
                bound = max((wall // _DAY + 1) * _DAY - offset, found // 1000 + 1) * 1000
                passed_over += 1

    def _words_of_both(self) -> str:
        body = self.meaning.body
        assert isinstance(body, Cron)
        days = describe(self._with_star("day_of_week"))
        return f"{days}, only when the day of week is {body.day_of_week.text.upper()} too"
