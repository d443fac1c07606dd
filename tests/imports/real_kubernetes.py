"""The library that the Kubernetes controller asks, as the judge of our reading: questions, and its recorded answers.

`python -m tests.imports.real_kubernetes 600` writes a sample of its answers to kubernetes/answers.json, which the tests
compare where the library is not there. CHRONEX_ROBFIG names the program that kubernetes/next_times.go is built into.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from chronex.timing.zones import load_zone
from tests.lint.real_crons import schedules

ANSWERS = Path(__file__).parent / "kubernetes" / "answers.json"
_START = 1_672_531_200  # 2023: what clocks have done is the same in all zone data, what they will do is not
_THREE_YEARS = 3 * 365 * 86_400
_DAY = 86_400
_COUNT = 4
_EVERY = ["1h", "30m", "1.5h", "500ms", "90s", "1d", "1w", "-5m", "0s", "5", "5 minutes", "1h30m", "1h 30m", "100us", "+1h",
          ".5h", "2562048h", "1H", "3s500ms", "", " 1h", "1h-2h", "0"]  # fmt: skip
_WORDS = [
    "@daily",
    "@Daily",
    "@midnight",
    "@reboot",
    "@yearly",
    "@weekly",
    "@every",
    "@daily x",
    " @daily",
    "@daily ",
]
_MARKS = [*"0123456789*/-,?+.LW#@ ", "MON", "jan", "\t", "\u00a0", "*,", ",*"]
# Where midnight is missing or doubled, where the clock is set by other than an hour, and where nothing is special.
_ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Africa/Cairo", "Asia/Beirut", "America/Havana", "America/Santiago",
          "Australia/Lord_Howe", "Atlantic/Azores", "Antarctica/Troll"]  # fmt: skip


class Question(NamedTuple):
    text: str
    zone: str
    after: int
    limit: int


def questions(count: int, seed: int) -> list[Question]:
    """Half of them odd texts, half plain ones from some days before a clock is set."""
    dice = random.Random(seed)
    plain = schedules(count, seed)
    asked = [_odd(dice, plain[number]) if number % 2 else _around_a_change(dice) for number in range(count)]
    return list(dict.fromkeys(asked))


def _odd(dice: random.Random, plain: str) -> Question:
    kind = dice.random()
    text = f"@every {dice.choice(_EVERY)}" if kind < 0.15 else dice.choice(_WORDS) if kind < 0.2 else plain
    if kind > 0.5:
        at = dice.randrange(len(text) + 1)
        text = text[:at] + dice.choice(_MARKS) + text[at + dice.randint(0, 1) :]
    return Question(text, dice.choice(_ZONES[:3]), _START, _COUNT)


def _around_a_change(dice: random.Random) -> Question:
    fields = (["0", "30", "59"], ["0", "1", "2", "3", "23", "0,3"], ["*", "*", "1-31", "*/2"], ["*", "*/3"],
              ["*", "*", "SUN", "SUN,SAT", "FRI"])  # fmt: skip
    text, zone = " ".join(dice.choice(values) for values in fields), dice.choice(_ZONES)
    changes = [change.at for change in load_zone(zone).changes(_START, _START + _THREE_YEARS)] or [_START]
    return Question(text, zone, dice.choice(changes) - dice.randint(4, 6) * _DAY - dice.choice([0, 61, 7200]), 16)


def program() -> str | None:
    return os.environ.get("CHRONEX_ROBFIG")


def ask(asked: list[Question], command: str) -> list[list[int] | None]:
    """Its answers; None where it refuses the text."""
    lines = "".join(json.dumps(question._asdict()) + "\n" for question in asked)
    done = subprocess.run([command], input=lines, capture_output=True, text=True, check=True, timeout=600)
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    judge = program()
    assert judge is not None, "CHRONEX_ROBFIG names no program"
    rows = questions(int(sys.argv[1]), 1)
    answers = zip(rows, ask(rows, judge), strict=True)
    ANSWERS.write_text("[\n" + ",\n".join(json.dumps([*row, found]) for row, found in answers) + "\n]\n")
