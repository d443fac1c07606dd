"""chronex import k8s: CronJobs with their policies; the container stays behind and that is said."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chronex.imports.import_result import as_chronex_reads, prove
from chronex.imports.kubernetes import read_cronjobs
from chronex.timing.zones import load_zone
from tests.cli.conftest import Chronex

NOW = int(datetime(2026, 11, 16, tzinfo=UTC).timestamp())
BERLIN = load_zone("Europe/Berlin")
CRONJOB = """
apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly-report
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 600
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 3600
      template:
        spec:
          containers:
            - name: report
              image: registry.example/report:1
              command: ["/bin/report"]
              args: ["--all", "two words"]
              env:
                - name: MODE
                  value: full
                - name: TOKEN
                  valueFrom: { secretKeyRef: { name: t, key: k } }
"""


def test_policies_and_commands_are_carried_over() -> None:
    job = as_chronex_reads(read_cronjobs(CRONJOB, BERLIN)).jobs[0]
    assert (job.id, job.overlap, job.retry.max) == ("nightly-report", "skip", 2)
    assert job.execution_timeout_ms == 3_600_000
    assert job.tasks[0].run == ("/bin/report", "--all", "two words")
    assert job.tasks[0].env == {"MODE": "full"}


def test_every_instant_is_the_same_because_the_clock_rule_is_kept() -> None:
    found, proven = prove(read_cronjobs(CRONJOB, BERLIN), NOW)
    assert proven[0].differences == ()
    assert found.jobs[0].table["dst"] == {"gap": "skip", "overlap": "both"}


def test_what_stays_in_the_cluster_is_said() -> None:
    lost = " ".join(read_cronjobs(CRONJOB, BERLIN).jobs[0].lost)
    assert "registry.example/report:1" in lost
    assert "TOKEN" in lost


def test_more_pods_more_containers_and_their_references_are_told() -> None:
    text = (
        "kind: CronJob\nmetadata: {name: many}\nspec:\n  schedule: '@daily'\n  timeZone: Etc/UTC\n  jobTemplate:\n    spec:\n"
        "      {parallelism: 3, completions: 1, podFailurePolicy: {rules: []}, template: {spec: {containers: ["
        "{name: a, image: x, command: [echo, $(FOO), $$(BAR)]}, {name: b, image: y, command: [echo, $$(BAR), $BAR]}]}}}\n"
    )
    (job,) = read_cronjobs(text, load_zone("UTC")).jobs
    assert job.table["mode"] == "parallel"
    assert [task["run"] for task in job.table["tasks"]] == [["echo", "$(FOO)", "$(BAR)"], ["echo", "$(BAR)", "$BAR"]]
    assert job.lost == (
        "the image x: its command runs on this machine", "the image y: its command runs on this machine",
        "parallelism of the job", "podFailurePolicy of the job",
        "$(…) of the container a: Kubernetes puts the variable there, a shell would run it",
    )  # fmt: skip


def test_whatever_a_pod_says_that_no_command_has_is_told() -> None:
    text = CRONJOB.replace(
        "          containers:\n",
        "          hostNetwork: true\n          restartPolicy: OnFailure\n"
        "          dnsPolicy: ClusterFirst\n          tolerations: [{operator: Exists}]\n          volumes: []\n          containers:\n",
    )
    text = text.replace(
        "              image:", "              lifecycle: {preStop: {exec: {command: [x]}}}\n              image:"
    )
    text = text.replace("value: full", "value: full-$(TOKEN)-$$(X)").replace(
        "      backoffLimit:", "      suspend: true\n      backoffLimit:"
    )
    (job,) = read_cronjobs(text, BERLIN).jobs
    assert job.table["tasks"][0]["env"] == {"MODE": "full-$(TOKEN)-$(X)"}
    assert job.lost[1:] == (
        "suspend of the job", "hostNetwork of the pod", "tolerations of the pod",
        "the variable MODE: Kubernetes puts other variables into full-$(TOKEN)-$$(X), here it stays",
        "the variable TOKEN comes from the cluster: set it in env or secrets", "lifecycle of the container report",
    )  # fmt: skip


def test_a_cronjob_of_another_namespace_has_its_name_before_it_and_a_pod_its_time_to_end() -> None:
    prod = CRONJOB.replace("metadata:", "metadata:\n  namespace: prod", 1)
    pod = "          terminationGracePeriodSeconds: 120\n          containers:"
    text = f"{prod}\n---\n{prod.replace(': prod', ': staging').replace('          containers:', pod)}"
    first, second = read_cronjobs(text, BERLIN).jobs
    assert [first.id, second.id] == ["nightly-report", "staging-nightly-report"]
    assert second.origin == "CronJob staging/nightly-report"
    assert (first.table.get("grace_period"), second.table["grace_period"]) == (None, "120s")


def test_a_template_that_was_not_rendered_is_told_as_such_and_nothing_is_written(
    chronex: Chronex, tmp_path: Path
) -> None:
    """It wrote a file without a job, and with --force over one that had some."""
    written = tmp_path / "jobs.toml"
    written.write_text("# mine\n")
    text = "{{- if .Values.on }}\nkind: CronJob\nmetadata:\n  name: {{ .Values.name }}\n{{- end }}\n"
    done = chronex("import", "k8s", "-", "-o", str(written), "--force", stdin=text)
    assert (done.code, written.read_text()) == (1, "# mine\n")
    assert "it is a template; import what it becomes: helm template CHART | chronex import k8s -" in done.out
    assert done.out.endswith("jobs.toml was not written: there is no job for it\n")


def test_a_list_and_several_documents_are_read() -> None:
    listed = (
        "kind: List\nitems:\n- {kind: CronJob, metadata: {name: a}, spec: {schedule: '@daily'}}\n---\nkind: Service\n"
    )
    found = read_cronjobs(listed + CRONJOB.replace("\n", "\n---\n", 1), BERLIN)
    assert [job.id for job in found.jobs] == ["a", "nightly-report"]


@pytest.mark.parametrize(
    ("schedule", "words"),
    [(text, "does not understand") for text in ("99 * * * *", "@reboot", "@every 1d", "0 9 * * 7", "0 9 , * *")],
)
def test_a_schedule_that_cannot_come_along_is_named(schedule: str, words: str) -> None:
    found = read_cronjobs(CRONJOB.replace("30 2 * * *", schedule), BERLIN)
    assert words in found.lost[0].why


def test_the_command_reads_from_standard_input(chronex: Chronex) -> None:
    done = chronex("import", "k8s", "-", "--check", stdin=CRONJOB)
    assert done.code == 1, "the image stays behind"
    assert "lost     nightly-report" in done.out
    assert done.out.endswith("1 job: 0 the same, 1 with a loss; 2 things lost; the times of 1 proven\n")


def test_an_interval_stays_one() -> None:
    job = as_chronex_reads(read_cronjobs(CRONJOB.replace("30 2 * * *", "@every 5m"), BERLIN)).jobs[0]
    assert job.schedule.startswith("@every 5m")


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("0 9 *,5 * MON", "TZ=Etc/UTC 0 9 * * 1"),
        ("0 9 1,15 * MON-FRI", "TZ=Etc/UTC 0 9 1,15 * MON-FRI"),
        ("5,,6 9 * * *", "TZ=Etc/UTC 5,6 9 * * *"),
        ("@every 1.5h", "@every 5400s"),
    ],
)
def test_what_the_controller_reads_otherwise_comes_along_as_it_reads_it(schedule: str, expected: str) -> None:
    text = CRONJOB.replace("30 2 * * *", schedule)
    text = re.sub(r"timeZone: .*", "timeZone: Etc/UTC", text)
    assert read_cronjobs(text, BERLIN).jobs[0].table["schedule"].split(" {")[0] == expected
