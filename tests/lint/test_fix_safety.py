"""A safe fix cannot change when something runs: the host fires at the same instants before and after.

What a host refused has no instants. There the fix must be the same words in another spelling, by a normal form that
is written out here and knows nothing of suggestions.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.errors import UnknownZoneError
from chronex.imports.oracle import KUBERNETES, five_years, instants, pattern_of, rules_of
from chronex.lint.cron_programs import CRON_PROGRAMS, CronProgram
from chronex.lint.findings import ScheduleSite
from chronex.lint.host_schedules import schedule_of
from chronex.lint.linter import fixed, lint_document
from chronex.lint.source_files import Document, open_document
from chronex.timing.zones import Zone, load_zone
from tests.lint.golden import CASES, NOW_MS, Case
from tests.lint.linting import assume
from tests.lint.odd_files import odd_file

REAL = Path(__file__).parent / "real"
START, END = five_years(NOW_MS // 1000)
DAY = 86_400
FIVE_FIELDS = ("crontab", "github", "kubernetes", "azure", "dependabot")
_SHORT = {
    name: name[:3]
    for names in (
        "january february march april june july august september october november december",
        "sunday monday tuesday wednesday thursday friday saturday",
    )
    for name in names.split()
}


def normal(text: str) -> str:
    """One spelling for all that differ only in case, separators, long names, or a Sunday written as 7."""
    text = text.casefold().replace("cron_tz=", "tz=").replace("{}", "").replace("#l", "l").replace("-", "_")
    zone, middle, options = re.fullmatch(r"\s*(tz=\S*)?(.*?)(\{.*)?", text, re.DOTALL).groups("")  # type: ignore[union-attr]
    words = middle.split()
    if len(words) == 5:
        words[4] = re.sub(r"(?<![0-9])7(?![0-9])", "0", words[4])
        words[2:] = [re.sub("[a-z]+", lambda m: _SHORT.get(m[0], m[0]), word) for word in words[2:]]
        words = ["*" if word == "?" or word == "*/1" else word for word in words]
    else:  # a step over all hours, minutes, days or months of a calendar event begins with the first
        words = [re.sub(r"(?<![0-9])[*01]/", "first/", word) for word in words]
    return "_".join([*zone.split(), *words, *options.split()]).removeprefix("@")


def windows(dice: random.Random, zone: Zone) -> Iterator[tuple[int, int]]:
    """Days to look at: the next ones, some by chance, and those on which the clock is set."""
    yield START, START + 2 * DAY
    for change in list(zone.changes(START, END))[:4]:
        yield change.at - DAY, change.at + DAY
    for _ in range(4):
        day = START + dice.randrange((END - START) // DAY) * DAY
        yield day, day + 2 * DAY


def fires(site: ScheduleSite, spans: list[tuple[int, int]]) -> list[int] | None:
    """The instants at which the host fires within the spans, None for what it refuses."""
    try:
        zone = load_zone(site.zone.name)
    except UnknownZoneError:
        return None
    if site.host.key in FIVE_FIELDS and not site.text.startswith("@"):
        rules = rules_of(site.host.program) if site.host.program else KUBERNETES
        pattern = pattern_of(site.text, rules)
        if pattern is None:
            return None
        return [second for start, end in spans for second in instants(pattern, rules, zone, start, end)]
    schedule = schedule_of(site, NOW_MS)
    if schedule is None:
        return None
    found: list[int] = []
    for start, end in spans:
        after = start * 1000 - 1
        while (batch := schedule.upcoming(after, 500)) and batch[0] < end * 1000:
            found.extend(ms for ms in batch if ms < end * 1000)
            after = batch[-1]
            if len(batch) < 500:
                break
    return found


def rest_of_lines(document: Document) -> list[str]:
    """What a crontab says beside its schedules: users and commands."""
    lines = (line.rstrip("\r").split(None, 5) for line in document.text.split("\n"))
    return [words[5] for words in lines if len(words) == 6 and not words[0].startswith("#")]


def without_schedules(document: Document, sites: list[ScheduleSite]) -> str:
    text = document.text
    for site in reversed(sites):
        text = text[: site.start] + text[site.end :]
    text = re.sub(r"[ \t]*(?:# chronex: ignore[^'\"\n\r]*)?(?=\r?$)", "", text, flags=re.MULTILINE)
    return re.sub("['\"]", "", text.casefold().replace(" ", "_").replace("-", "_"))


def check(
    document: Document, dice: random.Random, *, everything: bool = False, cron: CronProgram | None = None
) -> int:
    """How many sites were compared."""
    assumed = assume()._replace(cron=cron)
    better = fixed(document, assumed)
    assert fixed(better, assumed).text == better.text
    if better.text == document.text:
        return 0
    before, after = lint_document(document, assumed), lint_document(better, assumed)
    if document.kind in ("crontab", "cron.d"):
        assert rest_of_lines(better) == rest_of_lines(document)
    if any(f.code in ("E137", "E140", "E133", "J002", "J018") for f in before.findings):
        return 0  # no host reads any of it
    assert len(before.sites) == len(after.sites)
    is_refused = document.kind == "chronex" and any(f.severity == "error" for f in before.findings)
    if is_refused:  # a job file as a whole, and its other keys may be spelt anew
        assert without_schedules(document, before.sites) == without_schedules(better, after.sites)
    for old, new in zip(before.sites, after.sites, strict=True):
        zone = new.zone.name
        spans = [(START, END)] if everything else list(windows(dice, load_zone(zone) if is_zone(zone) else UTC))
        if (old.text, old.zone.name, old.host) == (new.text, zone, new.host):
            continue  # also what the evaluator here does not know, such as seconds for supercronic
        was = None if is_refused else fires(old, spans)
        if was is None:
            # With a blank that cron does not know, one word of the command stands in the fifth column.
            words = old.text.split()[:5] if old.host.key == "crontab" else [old.text]
            assert normal(" ".join(words)) == normal(new.text)
            assert is_refused or normal(old.zone.name) == normal(zone)
        else:
            assert was == fires(new, spans), (old.text, new.text)
    return len(before.sites)


UTC = load_zone("UTC")


def is_zone(name: str) -> bool:
    try:
        load_zone(name)
    except UnknownZoneError:
        return False
    return True


# -- files that people wrote, and files with what people get wrong ------------------------------------------------

FIELDS = ("*", "*/1", "*/15", "0", "5", "7", "?", "1-5", "5-7", "22-6", "MON", "monday", "Sunday", "MNO", "JAN", "march", "99",
          "H", "0/15", "L", "15W", "0~30", "1,7", "*/7", "7,1-3", "FRI#L")  # fmt: skip
WORDS = ("@daily", "@Daily", "@wekly", "daily", "@reboot", "@every 5m", "CRON_TZ=UTC 0 4 * * *", "TZ=asia/tokyo 0 4 * * *",
         "0 0 4 * * *", "0\u00a04 * * *", "TZ=PST 0 4 * * *", "0 4 * * * {}", "0 4 * * * {jitter:30min}", "")  # fmt: skip
ZONES = ("PST", "BST", "CST", "JST", "CEST", "Z", "GMT+2", "UTC+2", "EST5", "Europe/Bern", "europe/berlin", "America/New York",
         "America/new-york", "Europe/Berlin", "Asia/Tokyo", "Etc/GMT5", "etc/gmt-5", ":Europe/Berlin", "utc")  # fmt: skip
EVENTS = ("daily", "Daily", "dayly", "Mon..Fri 09:00", "mon *:0/15", "*-*-* */2:00", "09:00 europe/berlin", "09:00 PST",
          "*-*/2-1", "*/2-1-1")  # fmt: skip


def expression(dice: random.Random) -> str:
    if dice.random() < 0.25:
        return dice.choice(WORDS)
    plain = [dice.choice(["0", "30", "*/5"]), dice.choice(["2", "*", "1-3"]), "*", "*", "*"]
    for _ in range(dice.randrange(1, 4)):
        plain[dice.randrange(5)] = dice.choice(FIELDS)
    return " ".join(plain)


def generated(dice: random.Random) -> Document:
    text, zone = expression(dice), dice.choice(ZONES)
    newline = dice.choice(["\n", "\n", "\r\n", ""])
    match dice.randrange(6):
        case 0:
            lines = [
                f"CRON_TZ={zone}",
                f"{text} /usr/bin/a $(date +%F)",
                f"{expression(dice)} root /b",
                "# chronex: ignore[W111]",
            ]
            return open_document("crontab", "\n".join(dice.sample(lines, 3)) + newline)
        case 1:
            return open_document("cron.d/a", f"{text} root /usr/bin/a\n{expression(dice)} /b{newline}")
        case 2:
            quote = dice.choice(["'", '"', ""])
            spec = f"  schedule: {quote}{text}{quote}\n" + dice.choice(["", f"  timeZone: {zone}\n"])
            return open_document("a.yaml", f"kind: CronJob\nspec:\n{spec}")
        case 3:
            more = dice.choice(["", f"      timezone: {zone}\n"])
            return open_document(".github/workflows/a.yml", f"on:\n  schedule:\n    - cron: '{text}'\n{more}")
        case 4:
            return open_document("a.timer", f"[Timer]\nOnCalendar={dice.choice(EVENTS)}\n")
    more = dice.choice(
        ["", f'timezone = "{zone}"\n', 'Overlap = "skip"\n', 'overlap = "Skip"\n', 'dialect = "posix"\n']
    )
    return open_document("chronex.toml", f'[jobs.a]\nschedule = "{text}"\nrun = "x"\n{more}')


def test_generated_files_fire_as_before() -> None:
    dice = random.Random(22)
    assert sum(check(generated(dice), dice) for _ in range(160)) > 15


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_golden_files_fire_as_before(case: Case) -> None:
    check(open_document(case.path, case.text), random.Random(case.path))


def mutated(text: str, dice: random.Random) -> str:
    """With a word of a schedule in it that people get wrong."""
    words = [match.span() for match in re.finditer(r"[^\s\"'#]+", text)]
    for start, end in sorted(dice.sample(words, min(3, len(words))), reverse=True):
        text = text[:start] + dice.choice(FIELDS + ZONES + (text[start:end].upper(),)) + text[end:]
    return text


def real_files() -> Iterator[tuple[str, str]]:
    for path in sorted(REAL.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(REAL)).removesuffix(".sample"), path.read_bytes().decode("utf-8")


def test_files_of_people_fire_as_before() -> None:
    dice = random.Random(23)
    for name, text in real_files():
        check(open_document(name, text), dice)
        check(open_document(name, mutated(text, dice)), dice)


@pytest.mark.parametrize("seeds", [range(150), pytest.param(range(150, 6_000), marks=pytest.mark.torture)], ids=len)
def test_oddly_written_files_of_every_kind_fire_as_before(seeds: range) -> None:
    compared: Counter[str | None] = Counter()
    for seed in seeds:
        dice = random.Random(seed)
        document, cron = odd_file(dice), dice.choice([*CRON_PROGRAMS.values()])
        compared[document.kind] += check(document, dice, cron=cron)
    assert all(
        compared[kind] for kind in ("crontab", "cron.d", "k8s", "github", "azure", "trigger", "python", "chronex")
    )


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_every_instant_of_five_years_is_the_same() -> None:
    dice = random.Random(24)
    for _ in range(1_500):
        check(generated(dice), dice, everything=True)
    for name, text in real_files():
        for _ in range(20):
            check(open_document(name, mutated(text, dice)), dice, everything=True)


# -- zones --------------------------------------------------------------------------------------------------------


def _cronjob(zone: str) -> Document:
    return open_document("a.yaml", f'kind: CronJob\nspec:\n  schedule: "0 9 * * *"\n  timeZone: {zone}\n')


@pytest.mark.parametrize(
    ("zone", "suggested", "is_safe"),
    [
        ("PST", "America/Los_Angeles", False),
        ("JST", "Asia/Tokyo", False),
        ("KST", "Asia/Seoul", False),
        ("AEST", "Australia/Sydney", False),
        ("CEST", "Europe/Berlin", False),
        ("Z", "UTC", False),
        ("CST", None, False),
        ("BST", None, False),
        ("IST", None, False),
        ("GMT+2", None, False),
        ("UTC+2", None, False),
        ("+02:00", None, False),
        ("Europe/Berln", "Europe/Berlin", False),
        ("europe/berlin", "Europe/Berlin", True),
        ("America/New York", "America/New_York", True),
        ("utc", "UTC", True),
    ],
)
def test_a_zone_is_suggested_by_what_is_known_of_it(zone: str, suggested: str | None, is_safe: bool) -> None:
    document = _cronjob(zone)
    (finding,) = (f for f in lint_document(document, assume()).findings if f.code == "E011")
    written = None if finding.fix is None else finding.fix.edits[0].text
    assert (written, finding.fix is not None and finding.fix.is_safe) == (suggested, is_safe)
    assert fixed(document, assume()).text == (_cronjob(suggested).text if is_safe and suggested else document.text)


def test_an_abbreviation_of_several_places_names_them() -> None:
    (finding,) = (f for f in lint_document(_cronjob("CST"), assume()).findings if f.code == "E011")
    assert "such as America/Chicago or Asia/Shanghai" in finding.message


def test_a_crontab_keeps_an_unknown_zone_because_cron_reads_it_as_utc() -> None:
    text = "CRON_TZ=europe/berlin\n17 4 * * * /usr/bin/a\n"
    assert fixed(open_document("crontab", text), assume()).text == text
