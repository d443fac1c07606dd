"""A backup takes the logs too: as long as they were then, and a restore puts back these and nothing else."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from uuid import UUID

import pytest

from chronex.errors import BackupError
from chronex_store import LmdbStore
from chronex_store.backup import LogLength, backup, is_archive, log_lengths, restore
from tests.store.test_doctor import fill


def log_name(number: int, part: str = "") -> str:
    return f"attempt_{UUID(int=number)}{part}.log"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    with LmdbStore.open(tmp_path / "store") as store:
        fill(store)
    logs = tmp_path / "store" / "logs"
    logs.mkdir(mode=0o700)
    (logs / log_name(1)).write_bytes(b"one\n")
    (logs / log_name(2, ".2")).write_bytes(b"two\0\xff")
    (logs / "notes.txt").write_text("not a log")
    (logs / log_name(3)).symlink_to("/etc/passwd")
    return tmp_path / "store"


def logs_of(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (store / "logs").iterdir() if not path.is_symlink()}


def test_logs_come_back_beside_the_records(made: Path, tmp_path: Path) -> None:
    report = backup(made, tmp_path / "b")
    assert report.logs == 2, "a planted link and a file of another name are none"
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "store"], "nothing is left beside it"
    restored = restore(tmp_path / "b", tmp_path / "new")
    assert (restored.logs, restored.replaced_logs) == (2, None)
    assert restored.records > 0
    assert logs_of(tmp_path / "new") == {log_name(1): b"one\n", log_name(2, ".2"): b"two\0\xff"}
    assert (tmp_path / "new/logs").stat().st_mode & 0o777 == 0o700


def test_what_was_there_is_kept(made: Path, tmp_path: Path) -> None:
    backup(made, tmp_path / "b")
    (made / "logs" / log_name(1)).write_bytes(b"newer\n")
    report = restore(tmp_path / "b", made)
    assert logs_of(made)[log_name(1)] == b"one\n"
    assert report.replaced_logs is not None
    assert (Path(report.replaced_logs) / log_name(1)).read_bytes() == b"newer\n"


def test_without_logs_it_is_a_plain_copy_and_a_restore_leaves_the_logs_alone(made: Path, tmp_path: Path) -> None:
    assert backup(made, tmp_path / "b", with_logs=False).logs == 0
    assert not is_archive(tmp_path / "b")
    report = restore(tmp_path / "b", made)
    assert (report.logs, report.replaced_logs) == (None, None)
    assert logs_of(made)[log_name(1)] == b"one\n"


def test_a_log_that_is_being_written_is_copied_to_where_it_was(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lengths_then_more(directory: Path) -> list[LogLength]:
        found = log_lengths(directory)
        if not list(directory.parent.parent.glob("b.data")):
            return found  # before the records are copied
        with (directory / log_name(1)).open("ab") as log:
            log.write(b"after the snapshot\n")
        (directory / log_name(2, ".2")).unlink()  # became too old
        return found

    monkeypatch.setattr("chronex_store.backup.log_lengths", lengths_then_more)
    assert backup(made, tmp_path / "b").logs == 1
    restore(tmp_path / "b", tmp_path / "new")
    assert logs_of(tmp_path / "new") == {log_name(1): b"one\n"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("../escape", tarfile.REGTYPE), ("logs/../../x", tarfile.REGTYPE), ("/etc/x", tarfile.REGTYPE),
     (f"logs/{log_name(9)}", tarfile.SYMTYPE), ("logs/other.log", tarfile.REGTYPE)],
)  # fmt: skip
def test_a_tar_with_anything_else_in_it_changes_nothing(made: Path, tmp_path: Path, name: str, kind: bytes) -> None:
    backup(made, tmp_path / "b")
    with tarfile.open(tmp_path / "b", "a") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, "/etc/passwd", 0
        archive.addfile(member, io.BytesIO(b""))
    before = logs_of(made)
    with pytest.raises(BackupError, match="nothing was changed"):
        restore(tmp_path / "b", made)
    assert logs_of(made) == before
    assert not any(path.name.startswith(("restore-", "before-restore")) for path in made.iterdir())


def test_a_tar_file_of_somebody_else_is_no_backup(made: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "b", "w") as archive:
        archive.add("/etc/hostname" if os.path.exists("/etc/hostname") else __file__, arcname="x")
    with pytest.raises(BackupError, match="no backup of Chronex"):
        restore(tmp_path / "b", made)


def test_a_backup_that_is_cut_off_changes_nothing(made: Path, tmp_path: Path) -> None:
    backup(made, tmp_path / "b")
    data = (tmp_path / "b").read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    with pytest.raises(BackupError):
        restore(tmp_path / "cut", made)
    assert logs_of(made)[log_name(1)] == b"one\n"


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]


@pytest.mark.parametrize(
    ("where", "told", "count"),
    [
        (b"one\n", f"1 of 2 logs are not as they were written, the first is {log_name(1)}", 2),
        (f"logs/{log_name(2, '.2')}".encode(), "the file is damaged behind 1 logs, and those that follow are missing", 1),
        (b"checksums", "the file is damaged behind 2 logs, and those that follow are missing", 2),
    ],
)  # fmt: skip
def test_a_damaged_log_or_header_is_told(made: Path, tmp_path: Path, where: bytes, told: str, count: int) -> None:
    """A header with one wrong bit ended the file without a word: 4 of 15 logs came back, and all seemed well."""
    backup(made, tmp_path / "b")
    data = (tmp_path / "b").read_bytes()
    (tmp_path / "bad").write_bytes(flipped(data, data.index(where)))
    report = restore(tmp_path / "bad", tmp_path / "new")
    assert (report.problems, report.logs) == ((told,), count)


def test_a_damaged_record_is_told_and_the_rest_comes_back(made: Path, tmp_path: Path) -> None:
    backup(made, tmp_path / "b")
    with tarfile.open(tmp_path / "b") as archive:
        start, size = (member := archive.getmember("data.mdb")).offset_data, member.size
    data = (tmp_path / "b").read_bytes()
    at = (
        data.index(b"echo hi", start, start + size)
        if b"echo hi" in data
        else data.rindex(b"job", start, start + size)
    )
    (tmp_path / "bad").write_bytes(flipped(data, at))
    report = restore(tmp_path / "bad", tmp_path / "new")
    assert len(report.problems) == 1
    assert "damaged; chronex doctor names them" in report.problems[0]


def test_a_backup_from_before_checksums_is_whole(made: Path, tmp_path: Path) -> None:
    backup(made, tmp_path / "b")
    with tarfile.open(tmp_path / "b") as old, tarfile.open(tmp_path / "older", "w") as new:
        for member in old:
            if member.name != "checksums":
                new.addfile(member, old.extractfile(member))
    report = restore(tmp_path / "older", tmp_path / "new")
    assert (report.logs, report.problems) == (2, ())
