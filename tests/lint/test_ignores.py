"""Ignore comments: where they may stand, what they cover, and when the linter asks to remove them."""

from __future__ import annotations

import pytest

from tests.lint.linting import codes

SEVEN = "*/7 * * * * /usr/bin/a\n"
ON = "on:\n  schedule:\n    - cron: '*/13 * * * *'\n"
TOML = '[jobs.a]\nschedule = "*/7 * * * *"{trailing}\nrun = "x"\ntask_timeout = "1h"\n'


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
        ("a.crontab", "17 4 * * * /a ; # chronex: ignore[W103]\n", []),
        ("a.py", "import chronex\nx = '# chronex: ignore[W103]'\n", []),
        ("a.py", "import chronex\nchronex.parse('*/7 * * * *')  # chronex: ignore[W103]\n", []),
        ("a.py", "import chronex\n# chronex: ignore[W103]\nchronex.parse('17 * * * *')\n", ["W142"]),
        ("a.py", "import chronex\n'''\n# chronex: ignore[W103]\n'''\nchronex.parse('*/7 * * * *')\n", ["W103"]),
        (
            "chronex.toml",
            '[jobs.a]\nschedule = "17 4 * * *"\nrun = "echo # chronex: ignore[W103]"\ntask_timeout = "1h"\n',
            [],
        ),
        (
            ".github/workflows/a.yml",
            ON + "jobs:\n  a:\n    run: |\n      # chronex: ignore[W103]\n      make\n",
            ["W103"],
        ),
        (".github/workflows/a.yml", "# chronex: ignore-file[W103]\n" + ON, []),
        (".github/workflows/a.yml", ON.replace("'\n", "' # chronex: ignore[W103]\n"), []),
        (
            "triggers.json",
            '{"id": "a", "expression": "*/7 * * * *", "metadata": {"a": "# chronex: ignore[W103]"}}',
            ["W103"],
        ),
        ("chronex.toml", TOML.format(trailing="  # chronex: ignore[W103]"), []),
        ("chronex.toml", "# chronex: ignore[W103]\n" + TOML.format(trailing=""), ["W142", "W103"]),
    ],
)
def test_ignores(path: str, text: str, expected: list[str]) -> None:
    assert codes(path, text) == expected
