"""What is not there, or not ours: one sentence and a hint, exit 1 or 2, and nothing is changed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.cli import main
from chronex.cli.commands.status import run_status
from chronex.clock import wall_ms
from chronex.engine.update import apply_jobs
from chronex.errors import StoreFullError
from chronex.model.job import Job, Task
from chronex.model.records import StoreMeta
from chronex.storage import keys
from chronex.storage.codec import decode, encode
from chronex.storage.ports import Transaction
from chronex_store import LmdbStore, directory_checks
from tests.cli.conftest import Chronex, program

Capture = pytest.CaptureFixture[str]

# Commands that name something no store of these tests has.
UNKNOWN = [
    "trigger ghost",
    "pause ghost",
    "resume ghost",
    "cancel occ_12345678",
    "cancel run_12345678",
    "cancel ghost@2027-01-01T00:00:00Z",
    "cancel a@2027-01-01T00:00:00Z",
    "cancel a@noon",
    "cancel nonsense",
    "cancel a",
    "replay occ_12345678 --reason x",
    "replay --job ghost --reason x --yes",
    "replay --job a --from soon --reason x --yes",
    "replay --reason x",
    "dlq list --job ghost",
    "dlq show run_12345678",
    "dlq replay run_12345678",
    "dlq drop run_12345678",
    "dlq drop",
    "state get n --job ghost",
    "state set n 1 --job ghost",
    "state get n --job a --task ghost",
    "show ghost --versions",
    "apply --rollback ghost 1",
    "apply --rollback a 9",
    "apply nowhere.toml",
    "trigger a --param x",
    "trigger a --ttl 1h",
    "pause a --for soon",
    "pause a --for 0s",
]
# One of each kind that opens a store.
OPENING = [
    "trigger a",
    "pause a",
    "cancel occ_12345678",
    "replay occ_12345678 --reason x",
    "dlq list",
    "state list --job a",
    "show a --versions",
    "apply --rollback a 1",
]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CHRONEX_JOB", "CHRONEX_TASK", "CHRONEX_ATTEMPT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "store"
    with LmdbStore.open(path) as opened:
        apply_jobs(opened, [Job(id="a", schedule="0 0 1 1 *", tasks=(Task(name="main", run=("true",)),))], wall_ms())
    return path


def refusal(typed: str, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> str:
    monkeypatch.setattr(sys, "argv", ["chronex", *typed.split(), "--store", str(store)])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    assert left.value.code in (1, 2), said
    assert said.out == "", "what went wrong is not output"
    assert re.fullmatch(r"[^\n]+\n", said.err), said.err
    assert re.search(r"[;:(]", said.err), f"no hint in {said.err!r}"
    return said.err


@pytest.mark.parametrize("typed", UNKNOWN)
def test_what_is_unknown(typed: str, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    before = (store / "data.mdb").read_bytes()
    refusal(typed, store, monkeypatch, capsys)
    assert (store / "data.mdb").read_bytes() == before


@contextmanager
def missing(path: Path) -> Iterator[str]:
    shutil.rmtree(path)
    yield "no store at"
    assert not path.exists()


@contextmanager
def newer(path: Path) -> Iterator[str]:
    with LmdbStore.open(path) as opened:

        def write(tx: Transaction) -> None:
            raw = tx.get(keys.STORE_META)
            assert raw is not None
            meta = decode(keys.STORE_META, raw)
            assert isinstance(meta, StoreMeta)
            tx.put(keys.STORE_META, encode(keys.STORE_META, replace(meta, format=99)))

        opened.update(write)
    yield "newer"


@contextmanager
def foreign(path: Path) -> Iterator[str]:
    (path / "data.mdb").write_bytes(b"not a database, but long enough to look at\n" * 500)
    yield "Chronex store"


@contextmanager
def open_to_all(path: Path) -> Iterator[str]:
    path.chmod(0o755)
    yield "chmod 700"


@contextmanager
def other_things(path: Path) -> Iterator[str]:
    """`--store /etc`: not to be closed to others for our sake."""
    shutil.rmtree(path)
    path.mkdir(mode=0o755)
    (path / "passwd").touch()
    yield "there is no store in"
    assert path.stat().st_mode & 0o777 == 0o755


@contextmanager
def locked(path: Path) -> Iterator[str]:
    """Another process restores it, and takes its time."""
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield "being made or restored by another process; try again"
    os.close(descriptor)


@pytest.mark.parametrize("trouble", [missing, newer, foreign, open_to_all, other_things, locked])
@pytest.mark.parametrize("typed", OPENING)
def test_a_store_that_cannot_be_used(
    typed: str,
    trouble: Callable[[Path], AbstractContextManager[str]],
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.setattr(directory_checks, "_LOCK_TRIES", 2)
    with trouble(store) as says:
        assert says in refusal(typed, store, monkeypatch, capsys)


@pytest.mark.parametrize("typed", [one for one in OPENING if one != "dlq list"])
def test_an_empty_store(typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    LmdbStore.open(tmp_path / "empty").close()
    refusal(typed, tmp_path / "empty", monkeypatch, capsys)


@pytest.mark.parametrize(
    "command",
    [("apply", "PIPE"), ("run", "--once", "--config", "PIPE"), ("simulate", "PIPE"), ("lint", "PIPE", "--as", "crontab"),
     ("import", "crontab", "PIPE", "--tz", "UTC"), ("restore", "PIPE")],
)  # fmt: skip
def test_a_pipe_that_nobody_writes_to_is_refused_and_not_waited_for(
    chronex: Chronex, tmp_path: Path, command: tuple[str, ...]
) -> None:
    pipe = tmp_path / "chronex.toml"
    os.mkfifo(pipe)
    done = chronex(*(word.replace("PIPE", str(pipe)) for word in command), CHRONEX_STORE=str(tmp_path / "store"))
    assert done.code == 2
    assert "not a regular file" in done.out + done.err or "is a pipe" in done.err
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("command", ["nonsense", "list --store /nowhere/x", "fmt bad"])
def test_a_complaint_that_cannot_be_written_keeps_its_exit_code(command: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*program(), *command.split()], stderr=full, timeout=60, check=False)
    assert done.returncode == 2


def test_status_says_that_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """The one thing that a store on a full disk cannot have on record."""
    with LmdbStore.open(tmp_path / "store") as store:
        apply_jobs(store, [], wall_ms())
    found = os.statvfs(tmp_path)
    full = os.statvfs_result((*found[:4], 0, *found[5:]))
    monkeypatch.setattr("chronex_store.lmdb_store.os.statvfs", lambda _: full)
    assert run_status(str(tmp_path / "store"), "text", watch=False, check=True) == 1
    assert "needs attention: the disk of the store is full" in capsys.readouterr().out


def test_status_says_that_the_map_is_full(tmp_path: Path, capsys: Capture) -> None:
    def fill(store: LmdbStore) -> None:
        for number in range(10_000):
            store.update(lambda tx, n=number: tx.put(b"Qfill%06d" % n, b"x" * 3000))  # type: ignore[misc]

    with LmdbStore.open(tmp_path / "store", map_size=1 << 20) as store, pytest.raises(StoreFullError):
        fill(store)
    assert run_status(str(tmp_path / "store"), "text", watch=False, check=True) == 1
    assert "needs attention: the store is full" in capsys.readouterr().out


def test_a_picture_of_a_store_that_cannot_be_opened_is_refused(chronex: Chronex, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir(mode=0o700)
    (store / "data.mdb").write_bytes(b"not a store" * 1000)
    done = chronex("tui", "--print", "--store", str(store))
    assert done.code == 2
    assert done.out == ""
    assert str(store) in done.err


def test_a_user_without_a_home_directory_is_told_to_name_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    from chronex.cli.options import UsageError, job_file_path, store_location

    def no_home(*_: object, **__: object) -> Path:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(platformdirs, "user_state_path", no_home)
    monkeypatch.setattr(platformdirs, "user_config_path", no_home)
    with pytest.raises(UsageError, match="no home directory; name a store with --store or CHRONEX_STORE"):
        store_location(None, {})
    assert job_file_path(None, {}) == Path("chronex.toml")


def test_a_machine_without_proc_is_told_to_mount_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from chronex.daemon import registration
    from chronex.errors import ChronexError

    monkeypatch.setattr(registration, "identity_of", lambda _: None)
    with pytest.raises(ChronexError, match="mount -t proc"):
        registration.this_node(1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_directory_of_another_user_is_denied_and_not_called_empty(tmp_path: Path) -> None:
    """A process of its own: a user that was given up does not come back."""
    store = tmp_path / "store"
    store.mkdir(mode=0o700)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o111)
    code = (
        "import os, sys; from pathlib import Path; from chronex_store.directory_checks import prepare_directory;"
        "from chronex.errors import StorePermissionError; os.setgid(65534); os.setuid(65534)\n"
        "try: prepare_directory(Path(sys.argv[1]), create=False)\n"
        "except StorePermissionError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(store)], capture_output=True, text=True, check=False)
    assert "permission denied" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "typed",
    [
        "list --store {address}",
        "store check --store {address}",
        "store migrate --store {address}",
        "store copy {store} {address}",
        "store copy {address} {store}2",
        "torture --store {address}",
    ],
)
def test_without_the_client_of_the_database_a_sentence_says_so(typed: str, tmp_path: Path) -> None:
    with LmdbStore.open(tmp_path / "store"):
        pass
    without = "import sys; sys.modules['psycopg'] = None; from chronex.cli import main; main()"
    address = "postgresql://me:hidden@127.0.0.1:1/jobs"
    words = typed.format(address=address, store=tmp_path / "store").split()
    done = subprocess.run(
        [sys.executable, "-c", without, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr == (
        "chronex: postgresql://me@127.0.0.1:1/jobs needs the PostgreSQL client, which is not installed; "
        "install it with: pip install 'chronex[postgres]'\n"
    )


def test_a_copy_of_no_store_proposes_no_other_store(chronex: Chronex, tmp_path: Path) -> None:
    done = chronex(
        "store", "copy", str(tmp_path / "none"), str(tmp_path / "copy"), CHRONEX_STORE=str(tmp_path / "mine")
    )
    assert done.code == 2
    assert done.err == f"chronex: no store at {tmp_path / 'none'}: nothing can be copied; is the name right?\n"
