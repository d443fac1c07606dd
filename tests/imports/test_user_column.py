"""Whether a crontab has a user column: by its place, by its lines, and never by a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.imports.crontab import by_content, by_place
from tests.cli.conftest import Chronex

ACCOUNTS = ("root", "www-data", "sync", "mail", "backup", "deploy")
PROGRAMS = {"sync", "mail", "backup", "rsync", "certbot", "php", "sh", "python3"}
SYSTEM = "17 *\t* * *\troot    cd / && run-parts --report /etc/cron.hourly\n"


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/etc/crontab", True), ("./etc/crontab", True), ("/etc/cron.d/munin", True), ("cron.d/munin", True),
        ("roles/web/files/cron.d/app", True), ("/var/spool/cron/crontabs/ann", False), ("crontabs/root", False),
        ("crontab.system", None), ("mine", None), ("-", None), ("crontab", None),
    ],
)  # fmt: skip
def test_what_the_place_says(path: str, answer: bool | None) -> None:
    assert by_place(path) is answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (SYSTEM, True),
        ("MAILTO=x\n# root\n*/5 * * * * munin if [ -x /usr/bin/munin-cron ]; then /usr/bin/munin-cron; fi\n", True),
        ("@daily deploy /srv/app/bin/tidy\n@reboot www-data /usr/bin/agent\n", True),
        ("0 3 * * * /usr/local/bin/backup\n", False),
        ("0 3 * * * rsync -a /a /b\n", False),
        ("0 3 * * * certbot renew\n0 4 * * * FOO=1 run\n", False),
        ("0 3 * * * tool\n", False),
        ("0 3 * * * sync /usr/bin/x\n", None),
        ("0 3 * * * spaced out\n", None),
        ("0 3 * * * root /usr/bin/x\n0 4 * * * /usr/bin/y\n", None),
        ("# nothing\nA=1\n", None),
    ],
)
def test_what_the_lines_say(text: str, answer: bool | None) -> None:
    assert by_content(text, ACCOUNTS, PROGRAMS.__contains__) is answer


@pytest.mark.parametrize("place", ["cron.d/munin", "etc/crontab", "crontab.system", "-"])
def test_a_system_crontab_is_read_as_one_wherever_it_lies(chronex: Chronex, tmp_path: Path, place: str) -> None:
    """Copies from another host, a checkout and standard input: the user was taken for the command, and proven."""
    path = tmp_path / place
    if place != "-":
        path.parent.mkdir(exist_ok=True)
        path.write_text(SYSTEM)
    done = chronex("import", "crontab", place if place == "-" else str(path), "-o", "-", "--tz", "UTC", stdin=SYSTEM)
    assert done.code == 0, done.err
    assert "[jobs.cron-hourly]\n" in done.out
    assert 'run = "cd / && run-parts --report /etc/cron.hourly"' in done.out
    assert 'user = "root"' in done.out


def test_what_cannot_be_told_is_asked_for(chronex: Chronex) -> None:
    text = "0 3 * * * spaced out\n"
    done = chronex("import", "crontab", "-", "--check", "--tz", "UTC", stdin=text)
    assert (done.code, "--as system" in done.err) == (2, True)
    for kind, name in (("system", "out"), ("user", "spaced-out")):
        done = chronex("import", "crontab", "-", "--check", "--as", kind, "--tz", "UTC", stdin=text)
        assert f"same     {name} (line 1)" in done.out
    assert chronex("import", "crontab", "-", "--as", "nobody", stdin=text).code == 2


def test_several_crontabs_are_one_import(chronex: Chronex, tmp_path: Path) -> None:
    for name, line in (("a", "0 1 * * * rsync -a /a /b\n"), ("b", "0 2 * * * rsync -a /c /d\n")):
        (tmp_path / name).write_text(line)
    done = chronex(
        "import", "crontab", str(tmp_path / "a"), str(tmp_path / "b"), "--as", "user", "-o", "-", "--tz", "UTC"
    )
    assert done.code == 0, done.err
    assert "[jobs.rsync]" in done.out
    assert "[jobs.b-rsync]" in done.out
    assert done.out.count("[defaults]") == 1
