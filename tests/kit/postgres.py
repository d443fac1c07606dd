"""A real PostgreSQL for tests: begun once for a test run, each test gets a schema of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("initdb", "pg_ctl", "postgres")
# Where distributions keep the programs of the server, which are on nobody's PATH.
_PLACES = ("/usr/lib/postgresql", "/usr/local/lib/postgresql", "/opt/homebrew/opt", "/usr/pgsql")
WHY_MISSING = "PostgreSQL's programs are not installed (Debian: apt-get install postgresql)"


def find_programs() -> Path | None:
    """The directory of the server's programs; None where they are not installed."""
    found = shutil.which("pg_ctl")
    candidates = [Path(found).resolve().parent] if found else []
    for place in map(Path, _PLACES):
        candidates += sorted(place.glob("*/bin"), reverse=True)
    return next((one for one in candidates if all((one / name).exists() for name in PROGRAMS)), None)


@dataclass
class PostgresServer:
    """One server on a socket in `directory`; it takes no other connections and does not sync to its disk."""

    programs: Path
    directory: Path
    port: int = 5432

    def url(self, schema: str = "chronex", user: str = "chronex", database: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.directory}&port={self.port}&schema={schema}"

    def start(self) -> None:
        settings = f"-k {self.directory} -p {self.port} -c listen_addresses= -c fsync=off -c max_connections=200"
        self._control("-o", settings, "-w", "-t", "60", "-l", str(self.directory / "log"), "start")

    def standby(self, primary_host: str = "", *, synchronous: bool = False) -> PostgresServer:
        """A physical copy that follows this server, by way of `primary_host` where one is given."""
        place = Path(tempfile.mkdtemp(prefix="chronex-pg-", dir=_without_disk()))
        if os.geteuid() == 0:
            os.chown(place, other_user().pw_uid, other_user().pw_gid)
        copy = PostgresServer(self.programs, place, self.port)
        source = ("-h", str(self.directory), "-p", str(self.port), "-U", "chronex")
        self._run("pg_basebackup", "-D", str(place / "data"), *source, "-X", "stream", "-c", "fast", "--no-sync")
        (place / "data" / "standby.signal").touch()
        line = f"host={primary_host or self.directory} port={self.port} user=chronex application_name=copy"
        with (place / "data" / "postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = '{line}'\n")
        copy.start()
        if synchronous:
            with (self.directory / "data" / "postgresql.auto.conf").open("a") as file:
                file.write("synchronous_standby_names = 'copy'\n")
            self._control("reload")
        return copy

    def promote(self) -> None:
        """The copy becomes a server of its own."""
        self._control("-w", "-t", "60", "promote")

    def stop(self, mode: str = "fast") -> None:
        self._control("-m", mode, "-w", "-t", "60", "stop")

    def is_running(self) -> bool:
        try:
            self._control("status")
        except subprocess.CalledProcessError:
            return False
        return True

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self.directory / "data"), *arguments)

    def initialise(self, *further: str) -> None:
        arguments = ("-U", "chronex", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-locale", *further)
        self._run("initdb", "-D", str(self.directory / "data"), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        """As somebody else where we are root, by whom the server refuses to be run."""
        other = other_user() if os.geteuid() == 0 else None
        subprocess.run(
            [str(self.programs / program), *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            user=other.pw_uid if other else None, group=other.pw_gid if other else None,
            extra_groups=[] if other else None, cwd=self.directory, timeout=120,
        )  # fmt: skip


def other_user() -> pwd.struct_passwd:
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def begin_server(directory: Path | None = None, *further: str) -> PostgresServer:
    """Make and start a server, with `further` arguments of initdb; RuntimeError where its programs are missing."""
    programs = find_programs()
    if programs is None:
        raise RuntimeError(WHY_MISSING)
    place = directory or Path(tempfile.mkdtemp(prefix="chronex-pg-", dir=_without_disk()))
    place.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        os.chown(place, other_user().pw_uid, other_user().pw_gid)
    server = PostgresServer(programs, place)
    server.initialise(*further)
    server.start()
    return server


def end_server(server: PostgresServer) -> None:
    server.stop("immediate")
    shutil.rmtree(server.directory, ignore_errors=True)


def _without_disk() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
