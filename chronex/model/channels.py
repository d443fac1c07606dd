"""Where notices go: the channels that a job file names, and of what each is told."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from chronex.text.web_addresses import shown_host

# Where a value is kept that must not stand in the file itself; `command:` is for the secrets of tasks alone.
REFERENCES = ("file:", "env:", "credential:")


class ChannelKind(StrEnum):
    """How a notice is delivered."""

    MAIL = "mail"
    WEBHOOK = "webhook"
    HEALTHCHECKS = "healthchecks"
    COMMAND = "command"


class NoticeEvent(StrEnum):
    """What a channel can be told of, in the words of the job file."""

    FAILED = "failed"
    RECOVERED = "recovered"
    LATE = "late"
    SLOW = "slow"
    LONG = "long"
    MISSED = "missed"
    ERRORS = "errors"
    SUCCESS = "success"
    # A run has printed something, however it ended: what cron sends a mail for.
    OUTPUT = "output"


# What is told where the file does not say it.
USUAL_EVENTS = (
    NoticeEvent.FAILED,
    NoticeEvent.RECOVERED,
    NoticeEvent.LATE,
    NoticeEvent.SLOW,
    NoticeEvent.LONG,
    NoticeEvent.MISSED,
)
TEMPLATES = ("slack", "discord", "ntfy", "teams", "json")


class Channel(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One table `[notify.NAME]`, stored with the jobs that name it."""

    name: str
    kind: ChannelKind
    # The addresses of a mail.
    to: tuple[str, ...] = ()
    # The address of a webhook or a check, or where that is kept: file:, env: or credential:.
    url: str = ""
    # The program of a command, and what it is given.
    run: tuple[str, ...] | str = ()
    # The form of a webhook's message.
    template: str = TEMPLATES[0]
    # Of what it is told; None stands for what the job says. A check is told of every start and every end instead.
    on: tuple[NoticeEvent, ...] | None = None

    @property
    def shown_target(self) -> str:
        """Where it leads, for people: the path of an address may be all that keeps strangers out, so it is hidden."""
        match self.kind:
            case ChannelKind.MAIL:
                return ", ".join(self.to)
            case ChannelKind.COMMAND:
                return self.run if isinstance(self.run, str) else " ".join(self.run)
        return masked_url(self.url)


def is_reference(written: str) -> bool:
    return written.startswith(REFERENCES)


def masked_url(written: str) -> str:
    """The scheme and the host of an address. Where it is kept elsewhere, that place: it is no secret."""
    if is_reference(written):
        return written
    return shown_host(written)
