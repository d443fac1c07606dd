"""[notify.NAME], the channels; `notify` of a job and of [defaults]; [scheduler.smtp] and the heartbeat."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from chronex.jobfile.entries import Entry, Reader, RefusedError, read_each, read_table
from chronex.jobfile.inherited_tables import command
from chronex.jobfile.process_table import secret_source
from chronex.jobfile.values import (
    OFF,
    WordReader,
    check_name,
    filled_text,
    one_of,
    positive_duration,
    refuse_duplicates,
    text,
    whole_number,
    yes_or_no,
)
from chronex.model.channels import TEMPLATES, Channel, ChannelKind, NoticeEvent, is_reference
from chronex.model.policies import NotifyPolicy
from chronex.text.durations import UNITS
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted
from chronex.text.web_addresses import url_problem

MOST_CHANNELS = 50
MOST_ADDRESSES = 50
SHORTEST_BEAT_MS = 10_000
# What a mail server reads as one address and nothing else: no spaces, brackets, line breaks or lists. Nor is it an
# option to a program that takes mail: `-C…` could name it another configuration.
_ADDRESS = re.compile(
    r"(?!-)(?:[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}|[A-Za-z0-9._-]{1,64})", re.ASCII
)
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{20,}", re.ASCII)
# The program that takes mail where no server does, by its usual places: of msmtp, nullmailer, exim and every other.
SENDMAIL = ("/usr/sbin/sendmail", "/usr/lib/sendmail")
_WORDS = WordReader(tuple(event.value for event in NoticeEvent))


# -- values -------------------------------------------------------------------------------------------------------


def is_mail_address(written: str) -> bool:
    """One address, as a mail server takes it; a bare name is an account of this machine, as in MAILTO."""
    return _ADDRESS.fullmatch(written) is not None


def mail_address(entry: Entry) -> str:
    written = filled_text(entry)
    if not is_mail_address(written):
        hint = f"write one address, such as {entry.assignment(chr(34) + 'ops@example.com' + chr(34))}"
        entry.refuse(f"{quoted(written)} is not a mail address", hint, "J041")
    return written


def _mail(entry: Entry) -> tuple[str, ...]:
    """An address, or a list of them."""
    if not isinstance(entry.value, list):
        return (mail_address(entry),)
    if not 0 < len(entry.value) <= MOST_ADDRESSES:
        entry.refuse(f"{entry.label} takes 1 to {MOST_ADDRESSES} addresses", 'write ["ops@example.com"]', "J041")
    found: list[str] = read_each(entry, mail_address)
    refuse_duplicates(entry, found)
    return tuple(found)


def web_address(entry: Entry) -> str:
    """An address, or where it is kept: file:, env: or credential:."""
    written = filled_text(entry)
    if is_reference(written):
        return secret_source(entry)
    problem = url_problem(written)
    if problem:
        # The text may be a secret, which must not stand in a message.
        hint = f"write {entry.assignment(chr(34) + 'https://example.com/…' + chr(34))}, or where it is kept: file:/…"
        entry.refuse(f"{entry.label}: {problem}", hint, "J041")
    return written


def _webhook(entry: Entry) -> str:
    written = web_address(entry)
    if not is_reference(written) and _TOKEN.search(urlsplit(written).path):
        message = "whoever reads this file, the store or a backup can send to this address"
        entry.warn(message, f'keep it in a file: {entry.label} = "file:/etc/chronex/NAME"', "J110")
    return written


def _events(entry: Entry) -> tuple[NoticeEvent, ...]:
    entry.expect_list(entry.assignment('["failed", "recovered"]'))
    found: list[str] = read_each(entry, _WORDS)
    if not found:
        hint = 'write for example ["failed"]; notify = "off" in a job tells nobody'
        entry.refuse(f"{entry.label} is empty, so nothing would be told", hint, "J013")
    refuse_duplicates(entry, found)
    return tuple(NoticeEvent(word) for word in found)


# -- [notify.NAME] ------------------------------------------------------------------------------------------------

KINDS: dict[str, Reader] = {
    ChannelKind.MAIL.value: _mail,
    ChannelKind.WEBHOOK.value: _webhook,
    ChannelKind.HEALTHCHECKS.value: web_address,
    ChannelKind.COMMAND.value: command,
}
CHANNEL: dict[str, Reader] = {**KINDS, "template": one_of(*TEMPLATES), "on": _events}
_EXAMPLE = (
    'mail = "ops@example.com", webhook = "file:/etc/chronex/chat-url", healthchecks = "https://…" or command = ["…"]'
)


def read_channels(entry: Entry) -> None:
    """The channels of the file onto its sheet; a name whose channel is refused is known all the same."""
    table = entry.expect_table("[notify.NAME] and its keys below it")
    if len(table) > MOST_CHANNELS:
        entry.refuse(f"there are more than {MOST_CHANNELS} channels", "join some of them", "J041", entry.key_span)
    for name in table:
        entry.sheet.channels[name] = None
        child = entry.child(name)
        try:
            check_name(child, name, f"channel {quoted(name)}", at_key=True)
            entry.sheet.channels[name] = _channel(child, name)
        except RefusedError:
            continue


def _channel(entry: Entry, name: str) -> Channel:
    found = read_table(entry, CHANNEL, f'[notify.{entry.label}] with mail = "…" below it')
    written = [key for key in entry.expect_table() if key in KINDS]
    if not written:
        entry.refuse(f"channel {quoted(name)} leads nowhere", f"write {_EXAMPLE}", "J012", entry.key_span)
    if len(written) > 1:
        message = f"channel {quoted(name)} has both {written[0]} and {written[1]}"
        entry.refuse(message, "make two channels; a job can name several", "J024", entry.child(written[1]).key_span)
    if written[0] not in found:
        raise RefusedError
    kind = ChannelKind(written[0])
    _check_fits(entry, kind)
    fields = {"mail": "to", "command": "run"}
    given = {fields.get(written[0], "url"): found[written[0]]}
    rest = {key: found[key] for key in ("template", "on") if key in found}
    return Channel(name=name, kind=kind, **given, **rest)


def _check_fits(entry: Entry, kind: ChannelKind) -> None:
    """Keys that this kind of channel has no use for."""
    table = entry.expect_table()
    if "template" in table and kind is not ChannelKind.WEBHOOK:
        place = entry.child("template")
        place.report(f"a {kind} has no template", "remove it; webhooks have one", "J024", place.key_span)
    if "on" in table and kind is ChannelKind.HEALTHCHECKS:
        place = entry.child("on")
        place.report("a check is told of every start and every end", "remove it", "J024", place.key_span)


# -- notify = … ---------------------------------------------------------------------------------------------------


def _names(entry: Entry) -> tuple[str, ...]:
    entry.expect_list(entry.assignment('["ops"]'))
    found: list[str] = read_each(entry, _known_name)
    refuse_duplicates(entry, found)
    return tuple(found)


def _known_name(entry: Entry) -> str:
    name, known = filled_text(entry), entry.sheet.channels
    if name not in known:
        meant = nearest(name, known)
        hint = f"did you mean {meant}?" if meant else _no_such(name, list(known))
        fix = f'"{meant}"' if meant else None
        entry.refuse(f"there is no channel {quoted(name)}", hint, "J040", fix=fix)
    return name


def _no_such(name: str, known: list[str]) -> str:
    there = f"there are {', '.join(known)}" if known else f"write [notify.{quoted(name)[1:-1]}]"
    return f'{there}; a command is written notify = {{ run = ["…"] }}'


NOTIFY: dict[str, Reader] = {
    "to": _names,
    "run": command,
    "on": _events,
    "after_failures": whole_number(1, 1_000),
    "on_recovery": yes_or_no,
    "on_errors": yes_or_no,
    "long_after": positive_duration,
}
_WHO = ("to", "run")


def notify(entry: Entry) -> dict[str, Any]:
    """A table, or just the channels, or just the command.

    A list names channels in a file that has some: none of it could be a command without a slash or a space in it.
    """
    if entry.value == OFF:
        return {"to": ()}
    if isinstance(entry.value, list) and entry.sheet.channels and _could_name_channels(entry.value, entry):
        return {"to": _names(entry)}
    if isinstance(entry.value, str | list):
        return {"run": command(entry)}
    if not isinstance(entry.value, dict):
        entry.refuse_type("channels, a table or a command", entry.assignment('["ops"]'))
    return read_table(entry, NOTIFY)


def _could_name_channels(written: list[object], entry: Entry) -> bool:
    """One of them is a channel, or all of them look like names."""
    words = [one for one in written if isinstance(one, str)]
    if any(word in entry.sheet.channels for word in words):
        return True
    return bool(words) and all(re.fullmatch(r"[A-Za-z0-9_-]+", word) for word in words)


def notify_policy(entry: Entry, own: dict[str, Any], inherited: dict[str, Any]) -> NotifyPolicy | None:
    """The policy of these keys; None where nobody is told. One who is named replaces whom [defaults] names."""
    given = own if any(key in own for key in _WHO) else inherited
    given = {**inherited, **own, **{key: given.get(key) for key in _WHO}}
    names: tuple[str, ...] = given.pop("to") or ()
    if "long_after" in given:
        given["long_after_ms"] = given.pop("long_after")
    channels = tuple(one for name in names if (one := entry.sheet.channels.get(name)) is not None)
    if given["run"] is not None or names:
        return NotifyPolicy(channels=channels, **given)
    written = entry.value
    if isinstance(written, dict) and not any(key in written for key in _WHO):
        entry.report("notify tells nobody", 'write notify = { to = ["ops"] } or { run = ["…"] }', "J012")
    return None


# -- [scheduler.smtp] and heartbeat -------------------------------------------------------------------------------


class SmtpSettings(Struct, frozen=True):
    """The server that takes mail. `password` says where it is kept, and is never the password itself."""

    host: str = "localhost"
    port: int = 25
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False
    # Empty: chronex@ and the name of the machine.
    sender: str = ""


class HeartbeatSettings(Struct, frozen=True):
    """An address that is asked every so often as long as this scheduler works."""

    url: str
    every_ms: int = UNITS["m"]


def _host(entry: Entry) -> str:
    written = filled_text(entry)
    if not _HOST.fullmatch(written):
        entry.refuse(f"{quoted(written)} is not the name of a host", 'write host = "mail.example.com"', "J041")
    return written


def _password(entry: Entry) -> str:
    found = secret_source(entry)
    if not is_reference(found):
        hint = f'write {entry.label} = "file:/etc/chronex/smtp-password"'
        entry.refuse(f"{entry.label} comes from file:, env: or credential:", hint, "J013")
    return found


SMTP: dict[str, Reader] = {
    "host": _host,
    "port": whole_number(1, 65_535),
    "user": text,
    "password": _password,
    "starttls": yes_or_no,
    "tls": yes_or_no,
    "from": mail_address,
}


def smtp(entry: Entry) -> SmtpSettings:
    """A server elsewhere is spoken to in secret unless the file says otherwise; a password never goes in clear."""
    given = read_table(entry, SMTP, entry.assignment('{ host = "mail.example.com" }'))
    host, table = given.get("host", "localhost"), entry.expect_table()
    if "host" not in table:
        entry.report("the mail server has no host", 'write host = "mail.example.com"', "J012")
    tls = given.get("tls", given.get("port") == 465 and not given.get("starttls"))
    starttls = given.get("starttls", not tls and not _is_here(host))
    if tls and starttls:
        place = entry.child("starttls")
        place.report("tls and starttls exclude each other", "remove one of them", "J024", place.key_span)
    if ("user" in table) != ("password" in table):
        there = "user" if "user" in table else "password"
        entry.report("user and password belong together", "write both, or none", "J012", entry.child(there).key_span)
    if given.get("password") and not tls and not starttls and not _is_here(host):
        place = entry.child("password")
        place.report("the password would be sent in clear", "write starttls = true", "J024", place.key_span)
    port = given.get("port", 465 if tls else 587 if given.get("user") else 25)
    return SmtpSettings(
        host, port, given.get("user", ""), given.get("password", ""), starttls, tls, given.get("from", "")
    )


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _beat(entry: Entry) -> int:
    found = positive_duration(entry)
    if found < SHORTEST_BEAT_MS:
        entry.refuse(f"{entry.label} cannot be shorter than 10s", 'write every = "1m"', "J014")
    return found


HEARTBEAT: dict[str, Reader] = {"url": web_address, "every": _beat}


def heartbeat(entry: Entry) -> HeartbeatSettings:
    example = entry.assignment('{ url = "https://hc.example.com/ping/…", every = "1m" }')
    given = read_table(entry, HEARTBEAT, example)
    if "url" not in entry.expect_table():
        entry.report("the heartbeat has no url", f"write {example}", "J012")
    if "url" not in given:
        raise RefusedError
    return HeartbeatSettings(given["url"], given.get("every", UNITS["m"]))
