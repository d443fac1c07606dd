"""`chronex groups`: who holds places in the groups of the store, and who waits for one."""

from __future__ import annotations

from chronex.cli.options import Form, StorePath, check_format
from chronex.cli.output import out, paint, print_json, shown_zone


def groups(store: StorePath = None, form: Form = "text") -> int:
    """List the groups of the store: their limits and rates, who holds places since when, and who waits.

    Example: chronex groups --format json
    """
    check_format(form)
    return run_groups(store, form)


def run_groups(store: str | None, form: str) -> int:
    from chronex.cli.group_output import group_json, group_lines
    from chronex.cli.store_session import read_store_now
    from chronex.views.group_rows import groups_of

    rows, now_ms = read_store_now(store, groups_of)
    if form == "json":
        print_json([group_json(row) for row in rows])
    elif not rows:
        out("this store has no groups; a job file makes them with [groups.NAME]")
    else:
        zone = shown_zone()
        for row in rows:
            for line in group_lines(row, now_ms, zone):
                out(line)
        out(paint(f"times in {zone.name}", "dim"))
    return 0
