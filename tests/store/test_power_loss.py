"""Power fails: the disk holds what was synced, and any part of what was not.

The writes and syncs of a run are recorded by strace. From them every image is built that a disk could be left
with: each prefix, with any subset of the writes since the last sync, one of them torn at a sector. Each image
must open as the last acknowledged state or the one in flight.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chronex_store import LmdbStore

from .processes import ENVIRONMENT, ROOT, assert_sound, command, needs_strace, triples

UPDATES = 5
SECTOR = 512
CALL = re.compile(r"(?:\d+ +)?(pwrite64|writev|lseek|fdatasync|write|openat)\((.*)\) += (-?\d+)")


@dataclass(frozen=True)
class Write:
    offset: int
    data: bytes
    is_synced: bool


@dataclass(frozen=True)
class Said:
    text: str


Step = Write | Said | None  # None: everything before is on the disk


def record(path: Path, log: Path) -> list[Step]:
    """Run the worker under strace and read its log back."""
    trace = ["strace", "-f", "-qq", "-xx", "-s", "10000000", "-o", str(log)]
    calls = ["-e", "trace=pwrite64,pwritev,writev,lseek,fdatasync,write,openat"]
    subprocess.run(
        [*trace, *calls, *command("commit", path, UPDATES)],
        cwd=ROOT,
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
    )
    dsync: set[int] = set()
    steps: list[Step] = []
    position = 0
    for line in log.read_text().splitlines():
        assert "pwritev(" not in line, "this LMDB writes in a way that the test does not know"
        if (found := CALL.match(line)) is None:
            continue
        if found[1] == "lseek":
            position = int(found[3])
        steps += _steps(found[1], found[2], found[3], dsync, position)
    return steps


def _steps(call: str, arguments: str, result: str, dsync: set[int], position: int) -> Iterator[Step]:
    strings = [bytes.fromhex(text.replace("\\x", "")) for text in re.findall(r'"((?:\\x[0-9a-f]{2})*)"', arguments)]
    descriptor = arguments.partition(",")[0]
    if call == "openat" and strings and strings[0].endswith(b"data.mdb") and "O_DSYNC" in arguments:
        dsync.add(int(result))
    elif call == "pwrite64" and int(result) > 0:
        yield Write(int(arguments.rpartition(", ")[2]), strings[0], int(descriptor) in dsync)
    elif call == "writev" and int(result) > 0:
        yield Write(position, b"".join(strings), False)
    elif call == "fdatasync":
        yield None
    elif call == "write" and descriptor == "1":
        yield Said(strings[0].decode().strip())


def images(steps: list[Step], per_point: int, chance: random.Random) -> Iterator[tuple[bytes, int]]:
    """Disk images, with the number of updates acknowledged before the power failed."""
    disk, loose, acknowledged = bytearray(), list[Write](), 0
    for step in steps:
        if isinstance(step, Said):
            acknowledged += step.text.isdigit()
        elif step is None:
            for write in loose:
                put(disk, write)
            loose.clear()
        else:
            for _ in range(per_point):
                image = bytearray(disk)
                for write in [w for w in loose if chance.random() < 0.5]:
                    put(image, write)
                put(image, step, keep=chance.randrange(0, len(step.data) + 1, SECTOR))
                yield bytes(image), acknowledged
            loose.append(step)
            if step.is_synced:
                # A synced write is on the disk; what was written before it without a sync need not be.
                loose.remove(step)
                put(disk, step)


def put(image: bytearray, write: Write, keep: int | None = None) -> None:
    data = write.data if keep is None else write.data[:keep]
    if not data:
        return
    if len(image) < write.offset + len(data):
        image.extend(bytes(write.offset + len(data) - len(image)))
    image[write.offset : write.offset + len(data)] = data


def check_images(tmp_path: Path, per_point: int, seed: int) -> int:
    steps = record(tmp_path / "source", tmp_path / "log")
    acknowledged = [step for step in steps if isinstance(step, Said)]
    assert len(acknowledged) == UPDATES + 1
    place = tmp_path / "image"
    place.mkdir(mode=0o700)
    count = 0
    for image, known in images(steps, per_point, random.Random(seed)):
        count += 1
        (place / "data.mdb").write_bytes(image)
        (place / "data.mdb").chmod(0o600)
        (place / "lock.mdb").unlink(missing_ok=True)
        LmdbStore.open(place).close()
        assert_sound(place)
        assert triples(place) in (set(range(known)), set(range(known + 1)))
    return count


@needs_strace
def test_every_image_holds_what_was_acknowledged(tmp_path: Path) -> None:
    assert check_images(tmp_path, per_point=4, seed=1) > 50


@needs_strace
@pytest.mark.torture
def test_two_thousand_images_hold_what_was_acknowledged(tmp_path: Path) -> None:
    assert check_images(tmp_path, per_point=160, seed=2) > 2000
