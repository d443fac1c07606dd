"""A server in a box: twenty crontabs of six users in a tree of their own, each of whose commands notes how it was run.

Debian's cron reads the tree in a mount namespace, under libfaketime; Chronex imports it and runs it as root. Both leave
notes of the same form, which are compared.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.kit.waits import until

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
FIRST_MINUTE = datetime(2027, 3, 1, 1, 0, tzinfo=UTC)  # a Monday
PATH = "/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin"
USERS = ("root", "www-data", "backup", "nobody", "games", "man")

# In the style of the packages of a Debian server; {note} is the command that notes how it was run.
CRON_D = {
    "certs": "SHELL=/bin/sh\nPATH={path}\n0 */12 * * * root test -x /usr/bin/test && {note} certs -q renew\n",
    "sessions": "09,39 * * * * root [ -x {note} ] && if [ -d / ]; then {note} sessions; fi\n",
    "stats": "PATH=/usr/lib:/usr/sbin:/usr/bin:/sbin:/bin\n5-55/10 * * * * root command -v true > /dev/null && {note} stats\n",
    "monitor": "MAILTO=\"\"\n*/5 * * * * nobody if [ -x {note} ]; then {note} monitor; echo unheard; fi\n",
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
    "homeless": "HOME=/nonexistent/srv\n26 * * * * games {note} homeless; echo in vain\n",
    "mail-account": "HOME={home}\n28 * * * * www-data {note} mail-account; echo of www-data\n",
    "mail-named": "MAILTO=ops@example.org,night@example.org\n31 * * * * root {note} mail-named; echo named\n"
    "MAILTO=\"\"\n32 * * * * root {note} mail-nobody; echo unheard\n",
}  # fmt: skip
CRONTAB = (
    "SHELL=/bin/sh\nPATH={path}\n\n17 * * * * root cd / && {note} hourly\n"
    "25 2 * * * root test -x /nowhere/anacron || ( cd / && {note} daily )\n* * * * * root {note} every\n"
)
SPOOLS = {
    "root": "@hourly {note} root-own\n",
    "backup": "HOME={home}\nLANG=C.UTF-8\n3-59/9 * * * * {note} backup-own one two; echo own\n",
}
# How often each is started from 01:00 on Monday 1 March 2027 to 01:00 on the day after, worked out from its line.
STARTS = {
    "certs": 2, "sessions": 48, "stats": 144, "monitor": 288, "shop": 96, "shop-night": 1, "scores": 6, "manuals": 216,
    "raid-monday": 1, "bashed": 72, "input": 144, "input-empty": 24, "input-bash": 24, "quoted": 48,
    "first": 1, "either": 1, "named": 1, "umasks": 24, "homeless": 24, "mail-account": 24, "mail-named": 24,
    "mail-nobody": 24, "hourly": 24, "daily": 1, "every": 1440, "root-own": 24, "backup-own": 168,
}  # fmt: skip
# To whom cron sends what each command prints: the account, unless MAILTO says otherwise.
TOLD = {
    "homeless": {"games"}, "mail-account": {"www-data"}, "mail-named": {"ops@example.org", "night@example.org"},
    "backup-own": {"backup"},
}  # fmt: skip
# In the place of /usr/sbin/sendmail: keeps what it is given.
SENDMAIL = """\
#!/bin/sh
out=$(mktemp {out}/mail.XXXXXX)
{{ echo "$*"; cat; }} > "$out"
mv "$out" "$out.taken"
"""
_CRONTABS = ("/etc/cron.d", "/etc/crontab", "/var/spool/cron/crontabs")
NOTE = """\
#!/bin/sh
name=$1
input=$(cat | od -An -c | tr -d '\\n')
out=$(mktemp {out}/$name.XXXXXX)
{{
  echo "user $(id -un) $(id -gn)"
  echo "groups $(id -Gn | tr ' ' '\\n' | sort | tr '\\n' ' ')"
  printf 'arguments %s\\n' "$*"
  echo "directory $(pwd)"
  echo "umask $(umask)"
  echo "input $input"
  env | grep -E '^(HOME|SHELL|PATH|LOGNAME|APP_ENV|TITLE|SIZE|LANG)=' | sort
}} > "$out.part"
mv "$out.part" "$out.done"
"""


class Note(NamedTuple):
    """How one command was run."""

    name: str
    facts: tuple[str, ...]


class Mail(NamedTuple):
    """What was handed to sendmail: its words, and the text."""

    to: frozenset[str]
    text: str


class Box:
    """`cron_d` are the texts of its files of /etc/cron.d by their names."""

    def __init__(self, root: Path, cron_d: Mapping[str, str] = CRON_D) -> None:
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
        for name, text in cron_d.items():
            self._write(f"etc/cron.d/{name}", filled(text, words))
        for name, text in SPOOLS.items():
            self._write(f"var/spool/cron/crontabs/{name}", filled(text, words), 0o600)
        self._write("usr/sbin/sendmail", SENDMAIL.format(out=self.out), 0o755)
        shutil.copy(shutil.which("cron") or "", root / "usr/sbin/cron")

    def _write(self, name: str, text: str, mode: int = 0o644) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        path.chmod(mode)

    def take_notes(self) -> list[Note]:
        """What was noted since the last time."""
        found = []
        for path in sorted(self.out.glob("*.done")):
            found.append(
                Note(path.name.split(".")[0], tuple(path.read_text("utf-8", "surrogateescape").splitlines()))
            )
            path.unlink()
        return found

    def take_mail(self) -> list[Mail]:
        """What was handed to sendmail since the last time; the words before the addresses are options."""
        found = []
        for path in sorted(self.out.glob("*.taken")):
            words, _, text = path.read_text().partition("\n")
            addresses = [word for word in words.replace(",", " ").split() if not word.startswith("-")]
            found.append(Mail(frozenset(addresses), text))
            path.unlink()
        return found

    def inside(self, command: str, *places: str) -> list[str]:
        """The command line that runs it where this tree's sendmail is that of the machine, and so these places."""
        binds = "".join(f"mount --bind {self.root}{place} {place} && " for place in ("/usr/sbin", *places))
        return ["unshare", "-m", "sh", "-c", f"{binds}mount -t tmpfs none /run && exec {command}"]

    def run_debian_cron(self, minutes: int) -> list[list[Note]]:
        """Debian's own cron over this tree for so many minutes, and what was noted in each of them.

        Its clock is a file that is moved on by a minute when all that the last one started has ended, so a busy machine
        changes nothing but how long it takes.
        """
        clock = self.root / "clock"
        clock.write_text(f"{_shown(-1)}\n")
        faked = f"LD_PRELOAD={FAKETIME} FAKETIME_TIMESTAMP_FILE={clock} FAKETIME_NO_CACHE=1"
        command = self.inside(f"env TZ=UTC {faked} /usr/sbin/cron -f -L 0", *_CRONTABS)
        with subprocess.Popen(command) as process:

            def waits() -> bool:
                assert process.poll() is None, "cron has not begun; are its directories there?"
                return _program_of(process.pid) == "cron" and _sleeps(process.pid)

            try:
                until(waits, "cron to wait")
                return [self._minute(process, clock, number) for number in range(minutes)]
            finally:
                process.terminate()

    def _minute(self, process: subprocess.Popen[bytes], clock: Path, number: int) -> list[Note]:
        """Let it be that minute, wake cron, and wait until everything that it started then has ended."""
        part = clock.with_suffix(".part")
        part.write_text(f"{_shown(number)}\n")
        part.rename(clock)

        def is_over() -> bool:
            assert process.poll() is None, "cron has ended"
            if _sleeps(process.pid) and not any(self.out.glob("every.*.done")):
                process.send_signal(signal.SIGCHLD)  # its sleep ends, and it looks at the clock
            return any(self.out.glob("every.*.done")) and _sleeps(process.pid) and not _children(process.pid)

        until(is_over, f"the end of minute {number}")
        return self.take_notes()


def filled(text: str, words: Mapping[str, object]) -> str:
    """A generated text has braces of its own."""
    for name, value in words.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def _shown(minute: int) -> str:
    """The time that cron sees, two seconds into that minute."""
    return (FIRST_MINUTE + timedelta(minutes=minute, seconds=2)).strftime("%Y-%m-%d %H:%M:%S")


def _program_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _sleeps(pid: int) -> bool:
    """It waits for its next minute: not for a child, not for a file."""
    number = Path(f"/proc/{pid}/syscall").read_text().split()[0]
    return number in ("35", "230")  # nanosleep and clock_nanosleep of this machine


def why_not() -> str | None:
    """What is missing for a box on this machine."""
    if platform.machine() != "x86_64":
        return "the numbers of system calls are those of x86-64"
    if os.geteuid() != 0:
        return "only root can run the jobs of several users"
    for program in ("cron", "unshare", "od"):
        if shutil.which(program) is None:
            return f"{program} is not installed (apt install cron faketime)"
    for place in _CRONTABS:
        if not os.path.exists(place):
            return f"{place} is not there, in whose place the crontabs are put (apt install cron)"
    if not os.path.exists(FAKETIME):
        return "libfaketime is not installed (apt install faketime)"
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return "no mount namespaces here" if done.returncode else None


def new_box(cron_d: Mapping[str, str] = CRON_D) -> Box:
    """Outside of the tests' own directories, which other users cannot enter."""
    root = Path(tempfile.mkdtemp(prefix="chronex-box-"))
    assert stat.S_ISDIR(root.stat().st_mode)
    return Box(root, cron_d)
