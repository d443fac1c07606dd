"""Messages to real servers: what each kind of channel sends, and what every way of not answering comes to."""

from __future__ import annotations

import asyncio
import email
import json
import ssl
import subprocess
from dataclasses import replace
from email.policy import default
from pathlib import Path

import msgspec
import pytest

from chronex.channels.delivery import DeliveryMeans, LocalMail, deliver, ping_address
from chronex.channels.mail_delivery import mail_of
from chronex.channels.notice_message import NoticeMessage, last_lines, page_of
from chronex.channels.web_request import Reply, ask
from chronex.channels.webhook_bodies import body_of
from chronex.jobfile.notify_table import SmtpSettings
from chronex.model.channels import TEMPLATES, Channel, ChannelKind
from chronex.run import LogDirectory, RunContext
from tests.kit.servers import Behaviour, http_answer, mail_server, refusing_port, web_server

MESSAGE = NoticeMessage(
    delivery="backup/1/failing/2/ops",
    kind="failing",
    channel="ops",
    job="backup",
    at="2027-01-01T03:00:05Z",
    at_ms=1_798_772_405_000,
    nominal="2027-01-01T03:00:00Z",
    instant="Fri 2027-01-01 04:00:00 +0100 (Europe/Berlin)",
    occurrence="occ_0c3a2f5e-0000-5000-8000-000000000001",
    host="db1",
    exit_code=3,
    reason="exit code 3",
    failures_in_a_row=3,
    output=("line one", "fatal: disk full"),
    why="chronex why backup occ_0c3a --store /srv/store",
    replay="chronex replay occ_0c3a --reason 'after the notice' --store /srv/store",
)
HOOK = Channel(name="chat", kind=ChannelKind.WEBHOOK, url="")
CHECK = Channel(name="watch", kind=ChannelKind.HEALTHCHECKS, url="")
MAIL = Channel(name="ops", kind=ChannelKind.MAIL, to=("ops@example.com", "night@example.com"))


@pytest.fixture
def means(tmp_path: Path) -> DeliveryMeans:
    context = RunContext.of_this_process(LogDirectory(tmp_path / "logs"), environ={"PATH": "/usr/bin:/bin", "U": "x"})
    return DeliveryMeans(context, "db1")


def send(channel: Channel, means: DeliveryMeans, message: NoticeMessage = MESSAGE) -> Reply:
    return asyncio.run(asyncio.wait_for(deliver(channel, message, means), 30))


def through(means: DeliveryMeans, port: int, **settings: object) -> DeliveryMeans:
    smtp = SmtpSettings("127.0.0.1", port, **settings)  # type: ignore[arg-type]
    return DeliveryMeans(means.run_context, means.host, smtp, means.within_s)


def to(channel: Channel, url: str) -> Channel:
    return Channel(name=channel.name, kind=channel.kind, url=url, template=channel.template)


# -- what is sent -------------------------------------------------------------------------------------------------


def test_a_webhook_is_sent_json_with_the_delivery_in_a_header(means: DeliveryMeans) -> None:
    with web_server() as server:
        assert send(to(HOOK, f"{server.url}/hooks/secret?x=1"), means) == Reply(said="200 ok")
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/hooks/secret?x=1")
    assert request.headers["x-chronex-delivery"] == "backup/1/failing/2/ops"
    text = json.loads(request.body)["text"]
    for part in (
        "backup failed 3 times in a row on db1",
        "exit code: 3",
        "fatal: disk full",
        "chronex replay occ_0c3a",
    ):
        assert part in text


def test_an_address_is_read_from_its_file_when_it_is_needed(means: DeliveryMeans, tmp_path: Path) -> None:
    kept = tmp_path / "url"
    with web_server() as server:
        assert "no such file" in send(to(HOOK, f"file:{kept}"), means).problem
        kept.write_text(f"{server.url}/a\n")
        kept.chmod(0o600)
        assert send(to(HOOK, f"file:{kept}"), means).problem == ""
        kept.write_text("not an address\n")
        assert send(to(HOOK, f"file:{kept}"), means).problem.startswith("an address has no spaces")
    assert [request.path for request in server.requests] == ["/a"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_no_template_lets_a_job_speak_for_itself(template: str) -> None:
    """What a command prints can call nobody and end no block of code."""
    loud = NoticeMessage(
        delivery="d", kind="failing", job="j", at="t", reason="<!channel> @everyone", output=("``` <@U1> @here",)
    )
    made = body_of(template, loud)
    text = made.content.decode()
    assert all(name.isascii() and "\n" not in value for name, value in made.headers.items())
    match template:
        case "slack":
            assert "<" not in json.loads(text)["text"]
            assert json.loads(text)["text"].count("```") == 2
        case "discord":
            assert json.loads(text)["allowed_mentions"] == {"parse": []}
            assert json.loads(text)["content"].count("```") == 2
        case "teams":
            card = json.loads(text)["attachments"][0]["content"]
            assert card["body"][-1]["text"] == "``` <@U1> @here"
        case "json":
            assert json.loads(text)["reason"] == "<!channel> @everyone"
        case "ntfy":
            assert made.headers["Title"] == "j failed"


def test_a_message_for_discord_fits_its_limit_and_keeps_the_end_of_the_output() -> None:
    long = NoticeMessage(
        delivery="d", kind="failing", job="j", at="t", output=(*("x" * 400 for _ in range(20)), "END")
    )
    content = json.loads(body_of("discord", long).content)["content"]
    assert len(content) <= 2_000
    assert content.endswith("END\n```")


@pytest.mark.parametrize(
    ("kind", "code", "path"),
    [
        ("started", None, "/ping/u/start?rid=0c3a2f5e-0000-5000-8000-000000000001"),
        ("success", 0, "/ping/u?rid=0c3a2f5e-0000-5000-8000-000000000001"),
        ("failed", 3, "/ping/u/3?rid=0c3a2f5e-0000-5000-8000-000000000001"),
        ("failed", None, "/ping/u/fail?rid=0c3a2f5e-0000-5000-8000-000000000001"),
        ("failed", 0, "/ping/u/fail?rid=0c3a2f5e-0000-5000-8000-000000000001"),
    ],
)
def test_a_check_is_told_what_happened_by_its_address(
    means: DeliveryMeans, kind: str, code: int | None, path: str
) -> None:
    message = msgspec.structs.replace(MESSAGE, kind=kind, exit_code=code)
    with web_server() as server:
        assert send(to(CHECK, f"{server.url}/ping/u/"), means, message).problem == ""
    (request,) = server.requests
    assert request.path == path
    assert b"fatal: disk full" in request.body


def test_the_address_of_a_check_keeps_its_own_question() -> None:
    found = ping_address(
        "https://hc.example/ping/key/slug?create=1", NoticeMessage(delivery="d", kind="test", at="t")
    )
    assert found == "https://hc.example/ping/key/slug/log?create=1"


def test_a_mail_has_one_subject_the_page_and_an_id_that_stays(means: DeliveryMeans) -> None:
    with mail_server() as server:
        assert send(MAIL, through(means, server.port)).problem == ""
        assert send(MAIL, through(means, server.port)).problem == ""
    (_, recipients, first), (_, _, second) = server.mails
    assert len(recipients) == 2
    mail, again = (email.message_from_bytes(raw, policy=default) for raw in (first, second))
    assert mail["Subject"] == "[db1] backup failed 3 times in a row"
    assert mail["Message-ID"] == again["Message-ID"]
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content().replace("\r\n", "\n") == page_of(MESSAGE)


@pytest.mark.parametrize("hostile", ["a\r\nBcc: x@y", "a\nb", "a\0b", "a\x85b", "a\u2028b", "\x1b[2Jx", "é" * 400])
def test_no_name_or_reason_adds_a_header_or_an_address(hostile: str) -> None:
    message = NoticeMessage(delivery="d", kind="failing", job=hostile, at="t", reason=hostile, output=(hostile,))
    raw = mail_of(message, ["ops@example.com"], "", "db1").as_bytes()
    found = email.message_from_bytes(raw, policy=default)
    assert set(found.keys()) == {
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "X-Chronex-Delivery", "X-Chronex-Job",
        "MIME-Version", "Content-Type", "Content-Transfer-Encoding",
    }  # fmt: skip
    assert found["Bcc"] is None
    assert found["To"] == "ops@example.com"


def test_a_command_reads_the_message_as_json(means: DeliveryMeans, tmp_path: Path) -> None:
    script = f'cat > {tmp_path}/got; printf %s "$CHRONEX_NOTICE $CHRONEX_CHANNEL" > {tmp_path}/env'
    assert send(Channel(name="pager", kind=ChannelKind.COMMAND, run=script), means).problem == ""
    assert json.loads((tmp_path / "got").read_text())["output"] == ["line one", "fatal: disk full"]
    assert (tmp_path / "env").read_text() == "failing pager"
    failing = Channel(name="pager", kind=ChannelKind.COMMAND, run="echo broken; exit 4")
    assert send(failing, means).problem == "exit code 4: broken"


def test_the_last_lines_are_twenty_whole_ones_that_no_terminal_obeys() -> None:
    data = b"".join(b"line %d\n" % number for number in range(2_000)) + b"\x1b[31mred\r\n\xff\n\n"
    found = last_lines(data)
    assert len(found) == 20
    assert found[0] == "line 1982"
    assert found[-2:] == ("\ufffd[31mred", "\ufffd")
    assert last_lines(b"") == ()
    assert all(len(line) <= 500 for line in last_lines(b"x" * 100_000))


# -- what is answered ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "told", "is_final"),
    [
        (Behaviour(http_answer(500, b"oops")), "answered 500 oops", False),
        (Behaviour(http_answer(429)), "answered 429", False),
        (Behaviour(http_answer(404)), "answered 404", False),
        (Behaviour(http_answer(400, b"bad \x1b[2J text")), "answered 400 bad \ufffd[2J text", True),
        (Behaviour(http_answer(413)), "answered 413", True),
        (
            Behaviour(http_answer(302, headers=b"Location: http://127.0.0.1:1/secret\r\n")),
            "redirects are not followed",
            False,
        ),
        (Behaviour(b"SSH-2.0-OpenSSH\r\n"), "it answered what is not HTTP", False),
        (Behaviour(breaks_off=True), "closed the connection without an answer", False),
        (Behaviour(hangs=True), "gave no answer within 0.3 s", False),
        (Behaviour(drips=True), "gave no answer within 0.3 s", False),
    ],
)
def test_a_web_server_that_does_not_take_it_is_told_as_such(
    means: DeliveryMeans, behaviour: Behaviour, told: str, is_final: bool
) -> None:
    with web_server(behaviour) as server:
        store_retry = replace(means, within_s=0.3) if behaviour.hangs or behaviour.drips else means
        answer = send(to(HOOK, f"{server.url}/secret-path"), store_retry)
    assert told in answer.problem
    assert answer.is_final is is_final
    assert "secret" not in answer.problem


@pytest.mark.parametrize(
    "body",
    [
        b"Cannot POST /hooks/T0K3N-abcdef/in?key=s3cr3t-value",
        b"The requested URL /hooks/T0K3N-abcdef/in was not found on this server.",
        b"no hook T0K3N-abcdef, no key s3cr3t-value",
        b"<a href='http://127.0.0.1/hooks/T0K3N-abcdef/in?key=s3cr3t-value'>",
        b"x" * 195 + b" T0K3N-abcdef",
    ],
)
def test_an_answer_that_repeats_the_address_does_not_give_it_away(means: DeliveryMeans, body: bytes) -> None:
    """The path of a webhook is its password, and many servers put it into their page for an error. The answer is
    kept in the store, logged, and shown by status and notify."""
    with web_server(Behaviour(http_answer(404, body))) as server:
        answer = send(to(HOOK, f"{server.url}/hooks/T0K3N-abcdef/in?key=s3cr3t-value"), means)
    assert "answered 404" in answer.problem
    for secret in ("T0K3N", "s3cr3t"):
        assert secret not in answer.problem + answer.said


def test_a_name_and_a_password_in_an_address_are_for_the_server_alone(means: DeliveryMeans, tmp_path: Path) -> None:
    """Refused in a job file, with the advice to keep the address elsewhere; it was refused there too."""
    kept = tmp_path / "url"
    with web_server(Behaviour(http_answer(403, b"not for me:p%40ss, me:p@ss"))) as server:
        kept.write_text(f"http://me:p%40ss@127.0.0.1:{server.port}/topic\n")
        kept.chmod(0o600)
        answer = send(to(HOOK, f"file:{kept}"), means)
    assert [request.headers["authorization"] for request in server.requests] == ["Basic bWU6cEBzcw=="]
    assert [request.headers["host"] for request in server.requests] == [f"127.0.0.1:{server.port}"]
    assert answer.problem == f"http://127.0.0.1:{server.port}/… answered 403 not for me:[redacted], me:[redacted]"


def test_a_server_that_is_not_there_is_told_as_such(means: DeliveryMeans) -> None:
    assert "connection refused" in send(to(HOOK, f"http://127.0.0.1:{refusing_port()}/x"), means).problem
    assert "its name is not known" in send(to(HOOK, "http://no-such-host.invalid/x"), means).problem


def test_an_answer_that_breaks_off_behind_its_status_was_taken() -> None:
    with web_server(Behaviour(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\npart")) as server:
        assert ask("POST", f"{server.url}/", b"x").problem == ""


def test_an_answer_without_an_end_is_read_a_little() -> None:
    with web_server(Behaviour(b"HTTP/1.1 200 OK\r\n\r\n" + b"y" * 5_000_000)) as server:
        answer = ask("POST", f"{server.url}/", b"x")
    assert answer.problem == ""
    assert len(answer.said) < 300


@pytest.mark.parametrize(
    ("chunks", "said"),
    [
        (b"-1\r\n" + b"y" * 5_000_000, "200"),
        (b"-5\r\nhello", "200"),
        (b"no size\r\nhello", "200"),
        (b"3\r\nfin\r\n2;x=1\r\ne.\r\n0\r\n\r\n", "200 fine."),
        (b"ffffff\r\n" + b"y" * 5_000_000, "200 " + "y" * 200),
        (b"4\r\nfi", "200"),
    ],
)
def test_a_chunked_answer_is_read_a_little_and_never_sent_for_again(chunks: bytes, said: str) -> None:
    """A size of -1 was whatever came: gigabytes within the time of a try. One of -5 was no answer, so it was sent twice."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with web_server(Behaviour(head + chunks)) as server:
        answer = ask("POST", f"{server.url}/", b"x")
    assert (answer.problem, answer.said) == ("", said)


@pytest.mark.parametrize("reply", ["greeting", "ehlo", "taken"])
def test_a_mail_server_that_never_ends_its_reply_is_left(means: DeliveryMeans, reply: str) -> None:
    """Every line of it was kept, half a gigabyte within the time of a try."""
    with mail_server(replies={reply: b"250-more\r\n" * 100_000 + b"250 end"}) as server:
        answer = send(MAIL, through(means, server.port))
    assert answer.problem.endswith("it says more than any mail server has to")


@pytest.mark.parametrize(
    ("settings", "told", "is_final"),
    [
        ({"replies": {"greeting": b"554 go away"}}, "answered 554 go away", False),
        ({"replies": {"mail": b"451 later"}}, "answered 451 later", False),
        ({"replies": {"mail": b"553 not you"}}, "answered 553 not you", True),
        ({"replies": {"rcpt": b"550 nobody"}}, "refuses every address: 550 nobody; 550 nobody", True),
        ({"replies": {"rcpt": b"450 later"}}, "refuses every address: 450 later; 450 later", False),
        ({"replies": {"data": b"552 too big"}}, "answered 552 too big", True),
        ({"replies": {"taken": b"554 spam"}}, "answered 554 spam", True),
        ({"replies": {"taken": b""}}, "connection unexpectedly closed", False),
        ({"replies": {"greeting": b"SSH-2.0"}}, "", False),
    ],
)
def test_a_mail_server_that_does_not_take_it_is_told_as_such(
    means: DeliveryMeans, settings: dict[str, object], told: str, is_final: bool
) -> None:
    with mail_server(**settings) as server:
        answer = send(MAIL, through(means, server.port))
    assert answer.problem
    assert told in answer.problem
    assert answer.is_final is is_final


@pytest.mark.parametrize("behaviour", [Behaviour(hangs=True), Behaviour(drips=True)])
def test_a_mail_server_that_hangs_or_drips_is_cut_off(means: DeliveryMeans, behaviour: Behaviour) -> None:
    with mail_server(behaviour) as server:
        impatient = replace(through(means, server.port), within_s=0.3)
        assert "gave no answer within 0.3 s" in send(MAIL, impatient).problem


def test_a_mail_server_that_breaks_off_or_is_not_there(means: DeliveryMeans) -> None:
    with mail_server(Behaviour(breaks_off=True)) as server:
        assert "connection unexpectedly closed" in send(MAIL, through(means, server.port)).problem
    assert "connection refused" in send(MAIL, through(means, refusing_port())).problem


def test_one_address_that_is_refused_does_not_keep_the_mail_from_the_others(means: DeliveryMeans) -> None:
    with mail_server(replies={"rcpt to:<ops@example.com>": b"550 gone"}) as server:
        answer = send(MAIL, through(means, server.port))
    assert answer.problem == ""
    assert "not for ops@example.com: 550 gone" in answer.said
    assert len(server.mails) == 1


def test_a_taken_mail_is_taken_whatever_the_farewell(means: DeliveryMeans) -> None:
    with mail_server(replies={"quit": b"500 what?"}) as server:
        assert send(MAIL, through(means, server.port)).problem == ""


SENDMAIL = """\
#!/bin/sh
printf '%s\\n' "$@" > PLACE/arguments
cat > PLACE/mail
echo fault
exit CODE
"""


def with_program(means: DeliveryMeans, place: Path, code: int, port: int) -> DeliveryMeans:
    program = place / "sendmail"
    program.write_text(SENDMAIL.replace("PLACE", str(place)).replace("CODE", str(code)))
    program.chmod(0o755)
    local = LocalMail(SmtpSettings("127.0.0.1", port), (str(place / "missing"), str(program)))
    return replace(means, local_mail=local)


def test_where_no_server_is_named_and_none_listens_mail_goes_to_sendmail(
    means: DeliveryMeans, tmp_path: Path
) -> None:
    """As it does on a machine with msmtp or nullmailer, which cron has used so far."""
    answer = send(MAIL, with_program(means, tmp_path, 0, refusing_port()))
    assert (answer.problem, answer.said) == ("", f"taken by {tmp_path}/sendmail")
    assert (tmp_path / "arguments").read_text().split() == ["-i", "ops@example.com", "night@example.com"]
    written = (tmp_path / "mail").read_bytes()
    assert b"\nX-Chronex-Job: backup\n" in written
    assert b"fatal: disk full\n" in written
    assert b"\r" not in written


def test_a_mail_that_sendmail_does_not_take_is_told_as_such(means: DeliveryMeans, tmp_path: Path) -> None:
    answer = send(MAIL, with_program(means, tmp_path, 75, refusing_port()))
    assert answer.problem == f"{tmp_path}/sendmail: exit code 75: fault"
    assert not answer.is_final


def test_sendmail_is_not_asked_where_a_server_listens_or_is_named(means: DeliveryMeans, tmp_path: Path) -> None:
    """A server that refuses has its reasons, and one that broke off may have taken the mail."""
    with mail_server(replies={"mail": b"451 later"}) as server:
        assert "451 later" in send(MAIL, with_program(means, tmp_path, 0, server.port)).problem
    named = with_program(through(means, refusing_port()), tmp_path, 0, refusing_port())
    assert "connection refused" in send(MAIL, named).problem
    assert not (tmp_path / "arguments").exists()


# -- encryption ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that nobody has signed but itself, with its key."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path), "-out", f"{path}.crt",
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        pytest.skip(f"NO TEST OF ENCRYPTION: openssl makes no certificate here ({problem})")
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


def of_server(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_a_certificate_that_nobody_trusts_is_refused(means: DeliveryMeans, certificate: Path) -> None:
    with web_server(context=of_server(certificate)) as server:
        answer = send(to(HOOK, f"{server.url}/x"), means)
    assert "its certificate is not trusted" in answer.problem
    assert server.requests == []


def test_a_trusted_certificate_is_taken(
    means: DeliveryMeans, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    with web_server(context=of_server(certificate)) as server:
        assert send(to(HOOK, f"{server.url}/x"), means).problem == ""


def test_a_password_goes_to_a_server_with_a_trusted_certificate_alone(
    means: DeliveryMeans, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "password"
    kept.write_text("hunter2\n")
    kept.chmod(0o600)
    settings = {"user": "me", "password": f"file:{kept}", "starttls": True}
    with mail_server(encryption=of_server(certificate)) as server:
        assert "its certificate is not trusted" in send(MAIL, through(means, server.port, **settings)).problem
        assert (server.logins, server.mails) == ([], [])
        monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
        assert send(MAIL, through(means, server.port, **settings)).problem == ""
        assert len(server.logins) == len(server.mails) == 1
    with mail_server(context=of_server(certificate)) as server:
        assert send(MAIL, through(means, server.port, tls=True)).problem == ""
    with mail_server() as plain:
        assert "STARTTLS" in send(MAIL, through(means, plain.port, **settings)).problem.upper()
        assert (plain.logins, plain.mails) == ([], [])
