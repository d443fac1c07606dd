"""Ignore comments: where they may stand, what they cover, and when they are told to go."""

from __future__ import annotations

import pytest

from tests.lint.linting import codes

SEVEN = "*/7 * * * * /usr/bin/a\n"
TOML = '[jobs.a]\nschedule = "*/7 * * * *"{trailing}\nrun = "x"\n'


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.crontab", "# chronex: ignore[W103]\n" + SEVEN, []),
        ("a.crontab", "# chronex: ignore[W103] because the device wants it\n\n# more\n" + SEVEN, []),
        ("a.crontab", "# chronex: ignore[W1]\n" + SEVEN, []),
        ("a.crontab", "# chronex: ignore[w103, W111]\n" + SEVEN, []),
        ("a.crontab", "# chronex: ignore[W111]\n" + SEVEN, ["W142", "W103"]),
        ("a.crontab", "# chronex: ignore[W103]\n17 4 * * * /a\n" + SEVEN, ["W142", "W103"]),
        ("a.crontab", "# chronex: ignore-file[W103]\n" + SEVEN * 3, []),
        ("a.crontab", "#\n" * 10 + "# chronex: ignore-file[W103]\n" + SEVEN, ["W103"]),
        ("a.crontab", "# chronex: ignore\n" + SEVEN, ["W141"]),
        ("a.crontab", "17 4 * * * echo '# chronex: ignore[W103]'\n", []),  # part of the command, not a comment
        ("a.timer", "[Timer]\n; chronex: ignore[W101]\nOnCalendar=*-02-30\n", []),
        ("chronex.toml", TOML.format(trailing="  # chronex: ignore[W103]"), []),
        ("chronex.toml", "# chronex: ignore[W103]\n" + TOML.format(trailing=""), ["W142", "W103"]),
    ],
)
def test_ignores(path: str, text: str, expected: list[str]) -> None:
    assert codes(path, text) == expected
