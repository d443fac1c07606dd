"""Our zones are zoneinfo's, transition by transition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest

from chronex.errors import UnknownZoneError
from chronex.timing import zones
from chronex.timing.tzif import parse_rule, read_tzif
from chronex.timing.zones import (
    host_zone,
    load_zone,
    machine_zone,
    show_one_time,
    utc_zone,
    zone_names,
    zone_of,
)

DAY = 86_400
NAMES = sorted(available_timezones())
START, END = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1970, 2101))


def offset_of(second: int, tz: tzinfo) -> int:
    offset = datetime.fromtimestamp(second, tz).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


@pytest.mark.parametrize("part", range(8))
def test_the_offsets_of_every_zone_are_those_of_zoneinfo_at_every_transition(part: int) -> None:
    for name in NAMES[part::8]:
        zone, reference = load_zone(name), ZoneInfo(name)
        for change in zone.changes(START, END):
            assert (change.before, change.after) == (
                offset_of(change.at - 1, reference),
                offset_of(change.at, reference),
            ), (name, change.at)
            assert (zone.offset_at(change.at - 1), zone.offset_at(change.at)) == (change.before, change.after), (
                name,
                change.at,
            )
        for second in range(START, END, 40 * DAY):
            assert zone.offset_at(second) == offset_of(second, reference), (name, second)


@pytest.mark.parametrize("part", range(4))
def test_no_two_transitions_are_closer_than_their_shifts(part: int) -> None:
    """The search relies on it: a wall time is missing, doubled or plain, never two of these at once."""
    for name in NAMES[part::4]:
        for first, second in pairwise(load_zone(name).changes(START, END)):
            shifts = abs(first.after - first.before) + abs(second.after - second.before)
            assert second.at - first.at > shifts, (name, first, second)


def test_offsets_far_from_today_are_those_of_zoneinfo() -> None:
    for name in (
        "UTC",
        "America/New_York",
        "Europe/Dublin",
        "Africa/Casablanca",
        "Australia/Lord_Howe",
        "America/Nuuk",
        "Asia/Gaza",
    ):
        zone, reference = load_zone(name), ZoneInfo(name)
        for year in (2, 1000, 1850, 1883, 1900, 1945, 1969, 2037, 2038, 2100, 2400, 5000, 9998):
            for month in range(1, 13):
                second = int(datetime(year, month, 15, tzinfo=UTC).timestamp())
                assert zone.offset_at(second) == offset_of(second, reference), (name, year, month)


def test_a_zone_knows_its_next_change() -> None:
    zone = load_zone("Europe/Berlin")
    march = zone.next_change(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()))
    assert march is not None
    assert march.is_gap
    assert (datetime.fromtimestamp(march.at, UTC), march.before, march.after) == (
        datetime(2026, 3, 29, 1, tzinfo=UTC),
        3600,
        7200,
    )
    october = zone.next_change(march.at)
    assert october is not None
    assert not october.is_gap
    assert datetime.fromtimestamp(october.at, UTC) == datetime(2026, 10, 25, 1, tzinfo=UTC)
    assert utc_zone().next_change(0) is None
    assert load_zone("Asia/Tokyo").next_change(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())) is None


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "Nope", "Asia/Nope", "asia/seoul", "America", "../etc/passwd", "/etc/localtime", "Asia/Seoul/", "Asia//Seoul",
        "right/UTC", "posix/UTC", "tzdata.zi", "zone.tab", "__init__", "__init__/x", "Asia/Seoul\0", "A" * 5000, "A/" * 2000 + "A",
        "Etc/GMT+99", "ASIA/SEOUL", "Ａsia/Seoul",
    ],
)  # fmt: skip
def test_an_unknown_name_is_an_error_of_ours(name: str) -> None:
    with pytest.raises(UnknownZoneError, match="Europe/Berlin"):
        load_zone(name)


@pytest.mark.parametrize(
    "name",
    [
        "UTC",
        "Etc/GMT+5",
        "Etc/GMT-14",
        "EST5EDT",
        "GB-Eire",
        "America/Argentina/ComodRivadavia",
        "US/East-Indiana",
        "Zulu",
    ],
)
def test_whatever_zoneinfo_knows_is_a_zone(name: str) -> None:
    assert load_zone(name).name == name


def test_every_name_worth_suggesting_can_be_loaded() -> None:
    assert len(zone_names()) > 400
    for name in zone_names():
        load_zone(name)


def test_a_zone_comes_from_a_name_a_zoneinfo_an_offset_or_nothing() -> None:
    assert zone_of(None) is utc_zone()
    assert zone_of("Asia/Seoul") is load_zone("Asia/Seoul")
    assert zone_of(ZoneInfo("Asia/Seoul")) is load_zone("Asia/Seoul")
    assert zone_of(ZoneInfo.no_cache("Asia/Seoul")) is load_zone("Asia/Seoul")
    assert zone_of(UTC) is utc_zone()
    fixed = zone_of(timezone(timedelta(hours=-3, minutes=-30)))
    assert (fixed.offset_at(0), fixed.changes(START, END)) == (-12_600, [])


def test_what_is_no_zone_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="IANA name or a tzinfo, not int"):
        zone_of(5)  # type: ignore[arg-type]


class Foreign(tzinfo):
    """A tzinfo of another library, without a key."""

    def __init__(self, name: str) -> None:
        self._zone = ZoneInfo(name)

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=self._zone).utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=self._zone).dst()

    def tzname(self, moment: datetime | None) -> str | None:
        return "foreign"

    def fromutc(self, moment: datetime) -> datetime:
        return self._zone.fromutc(moment.replace(tzinfo=self._zone)).replace(tzinfo=self)


def test_a_tzinfo_of_another_make_is_probed_for_its_changes() -> None:
    probed, known = zone_of(Foreign("America/New_York")), load_zone("America/New_York")
    start, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2020, 2030))
    assert probed.changes(start, end) == known.changes(start, end)
    assert len(known.changes(start, end)) == 20


@pytest.mark.parametrize(
    ("text", "year", "changes"),
    [
        ("EST5EDT,M3.2.0,M11.1.0", 2026, [("2026-03-08T07:00", -14_400), ("2026-11-01T06:00", -18_000)]),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", 2026, [("2026-03-29T01:00", 3600), ("2026-10-25T01:00", 0)]),
        ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 2026, [("2026-04-04T15:00", 37_800), ("2026-10-03T15:30", 39_600)]),
        ("AAA3BBB,J60/0,J300/0", 2024, [("2024-03-01T03:00", -7200), ("2024-10-27T02:00", -10_800)]),
        ("AAA3BBB,59/0,299/0", 2024, [("2024-02-29T03:00", -7200), ("2024-10-26T02:00", -10_800)]),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2026, [("2026-03-29T01:00", -3600), ("2026-10-25T01:00", -7200)]),
        ("JST-9", 2026, []),
    ],
)  # fmt: skip
def test_a_yearly_rule_gives_its_changes(text: str, year: int, changes: list[tuple[str, int]]) -> None:
    found = [
        (datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M"), offset)
        for at, offset in parse_rule(text).changes(year, year)
    ]
    assert found == changes


@pytest.mark.parametrize("text", ["", "X", "EST5EDT,M3.2.0", "5", "EST5EDT,,"])
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rule(text)


def test_a_file_that_is_no_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="TZif"):
        read_tzif(b"hello")


# -- the zone of the host -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "name", "unused"),
    [
        ("Asia/Tokyo", "Asia/Tokyo", ""),
        (":Europe/Paris", "Europe/Paris", ""),
        ("EST5EDT", "EST5EDT", ""),
        ("<+03>-3", "Etc/GMT-3", ""),
        ("JST-9", "Etc/GMT-9", ""),
        ("<-05>5", "Etc/GMT+5", ""),
        ("UTC0", "Etc/UTC", ""),
        ("XYZ-3:00", "Etc/GMT-3", ""),
        ("<+0530>-5:30", "UTC", "<+0530>-5:30"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "UTC", "CET-1CEST,M3.5.0,M10.5.0/3"),
        ("XYZ-99", "UTC", "XYZ-99"),
    ],
)
def test_a_tz_variable_is_used_or_told(
    variable: str, name: str, unused: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TZ", variable)
    monkeypatch.setattr(zones, "LOCALTIME", tmp_path / "localtime")
    monkeypatch.setattr(zones, "TIMEZONE", tmp_path / "timezone")
    found = host_zone()
    assert (found.zone.name, found.unused) == (name, unused)
    assert (f"TZ={unused!r} is no zone name and not used" in found.source) == bool(unused)
    if not unused and name.startswith("Etc/GMT"):
        assert found.zone.offset_at(0) == -3600 * int(name.removeprefix("Etc/GMT"))


def test_a_localtime_file_that_is_a_copy_is_found_by_its_bytes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TZ", raising=False)
    (tmp_path / "data/Asia").mkdir(parents=True)
    real = zones._zone_file("Asia/Seoul")
    (tmp_path / "data/Asia/Seoul").write_bytes(real)
    (tmp_path / "localtime").write_bytes(real)
    monkeypatch.setattr(zones, "LOCALTIME", tmp_path / "localtime")
    monkeypatch.setattr(zones, "TIMEZONE", tmp_path / "timezone")
    monkeypatch.setattr("zoneinfo.TZPATH", (str(tmp_path / "data"),))
    found = host_zone()
    assert found.zone.name == "Asia/Seoul"
    assert "is a copy of it" in found.source


def test_the_variable_may_be_a_path_as_the_c_library_takes_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`TZ=:/etc/localtime` saves programs of C a system call, and is in many images."""
    tree = tmp_path / "zoneinfo"
    (tree / "Asia").mkdir(parents=True)
    (tree / "Asia/Seoul").write_bytes(zones._zone_file("Asia/Seoul"))
    (tmp_path / "copy").write_bytes(zones._zone_file("Asia/Seoul"))
    (tmp_path / "localtime").symlink_to(tree / "Europe/Paris")
    monkeypatch.setattr(zones, "LOCALTIME", tmp_path / "localtime")
    monkeypatch.setattr(zones, "TIMEZONE", tmp_path / "timezone")
    monkeypatch.setattr("zoneinfo.TZPATH", (str(tree),))
    for variable, name, unused in [
        (str(tree / "Asia/Seoul"), "Asia/Seoul", ""),
        (f":{tree / 'Asia/Seoul'}", "Asia/Seoul", ""),
        (str(tree / "posix/Asia/Seoul"), "Asia/Seoul", ""),
        (str(tmp_path / "copy"), "Asia/Seoul", ""),
        (f":{tmp_path / 'localtime'}", "Europe/Paris", ""),
        ("", "UTC", ""),
        ("/nowhere/at/all", "Europe/Paris", "/nowhere/at/all"),
        ("/dev/zero", "Europe/Paris", "/dev/zero"),
    ]:
        monkeypatch.setenv("TZ", variable)
        found = host_zone()
        assert (found.zone.name, found.unused) == (name, unused), variable


def test_another_machine_has_the_zone_of_its_own_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    (tmp_path / "etc").mkdir()
    assert machine_zone(tmp_path) is None
    (tmp_path / "etc/timezone").write_text("Europe/Paris\n")
    assert machine_zone(tmp_path) == load_zone("Europe/Paris")
    (tmp_path / "etc/localtime").symlink_to("/usr/share/zoneinfo/America/Lima")
    assert machine_zone(tmp_path) == load_zone("America/Lima")


def test_zones_show_one_time_where_their_clocks_agree() -> None:
    assert show_one_time(load_zone("UTC"), load_zone("Etc/UTC"), START, END)
    assert show_one_time(load_zone("Europe/Berlin"), load_zone("Europe/Rome"), END - 10 * 366 * DAY, END)
    assert not show_one_time(load_zone("Europe/Berlin"), load_zone("Europe/London"), START, END)
    assert not show_one_time(load_zone("Asia/Tokyo"), load_zone("UTC"), START, END)
