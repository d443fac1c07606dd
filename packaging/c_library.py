"""The oldest glibc that a frozen program runs with: c_library.py dist/chronex-dir [AT-MOST], exit 1 if newer."""

import re
import sys
from pathlib import Path

_VERSION = re.compile(rb"GLIBC_(\d+)\.(\d+)")


def oldest_c_library(form: Path) -> str:
    """The newest version that a file of the program asks for."""
    found = {(2, 17)}
    for file in form.rglob("*"):
        if file.is_file() and (file.name == "chronex" or ".so" in file.name):
            found |= {(int(major), int(minor)) for major, minor in _VERSION.findall(file.read_bytes())}
    return ".".join(map(str, max(found)))


def main(form: str, most: str = "") -> int:
    needed = oldest_c_library(Path(form))
    print(f"glibc {needed}")
    return int(bool(most) and _numbers(needed) > _numbers(most))


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
