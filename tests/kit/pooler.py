"""A real PgBouncer before a test's PostgreSQL, in transaction mode: each transaction may be on another connection."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.postgres import PostgresServer, other_user
from tests.kit.waits import until

PORT = 6432
WHY_NO_POOLER = "PgBouncer is not installed (Debian: apt-get install pgbouncer)"


def find_pooler() -> str | None:
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def pooler(server: PostgresServer, ignored: str = "options", size: int = 20) -> Iterator[str]:
    """The directory of its socket; it has `size` connections to the server."""
    program = find_pooler()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="chronex-pooler-") as place:
        other = other_user() if os.geteuid() == 0 else None
        if other is not None:
            os.chown(place, other.pw_uid, other.pw_gid)
        Path(place).chmod(0o755)
        (Path(place) / "pgbouncer.ini").write_text(
            f"[databases]\n* = host={server.directory} port={server.port} user=chronex\n"
            f"[pgbouncer]\nunix_socket_dir = {place}\nlisten_port = {PORT}\nlisten_addr =\nauth_type = any\n"
            f"pool_mode = transaction\nignore_startup_parameters = {ignored}\n"
            f"default_pool_size = {size}\nlogfile = {place}/log\n"
        )
        process = subprocess.Popen(
            [program, f"{place}/pgbouncer.ini"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            user=other.pw_uid if other else None, group=other.pw_gid if other else None,
            extra_groups=[] if other else None, cwd=place,
        )  # fmt: skip
        try:
            until((Path(place) / f".s.PGSQL.{PORT}").exists, "the pooler")
            yield place
        finally:
            process.terminate()
            process.wait(timeout=30)
