"""What a webhook is sent, in the form that its receiver reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from chronex.channels.notice_message import NoticeMessage, facts_of, json_of, page_of
from chronex.text.terminal import terminal_safe

_LONGEST_OF_SLACK = 12_000
_LONGEST_OF_DISCORD = 1_900  # it refuses messages of more than 2,000 characters
_LONGEST_OF_NTFY = 3_500  # more than 4 KiB becomes an attachment
_LONGEST_OF_TEAMS = 12_000
_JSON = "application/json"


class WebhookBody(NamedTuple):
    content: bytes
    headers: dict[str, str]


def body_of(template: str, message: NoticeMessage) -> WebhookBody:
    match template:
        case "discord":
            # No name in it, such as @everyone, is to call anybody.
            fields: Any = {"content": _fenced(message, _LONGEST_OF_DISCORD), "allowed_mentions": {"parse": []}}
        case "teams":
            fields = _teams(message)
        case "json":
            fields = json_of(message)
        case "ntfy":
            return _ntfy(message)
        case _:
            fields = {"text": _slack_safe(_fenced(message, _LONGEST_OF_SLACK))}
    return WebhookBody(msgspec.json.encode(fields), {"Content-Type": _JSON})


def _mark(message: NoticeMessage) -> str:
    return "\N{WHITE HEAVY CHECK MARK}" if message.is_good else "\N{LARGE RED CIRCLE}"


def _fenced(message: NoticeMessage, longest: int) -> str:
    """A headline, the facts, and the output as it stands; the output gives way where it is too much."""
    where = f" on {message.host}" if message.host else ""
    head = "\n".join([f"{_mark(message)} {message.headline}{where}", *(f"{n}: {v}" for n, v in facts_of(message))])
    if not message.output:
        return head[:longest]
    free = longest - len(head) - len("\n```\n\n```")
    output = "\n".join(message.output).replace("```", "'''")[-max(0, free) :] if free > 0 else ""
    return f"{head}\n```\n{output}\n```" if output else head[:longest]


def _slack_safe(text: str) -> str:
    """Nothing in it is a link, a channel or a person to call."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _ntfy(message: NoticeMessage) -> WebhookBody:
    """Plain text; what stands above it travels in headers, which hold ASCII alone."""
    title = terminal_safe(message.headline).encode("ascii", "replace").decode()[:200]
    headers = {"Content-Type": "text/plain; charset=utf-8", "Title": title}
    headers |= {"Priority": "default" if message.is_good else "high"}
    return WebhookBody(page_of(message)[:_LONGEST_OF_NTFY].encode()[:4_000], headers)


def _teams(message: NoticeMessage) -> dict[str, Any]:
    """A message with an adaptive card, as the webhooks of Teams' workflows take it."""
    colour = "Good" if message.is_good else "Attention"
    body: list[dict[str, Any]] = [
        {
            "type": "TextBlock",
            "text": message.headline,
            "weight": "Bolder",
            "size": "Medium",
            "color": colour,
            "wrap": True,
        },
        {"type": "FactSet", "facts": [{"title": name, "value": value} for name, value in facts_of(message)]},
    ]
    if message.output:
        text = "\n".join(message.output)[-_LONGEST_OF_TEAMS:]
        body.append({"type": "TextBlock", "text": text, "fontType": "Monospace", "wrap": True})
    card = {"type": "AdaptiveCard", "version": "1.4", "body": body}
    return {
        "type": "message",
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}],
    }
