"""Whole lines of crontabs: variables, comments, nicknames, columns and line ends, and what the programs say of them.

`python -m tests.lint.odd_lines 800` writes a sample to cron_line_verdicts.json; see real_crons for the programs.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from tests.lint.real_crons import Verdict, checkers, schedules

LINE_VERDICTS = Path(__file__).parent / "cron_line_verdicts.json"
_NAMES = ["A", "MAILTO", "MAILFROM", "a_b", "1A", "A-B", "A.B", "'A B'", '"A"', "A B", "", "=", "é", "PATH", "CRON_TZ", "TZ",
          "export A", "$A", "A\\", "'A", '"A', "A'B", "-", "*", "@A", "@daily", "#A", "0", "'A=b'"]  # fmt: skip
_VALUES = ["", "x", "'x'", '"x"', "x y", "'x' y", '"x" # c', "''", '""', "'x", "x'", "\"x'y\"", "=", "a=b", "$HOME", "é", " x ",
           "\t", "x#y", "# x", "'x' ", "'a'b", "'a''b'", "ops@example.org", "a, b", "a,b", "'a b'", "-a", "Europe/Berlin",
           "x" * 990, "x" * 1010, "'" + "x" * 985 + "'", "'" + "x" * 1000 + "'"]  # fmt: skip
_COMMANDS = ["x", "", "/bin/x y", "*", "* x", "root x", "é", "% x", "x%y", "\\%", "#x", "=x", "A=b x", "@daily", "x\\", "\x01",
             "x\u00a0y", "x" * 997, "x" * 998, "x" * 999, "é" * 499, "é" * 500, "x" * 3000]  # fmt: skip
_WORDS = [
    "@daily",
    "@reboot",
    "@hourly",
    "@weekly",
    "@monthly",
    "@yearly",
    "@annually",
    "@midnight",
    "@Daily",
    "@x",
    "@",
    "@ daily",
]
_OTHERS = ["#", "  # x", "\t#", "#0 0 * * * x", " ", "\t", "", "é", "0", "0 ", "# é", "//x", "; x", "#\u00a0", "\u00a0", "\u3000",
           "\x0c", "\x0b", "\ufeff# x", "\udcff", "# \udcff"]  # fmt: skip
_BLANKS = ["\u00a0", "\u3000", "\x0b", "\x0c", "\r", "  \t "]


def odd_lines(count: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    fields = schedules(max(count // 10, 50), seed) + ["17 4 * * *"] * (count // 10)
    found: dict[str, None] = {}
    while len(found) < count:
        mark = "\ufeff" if dice.random() < 0.02 else ""
        found[mark + _line(dice, fields) + dice.choice(["\n"] * 8 + ["\r\n", ""])] = None
    return list(found)


def _line(dice: random.Random, fields: list[str]) -> str:
    kind = dice.random()
    blank = dice.choice(["", "", "", " ", "\t", "   "])
    if kind < 0.35:
        equals = dice.choice(["", "", " ", "\t"]) + "=" + dice.choice(["", "", " ", "\t"])
        return blank + dice.choice(_NAMES) + equals + dice.choice(_VALUES)
    if kind < 0.45:
        return dice.choice(_OTHERS)
    schedule = dice.choice(_WORDS if kind < 0.55 else fields)
    if dice.random() < 0.1:
        schedule = schedule.replace(" ", dice.choice(_BLANKS), 1)
    if dice.random() < 0.03:
        schedule = "0" * dice.choice([50, 99, 100, 300]) + schedule.lstrip()
    return blank + schedule + dice.choice([" ", " ", "\t", "  ", ""]) + dice.choice(_COMMANDS)


def record_lines(count: int, seed: int = 1) -> list[tuple[str, dict[str, Verdict]]]:
    """Each line with what each program says of it, which stands in the file alone."""
    lines = odd_lines(count, seed)
    answers = {key: judge(lines) for key, judge in checkers().items()}
    return [(line, {key: answers[key][number] for key in answers}) for number, line in enumerate(lines)]


if __name__ == "__main__":
    rows = [json.dumps(row) for row in record_lines(int(sys.argv[1]))]
    LINE_VERDICTS.write_text("[\n" + ",\n".join(rows) + "\n]\n")
