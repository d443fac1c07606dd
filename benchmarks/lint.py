"""How long the linter takes for a long file, and how many files it reads in a minute."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import FULL, Row, Size, seconds
from chronex.lint.findings import assumptions
from chronex.lint.host_schedules import forget_judgements
from chronex.lint.linter import lint_document
from chronex.lint.source_files import open_document

_REFERENCE_MS = 1_798_761_600_000  # 2027-01-01
_FILES = 400


def _jobs() -> str:
    return "".join(
        f'[jobs.job{n}]\n# number {n}\ndescription = "job {n}"\nschedule = "{n % 60} {n % 24} * * *"\n'
        f'run = ["job", "{n}"]\noverlap = "skip"\n\n'
        for n in range(143)
    )


def _workflow(schedules: int, jobs: int) -> str:
    crons = "".join(f"    - cron: '{n % 60} {n % 24} * * *'\n" for n in range(1, schedules + 1))
    steps = "".join(f"  job{n}:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n" for n in range(jobs))
    return f"on:\n  schedule:\n{crons}jobs:\n{steps}"


LONG_FILES = {
    "chronex.toml": _jobs(),
    "crontab": "".join(f"{n % 60} {n // 60} * * {n % 7}  /usr/bin/job {n}\n" for n in range(1000)),
    ".github/workflows/long.yml": _workflow(39, 240),
}


def notes() -> list[str]:
    return [
        "1,000 lines each; no expression is known beforehand. Many files: workflows of 50 lines, one schedule each."
    ]


def run(size: Size = FULL) -> Iterator[Row]:
    for path, text in LONG_FILES.items():
        name = path.rpartition("/")[2]
        yield Row("lint", f"lint {name}, 1,000 lines", _milliseconds(path, text, size.repeats), " ms", at_most=50)
    count = _FILES if size is FULL else 5
    texts = [_workflow(1, 11).replace("cron: '1 ", f"cron: '{n % 60} ") for n in range(count)]
    taken = seconds(lambda: _lint_all(texts), size.repeats)
    yield Row("lint", "files a minute", count * 60 / taken, "", at_least=10_000)


def _milliseconds(path: str, text: str, repeats: int) -> float:
    def work() -> None:
        forget_judgements()
        _lint(path, text)

    return seconds(work, repeats) * 1000


def _lint_all(texts: list[str]) -> None:
    for text in texts:
        _lint(".github/workflows/a.yml", text)


def _lint(path: str, text: str) -> None:
    lint_document(open_document(path, text), assumptions("UTC", "assumed", _REFERENCE_MS))
