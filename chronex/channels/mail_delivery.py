"""A notice as a mail, handed to a server within a time."""

from __future__ import annotations

import contextlib
import smtplib
import socket
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import blake2b
from typing import BinaryIO, NamedTuple

from chronex.channels.deadline import Deadline
from chronex.channels.notice_message import NoticeMessage, page_of
from chronex.channels.web_request import CONNECT_S, WITHIN_S, Reply, described
from chronex.text.instants import utc_datetime
from chronex.text.terminal import terminal_safe

LONGEST_SUBJECT = 150
MOST_READ = 256 << 10  # of all replies of one server


class MailServer(NamedTuple):
    """Where mail is handed over, with the password itself."""

    host: str = "localhost"
    port: int = 25
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False
    sender: str = ""


def mail_of(message: NoticeMessage, to: Sequence[str], sender: str, host: str) -> EmailMessage:
    """Every value is made one line before it becomes a header, and the policy refuses any that is not."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender or f"chronex@{host}"
    mail["To"] = ", ".join(to)
    mail["Subject"] = terminal_safe(f"[{host}] {message.headline}")[:LONGEST_SUBJECT]
    mail["Date"] = format_datetime(utc_datetime(message.at_ms))
    # The same for every try, so that servers and readers that know it already can drop a second one.
    mail["Message-ID"] = f"<{blake2b(message.delivery.encode(), digest_size=16).hexdigest()}@chronex.invalid>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Chronex-Delivery"] = message.delivery
    if message.job:
        mail["X-Chronex-Job"] = terminal_safe(message.job)
    mail.set_content(page_of(message), cte="quoted-printable")
    return mail


def send_mail(mail: EmailMessage, to: Sequence[str], server: MailServer, within_s: float = WITHIN_S) -> Reply:
    """Never raises. Taken is what the server has taken for one address at least."""
    where = f"the mail server {server.host}:{server.port}"
    with Deadline(within_s) as deadline:
        try:
            return _hand_over(mail, to, server, deadline)
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            words = "; ".join(_said(code, text) for code, text in error.recipients.values())
            return Reply(f"{where} refuses every address: {words}", is_final=all(code >= 500 for code in codes))
        except smtplib.SMTPResponseException as error:
            is_final = isinstance(error, smtplib.SMTPDataError | smtplib.SMTPSenderRefused) and error.smtp_code >= 500
            return Reply(f"{where} answered {_said(error.smtp_code, error.smtp_error)}", is_final=is_final)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            if deadline.is_over:
                return Reply(f"{where} gave no answer within {within_s:g} s")
            return Reply(f"{where}: {_described(error)}", is_absent=isinstance(error, ConnectionRefusedError))


def _described(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPException):
        return terminal_safe(str(error)).lower()
    return described(error) if isinstance(error, OSError) else "it answered what is not SMTP"


def _said(code: int, text: bytes | str) -> str:
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return f"{code} {' '.join(terminal_safe(words).split())[:200]}".strip()


def _hand_over(mail: EmailMessage, to: Sequence[str], server: MailServer, deadline: Deadline) -> Reply:
    connection = _WatchedSmtps(server, deadline) if server.tls else _WatchedSmtp(server, deadline)
    try:
        if server.starttls:
            connection.starttls(context=ssl.create_default_context())
            if connection.sock is not None:
                deadline.watch(connection.sock)
        if server.user:
            connection.login(server.user, server.password)
        sender = mail["From"].addresses[0].addr_spec
        refused = connection.sendmail(sender, list(to), mail.as_bytes())
    except BaseException:
        connection.close()
        raise
    # It is taken: whatever becomes of the farewell, it must not be sent again.
    with contextlib.suppress(OSError, smtplib.SMTPException):
        connection.quit()
    left_out = "; ".join(f"not for {address}: {_said(*answer)}" for address, answer in refused.items())
    return Reply(said=f"250 taken{f', {left_out}' if left_out else ''}")


class _Words:
    """What the server says, up to a bound: all lines of a reply are kept, and one without an end fills memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = MOST_READ

    def readline(self, most: int) -> bytes:
        line = self._file.readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise smtplib.SMTPServerDisconnected("it says more than any mail server has to")
        return line

    def close(self) -> None:
        self._file.close()


class _BoundedSmtp(smtplib.SMTP):
    """Reads no more than a bound, before and after the connection is encrypted."""

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = _Words(self.sock.makefile("rb"))
        return super().getreply()


class _WatchedSmtp(_BoundedSmtp):
    """Puts its socket under the deadline before the server has said a word."""

    def __init__(self, server: MailServer, deadline: Deadline) -> None:
        self._deadline = deadline
        super().__init__(server.host, server.port, timeout=CONNECT_S)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        found = socket.create_connection((host, port), timeout)
        self._deadline.watch(found)
        return found


class _WatchedSmtps(_BoundedSmtp, smtplib.SMTP_SSL):
    """The same, encrypted from the first byte."""

    def __init__(self, server: MailServer, deadline: Deadline) -> None:
        self._deadline = deadline
        self._encryption = ssl.create_default_context()
        super().__init__(server.host, server.port, timeout=CONNECT_S, context=self._encryption)

    def _get_socket(self, host: str, port: int, timeout: float) -> ssl.SSLSocket:
        plain = socket.create_connection((host, port), timeout)
        self._deadline.watch(plain)
        found = self._encryption.wrap_socket(plain, server_hostname=host)
        self._deadline.watch(found)
        return found
