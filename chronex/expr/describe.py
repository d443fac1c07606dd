"""English for every expression, written from its meaning (the value sets), never from its spelling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chronex.expr.fields import Anchor, DayRule, FieldSet
from chronex.expr.iso8601 import Moment, Period
from chronex.expr.meaning import AtStart, Cron, Every, Meaning, Once, Repeating
from chronex.expr.option_block import Options
from chronex.text.durations import format_duration

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ORDINALS = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 5: "5th"}
_MOST_CLOCK_TIMES = 6
_LEAST_DAYS_OF_A_STEP = 5
_MOST_LISTED = 4  # steps of fewer values are named one by one
_LONGEST = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def describe(meaning: Meaning) -> str:
    """`At 09:00, Monday through Friday (Europe/Berlin), with up to 30s jitter`."""
    match meaning.body:
        case Cron() as cron:
            text = _cron_text(cron)
        case Every(low, None):
            text = f"Every {format_duration(low)}"
        case Every(low, int() as high):
            text = f"Every {format_duration(low)} to {format_duration(high)} (randomized)"
        case Once() as once:
            text = _once_text(once)
        case Repeating() as repeating:
            text = _repeating_text(repeating)
        case AtStart():
            text = "Once each time the machine has started"
    zone = f" ({meaning.zone})" if meaning.zone else ""
    return text + zone + _options_text(meaning.options)


# -- lists and runs -------------------------------------------------------------------------------------------


def _join(items: Sequence[str], last: str = "and") -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def values_of(mask: int) -> list[int]:
    """The values whose bits are set, rising."""
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def _runs(values: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbouring values."""
    runs: list[tuple[int, int]] = []
    for value in values:
        if runs and runs[-1][1] == value - 1:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    return runs


def _spoken(values: Sequence[int], names: Sequence[str] | None = None) -> str:
    """`1, 5 through 9 and 20`; a run of two is two values."""
    words: list[str] = []
    for first, last in _runs(values):
        start, end = (names[first], names[last]) if names else (str(first), str(last))
        if last - first > 1:
            words.append(f"{start} through {end}")
        else:
            words.extend([start] if first == last else [start, end])
    return _join(words)


def _even_step(values: Sequence[int], size: int) -> int | None:
    """The step of values spread evenly around a field of `size`: 5, 20, 35, 50 of 60 give 15."""
    if len(values) < 2 or size % len(values):
        return None
    step = size // len(values)
    return step if values == list(range(values[0], size, step)) and values[0] < step else None


def _cron_text(cron: Cron) -> str:
    text = _time_text(cron)
    days = _day_text(cron, is_clock_time=text.startswith("At "))
    return f"Never: {text[0].lower()}{text[1:]}{days}" if _has_no_day(cron) else text + days


def _has_no_day(cron: Cron) -> bool:
    """No month that is named has a day that is named, such as 30 February; a weekday would still match."""
    if not cron.day_of_week.is_star:
        return False
    days, rules = values_of(cron.day_of_month.values), cron.day_of_month.rules
    lengths = [_LONGEST[month] for month in values_of(cron.month.values)]
    return not any(_exists(rule, length) for length in lengths for rule in rules) and not any(
        day <= length for length in lengths for day in days
    )


def _exists(rule: DayRule, length: int) -> bool:
    """Whether a month of this length has the day that a rule counts from; a nearest weekday is never clamped."""
    return rule.number <= length if rule.anchor is Anchor.NEAREST_WEEKDAY else rule.number < length


# -- time of day ----------------------------------------------------------------------------------------------


def _time_text(cron: Cron) -> str:
    seconds, minutes, hours = (values_of(f.values) for f in (cron.second, cron.minute, cron.hour))
    if len(seconds) == 1 and len(minutes) * len(hours) <= _MOST_CLOCK_TIMES and len(hours) < 24:
        return _clock_times(hours, minutes, seconds)
    if seconds == [0]:
        return _minutes_text(minutes, hours)
    return _seconds_text(seconds, minutes, hours)


def _clock_times(hours: list[int], minutes: list[int], seconds: list[int]) -> str:
    ends = [""] if seconds == [0] else [f":{second:02}" for second in seconds]
    times = [f"{h:02}:{m:02}{end}" for h in hours for m in minutes for end in ends]
    return "At midnight" if times == ["00:00"] else f"At {_join(times)}"


def _minutes_text(minutes: list[int], hours: list[int]) -> str:
    step = _even_step(minutes, 60)
    if len(minutes) == 60:
        return "Every minute" + _during(hours)
    if step:
        start = f" starting at minute {minutes[0]}" if minutes[0] else ""
        return f"Every {step} minutes{start}" + _during(hours)
    if run := _every_from_to(minutes, hours):
        return run
    hour_step = _even_step(hours, 24)
    at = f" at {_plural('minute', minutes)}"
    if len(hours) == 24:
        return f"Every hour{at}"
    if hour_step and hours[0] and len(minutes) == 1:
        return f"Every {hour_step} hours from {hours[0]:02}:{minutes[0]:02}"
    if hour_step:
        start = f" from {hours[0]:02}:00" if hours[0] else ""
        return f"Every {hour_step} hours{start}{at}"
    return f"At {_plural('minute', minutes)} of {_hours(hours)}"


def _every_from_to(minutes: list[int], hours: list[int]) -> str | None:
    """One minute of hours that are neighbours (over midnight too) or in steps, or neighbouring minutes of an hour."""
    runs = _runs_around(hours, 24)
    step = hours[1] - hours[0] if len(minutes) == 1 and len(hours) > _MOST_CLOCK_TIMES else 1
    if step > 1 and hours == list(range(hours[0], hours[-1] + 1, step)) and not _even_step(hours, 24):
        return f"Every {step} hours from {hours[0]:02}:{minutes[0]:02} through {hours[-1]:02}:{minutes[0]:02}"
    if len(minutes) == 1 and len(runs) == 1 and len(hours) < 24:
        return f"Every hour from {runs[0][0]:02}:{minutes[0]:02} through {runs[0][1]:02}:{minutes[0]:02}"
    if len(hours) == 1 and len(_runs(minutes)) == 1:
        return f"Every minute from {hours[0]:02}:{minutes[0]:02} through {hours[0]:02}:{minutes[-1]:02}"
    return None


def _runs_around(values: list[int], size: int, low: int = 0) -> list[tuple[int, int]]:
    """Runs of neighbouring values; one over the end of the field is one run."""
    runs = _runs(values)
    if len(runs) > 1 and runs[0][0] == low and runs[-1][1] == low + size - 1:
        runs = [*runs[1:-1], (runs[-1][0], runs[0][1])]
    return runs


def _seconds_text(seconds: list[int], minutes: list[int], hours: list[int]) -> str:
    step = _even_step(seconds, 60)
    if len(seconds) == 60:
        text = "Every second"
    elif step:
        text = f"Every {step} seconds" + (f" from second {seconds[0]}" if seconds[0] else "")
    elif len(minutes) == 60:
        return f"Every minute at {_plural('second', seconds)}" + _during(hours)
    else:
        text = f"At {_plural('second', seconds)}"
    if len(minutes) == 60:
        return text + _during(hours)
    if len(hours) == 1 and len(_runs(minutes)) == 1:  # minutes of one hour that follow each other: a stretch of time
        first, last = f"{hours[0]:02}:{minutes[0]:02}", f"{hours[0]:02}:{minutes[-1]:02}"
        if step or len(seconds) == 60:
            start = f"{first}:{seconds[0]:02}"
            every = "Every second" if len(seconds) == 60 else f"Every {step} seconds"
            return f"{every} from {start} through {last}:{seconds[-1]:02}"
        if len(minutes) == 1 and len(seconds) > 2 and len(_runs(seconds)) == 1:
            return f"Every second from {first}:{seconds[0]:02} through {last}:{seconds[-1]:02}"
    if not step and len(seconds) * len(minutes) * len(hours) <= _MOST_CLOCK_TIMES:
        return _clock_times(hours, minutes, seconds)
    minute_step = _even_step(minutes, 60)
    if minute_step and not step and len(seconds) < 60:
        start = f" starting at minute {minutes[0]}" if minutes[0] else ""
        return f"Every {minute_step} minutes{start}, at {_plural('second', seconds)}{_during(hours)}"
    if minute_step and len(minutes) > _MOST_LISTED:
        start = f" from minute {minutes[0]}" if minutes[0] else ""
        which = f" of every {minute_step}{_ordinal_suffix(minute_step)} minute{start}"
    else:
        which = f" of {_plural('minute', minutes)}"
    return text + which + f" of {_hours(hours)}"


def _ordinal_suffix(number: int) -> str:
    return "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _plural(unit: str, values: list[int]) -> str:
    return f"{unit}{'s' if len(values) > 1 else ''} {_spoken(values)}"


def _hours(hours: list[int]) -> str:
    """`every hour`, `every 2nd hour`, or a list, in which a night is `22 through 06`."""
    if len(hours) == 24:
        return "every hour"
    if len(hours) > _MOST_LISTED and (step := _even_step(hours, 24)):
        return f"every {step}{_ordinal_suffix(step)} hour" + (f" from {hours[0]:02}:00" if hours[0] else "")
    runs = _runs_around(hours, 24)
    if runs != _runs(hours):  # over midnight; a night of two hours has no hours between
        words = [f"{first:02} through {last:02}" if first != last else f"{first:02}" for first, last in runs]
        return f"hours {_join(words)}"
    return f"hour{'s' if len(hours) > 1 else ''} {_spoken(hours, [f'{h:02}' for h in range(24)])}"


def _during(hours: list[int]) -> str:
    """`, from 09:00 through 17:59`; a run of hours over midnight is one run."""
    if len(hours) == 24:
        return ""
    runs = _runs_around(hours, 24)
    if len(runs) > 3 and (step := _even_step(hours, 24)):
        start = f" from {hours[0]:02}:00" if hours[0] else ""
        return f", in every {step}{_ordinal_suffix(step)} hour{start}"
    if len(runs) > 1 and all(first == last for first, last in runs):
        return f", in {_hours(hours)}"
    return f", from {_join([f'{first:02}:00 through {last:02}:59' for first, last in runs])}"


# -- days -----------------------------------------------------------------------------------------------------


def _day_text(cron: Cron, *, is_clock_time: bool) -> str:
    dom, dow = cron.day_of_month, cron.day_of_week
    months = _Months(values_of(cron.month.values))
    by_day, by_weekday = _day_of_month_text(dom), _weekday_text(dow)
    every_day = by_day == "" or by_weekday == ""
    if (dom.is_star and dow.is_star) or (every_day and not dom.is_star and not dow.is_star):
        return months.after(", every day in " if is_clock_time else " in ", " ")
    if dom.is_star and dow.added_rules:
        return by_weekday + (months.after(" of ", " of the month, ") or " of the month")
    if dom.is_star or dow.is_star:
        text = by_weekday if dom.is_star else by_day
        if dow.is_star and text.count(" of the month") == 1 and text.endswith(" of the month"):
            return text.removesuffix(" of the month") + (months.after(" of ", " of the month, ") or " of the month")
        return text + months.after(" of " if dow.is_star and text and "of the month" not in text else " in ", ", ")
    of_the_month = " of the month" if dow.added_rules else ""
    joined = f"{by_day} or {by_weekday.removeprefix(',').removeprefix(' ')}{of_the_month}"
    return joined + months.after(", in ", ", ")


class _Months:
    """The months of a schedule in words; nothing where it is all of them."""

    def __init__(self, months: list[int]) -> None:
        self.months = months

    def after(self, words: str, before_a_run: str) -> str:
        """`words` and the names; three neighbours and more, over the new year too, are `from … through …`."""
        if len(self.months) == 12:
            return ""
        runs = _runs_around(self.months, 12, low=1)
        if len(runs) == 1 and len(self.months) > 2:
            return f"{before_a_run}from {_MONTHS[runs[0][0] - 1]} through {_MONTHS[runs[0][1] - 1]}"
        return words + _spoken(self.months, ("", *_MONTHS))


def _day_of_month_text(field: FieldSet) -> str:
    days = values_of(field.values)
    if len(days) == 31:
        return ""
    if field.rules:
        numbered = [_plural("day", days)] if days else []
        return f" on {_join([*numbered, *map(_rule_text, sorted(field.rules, key=_place_in_month))])}"
    step = days[1] - days[0] if len(days) >= _LEAST_DAYS_OF_A_STEP else 1
    if step > 1 and days == list(range(days[0], 32, step)):
        return f" on every {step}{_ordinal_suffix(step)} day from day {days[0]}"
    return f" on {_plural('day', days)}"


def _place_in_month(rule: DayRule) -> tuple[bool, int]:
    """Days counted from the start of the month, then those counted from its end."""
    from_start = rule.anchor is Anchor.NEAREST_WEEKDAY
    return not from_start, rule.number if from_start else -rule.number


def _weekday_text(field: FieldSet) -> str:
    days = values_of(field.values)
    if len(days) == 7:
        return ""
    run = None if field.added_rules else _weekday_run(days)
    if run and len(days) > 2:
        return f", {_WEEKDAYS[run[0]]} through {_WEEKDAYS[run[1]]}"
    names = [_WEEKDAYS[day] for day in sorted(days, key=_from_monday)]
    rules = sorted(field.added_rules, key=lambda rule: (_from_monday(rule.weekday), rule.number or 6))
    return f" on {_join([*names, *map(_rule_text, rules)])}"


def _from_monday(weekday: int) -> int:
    return (weekday - 1) % 7


def _weekday_run(days: list[int]) -> tuple[int, int] | None:
    """First and last day when the days follow each other, over the end of the week too."""
    starts = [day for day in days if (day - 1) % 7 not in days]
    if len(starts) != 1:
        return None
    return starts[0], (starts[0] + len(days) - 1) % 7


def _rule_text(rule: DayRule) -> str:
    days = "the day" if rule.number == 1 else f"{rule.number} days"
    before_last = f"{days} before the last day of the month"
    match rule.anchor:
        case Anchor.LAST_DAY:
            return before_last if rule.number else "the last day of the month"
        case Anchor.LAST_WEEKDAY:
            nearest = f"the nearest weekday to {before_last}"
            return nearest if rule.number else "the last weekday of the month"
        case Anchor.NEAREST_WEEKDAY:
            return f"the nearest weekday to day {rule.number}"
        case Anchor.LAST_OF_WEEKDAY:
            return f"the last {_WEEKDAYS[rule.weekday]}"
        case Anchor.NTH_OF_WEEKDAY:
            return f"the {_ORDINALS[rule.number]} {_WEEKDAYS[rule.weekday]}"


# -- the other kinds, and options -----------------------------------------------------------------------------


def _once_text(once: Once) -> str:
    if once.at is not None:  # a relative one that has its moment means that moment
        return f"Once at {_moment_text(once.at)}"
    return f"Once, {format_duration(once.relative or 0)} from reference time"


def _moment_text(moment: Moment) -> str:
    text = str(moment)
    day, _, clock = text.partition("T")
    offset = ""
    for mark in ("Z", "+", "-"):
        if mark in clock:
            clock, _, rest = clock.partition(mark)
            offset = " UTC" if mark == "Z" else f" {mark}{rest}"
    return f"{day} {clock.removesuffix(':00') if len(clock) == 8 else clock}{offset}"


def _repeating_text(repeating: Repeating) -> str:
    count, where = repeating.repetitions, ""
    if repeating.start is not None:
        where = f" from {_moment_text(repeating.start)}"
    elif repeating.end is not None:
        where = f" before {_moment_text(repeating.end)}"
    if count is not None and not repeating.is_anchored:
        count += 1
    if count == 1 and repeating.start is not None:
        return f"Once at {_moment_text(repeating.start)}"
    runs = "" if count is None else ", once" if count == 1 else f", {count} times"
    return f"Every {_period_text(repeating.period)}{where}{runs}"


def _period_text(period: Period) -> str:
    years, months = divmod(period.months, 12)
    weeks, days = divmod(period.days, 7) if period.days % 7 == 0 else (0, period.days)
    parts = [(years, "year"), (months, "month"), (weeks, "week"), (days, "day")]
    words = [f"{count} {unit}{'s' if count > 1 else ''}" for count, unit in parts if count]
    if period.elapsed_ms:
        words.append(format_duration(period.elapsed_ms))
    return _join(words).removeprefix("1 ") if len(words) == 1 else _join(words)


def _options_text(options: Options) -> str:
    parts = []
    if options.jitter:
        parts.append(f"with up to {format_duration(options.jitter)} jitter")
    if options.stagger:
        parts.append(f"with {format_duration(options.stagger)} stagger")
    if options.window:
        parts.append(f"within a window of {format_duration(options.window)}")
    if options.from_:
        parts.append(f"from {options.from_ if options.from_.is_date else _moment_text(options.from_)}")
    if options.until:
        parts.append(f"until {options.until if options.until.is_date else _moment_text(options.until)}")
    if options.max:
        parts.append(f"max {options.max} execution{'s' if options.max > 1 else ''}")
    if options.tags:
        parts.append(f"tagged {', '.join(options.tags)}")
    return "".join(f", {part}" for part in parts)
