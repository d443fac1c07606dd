"""A server in a box: twenty crontabs of six users in a tree of their own, each of whose commands notes how it was run.

Debian's cron reads the tree in a mount namespace, under libfaketime; Chronex imports it and runs it as root. Both leave
notes of the same form, which are compared.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
START = "2027-03-01 00:59:55"  # a Monday; the first minute that cron sees is 01:00
PATH = "/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin"
USERS = ("root", "www-data", "backup", "nobody", "games", "man")

# In the style of the packages of a Debian server; {note} is the command that notes how it was run.
CRON_D = {
    "certs": "SHELL=/bin/sh\nPATH={path}\n0 */12 * * * root test -x /usr/bin/test && {note} certs -q renew\n",
    "sessions": "09,39 * * * * root [ -x {note} ] && if [ -d / ]; then {note} sessions; fi\n",
    "stats": "PATH=/usr/lib:/usr/sbin:/usr/bin:/sbin:/bin\n5-55/10 * * * * root command -v true > /dev/null && {note} stats\n",
    "monitor": "MAILTO=\"\"\nHOME={home}\n*/5 * * * * nobody if [ -x {note} ]; then {note} monitor; fi\n",
    "shop": "HOME={home}\nAPP_ENV=production\n*/15 * * * * www-data {note} shop\n30 1 * * 1-5 www-data {note} shop-night\n",
    "scores": "HOME={home}\nPATH=/usr/games:/usr/bin:/bin\n12,42 1-3 * * * games cd /usr && {note} scores\n",
    "manuals": "HOME={home}\n1-59/7 * * * * man {note} manuals\n",
    "raid": "57 0 * * 0 root {note} raid-sunday\n57 1 * * 1 root {note} raid-monday\n",
    "bashed": "SHELL=/bin/bash\n*/20 * * * * root [[ a == a ]] && {note} bashed\n",
    "input": "HOME={home}\n*/10 * * * * backup {note} input%first line%50\\% of it%\n",
    "input-empty": "25 * * * * root {note} input-empty%\n",
    "input-bash": "SHELL=/bin/bash\n35 * * * * root [[ 1 ]] && {note} input-bash%a%%b\n",
    "quoted": "TITLE='two words'\nSIZE=\"10 \"\n*/30 * * * * root {note} quoted \"$TITLE\" $(printf \\%s x)\n",
    "days": "15 1 1 * * root {note} first\n16 1 2 * 1 root {note} either\n17 1 */2 * 2 root {note} both\n",
    "names": "20 1 * mar mon root {note} named\n21 1 * jan sun root {note} other-month\n",
    "skipped.dpkg-old": "* * * * * root {note} skipped\n",
    "umasks": "22 * * * * root umask 027; {note} umasks\n",
}  # fmt: skip
CRONTAB = (
    "SHELL=/bin/sh\nPATH={path}\n\n17 * * * * root cd / && {note} hourly\n"
    "25 2 * * * root test -x /nowhere/anacron || ( cd / && {note} daily )\n* * * * * root {note} every\n"
)
SPOOLS = {
    "root": "@hourly {note} root-own\n",
    "backup": "HOME={home}\nLANG=C.UTF-8\n3-59/9 * * * * {note} backup-own one two\n",
}
NOTE = """\
#!/bin/sh
name=$1
input=$(cat | od -An -c | tr -d '\\n')
out=$(mktemp {out}/$name.XXXXXX)
{{
  echo "at $(date +%s.%N)"
  echo "user $(id -un) $(id -gn)"
  echo "groups $(id -Gn | tr ' ' '\\n' | sort | tr '\\n' ' ')"
  echo "arguments $*"
  echo "directory $(pwd)"
  echo "umask $(umask)"
  echo "input $input"
  env | grep -E '^(HOME|SHELL|PATH|LOGNAME|APP_ENV|TITLE|SIZE|LANG)=' | sort
}} > "$out.part"
mv "$out.part" "$out.done"
"""


class Note(NamedTuple):
    """How one command was run; `at` is the real time of its start."""

    name: str
    at: float
    facts: tuple[str, ...]


class Box:
    def __init__(self, root: Path) -> None:
        self.root, self.out, self.note = root, root / "out", root / "note"
        root.chmod(0o755)
        self.out.mkdir()
        self.out.chmod(0o1777)
        self.note.write_text(NOTE.format(out=self.out))
        self.note.chmod(0o755)
        home = root / "home"
        home.mkdir()
        words = {"note": self.note, "home": home, "path": PATH}
        self._write("etc/crontab", CRONTAB.format(**words))
        for name, text in CRON_D.items():
            self._write(f"etc/cron.d/{name}", text.format(**words))
        for name, text in SPOOLS.items():
            self._write(f"var/spool/cron/crontabs/{name}", text.format(**words), 0o600)

    def _write(self, name: str, text: str, mode: int = 0o644) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def take_notes(self) -> list[Note]:
        """What was noted since the last time."""
        found = []
        for path in sorted(self.out.glob("*.done")):
            first, *facts = path.read_text().splitlines()
            found.append(Note(path.name.split(".")[0], float(first.split()[1]), tuple(facts)))
            path.unlink()
        return found

    def run_debian_cron(self, minutes: int, factor: int) -> None:
        """Debian's own cron over this tree, its clock faster by `factor`, until so many of its minutes have passed."""
        script = (
            f"mount --bind {self.root}/etc/cron.d /etc/cron.d && mount --bind {self.root}/etc/crontab /etc/crontab && "
            f"mount --bind {self.root}/var/spool/cron/crontabs /var/spool/cron/crontabs && mount -t tmpfs none /run && "
            f'exec env TZ=UTC LD_PRELOAD={FAKETIME} FAKETIME="@{START} x{factor}" cron -f -L 0'
        )
        process = subprocess.Popen(["unshare", "-m", "sh", "-c", script])
        try:
            deadline = time.monotonic() + 60 + 3 * minutes * 60 / factor
            while len(list(self.out.glob("every.*.done"))) <= minutes:
                assert process.poll() is None, "cron has ended"
                assert time.monotonic() < deadline, "cron is too slow"
                time.sleep(0.05)
        finally:
            process.terminate()
            process.wait()


def why_not() -> str | None:
    """What is missing for a box on this machine."""
    if os.geteuid() != 0:
        return "only root can run the jobs of several users"
    for program in ("cron", "unshare", "od"):
        if shutil.which(program) is None:
            return f"{program} is not installed (apt install cron faketime)"
    if not os.path.exists(FAKETIME):
        return "libfaketime is not installed (apt install faketime)"
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return "no mount namespaces here" if done.returncode else None


def new_box() -> Box:
    """Outside of the tests' own directories, which other users cannot enter."""
    root = Path(tempfile.mkdtemp(prefix="chronex-box-"))
    assert stat.S_ISDIR(root.stat().st_mode)
    return Box(root)
