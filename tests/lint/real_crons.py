"""The crons themselves as judges: thousands of generated lines, and what each installed program says of them.

`python -m tests.lint.real_crons 1000` writes a sample of their verdicts to cron_verdicts.json, which the tests compare
with the grammars where the programs are not installed. CHRONEX_CRONS says how the programs are started, where they
are not in PATH: `debian=/opt/cron/crontab;cronie=/opt/cronie/crontab;busybox=/opt/busybox;bcron=/opt/bcron/bcron-sched`.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

VERDICTS = Path(__file__).parent / "cron_verdicts.json"
_NAMES = ["MON", "mon", "Sun", "FRI", "monday", "SAT", "JAN", "feb", "Dec", "march", "june", "sept", "M", "XYZ", "mo"]
_NUMBERS = ["00", "07", "059", "24", "60", "31", "32", "13", "8", "7", "0", "100", "-1", "+5", "1.5", "4294967297"]
_ODD = [
    "*", "*", "*", "?", "L", "LW", "15W", "5L", "1#2", "H", "H/15", "H(0-5)", "*-5", "5-*", "**", "*x", "*;", "5;", "1,",
    "-", "/", "~", "1--3", "5-", "-5", "*/5/2", "1-5/2/3", "!", "1-5-7", "1:30", "1.", "*5", "5*", "1/", "@daily", "\\*",
    '"5"', "mon-fri", "MON-7", "5~", "*~5", "~5", "7-2", "5-1", "sun-sat", "1-0", "0-7", "R", "#1", "22-6", "0/15",
]  # fmt: skip
_GOOD = [
    ["0", "5", "*/15", "*", "30", "59", "0-30", "1,2"],
    ["0", "2", "*", "*/2", "9-17", "23", "1,5"],
    ["*", "1", "15", "*/2", "1-7", "31", "1,15"],
    ["*", "1", "JAN", "*/3", "1-6", "dec"],
    ["*", "0", "7", "MON", "1-5", "MON-FRI", "*/2", "sun"],
]
_WORDS = [
    "@daily", "@Daily", "@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@midnight", "@hourly", "@every 5m",
    "@every_minute", "@600", "@wekly", "@", "@DAILY", "@dailyx", "@noon",
]  # fmt: skip

# -- lines --------------------------------------------------------------------------------------------------------


def schedules(count: int, seed: int) -> list[str]:
    """Different schedules, right and wrong in every way that was thought of."""
    dice = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found[_schedule(dice)] = None
    return list(found)


def _schedule(dice: random.Random) -> str:
    if dice.random() < 0.04:
        return dice.choice(_WORDS)
    fields = [dice.choice(good) for good in _GOOD]
    for _ in range(dice.choice([0, 1, 1, 1, 2])):
        number = dice.randrange(5)
        fields[number] = ",".join(_element(dice, number >= 3) for _ in range(dice.choice([1, 1, 1, 2, 3])))
    if dice.random() < 0.04:
        fields = fields[: dice.randint(1, 4)]
    blank = dice.choice([" ", " ", " ", "  ", "\t"])
    return dice.choice(["", "", "", "", " ", "\t"]) + blank.join(fields)


def _value(dice: random.Random, has_names: bool) -> str:
    if has_names and dice.random() < 0.6:
        return dice.choice(_NAMES)
    number = dice.choice([dice.randint(0, 7), dice.randint(0, 12), dice.randint(0, 31), dice.randint(0, 65)])
    return dice.choice([str(number), dice.choice(_NUMBERS)])


def _element(dice: random.Random, has_names: bool) -> str:
    first, last = _value(dice, has_names), _value(dice, has_names)
    step = dice.choice(["1", "2", "5", "15", "0", "99", "", "x", "-2", "*", "60", "MON"])
    forms = [first, first, f"{first}-{last}", f"{first}-{last}", f"{first}-{last}/{step}", f"*/{step}", f"{first}/{step}",
             f"{first}~{last}", f"~{last}", f"{first}~", f"{first}~{last}/{step}", dice.choice(_ODD), dice.choice(_ODD)]  # fmt: skip
    return dice.choice(forms)


# -- programs -----------------------------------------------------------------------------------------------------

# Whether it takes the line; the values of its fields where the program tells them; None where it gives no answer.
Verdict = bool | str | None
Judge = Callable[[list[str]], list[Verdict]]


def installed() -> dict[str, Judge]:
    """The crons that can be asked here, by their keys; None is the answer where a program gives none."""
    given = _given()
    found: dict[str, Judge] = {}
    busybox = shutil.which("busybox")
    if busybox and "crond" in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=False).stdout:
        given.setdefault("busybox", busybox)  # Debian's usual build has no crond
    found |= {key: _by_check(command, " :\n") for key, command in _checks(given).items()}
    if "busybox" in given:
        found["busybox"] = _by_busybox(shlex.split(given["busybox"]))
    if (bcron := given.get("bcron") or shutil.which("bcron-sched")) is not None:
        found["bcron"] = _by_bcron(shlex.split(bcron))
    return found


def checkers() -> dict[str, Judge]:
    """Of those that can be asked here the ones that look at a whole line, its command and its end included."""
    return {key: _by_check(command) for key, command in _checks(_given()).items()}


def _given() -> dict[str, str]:
    given = dict(entry.split("=", 1) for entry in os.environ.get("CHRONEX_CRONS", "").split(";") if "=" in entry)
    own = shutil.which("crontab")
    if own and "debian" not in given and "cronie" not in given:
        said = subprocess.run([own, "-V"], capture_output=True, text=True, check=False)
        given["cronie" if "cronie" in said.stdout + said.stderr else "debian"] = own
    return given


def _checks(given: dict[str, str]) -> dict[str, list[str]]:
    options = {"debian": "-n", "cronie": "-T"}
    return {key: [*shlex.split(given[key]), option] for key, option in options.items() if key in given}


def _by_check(command: list[str], ending: str = "") -> Judge:
    """One file for each line: the programs stop at the first fault of a file."""

    def judge(lines: list[str]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tab"
            for line in lines:
                path.write_bytes(f"{line}{ending}".encode("utf-8", "surrogateescape"))
                done = subprocess.run([*command, str(path)], capture_output=True, check=False, timeout=60)
                verdicts.append(done.returncode == 0)
        return verdicts

    return judge


_BATCH = 60


def _by_busybox(command: list[str]) -> Judge:
    """crond has no option to check: it is started on a directory, and its log says what it could not read."""

    def judge(lines: list[str]) -> list[Verdict]:
        verdicts: dict[str, Verdict] = {}
        waiting = [lines[at : at + _BATCH] for at in range(0, len(lines), _BATCH)]
        while waiting:
            batch = waiting.pop()
            answers = _ask_busybox(command, batch)
            if answers is not None:
                verdicts |= dict(zip(batch, answers, strict=True))
            elif len(batch) == 1:
                verdicts[batch[0]] = None  # it died: numbers beyond 32 bits, month 0, and Debian's build on nicknames
            else:
                middle = len(batch) // 2
                waiting += [batch[:middle], batch[middle:]]
        return [verdicts[line] for line in lines]

    return judge


_ROW = re.compile(r"[01]{7,60}|.*parse error.*")


def _ask_busybox(command: list[str], lines: list[str]) -> list[Verdict] | None:
    """At its most talkative it writes a row of digits for each field, and a sentence instead where it cannot read one."""
    with tempfile.TemporaryDirectory() as folder:
        tabs, log = Path(folder) / "tabs", Path(folder) / "log"
        tabs.mkdir()
        (tabs / "root").write_text("".join(f"{line} :\n" for line in lines))
        run = subprocess.Popen([*command, "crond", "-f", "-l", "5", "-L", str(log), "-c", str(tabs)])
        said = _read_until(run, log, lambda said: len(_rows(said)) >= 5 * len(lines))
    rows = _rows(said)
    if len(rows) != 5 * len(lines):
        return None
    return [_busybox_verdict(rows[at : at + 5]) for at in range(0, len(rows), 5)]


def _rows(said: str) -> list[str]:
    return [line for line in said.split("\n")[:-1] if _ROW.fullmatch(line)]


def _busybox_verdict(rows: list[str]) -> Verdict:
    if any("error" in row for row in rows):
        return False
    fields = [[at for at, digit in enumerate(row) if digit == "1"] for row in rows]
    fields[3] = [month + 1 for month in fields[3]]
    return spelt(fields)


def _read_until(run: subprocess.Popen[bytes], log: Path, is_whole: Callable[[str], bool]) -> str:
    """What a program wrote when it had written all, had ended, or was silent for long; it is ended."""
    try:
        for _ in range(1_500):
            said = log.read_text("utf-8", "replace") if log.exists() else ""
            if is_whole(said) or run.poll() is not None:
                return said
            time.sleep(0.02)
        return ""
    finally:
        run.kill()
        run.wait()


def _by_bcron(command: list[str]) -> Judge:
    """bcron-sched warns of lines that it does not take, and on SIGUSR1 writes what it made of the others."""

    def judge(lines: list[str]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for at in range(0, len(lines), 10 * _BATCH):
            verdicts += _ask_bcron(command, lines[at : at + 10 * _BATCH])
        return verdicts

    return judge


_JOB = re.compile(r"M:(\S*) H:(\S*) d:(\S*) m:(\S*) wd:(\S*) .* cmd:\(:([0-9]+)\)")


def _ask_bcron(command: list[str], lines: list[str]) -> list[Verdict]:
    with tempfile.TemporaryDirectory() as folder:
        tabs, log = Path(folder) / "crontabs", Path(folder) / "log"
        tabs.mkdir()
        os.mkfifo(Path(folder) / "trigger")
        (tabs / "root").write_text(
            "".join(f"{line} :{number}\n" for number, line in enumerate([*lines, "* * * * *"]))
        )
        with log.open("wb") as file:
            run = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=file, env={**os.environ, "BCRON_SPOOL": folder}
            )

        def is_whole(said: str) -> bool:
            if "Loading" in said:
                run.send_signal(signal.SIGUSR1)
            return f"cmd:(:{len(lines)})" in said

        said = _read_until(run, log, is_whole)
    assert said, f"bcron-sched hangs on one of {len(lines)} lines"
    taken = {int(job[6]): spelt(_bcron_values(job)) for job in _JOB.finditer(said)}
    return [taken.get(number, False) for number in range(len(lines))]


def _bcron_values(job: re.Match[str]) -> list[list[int]]:
    fields = []
    for number, text in enumerate(job.groups()[:5]):
        bounds = [element.partition("-") for element in text.split(",") if element]
        values = [value for first, _, last in bounds for value in range(int(first), int(last or first) + 1)]
        fields.append([value + 1 for value in values] if number == 3 else values)
    return fields


def spelt(fields: Iterable[Iterable[int]]) -> str:
    """The values of five fields, in one spelling for all programs."""
    return " ".join(",".join(map(str, sorted(values))) for values in fields)


def comparable(line: str, key: str) -> bool:
    """Not compared: comments, and what a program answers by chance or dies of."""
    words = line.split()
    if not words or words[0].startswith("#"):
        return False
    if key == "cronie" and any("~" in word for word in words):
        # `crontab -T` draws the number first and refuses it if it lies outside: `0~48` passes for an hour, or not.
        numbers = [int(n) for word in words if "~" in word for n in re.findall(r"[0-9]+", word)]
        return all(1 <= n <= 5 for n in numbers) and "~" not in "".join(words[3:])
    if key == "busybox":
        is_beyond = any(len(n) > 4 for n in re.findall(r"[0-9]+", line))
        is_beyond = is_beyond or re.search(r"(?:^|[,-])0+(?![0-9])", "".join(words[3:4])) is not None  # month 0
        return not is_beyond and "#" not in line and not words[0].startswith("@") and len(words) >= 5
    if key == "bcron":  # it loops for ever over a step of 0, and whatever it takes for one
        return re.search(r"/(?![1-9])", line) is None and not words[0].startswith("@") and len(words) >= 5
    return True


def record(count: int, programs: dict[str, Judge], seed: int = 1) -> Iterator[tuple[str, dict[str, Verdict]]]:
    """Each line with what each program says of it; None also for what is not compared.

    BusyBox dies of some of those, and each death costs a search for the line in its batch: they are not asked.
    """
    lines = schedules(count, seed)
    answers: dict[str, dict[str, Verdict]] = {}
    for key, judge in programs.items():
        asked = [line for line in lines if comparable(line, key)]
        answers[key] = dict(zip(asked, judge(asked), strict=True))
    for line in lines:
        yield line, {key: answers[key].get(line) for key in answers}


if __name__ == "__main__":
    rows = [[line, verdicts] for line, verdicts in record(int(sys.argv[1]), installed())]
    VERDICTS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
