"""Delivers one message to one channel, within bounds. What is secret is fetched for it and kept nowhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from chronex.channels.mail_delivery import MailServer, mail_of, send_mail
from chronex.channels.notice_message import NoticeMessage, json_of, page_of
from chronex.channels.web_request import WITHIN_S, Reply, ask
from chronex.channels.webhook_bodies import body_of
from chronex.jobfile.notify_table import SENDMAIL, SmtpSettings
from chronex.model.channels import Channel, ChannelKind, is_reference
from chronex.run.hooks import send_to_command
from chronex.run.request import NotStarted
from chronex.run.secret_values import secret_value
from chronex.run.spawn import RunContext

Value = TypeVar("Value")
_LONGEST_PING = 10_000


class LocalMail(NamedTuple):
    """How mail leaves where no server is named: by the one of this machine or, where none listens, by the program
    that msmtp, nullmailer and every mail server bring."""

    server: SmtpSettings = SmtpSettings()
    programs: tuple[str, ...] = SENDMAIL


LOCAL_MAIL = LocalMail()


@dataclass(frozen=True, slots=True)
class DeliveryMeans:
    """What a delivery needs of the process that makes it."""

    run_context: RunContext
    host: str
    smtp: SmtpSettings | None = None
    within_s: float = WITHIN_S
    local_mail: LocalMail = LOCAL_MAIL


async def deliver(channel: Channel, message: NoticeMessage, means: DeliveryMeans) -> Reply:
    """Never raises for the channel's sake; a thread of its own does what blocks."""
    if channel.kind is ChannelKind.COMMAND:
        return await _to_command(channel, message, means)
    if channel.kind is ChannelKind.MAIL:
        return await _by_mail(channel, message, means)
    return await on_thread(lambda: _blocking(channel, message, means))


def _blocking(channel: Channel, message: NoticeMessage, means: DeliveryMeans) -> Reply:
    url = resolved(channel.name, channel.url, means)
    if isinstance(url, NotStarted):
        return Reply(url.error)
    headers = {"X-Chronex-Delivery": message.delivery}
    if channel.kind is ChannelKind.HEALTHCHECKS:
        body = page_of(message).encode()[-_LONGEST_PING:]
        headers |= {"Content-Type": "text/plain; charset=utf-8"}
        return ask("POST", ping_address(url, message), body, headers, means.within_s)
    made = body_of(channel.template, message)
    return ask("POST", url, made.content, {**made.headers, **headers}, means.within_s)


def ping_address(url: str, message: NoticeMessage) -> str:
    """The address for what happened: a start, a success, a failure with its exit status, or a test."""
    parts = urlsplit(url)
    ending = {"started": "/start", "success": "", "test": "/log"}.get(message.kind)
    if ending is None:
        code = message.exit_code
        ending = f"/{code}" if code is not None and 0 < code <= 255 else "/fail"
    run_id = (message.occurrence or "").removeprefix("occ_")
    query = f"rid={quote(run_id)}" if run_id else ""
    joined = "&".join(part for part in (parts.query, query) if part)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + ending, query=joined))


def resolved(name: str, written: str, means: DeliveryMeans) -> str | NotStarted:
    """The value itself, where the file says where it is kept."""
    return secret_value(name, written, means.run_context.inheritance) if is_reference(written) else written


async def _by_mail(channel: Channel, message: NoticeMessage, means: DeliveryMeans) -> Reply:
    settings = means.smtp or means.local_mail.server
    mail = mail_of(message, channel.to, settings.sender, means.host)
    answer = await on_thread(lambda: _to_server(mail, channel, settings, means))
    if means.smtp is not None or not answer.problem:
        return answer
    program = next((path for path in means.local_mail.programs if os.access(path, os.X_OK)), None)
    if answer.is_absent and program is not None:
        return await _to_sendmail(program, mail, channel, means)
    return answer._replace(problem=f"{answer.problem}; name a server with [scheduler.smtp]")


def _to_server(mail: EmailMessage, channel: Channel, settings: SmtpSettings, means: DeliveryMeans) -> Reply:
    password = resolved("smtp.password", settings.password, means)
    if isinstance(password, NotStarted):
        return Reply(password.error)
    server = MailServer(
        settings.host, settings.port, settings.user, password, settings.starttls, settings.tls, settings.sender
    )
    return send_mail(mail, channel.to, server, means.within_s)


async def _to_sendmail(program: str, mail: EmailMessage, channel: Channel, means: DeliveryMeans) -> Reply:
    """It has the lines of a file, not those of the wire, and a line with a dot alone does not end it (-i)."""
    content = mail.as_bytes(policy=mail.policy.clone(linesep="\n"))
    command, context = (program, "-i", *channel.to), means.run_context
    problem = await send_to_command(command, content, context.environment, context, means.within_s)
    return Reply(f"{program}: {problem}" if problem else "", "" if problem else f"taken by {program}")


async def _to_command(channel: Channel, message: NoticeMessage, means: DeliveryMeans) -> Reply:
    context = means.run_context
    variables = {
        "CHRONEX_NOTICE": message.kind,
        "CHRONEX_CHANNEL": channel.name,
        "CHRONEX_DELIVERY": message.delivery,
        "CHRONEX_JOB": message.job,
        "CHRONEX_OCCURRENCE": message.occurrence or "",
        "CHRONEX_SCHEDULED_TIME": message.nominal or "",
        **context.environment,
    }
    content = msgspec.json.encode(json_of(message)) + b"\n"
    problem = await send_to_command(channel.run, content, variables, context, means.within_s)
    return Reply(problem, "exit code 0" if not problem else "")


async def on_thread(work: Callable[[], Value]) -> Value:
    """On a thread that nobody waits for: a scheduler that stops must not wait for a server that hangs.

    The executors of asyncio and of the library do wait, and a full one would let other work wait too.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Value] = loop.create_future()

    def finish(outcome: Callable[[], None]) -> None:
        if not result.done():
            outcome()

    def run() -> None:
        outcome: Callable[[], None]
        try:
            outcome = partial(result.set_result, work())
        except Exception as problem:
            outcome = partial(result.set_exception, problem)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(finish, outcome)

    threading.Thread(target=run, name="delivery", daemon=True).start()
    return await result
