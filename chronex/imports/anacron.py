"""Import of anacrontab: jobs by their distance in days, which run late rather than not at all."""

from __future__ import annotations

import re
from typing import Any

from chronex.imports.command_names import name_of_command
from chronex.imports.crontab import NO_ADDRESS, NOTE, MailChannels
from chronex.imports.import_result import Import, Imported, JobNames, Lost
from chronex.timing.zones import Zone

_VARIABLE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_ENTRY = re.compile(r"\s*([0-9]+|@[a-z]+)\s+([0-9]+)\s+(\S+)\s+(\S.*)")
_SETTINGS = ("MAILFROM", "RANDOM_DELAY", "START_HOURS_RANGE", "NO_MAIL_OUTPUT")
# When Debian starts anacron on a day; a machine that is off then makes it up when it is back.
_MINUTE, _HOUR = 30, 7
_DAYS: dict[int | str, str] = {
    1: "* * *", 7: "* * 1", 30: "1 * *", 31: "1 * *", "@daily": "* * *", "@weekly": "* * 1", "@monthly": "1 * *",
    "@yearly": "1 1 *", "@annually": "1 1 *",
}  # fmt: skip
_HOW = "anacron counts days from the last run; here it has a time, which is made up for when the machine was off"


def read_anacrontab(
    text: str, zone: Zone, label: str, names: JobNames, mail: MailChannels | None = None, *, sends_mail: bool = False
) -> Import:
    """`sends_mail`: the machine can, so root is told where no MAILTO is set, as under cron."""
    mail = mail or MailChannels()
    found = Import("machine", zone.name, {}, [], [], channels=mail.tables)
    env: dict[str, str] = {}
    notify = mail.notify("root") if sends_mail else None
    for number, line in enumerate(text.split("\n"), 1):
        origin = f"{label}, line {number}"
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if variable := _VARIABLE.fullmatch(line):
            if variable[1] == "MAILTO":
                address = variable[2].strip("\"'")
                notify = mail.notify(address)
                if address and notify is None:
                    found.lost.append(Lost(origin, line.strip(), NO_ADDRESS))
                continue
            if variable[1] not in _SETTINGS:
                env[variable[1]] = variable[2]
            elif variable[2]:
                found.lost.append(Lost(origin, line.strip(), "has no equivalent; see notify, jitter and spread"))
            continue
        entry = _entry(line, origin, env, zone, names)
        if notify is not None and isinstance(entry, Imported):
            entry = entry._replace(table={**entry.table, "notify": notify}, notes=(*entry.notes, NOTE))
        found.add(entry)
    return found


def _entry(line: str, origin: str, env: dict[str, str], zone: Zone, names: JobNames) -> Imported | Lost:
    entry = _ENTRY.fullmatch(line)
    if entry is None:
        return Lost(origin, line.strip(), "no period, delay, name and command can be read from it")
    schedule = _schedule(entry[1], int(entry[2]))
    if schedule is None:
        return Lost(origin, line.strip(), "no schedule says this period and delay")
    table: dict[str, Any] = {"schedule": schedule, "overlap": "skip", "recovery": "execute_last"}
    shell = env.get("SHELL", "/bin/sh")
    table["run"] = entry[4] if shell in ("/bin/sh", "sh") else [shell, "-c", entry[4]]
    table["user"], table["directory"] = "root", env.get("HOME", "/root")
    variables = {name: value for name, value in env.items() if name not in ("LOGNAME", "USER")}
    if variables:
        table["env"] = variables
    name = names.give(name_of_command(entry[4]) if "." in entry[3] else entry[3], "anacron")
    return Imported(name, origin, table, zone, differs=(_HOW,), times="anacron has no times to compare")


def _schedule(period: str, delay: int) -> str | None:
    hours, minute = divmod(_MINUTE + delay, 60)
    if _HOUR + hours > 23:
        return None  # the delay reaches into the next day
    days = _DAYS.get(int(period) if period.isdecimal() else period)
    if days is not None:
        return f"{minute} {_HOUR + hours} {days}"
    return f"@every {period}d" if period.isdecimal() and 1 < int(period) < 3650 else None
