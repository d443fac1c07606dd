"""`chronex backup` and `chronex restore`: one file that holds the whole store, and the logs of its attempts.

A backup is written beside a running daemon; a restore needs the store to itself.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.errors import BackupError, StoreError
from chronex_store.daemon_lock import acquire_daemon_lock
from chronex_store.directory_checks import (
    DATA_FILE,
    FILE_MODE,
    LOCK_FILE,
    directory_lock,
    open_private,
    prepare_directory,
)
from chronex_store.doctor import check_pages, examine
from chronex_store.lmdb_environment import (
    MAGIC,
    PAGE,
    BackupReport,
    LmdbEnvironment,
    open_environment,
    open_locked,
    refuse_second_open,
    sync_directory,
    write_snapshot,
)

# A backup with the logs of attempts: one tar file that holds the store's data and, beside it, each log.
#
# The lengths of the logs are noted when the data has been copied, and no log is copied beyond its length: of a
# command that is still writing, the backup has what it had written by then. A reader takes nothing but these names,
# and only plain files. The last file has the checksum of each log; records have their own.

LOGS = "logs"
CHECKSUMS = "checksums"
_LOG_NAME = re.compile(r"attempt_[0-9a-f-]{36}(?:\.[2-9])?\.log", re.ASCII)
_MAGIC_AT, _MAGIC = 257, b"ustar"
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MOST_LOGS = 10_000_000
_MOST_LISTED = _MOST_LOGS * 128


class LogLength(NamedTuple):
    name: str
    length: int


def log_lengths(directory: Path) -> list[LogLength]:
    """The logs that are there now, each with its length; none where there is no such directory."""
    try:
        with os.scandir(directory) as entries:
            found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries if _is_log(entry.name)]
    except FileNotFoundError:
        return []
    return [LogLength(name, about.st_size) for name, about in sorted(found) if stat.S_ISREG(about.st_mode)]


def _is_log(name: str) -> bool:
    return _LOG_NAME.fullmatch(name) is not None


def write_archive(file: Path, data: Path, directory: Path, lengths: list[LogLength]) -> int:
    """Write the new tar `file` from the copied `data` and the logs; how many logs it has. OSError as writing."""
    sums: list[str] = []
    descriptor = open_private(file, os.O_WRONLY | os.O_EXCL)
    with os.fdopen(descriptor, "wb") as target:
        with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive, data.open("rb") as source:
            archive.addfile(_member(DATA_FILE, data.stat().st_size), source)
            for log in lengths:
                text = _read_log(directory / log.name, log.length)
                if text is not None:
                    archive.addfile(_member(f"{LOGS}/{log.name}", len(text)), io.BytesIO(text))
                    sums.append(f"{sha256(text).hexdigest()} {log.name}\n")
            listed = "".join(sums).encode()
            archive.addfile(_member(CHECKSUMS, len(listed)), io.BytesIO(listed))
        target.flush()
        os.fsync(target.fileno())
    return len(sums)


def _member(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, FILE_MODE
    return info


def _read_log(path: Path, length: int) -> bytes | None:
    """As much as it had; None where it has been removed meanwhile, because it became too old."""
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(length)


def is_archive(file: Path) -> bool:
    with file.open("rb") as source:
        source.seek(_MAGIC_AT)
        return source.read(len(_MAGIC)) == _MAGIC


@contextmanager
def opened_data(file: Path) -> Iterator[IO[bytes]]:
    """The store's data in a backup of either form. BackupError where a tar file is no backup."""
    if not is_archive(file):
        with file.open("rb") as plain:
            yield plain
        return
    with _opened(file) as archive:
        member = next((each for each in archive if each.name == DATA_FILE and each.isreg()), None)
        inside = archive.extractfile(member) if member is not None else None
        if inside is None:
            raise BackupError(f"{file} is a tar file and no backup of Chronex; nothing was changed")
        yield inside


class ExtractedLogs(NamedTuple):
    """How many there are, and what is wrong with them, in sentences."""

    number: int
    problems: tuple[str, ...] = ()


def extract_logs(file: Path, directory: Path) -> ExtractedLogs | None:
    """Put the logs of the backup into a new `directory`; None where the backup has none."""
    if not is_archive(file):
        return None
    directory.mkdir(mode=0o700)
    found: dict[str, str] = {}
    listed: bytes | None = None
    with _opened(file) as archive:
        for member in archive:
            folder, _, name = member.name.partition("/")
            if member.name == DATA_FILE:
                continue
            if member.name == CHECKSUMS and member.isreg() and listed is None:
                listed = _content(archive, member).read(_MOST_LISTED)
                continue
            if folder != LOGS or not _is_log(name) or not member.isreg() or len(found) >= _MOST_LOGS:
                raise BackupError(f"{file} has a file that no backup has ({member.name[:80]!r}); nothing was changed")
            with os.fdopen(open_private(directory / name, os.O_WRONLY | os.O_EXCL), "wb") as log:
                found[name] = _copied(_content(archive, member), log)
        end = archive.offset
    return ExtractedLogs(len(found), tuple(_problems(file, found, listed, end)))


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    inside = archive.extractfile(member)
    assert inside is not None, "a plain file"
    return inside


def _copied(source: IO[bytes], target: IO[bytes]) -> str:
    """Copy it, and say its checksum."""
    checksum = sha256()
    while chunk := source.read(1 << 20):
        checksum.update(chunk)
        target.write(chunk)
    return checksum.hexdigest()


def _problems(file: Path, found: dict[str, str], listed: bytes | None, end: int) -> Iterator[str]:
    """A header that is damaged ends a tar file without a word; a backup from before checksums has none."""
    lines = (line.split(" ") for line in (listed or b"").decode("ascii", "replace").splitlines())
    wanted = {parts[1]: parts[0] for parts in lines if len(parts) == 2}
    changed = [name for name, checksum in found.items() if listed is not None and wanted.get(name) != checksum]
    if changed:
        yield f"{len(changed)} of {len(found)} logs are not as they were written, the first is {changed[0]}"
    if missing := wanted.keys() - found.keys():
        yield f"{len(missing)} logs are missing"
    if _goes_on(file, end):
        yield f"the file is damaged behind {len(found)} logs, and those that follow are missing"


def _goes_on(file: Path, end: int) -> bool:
    """Whether anything but zeros stands behind the last file that could be read."""
    with file.open("rb") as source:
        source.seek(end)
        return any(chunk.strip(b"\0") for chunk in iter(lambda: source.read(1 << 20), b""))


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file, mode="r:") as archive:
            yield archive
    except tarfile.TarError as error:
        raise BackupError(f"{file} is damaged or no backup ({error}); nothing was changed") from error


def backup(path: Path, file: Path, *, with_logs: bool = True) -> BackupReport:
    """Write the store in `path` to `file`; safe beside a running daemon. Without logs it is a plain copy of the
    data."""
    file = file.absolute()
    env = open_environment(path, create=False)  # of any format: a backup is what is there
    try:
        has_logs = with_logs and bool(log_lengths(env.path / LOGS))
        return _with_logs(env, file) if has_logs else write_snapshot(env, file)
    finally:
        env.close()


def _with_logs(env: LmdbEnvironment, file: Path) -> BackupReport:
    """The records are copied first, and then the logs are measured: of an attempt that has ended by the records, the
    log is whole; of one that runs, it has what was written by then, and not what follows while logs are copied."""
    if file.exists():
        raise BackupError(f"{file} exists; name a new file, a backup is never overwritten")
    data, part = file.with_name(f"{file.name}.data"), file.with_name(f"{file.name}.part")
    try:
        write_snapshot(env, data)
        count = write_archive(part, data, env.path / LOGS, log_lengths(env.path / LOGS))
        os.rename(part, file)
        sync_directory(file.parent)
    except OSError as error:
        part.unlink(missing_ok=True)
        why = (error.strerror or str(error)).lower()
        raise BackupError(f"the backup {file} could not be written: {why}; choose another file") from error
    finally:
        data.unlink(missing_ok=True)
    return BackupReport(str(file), file.stat().st_size, str(env.path), count)


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored, and the file that keeps the state before it (`replaced`). `logs` is None where the backup
    has none, and those that are there stay; else what was there is in `replaced_logs`. `problems` say what of the
    backup was damaged: what is not whole is better than nothing, and must be known."""

    store: str
    file: str
    records: int
    replaced: str | None = None
    logs: int | None = None
    replaced_logs: str | None = None
    problems: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def restore(file: Path, path: Path, clock: Clock = SYSTEM_CLOCK) -> RestoreReport:
    """Replace the store in `path` by the backup `file`, once the backup is found sound.

    Raises StoreInUseError beside a running daemon. The state before is kept as a backup in the same directory. In a
    process that has the store open, the next wait or update raises StoreReplacedError.
    """
    is_new = not path.exists()
    real = prepare_directory(path, create=True)
    try:
        refuse_second_open(real)
        with acquire_daemon_lock(real):
            staging = Path(tempfile.mkdtemp(prefix="restore-", dir=real))
            try:
                records, damaged = _copy_and_examine(file, staging)
                logs, now_ms = extract_logs(file, staging / LOGS), clock.wall_ms()
                kept = _swap(real, staging / DATA_FILE, now_ms)
                kept_logs = None if logs is None else _swap_logs(real, staging / LOGS, now_ms)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except BackupError:
        if is_new:  # an empty directory would be taken for a store
            shutil.rmtree(real, ignore_errors=True)
        raise
    problems = (*damaged, *(logs.problems if logs is not None else ()))
    return RestoreReport(
        str(real), str(file), records, kept, None if logs is None else logs.number, kept_logs, problems
    )


def _swap_logs(real: Path, new: Path, now_ms: int) -> str | None:
    """The logs of the backup in the place of those that were there, which are kept. No daemon writes meanwhile."""
    present, kept = real / LOGS, real / f"before-restore-{now_ms}.logs"
    had_logs = present.is_dir() and any(present.iterdir())
    if present.is_dir():
        os.rename(present, kept)
    os.rename(new, present)
    sync_directory(real)
    if not had_logs and kept.is_dir():
        kept.rmdir()
    return str(kept) if had_logs else None


def _copy_and_examine(file: Path, staging: Path) -> tuple[int, tuple[str, ...]]:
    """Make a private, synced copy; how many records it has, and what of it is damaged and can be repaired.
    BackupError when it is not a sound store."""
    if file.is_fifo():
        raise BackupError(f"{file} is a pipe; name the file of the backup")  # reading could wait for ever
    try:
        with opened_data(file) as source, open(open_private(staging / DATA_FILE, os.O_WRONLY), "wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
            copy.flush()
            os.fsync(copy.fileno())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise BackupError(f"the backup {file} cannot be read: {why}; name a file that backup wrote") from error
    if not _is_data_file(staging / DATA_FILE):
        raise BackupError(f"{file} is not a backup of Chronex; name a file that backup wrote; nothing was changed")
    report = examine(staging, migrate=True)  # the copy is ours
    if report.worst is not None:
        raise BackupError(f"{file} is not a sound backup ({report.worst.message}); nothing was changed")
    count = sum(1 for each in report.findings if each.severity == "error" and each.code != "space")
    what = "1 record or index entry is" if count == 1 else f"{count} records or index entries are"
    damaged = (f"{what} damaged; chronex doctor names them, and --repair puts them aside",) if count else ()
    return int(sum(report.figures["records"].values())), damaged


def _is_data_file(file: Path) -> bool:
    """Whether it begins as a file of LMDB does; anything else was never a store, and is not called a damaged one."""
    with file.open("rb") as opened:
        return MAGIC.to_bytes(4, sys.byteorder) in opened.read(PAGE)


def _swap(real: Path, new: Path, now_ms: int) -> str | None:
    data = real / DATA_FILE
    kept = real / f"before-restore-{now_ms}.backup" if data.exists() else None
    with directory_lock(real, exclusive=True), _old_store_locked(real, kept):
        # The lock file goes first: a process that has the old store open sees by it that the store was replaced.
        (real / LOCK_FILE).unlink(missing_ok=True)
        os.replace(new, data)
        sync_directory(real)
    return str(kept) if kept else None


@contextmanager
def _old_store_locked(real: Path, kept: Path | None) -> Iterator[None]:
    """Keep the old state as `kept`, and hold its writer lock, so that no commit goes to the old file meanwhile."""
    if kept is None:
        yield
        return
    old = _open_if_sound(real)
    if old is None:
        os.link(real / DATA_FILE, kept)
        yield
        return
    try:
        write_snapshot(old, kept)
        with old.lmdb.begin(write=True):
            yield
    finally:
        old.close()


def _open_if_sound(real: Path) -> LmdbEnvironment | None:
    """The old store, or None when it is damaged: its pages are checked first, because opening it could crash."""
    severities: list[str] = []
    check_pages(real / DATA_FILE, lambda severity, *_: severities.append(severity))
    try:
        return None if "error" in severities else open_locked(real)
    except StoreError:
        return None
