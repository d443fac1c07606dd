"""[notify.NAME], `notify`, [scheduler.smtp] and heartbeat: what each value means, and the words for each wrong one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronex.jobfile import JobFileError, SchedulerSettings, read_job_file
from chronex.jobfile.notify_table import HeartbeatSettings, SmtpSettings
from chronex.jobfile.otlp_table import OtlpSettings, with_path
from chronex.jobfile.program_jobs import InvalidJobError, check_jobs, read_program_channels, read_program_job
from chronex.model.channels import Channel, ChannelKind, NoticeEvent, masked_url
from chronex.model.job import Job, Task
from chronex.model.policies import NotifyPolicy

OPS = Channel(name="ops", kind=ChannelKind.MAIL, to=("ops@example.com",))
CHAT = Channel(name="chat", kind=ChannelKind.WEBHOOK, url="file:/etc/chat")
TABLES = '[notify.ops]\nmail = "ops@example.com"\n[notify.chat]\nwebhook = "file:/etc/chat"\n'
JOB = '[jobs.a]\nschedule = "17 3 * * *"\nrun = "x"\n'


def policy(text: str) -> NotifyPolicy | None:
    return read_job_file(text, "f.toml", "UTC").jobs[0].notify


def problems(text: str) -> list[str]:
    with pytest.raises(JobFileError) as refused:
        read_job_file(text, "f.toml", "UTC")
    return [f"{one.line}:{one.column} {one.code} {one.text}" for one in refused.value.problems]


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ('["ops"]', NotifyPolicy(channels=(OPS,))),
        ('["chat", "ops"]', NotifyPolicy(channels=(CHAT, OPS))),
        ('{ to = ["ops"], after_failures = 3 }', NotifyPolicy(channels=(OPS,), after_failures=3)),
        ('{ to = ["ops"], run = ["tell"] }', NotifyPolicy(("tell",), channels=(OPS,))),
        ('{ to = ["ops"], on = ["success"] }', NotifyPolicy(channels=(OPS,), on=(NoticeEvent.SUCCESS,))),
        ('{ to = ["ops"], long_after = "2h" }', NotifyPolicy(channels=(OPS,), long_after_ms=7_200_000)),
        ('["/bin/tell", "ops"]', "ops is a channel"),
        ('["/bin/tell", "me"]', NotifyPolicy(("/bin/tell", "me"))),
        ('"tell me"', NotifyPolicy("tell me")),
        ('{ run = ["tell"] }', NotifyPolicy(("tell",))),
        ('"off"', None),
    ],
)
def test_what_notify_means_in_a_file_with_channels(written: str, means: NotifyPolicy | str | None) -> None:
    text = f"{TABLES}{JOB}notify = {written}\n"
    if isinstance(means, str):
        assert "8:11 J040 there is no channel '/bin/tell'" in problems(text)[0]
    else:
        assert policy(text) == means


def test_in_a_file_without_channels_a_list_is_the_command_that_it_always_was() -> None:
    assert policy(f'{JOB}notify = ["ops", "chat"]\n') == NotifyPolicy(("ops", "chat"))


@pytest.mark.parametrize(
    ("defaults", "own", "means"),
    [
        ('["ops"]', "", NotifyPolicy(channels=(OPS,))),
        ('["ops"]', 'notify = ["chat"]', NotifyPolicy(channels=(CHAT,))),
        ('{ run = ["tell"] }', 'notify = ["chat"]', NotifyPolicy(channels=(CHAT,))),
        ('["ops"]', 'notify = { run = ["tell"] }', NotifyPolicy(("tell",))),
        ('["ops"]', "notify = { after_failures = 3 }", NotifyPolicy(channels=(OPS,), after_failures=3)),
        (
            '{ to = ["ops"], after_failures = 3 }',
            'notify = ["chat"]',
            NotifyPolicy(channels=(CHAT,), after_failures=3),
        ),
        ('["ops"]', 'notify = "off"', None),
    ],
)
def test_a_job_replaces_who_is_told_and_keeps_the_rest(defaults: str, own: str, means: NotifyPolicy | None) -> None:
    assert policy(f"{TABLES}[defaults]\nnotify = {defaults}\n{JOB}{own}\n") == means


def test_the_usual_events_are_all_but_success_and_errors() -> None:
    usual = {"failed", "recovered", "late", "slow", "long", "missed"}
    assert NotifyPolicy("x").events == usual
    assert NotifyPolicy("x", on_recovery=False).events == usual - {"recovered"}
    assert NotifyPolicy("x", on_errors=True).events == usual | {"errors"}
    assert NotifyPolicy("x", on=(NoticeEvent.SUCCESS,)).events == {"success"}


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("", "1:9 J012 channel 'x' leads nowhere; write mail = "),
        ('mail = "a b@c"', "2:8 J041 'a b@c' is not a mail address; write one address, such as mail = "),
        ('mail = "a@b, c@d"', "2:8 J041 'a@b, c@d' is not a mail address"),
        ('mail = "a@b\\r\\nBcc: c@d"', "J041 'a@b\\u000d\\u000aBcc: c@d' is not a mail address"),
        ('mail = "-C/tmp/x@example.com"', "J041 '-C/tmp/x@example.com' is not a mail address"),
        ("mail = []", "2:8 J041 mail takes 1 to 50 addresses"),
        ('mail = ["a@b", "a@b"]', "J018 'a@b' is given twice"),
        ('webhook = "example.com/x"', "2:11 J041 webhook: this is no address of http: or https:"),
        ('webhook = "ftp://example.com/x"', "J041 webhook: this is no address of http: or https:"),
        ('webhook = "https://me:secret@example.com/"', "J041 webhook: a name and a password in an address"),
        ('webhook = "https://example.com/ x"', "J041 webhook: an address has no spaces"),
        ('webhook = "https://example.com:99999/"', "J041 webhook: this is no address"),
        ('webhook = "file:"', "J013 webhook has nothing after file:"),
        ('webhook = "credential:a/b"', "J013 webhook: 'a/b' cannot name a credential"),
        ("healthchecks = 5", "J011 healthchecks takes text"),
        ("command = []", "J019 command names no program"),
        ('mail = "a@b"\nwebhook = "file:/x"', "3:1 J024 channel 'x' has both mail and webhook"),
        ('mail = "a@b"\ntemplate = "json"', "3:1 J024 a mail has no template"),
        ('webhook = "file:/x"\ntemplate = "slak"', "3:12 J013 template cannot be 'slak'; did you mean slack?"),
        ('healthchecks = "file:/x"\non = ["failed"]', "3:1 J024 a check is told of every start and every end"),
        ('mail = "a@b"\non = ["failled"]', "3:7 J013 on[0] cannot be 'failled'; did you mean failed?"),
        ('mail = "a@b"\non = []', "3:6 J013 on is empty"),
        ('mial = "a@b"', "2:1 J010 unknown key 'mial'; did you mean mail?"),
    ],
)
def test_a_channel_that_cannot_be_used_is_refused_with_its_place(table: str, told: str) -> None:
    assert any(told in one for one in problems(f"[notify.x]\n{table}\n{JOB}")), problems(
        f"[notify.x]\n{table}\n{JOB}"
    )


@pytest.mark.parametrize("text", ["https://me:secret@example.com/", "https://example.com/ secret"])
def test_an_address_that_is_refused_is_not_repeated(text: str) -> None:
    assert "secret" not in " ".join(problems(f'[notify.x]\nwebhook = "{text}"\n{JOB}'))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('["opps"]', "8:11 J040 there is no channel 'opps'; did you mean ops?"),
        ('["pager"]', "J040 there is no channel 'pager'; there are ops, chat; a command is written notify = { run"),
        ('{ to = ["opps"] }', "J040 there is no channel 'opps'; did you mean ops?"),
        ("{ after_failures = 3 }", "J012 notify tells nobody"),
        ("5", "J011 notify takes channels, a table or a command"),
        ('{ to = ["ops"], after_failures = 0 }', "J014 after_failures cannot be 0"),
        ('{ to = ["ops"], long_after = "soon" }', "J015 long_after: 'soon' is not a duration"),
    ],
)
def test_a_job_that_names_what_is_not_there_is_refused(written: str, told: str) -> None:
    assert any(told in one for one in problems(f"{TABLES}{JOB}notify = {written}\n"))


def test_an_address_with_a_token_in_it_is_warned_of() -> None:
    text = f'[notify.x]\nwebhook = "https://hooks.example.com/services/abcdefghijklmnopqrstuvwx"\n{JOB}'
    (warning,) = read_job_file(text, "f.toml", "UTC").warnings
    assert (warning.code, warning.line) == ("J110", 2)
    assert "abcdefgh" not in warning.text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("https://hooks.example.com/services/secret?x=secret", "https://hooks.example.com/…"),
        ("http://[::1]:8080/secret", "http://[::1]:8080/…"),
        ("file:/etc/chronex/url", "file:/etc/chronex/url"),
        ("https://exa mple:port/", "…"),
    ],
)
def test_only_the_host_of_an_address_is_shown(written: str, shown: str) -> None:
    assert masked_url(written) == shown


def settings(table: str) -> SchedulerSettings:
    return read_job_file(f"[scheduler]\n{table}\n{JOB}", "f.toml", "UTC").settings


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ('{ host = "localhost" }', SmtpSettings("localhost", 25)),
        ('{ host = "mail.example.com" }', SmtpSettings("mail.example.com", 25, starttls=True)),
        ('{ host = "mail.example.com", port = 465 }', SmtpSettings("mail.example.com", 465, tls=True)),
        ('{ host = "mail.example.com", tls = true }', SmtpSettings("mail.example.com", 465, tls=True)),
        ('{ host = "mail.example.com", starttls = false }', SmtpSettings("mail.example.com", 25)),
        (
            '{ host = "m.example.com", user = "me", password = "file:/x", from = "a@b" }',
            SmtpSettings("m.example.com", 587, "me", "file:/x", starttls=True, sender="a@b"),
        ),
    ],
)
def test_a_mail_server_elsewhere_is_spoken_to_in_secret_unless_the_file_says_otherwise(
    written: str, means: SmtpSettings
) -> None:
    assert settings(f"smtp = {written}").smtp == means


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('smtp = { user = "me" }', "J012 the mail server has no host"),
        ('smtp = { host = "a", user = "me" }', "J012 user and password belong together"),
        ('smtp = { host = "a", user = "me", password = "hunter2" }', "J013 password names no source"),
        ('smtp = { host = "a", user = "me", password = "command:pass" }', "J013 password comes from file:, env: or"),
        (
            'smtp = { host = "a", user = "me", password = "file:/x", starttls = false }',
            "J024 the password would be sent in clear",
        ),
        ('smtp = { host = "a", tls = true, starttls = true }', "J024 tls and starttls exclude each other"),
        ('smtp = { host = "a b" }', "J041 'a b' is not the name of a host"),
        ('smtp = { host = "a", from = "x\\ny@z" }', "J041 'x\\u000ay@z' is not a mail address"),
        ('heartbeat = { every = "1m" }', "J012 the heartbeat has no url"),
        ('heartbeat = { url = "https://x.example/", every = "1s" }', "J014 every cannot be shorter than 10s"),
        ('heartbeat = "https://x.example/"', "J011 heartbeat takes a table, not text"),
    ],
)
def test_a_server_or_heartbeat_that_cannot_be_is_refused(table: str, told: str) -> None:
    found = problems(f"[scheduler]\n{table}\n{JOB}")
    assert any(told in one for one in found), found
    assert "hunter2" not in " ".join(found)


def test_a_heartbeat_is_asked_every_minute_unless_the_file_says_otherwise() -> None:
    assert settings('heartbeat = { url = "file:/x" }').heartbeat == HeartbeatSettings("file:/x", 60_000)


def test_a_program_gives_its_channels_as_values() -> None:
    job = Job(id="a", schedule="@daily", tasks=(Task(name="main", run="x"),), notify=NotifyPolicy(channels=(OPS,)))
    assert check_jobs([job]) == [job]


def test_a_program_names_its_channels_as_a_file_does() -> None:
    channels = read_program_channels(
        {"ops": {"mail": "ops@example.com"}, "chat": {"webhook": "file:/etc/chat", "on": (NoticeEvent.FAILED,)}}
    )
    assert channels == {"ops": OPS, "chat": replace(CHAT, on=(NoticeEvent.FAILED,))}
    table: dict[str, Any] = {"schedule": "@daily", "run": "x", "notify": ["ops"]}
    assert read_program_job("a", table, channels=channels).notify == NotifyPolicy(channels=(OPS,))
    table["notify"] = {"to": ["chat", "ops"], "after_failures": 3}
    assert read_program_job("a", table, channels=channels).notify == NotifyPolicy(
        channels=(channels["chat"], OPS), after_failures=3
    )


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"ops": {"mail": "two words"}}, "the channels, ops: 'two words' is not a mail address"),
        ({"ops": {}}, "the channels, ops: channel 'ops' leads nowhere"),
        ({"ops": "ops@example.com"}, "the channels: ops takes a table, not text"),
        ({"o p": {"mail": "x"}}, "the channels, o p: 'o p' is not a name"),
        ({"chat": {"webhook": "file:/x", "template": "morse"}}, "the channels, chat: template cannot be 'morse'"),
    ],
)
def test_channels_of_a_program_are_checked_as_those_of_a_file(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        read_program_channels(tables)
    assert str(refused.value).startswith(said)


def test_a_channel_that_the_program_does_not_have_is_refused_with_the_one_that_is_meant() -> None:
    table = {"schedule": "@daily", "run": "x", "notify": {"to": ["opps"]}}
    with pytest.raises(InvalidJobError, match=r"job 'a', notify: there is no channel 'opps'; did you mean ops\?"):
        read_program_job("a", table, channels={"ops": OPS})


# -- otlp ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ('"http://127.0.0.1:4318"', OtlpSettings("http://127.0.0.1:4318")),
        ('{ url = "file:/etc/collector" }', OtlpSettings("file:/etc/collector")),
        (
            '{ url = "https://otlp.example.com/x", headers = { api-key = "env:KEY" } }',
            OtlpSettings("https://otlp.example.com/x", {"api-key": "env:KEY"}),
        ),
    ],
)
def test_what_otlp_means(written: str, means: OtlpSettings) -> None:
    assert read_job_file(f"[scheduler]\notlp = {written}\n{JOB}", "f.toml", "UTC").settings.otlp == means


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ('"collector:4318"', "2:8 J041 otlp: "),
        ("{ headers = {} }", "2:8 J012 otlp has no url"),
        ('{ url = "http://a", headers = { k = "s3cret" } }', "2:44 J013 k names no source"),
        ('{ url = "http://a", headers = { "k:" = "env:K" } }', "2:40 J013 'k:' is not the name of a header"),
        (
            '{ url = "http://a", headers = { k = "command:pass" } }',
            "2:44 J013 k comes from file:, env: or credential:",
        ),
    ],
)
def test_what_otlp_cannot_be(written: str, says: str) -> None:
    found = problems(f"[scheduler]\notlp = {written}\n{JOB}")[0]
    assert found.startswith(says)
    assert "s3cret" not in found


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://c:4318", "http://c:4318/v1/traces"),
        ("http://c:4318/", "http://c:4318/v1/traces"),
        ("https://c/v1/traces", "https://c/v1/traces"),
        ("https://c/api/otlp", "https://c/api/otlp"),
    ],
)
def test_the_usual_path_is_added_where_there_is_none(url: str, asked: str) -> None:
    assert with_path(url) == asked
