"""`chronex tui` as a user starts it: pictures without a terminal, refusals in one sentence, and a real terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path
from typing import IO

import pytest

from chronex.model.occurrence import Occurrence
from chronex_tui.launch import choose_theme, wait_until_idle
from tests.kit.forked import ChronexProcess, run_chronex
from tests.kit.processes import end_all
from tests.kit.waits import DEADLINE_S, is_gone, until
from tests.tui.driving import app_on
from tests.tui.examples import MINUTE, NOW, make_store


def environment(store: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(store.parent),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "CHRONEX_STORE": str(store),
        "TZ": "Europe/Berlin",
        "LC_ALL": "C.UTF-8",
    } | more  # fmt: skip


def chronex(store: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run_chronex(
        arguments, env=environment(store, **more), text=True, stdin=subprocess.DEVNULL, cwd=store.parent
    )


def test_one_frame_as_text(example_store: Path) -> None:
    done = chronex(example_store, "tui", "--print", "--size", "80x24", "--filter", "state:failed")
    assert done.returncode == 0, done.stderr
    assert "1 of 8 jobs" in done.stdout
    assert "✖ sync-s3" in done.stdout
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) <= 24


async def test_a_frame_is_taken_with_the_details_of_what_it_points_at_however_late_they_are_asked_for(
    example_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(example_store)
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until_idle(app)
        monkeypatch.setattr("chronex_tui.data_requests._DEBOUNCE_S", 0.5)  # as it may be on a machine that is busy
        await pilot.press("j")
        await wait_until_idle(app)
        assert app.state.detail is not None
        assert app.state.detail.row.job.id == app.state.job


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--job", "sync-s4"), "no job 'sync-s4'; did you mean sync-s3?"),
        (("--store", ""), "--store is empty; name a directory or a postgresql:// address, or leave it out"),
    ],
)
def test_a_picture_of_something_else_than_was_asked_for_is_refused(
    example_store: Path, options: tuple[str, str], sentence: str
) -> None:
    done = chronex(example_store, "tui", "--print", *options)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("beginning", [40, 16])
def test_a_run_is_selected_by_its_id(example_store: Path, beginning: int) -> None:
    name = Occurrence(job="backup-db", nominal_ms=NOW - 12 * MINUTE, due_ms=0).id
    done = chronex(example_store, "tui", "--print", "--size", "120x40", "--run", name[:beginning])
    assert done.returncode == 0, done.stderr
    assert "↻ main  retrying" in done.stdout


def test_a_run_that_is_not_there_is_one_sentence(example_store: Path) -> None:
    done = chronex(example_store, "tui", "--print", "--run", "nonsense")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_one_frame_as_an_svg_file(example_store: Path, tmp_path: Path) -> None:
    file = tmp_path / "board.svg"
    assert chronex(example_store, "tui", "--screenshot", str(file), "--size", "80x24").returncode == 0
    assert "etl-orders" in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "chronex: The dashboard needs a terminal"),
        (("--screen", "jbos"), "did you mean jobs?"),
        (("--theme", "pink"), "--theme: 'pink' is not known"),
        (("--print", "--size", "80"), "is not a size; write 120x40"),
        (("--size", "80x24"), "use it with --print or --screenshot"),
        (("--print", "--size", "9999x9999"), "out of range"),
        (("--screenshot", "x.png"), "Chronex writes SVG, and 'x.png' does not end in .svg; use --screenshot x.svg,"),
        (("--screenshot", "x"), "Chronex writes SVG, and 'x' does not end in .svg; use --screenshot x.svg,"),
        (("--print", "--tz", "Europe/Berln"), "did you mean Europe/Berlin?"),
        (("--print", "--date", "soon"), "is not a day; write 2027-03-28"),
    ],
)
def test_what_is_not_understood_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    done = chronex(tmp_path / "store", "tui", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("environ", "theme"),
    [
        ({"NO_COLOR": "1", "TERM": "xterm-256color"}, "mono"),
        ({"TERM": "xterm-256color"}, "dark"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "dark"),
        ({"TERM": "linux"}, "ansi"),
        ({"TERM": "xterm"}, "ansi"),
        ({"TERM": "alacritty"}, "dark"),
    ],
)
def test_the_theme_follows_the_terminal(environ: dict[str, str], theme: str) -> None:
    assert choose_theme(None, environ) == theme
    assert choose_theme("light", environ) == "light"


def test_a_locale_without_other_letters_gets_ascii_alone(example_store: Path) -> None:
    """Python itself would take C for UTF-8; so a program that begins is asked, not one that was forked."""
    done = subprocess.run(
        [sys.executable, "-m", "chronex", "tui", "--print", "--size", "80x24"],
        env=environment(example_store, LC_ALL="C"),
        capture_output=True,
        check=True,
        timeout=DEADLINE_S,
    )
    assert b"> etl-orders" in done.stdout
    assert done.stdout.isascii()


def test_the_first_paint_loads_neither_the_runner_nor_the_commands_nor_the_store(tmp_path: Path) -> None:
    """Import time is most of the time to the first picture; what only commands or reads need is loaded later."""
    late = ("chronex.run", "chronex.engine.commands", "chronex.views.why", "chronex_store", "lmdb", "chronex_tui.commands",
            "chronex_tui.time_views", "textual.widgets._data_table", "textual.widgets._text_area")  # fmt: skip
    code = f"import sys, chronex_tui.app; print([name for name in {late!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"


class Terminal:
    """A program at a terminal of its own."""

    def __init__(
        self,
        store: Path,
        *arguments: str,
        is_controlling: bool = False,
        starts_whole: bool = False,
        errors: IO[bytes] | None = None,
        **more: str,
    ) -> None:
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        env = environment(store, TERM="xterm-256color", **more)
        self.process = ChronexProcess(
            arguments, env=env, stdin=slave, stdout=slave, stderr=errors or slave, cwd=store.parent,
            start_new_session=True,
            starts_whole=starts_whole or errors is not None,  # Python looks at its streams when it begins
            takes_terminal=is_controlling,  # then it gets SIGHUP when the terminal closes
        )  # fmt: skip
        os.close(slave)
        self.seen = b""

    def until(self, text: str) -> None:
        until(lambda: self._sees(text.encode()), lambda: f"{text!r} at the terminal, but saw {self.seen[-2000:]!r}")

    def _sees(self, text: bytes) -> bool:
        assert self._read_on() or text in self.seen, self.seen[-2000:]
        return text in self.seen

    def _read_on(self) -> bool:
        """False where the other end is closed."""
        try:
            self.seen += os.read(self._master, 65536) if self._has_more(0.1) else b""
        except OSError:
            return False
        return True

    def _has_more(self, timeout_s: float) -> bool:
        return bool(select.select([self._master], [], [], timeout_s)[0])

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def end(self) -> int:
        """Read on, so that it is never stuck in a write, until it has gone, and then all that it had written."""

        def has_ended() -> bool:
            self._read_on()
            return self.process.poll() is not None

        until(has_ended, lambda: f"the end of the program, which shows {self.seen[-2000:]!r}")
        while self._has_more(0) and self._read_on():
            pass
        return self.process.wait()

    def vanish(self) -> None:
        """As when its window is closed."""
        os.close(self._master)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


def test_a_session_at_a_terminal_ends_with_q_and_restores_the_screen(example_store: Path) -> None:
    terminal = Terminal(example_store, "tui")
    try:
        terminal.until("etl-orders")
        terminal.type(b"q")
        assert terminal.end() == 0
        assert b"\x1b[?1049l" in terminal.seen, "the screen before it is back"
    finally:
        terminal.close()


def test_the_dashboard_is_seen_where_standard_error_goes_to_a_file(example_store: Path, tmp_path: Path) -> None:
    with (tmp_path / "errors.log").open("wb") as errors:
        terminal = Terminal(example_store, "tui", errors=errors)
    try:
        terminal.until("etl-orders")
        terminal.type(b"q")
        assert terminal.end() == 0
        assert (tmp_path / "errors.log").read_bytes() == b""
    finally:
        terminal.close()


def test_term_ends_it_in_good_order(example_store: Path) -> None:
    terminal = Terminal(example_store, "tui")
    try:
        terminal.until("etl-orders")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 0
        assert b"\x1b[?1049l" in terminal.seen
    finally:
        terminal.close()


def test_run_is_engine_and_dashboard_and_both_end_together(tmp_path: Path) -> None:
    (tmp_path / "chronex.toml").write_text(
        '[scheduler]\ngrace_period = "200ms"\non_stop = "cancel"\n[jobs.ticking]\nschedule = "* * * * * *"\n'
        'run = ["sleep", "60"]\n'
    )
    store = tmp_path / "store"
    terminal = Terminal(store, "run")
    try:
        terminal.until("ticking")
        terminal.until("running 0:")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 0
    finally:
        terminal.close()
    printed = chronex(store, "history", "-n", "50").stdout
    assert "the scheduler was stopped" in printed
    again = chronex(store, "run", "--headless", "--for", "100ms")
    assert again.returncode == 0, "the store was let go"


@pytest.mark.parametrize(
    ("key", "states"),
    [(b"l", {"running"}), (b"c", {"canceled"}), (b"w", {"completed"})],
    ids=["leave", "cancel", "wait"],
)
def test_quitting_asks_what_becomes_of_running_commands(tmp_path: Path, key: bytes, states: set[str]) -> None:
    (tmp_path / "chronex.toml").write_text(
        '[jobs.slow]\nschedule = "@once +1s"\nrun = "while [ ! -e release ]; do sleep 0.02; done"\n'
    )
    store = tmp_path / "store"
    terminal = Terminal(store, "run")
    try:
        terminal.until("running 0:")
        terminal.type(b"q")
        terminal.until("Quitting stops the daemon too")
        terminal.type(key)
        if key == b"w":
            terminal.until("waiting for what runs")
            (tmp_path / "release").touch()
        assert terminal.end() == 0
        printed = json.loads(chronex(store, "history", "--format", "json").stdout)
        assert {row["state"] for row in printed} == states
    finally:
        terminal.close()
        end_all(store)


def dashboard_of(daemon: int) -> int:
    """The process id of the dashboard that a daemon has started: it has the pipe of its answer, and the threads."""

    def found() -> int:
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_child = entry.joinpath("stat").read_text().rpartition(")")[2].split()[1] == str(daemon)
                threads = [one.joinpath("comm").read_text() for one in entry.joinpath("task").iterdir()]
                if is_child and len(threads) > 3 and not any("keeper" in one for one in threads):
                    return int(entry.name)
        return 0

    return until(found, "a dashboard")


def test_a_dashboard_that_is_killed_can_be_opened_again_and_the_schedule_goes_on(tmp_path: Path) -> None:
    (tmp_path / "chronex.toml").write_text('[jobs.ticking]\nschedule = "* * * * * *"\nrun = "echo >>ticks"\n')
    terminal = Terminal(tmp_path / "store", "run", is_controlling=True)
    ticks = tmp_path / "ticks"
    try:
        terminal.until("ticking")
        os.kill(dashboard_of(terminal.process.pid), signal.SIGKILL)
        terminal.until("Enter opens the dashboard again")
        screen, said = terminal.seen.split(b"\x1b[?1049l")  # once: it also moves the cursor, over what was said
        assert b"the dashboard was ended by SIGKILL" in said
        left = set(re.findall(rb"\x1b\[\?(\d+)h", screen)) - {b"7"} - set(re.findall(rb"\x1b\[\?(\d+)l", said))
        assert left == {b"1049"}, "every other mode is off again"
        assert (b"\x1b[?7l" in screen) == (b"\x1b[?7h" in said), "long lines are wrapped again"
        before = ticks.stat().st_size if ticks.exists() else 0
        until(lambda: ticks.exists() and ticks.stat().st_size > before, "the schedule to go on")
        terminal.seen = b""
        terminal.type(b"\n")
        terminal.until("ticking")
        terminal.type(b"qy")
        assert terminal.end() == 0
    finally:
        terminal.close()
        end_all(tmp_path / "store")


def test_a_key_for_a_dashboard_that_was_killed_is_no_answer_to_the_offer(tmp_path: Path) -> None:
    """A `q` that the dashboard had not read any more stopped the daemon."""
    (tmp_path / "chronex.toml").write_text('[jobs.never]\nschedule = "0 0 29 2 *"\nrun = ["true"]\n')
    terminal = Terminal(tmp_path / "store", "run", is_controlling=True)
    try:
        terminal.until("never")
        view = dashboard_of(terminal.process.pid)
        os.kill(view, signal.SIGSTOP)
        terminal.type(b"q")
        os.kill(view, signal.SIGKILL)
        terminal.until("Enter opens the dashboard again")
        terminal.seen = b""
        terminal.type(b"\n")
        terminal.until("never")
        terminal.type(b"qy")
        assert terminal.end() == 0
    finally:
        terminal.close()
        end_all(tmp_path / "store")


def test_a_defect_of_the_dashboard_is_a_sentence_and_the_daemon_goes_on(tmp_path: Path) -> None:
    """A module of the dashboard that cannot be loaded stands for any defect."""
    (tmp_path / "chronex.toml").write_text('[jobs.never]\nschedule = "0 0 29 2 *"\nrun = ["true"]\n')
    broken = tmp_path / "broken" / "sitecustomize.py"
    broken.parent.mkdir()
    broken.write_text(
        "import sys\nif 'dashboard' in sys.argv:\n"
        "    import chronex_tui.screens.board as b\n    b.Board.tick = lambda self: 1 // 0\n"
    )
    path = os.pathsep.join([str(broken.parent), *(one for one in sys.path if one)])
    terminal = Terminal(tmp_path / "store", "run", is_controlling=True, starts_whole=True, PYTHONPATH=path)
    try:
        terminal.until("the dashboard failed (ZeroDivisionError")
        terminal.until("Enter opens the dashboard again")
        assert b"Traceback" not in terminal.seen
        terminal.type(b"q\n")
        assert terminal.end() == 0
    finally:
        terminal.close()
        end_all(tmp_path / "store")


def test_a_dashboard_whose_daemon_was_killed_leaves_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "chronex.toml").write_text('[jobs.never]\nschedule = "0 0 29 2 *"\nrun = ["true"]\n')
    terminal = Terminal(tmp_path / "store", "run")
    try:
        terminal.until("never")
        view = dashboard_of(terminal.process.pid)
        terminal.process.kill()
        config, store = tmp_path / "chronex.toml", tmp_path / "store"
        terminal.until(f"the daemon has ended; start it again with: chronex run --config {config} --store {store}")
        until(lambda: is_gone(view), "the end of the dashboard")
    finally:
        terminal.close()
        end_all(tmp_path / "store")


@pytest.mark.parametrize("gets_signal", [True, False], ids=["hung up", "only closed"])
@pytest.mark.parametrize("command", ["tui", "run"])
def test_when_its_terminal_is_gone_it_leaves(
    example_store: Path, tmp_path: Path, command: str, gets_signal: bool
) -> None:
    store = example_store if command == "tui" else tmp_path / "store"
    if command == "run":
        (tmp_path / "chronex.toml").write_text('[jobs.ticking]\nschedule = "* * * * * *"\nrun = ["true"]\n')
    terminal = Terminal(store, command, is_controlling=gets_signal)
    terminal.until("etl-orders" if command == "tui" else "ticking")
    terminal.vanish()
    try:
        assert terminal.process.wait(DEADLINE_S) is not None
    finally:
        terminal.process.kill()
        terminal.process.wait()


def test_run_without_a_terminal_is_headless(tmp_path: Path) -> None:
    (tmp_path / "chronex.toml").write_text('[jobs.a]\nschedule = "* * * * * *"\nrun = ["true"]\n')
    done = chronex(tmp_path / "store", "run", "--for", "300ms")
    assert done.returncode == 0
    assert "SchedulerStarted" in done.stderr


def test_a_dashboard_on_a_store_that_a_daemon_holds(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    done = chronex(store, "tui", "--print", "--size", "120x40")
    assert "daemon silent" in done.stdout, "the process of the example is there, and its last heartbeat lies far back"
