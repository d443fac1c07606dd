"""`chronex notify list|test|queue|retry|drop`: the channels, whether they work, and what waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Config, Form, StorePath, UsageError, check_format
from chronex.cli.output import out, paint, print_json, print_result, timed
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.channels.web_request import Reply
    from chronex.jobfile import JobFile
    from chronex.model.channels import Channel
    from chronex.model.records import Notice
    from chronex.storage.records import Reading
    from chronex.views.troubles import ChannelRow

notify = typer.Typer(
    help="Channels of notices: which there are, whether they work, and what waits for them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
ChannelName = Annotated[str, typer.Argument(help="The channel: NAME of [notify.NAME].", metavar="NAME")]


@notify.command("list")
def list_channels(config: Config = None, store: StorePath = None, form: Form = "text") -> int:
    """List the channels of the store and of the job file, who is told by them, and how deliveries go.

    Example: chronex notify list
    """
    check_format(form)
    return run_list(config, store, form)


@notify.command("test")
def try_channel(name: ChannelName, config: Config = None, store: StorePath = None, form: Form = "text") -> int:
    """Send a test message now, and say what the server answered. Exit 1: it was not taken.

    Example: chronex notify test ops
    """
    check_format(form)
    return run_test(name, config, store, form)


@notify.command("queue")
def queue(
    name: Annotated[str | None, typer.Argument(help="Only of this channel.", metavar="[NAME]")] = None,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """List the notices that wait for a channel, and those that could not be delivered.

    Example: chronex notify queue
    """
    check_format(form)
    return run_queue(name, store, form)


@notify.command("retry")
def retry_channel(name: ChannelName, store: StorePath = None, form: Form = "text") -> int:
    """Try again at once what waits for a channel, and what was given up.

    Example: chronex notify retry ops
    """
    check_format(form)
    return run_change("retry", name, store, form, every=True)


@notify.command("drop")
def drop_notices(
    name: ChannelName,
    every: Annotated[bool, typer.Option("--all", help="Also those that still wait.")] = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Remove the notices of a channel that could not be delivered.

    Example: chronex notify drop ops
    """
    check_format(form)
    return run_change("drop", name, store, form, every=every)


# -- list ---------------------------------------------------------------------------------------------------------


def run_list(config: str | None, store: str | None, form: str) -> int:
    found = _known_channels(config, store)
    rows = _rows(store)
    if form == "json":
        print_json([_channel_json(channel, jobs, rows.get(channel.name)) for channel, jobs in found.values()])
        return 0
    if not found:
        out('no channels; write [notify.ops] with mail = "…" into the job file, and notify = ["ops"] into a job')
    for channel, jobs in found.values():
        text = f"{len(jobs)} job{'s' if len(jobs) != 1 else ''}" if jobs else "no job that is applied"
        form_of = f", {channel.template}" if channel.kind == "webhook" else ""
        out(terminal_safe(f"{channel.name:<16} {channel.kind}{form_of}: {channel.shown_target}  ({text})"))
        row = rows.get(channel.name)
        if row is not None:
            out(paint(f"{'':<16} {_deliveries(row)}", "red" if row.undeliverable or row.state.tries else "dim"))
    return 0


def _deliveries(row: ChannelRow) -> str:
    state = row.state
    counts = f"{state.delivered} delivered, {row.waiting} waiting, {row.undeliverable} undeliverable"
    dropped = f", {state.dropped} dropped" if state.dropped else ""
    return terminal_safe(counts + dropped + (f"; {state.problem}" if state.problem else ""))


def _channel_json(channel: Channel, jobs: list[str], row: ChannelRow | None) -> dict[str, Any]:
    state = None if row is None else row.state
    return {
        "channel": channel.name,
        "kind": channel.kind.value,
        "target": channel.shown_target,
        "template": channel.template if channel.kind == "webhook" else None,
        "on": None if channel.on is None else [event.value for event in channel.on],
        "jobs": jobs,
        "waiting": 0 if row is None else row.waiting,
        "undeliverable": 0 if row is None else row.undeliverable,
        "delivered": 0 if state is None else state.delivered,
        "dropped": 0 if state is None else state.dropped,
        "problem": None if state is None else state.problem or None,
        **timed("failing_since", None if state is None else state.failing_since_ms),
        **timed("delivered_last", None if state is None else state.delivered_ms),
    }


def _known_channels(config: str | None, store: str | None) -> dict[str, tuple[Channel, list[str]]]:
    """Those of stored jobs, with the jobs, and those of the job file, which wins, so that it can be tried first."""
    found: dict[str, tuple[Channel, list[str]]] = {}

    def read(reading: Reading) -> None:
        after: str | None = None
        while jobs := reading.jobs(after):
            after = jobs[-1].id
            for job in jobs:
                for channel in () if job.notify is None else job.notify.channels:
                    found.setdefault(channel.name, (channel, []))[1].append(job.shown_name)

    _read_where_there(store, read)
    file = _job_file(config)
    for channel in () if file is None else file.channels:
        found[channel.name] = (channel, found.get(channel.name, (channel, []))[1])
    return dict(sorted(found.items()))


def _job_file(config: str | None) -> JobFile | None:
    """None where none is named and none lies in its usual place."""
    from chronex.cli.job_file import load_job_file
    from chronex.cli.options import is_named, job_file_path

    path = job_file_path(config)
    if not is_named(config) and not path.exists():
        return None
    return load_job_file(path)


def _read_where_there(store: str | None, read: Any) -> Any:
    """A channel can be tested before there is a store."""
    from chronex.cli.store_session import read_store
    from chronex.errors import ChronexError

    try:
        return read_store(store, read)
    except ChronexError:
        return None


def _rows(store: str | None) -> dict[str, ChannelRow]:
    from chronex.views.troubles import channel_rows

    return {row.state.channel: row for row in _read_where_there(store, channel_rows) or ()}


# -- test ---------------------------------------------------------------------------------------------------------


def run_test(name: str, config: str | None, store: str | None, form: str) -> int:
    from chronex.text.suggestions import nearest

    known = _known_channels(config, store)
    if name not in known:
        meant = nearest(name, known)
        hint = f"did you mean {meant}?" if meant else "chronex notify list shows them"
        raise UsageError(f"there is no channel {name!r}; {hint}")
    channel = known[name][0]
    answer = _sent(channel, config)
    print_result(
        form,
        lambda: {
            "channel": name,
            "taken": not answer.problem,
            "problem": answer.problem or None,
            "answer": answer.said,
        },
        lambda: [terminal_safe(_test_text(channel, answer))],
    )
    return 1 if answer.problem else 0


def _test_text(channel: Channel, answer: Reply) -> str:
    if answer.problem:
        return f"{channel.name} did not take it: {answer.problem}"
    return f"{channel.name} has taken it ({channel.kind}: {channel.shown_target}); it answered: {answer.said}"


def _sent(channel: Channel, config: str | None) -> Reply:
    import asyncio
    import socket
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from chronex.channels.delivery import DeliveryMeans, deliver
    from chronex.channels.notice_message import NoticeMessage
    from chronex.run import LogDirectory, RunContext
    from chronex.text.instants import rfc3339

    file, host = _job_file(config), socket.gethostname()
    with TemporaryDirectory(prefix="chronex-") as place:
        context = RunContext.of_this_process(LogDirectory(Path(place) / "logs"))
        now_ms = context.clock.wall_ms()
        message = NoticeMessage(
            delivery=f"test/{now_ms}/{channel.name}", kind="test", channel=channel.name, at=rfc3339(now_ms),
            at_ms=now_ms, host=host, reason="chronex notify test: this is how a notice would come",
        )  # fmt: skip
        means = DeliveryMeans(context, host, None if file is None else file.settings.smtp)
        return asyncio.run(deliver(channel, message, means))


# -- queue --------------------------------------------------------------------------------------------------------


def run_queue(name: str | None, store: str | None, form: str) -> int:
    from chronex.cli.store_session import read_store
    from chronex.engine import outbox

    def read(reading: Reading) -> list[Notice]:
        names = [state.channel for state in outbox.states(reading) if name in (None, state.channel)]
        return [notice for channel in names for notice in outbox.all_of(reading, channel)]

    found = read_store(store, read)
    rows = _rows(store)
    if form == "json":
        print_json([_notice_json(notice) for notice in found])
        return 0
    if not found:
        out("nothing waits" if name is None else f"nothing waits for {terminal_safe(name)}")
    for notice in found:
        state = rows[notice.channel].state
        why = notice.problem or state.problem
        kind = "undeliverable" if notice.given_up_ms is not None else "waiting"
        line = f"{kind:<13} {notice.channel:<12} {notice.job} {notice.kind}{f': {why}' if why else ''}"
        out(paint(terminal_safe(line), "red" if notice.given_up_ms is not None else "dim"))
    return 0


def _notice_json(notice: Notice) -> dict[str, Any]:
    from chronex.engine.outbox import delivery_of
    from chronex.model.reasons import text_of

    return {
        "channel": notice.channel,
        "job": notice.job,
        "kind": notice.kind,
        "delivery": delivery_of(notice),
        "state": "waiting" if notice.given_up_ms is None else "undeliverable",
        "reason": text_of(notice.reason),
        "problem": notice.problem or None,
        **timed("at", notice.at_ms),
        **timed("nominal", notice.nominal_ms),
        **timed("given_up", notice.given_up_ms),
    }


def run_change(action: str, name: str, store: str | None, form: str, *, every: bool) -> int:
    from chronex.cli.store_session import open_session
    from chronex.engine import outbox

    with open_session(store) as session:
        actor = str(session.actor)
        if action == "retry":
            count = session.change(lambda records: outbox.retry(records, name, actor))
            text = f"{count} for {name}: tried again within seconds where a daemon runs"
        else:
            count = session.change(lambda records: outbox.drop(records, name, actor, only_undeliverable=not every))
            text = f"{count} for {name} dropped"
    print_result(form, lambda: {"channel": name, "action": action, "count": count}, lambda: [text])
    return 0
