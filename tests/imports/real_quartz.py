"""Quartz itself as the judge of our evaluator of its expressions.

`python -m tests.imports.real_quartz 300` asks it and writes a sample of its answers to quartz/answers.json, which the
tests compare with the evaluator where there is no Java. CHRONEX_QUARTZ is the class path with the jars of Quartz 2 and of
slf4j-api, which Debian has in libquartz2-java and libslf4j-java.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent / "quartz"
ANSWERS = HERE / "answers.json"
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"]
_FIRST, _LAST = 1_767_225_600, 2_082_758_400  # 2026-01-01 to 2036-01-01
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_DEBIAN = "/usr/share/java/quartz2.jar:/usr/share/java/slf4j-api.jar"


class Question(NamedTuple):
    """An expression, its zone, the epoch second to count from, and how many instants to name at most."""

    text: str
    zone: str
    after: int
    length: int


def class_path() -> str | None:
    """Where Quartz can be had, None where it cannot be asked."""
    given = os.environ.get("CHRONEX_QUARTZ", _DEBIAN)
    is_there = shutil.which("java") is not None and all(Path(part).exists() for part in given.split(":"))
    return given if is_there else None


def ask(questions: list[Question], jars: str) -> list[list[int] | None]:
    """The instants after each question; None where Quartz refuses the expression."""
    text = "".join("\t".join(map(str, question)) + "\n" for question in questions)
    command = ["java", "-cp", jars, str(HERE / "NextTimes.java")]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=600)
    lines = done.stdout.split("\n")[: len(questions)]
    return [None if line.startswith("!") else [int(second) for second in line.split()] for line in lines]


# -- questions ------------------------------------------------------------------------------------------------


def questions(count: int, seed: int) -> list[Question]:
    """Different expressions of every form that `explain --as quartz` can give."""
    dice = random.Random(seed)
    found: dict[str, Question] = {}
    while len(found) < count:
        text = _expression(dice)
        found[text] = Question(text, dice.choice(ZONES), dice.randrange(_FIRST, _LAST), 12)
    return list(found.values())


def _expression(dice: random.Random) -> str:
    times = [_field(dice, 0, 59, "0"), _field(dice, 0, 59, "0"), _field(dice, 0, 23, "9")]
    days, weekdays = _days(dice)
    return " ".join([*times, days, _field(dice, 1, 12, "*"), weekdays])


def _field(dice: random.Random, low: int, high: int, usual: str) -> str:
    if dice.random() < 0.5:
        return dice.choice([usual, "*"])
    if dice.random() < 0.3:
        return f"*/{dice.randint(2, (high - low) // 2)}"
    return ",".join(_element(dice, low, high) for _ in range(dice.choice([1, 1, 2, 3])))


def _element(dice: random.Random, low: int, high: int) -> str:
    first, last = sorted((dice.randint(low, high), dice.randint(low, high)))
    return dice.choice([str(first), f"{first}-{last}", f"{first}-{last}/{dice.randint(1, high // 2)}"])


def _days(dice: random.Random) -> tuple[str, str]:
    match dice.randrange(9):
        case 0 | 1:
            return "*", "?"
        case 2 | 3:
            return _field(dice, 1, 31, "*"), "?"
        case 4:
            return dice.choice(["L", "LW", f"L-{dice.randint(1, 27)}"]), "?"
        case 5:
            return f"{dice.randint(1, 28)}W", "?"
        case 6:
            return "?", dice.choice(_WEEKDAYS) + "L"
        case 7:
            return "?", f"{dice.choice(_WEEKDAYS)}#{dice.randint(1, 5)}"
    return "?", _weekdays(dice)


def _weekdays(dice: random.Random) -> str:
    first, last = sorted(dice.sample(range(7), 2))
    return dice.choice(
        [f"{_WEEKDAYS[first]}-{_WEEKDAYS[last]}", f"{_WEEKDAYS[first]},{_WEEKDAYS[last]}", _WEEKDAYS[first]]
    )


if __name__ == "__main__":
    jars = class_path()
    assert jars is not None, "Quartz is not there: set CHRONEX_QUARTZ"
    asked = questions(int(sys.argv[1]), seed=1)
    rows = [[*question, answer] for question, answer in zip(asked, ask(asked, jars), strict=True)]
    ANSWERS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
