"""One full record of every kind, with its key."""

from __future__ import annotations

from zlib import crc32

from msgspec.structs import replace

from chronex.model import (
    Attempt,
    Decision,
    Event,
    Idempotency,
    Job,
    JobVersion,
    Node,
    Notice,
    Occurrence,
    ProcessIdentity,
    Quarantined,
    Record,
    RetryPolicy,
    Run,
    SpreadPolicy,
    StoreMeta,
    Task,
    TaskState,
)
from chronex.model.groups import Group, StartRate
from chronex.model.job import NO_PROGRESS, JobProgress
from chronex.model.records import ChannelState, LogPiece, LogRequest, Sequence
from chronex.storage import codec, keys
from chronex.storage.records import key_of

AT = 1_700_000_000_000
PROCESS = ProcessIdentity(pid=42, boot_id="b0", start_time=7, group=42)
NODE = Node(id="n1", process=PROCESS, host="here")
JOB = Job(
    id="backup",
    schedule="0 3 * * *",
    tasks=(Task(name="dump", run=("pg_dump", "-Fc"), env={"A": "1"}), Task(name="clean", run="rm -f x")),
    retry=RetryPolicy(max=3, backoff=2.0),
    spread=SpreadPolicy(mode="after", duration_ms=7_200_000, parameters={"s": 2.0}),
    progress=JobProgress(job="backup", cursor_ms=AT, next_ms=AT + 1),
)
OCCURRENCE = Occurrence(
    job="backup", nominal_ms=AT, due_ms=AT + 5, jitter_ms=5, decision=Decision(algorithm=1, seed_hash="ab")
)
RUN = Run(job="backup", nominal_ms=AT, task="dump", next_attempt_ms=AT)
ATTEMPT = Attempt(job="backup", nominal_ms=AT, task="dump", number=1, process=PROCESS, log_path="a/b.log")
KEYED: list[Record] = [
    JOB,
    JobVersion(JOB),
    OCCURRENCE,
    RUN,
    ATTEMPT,
    NODE,
    Idempotency(key="any text at all", expires_ms=AT),
    Notice(job="backup", kind="failing", at_ms=AT, nominal_ms=AT),
    Notice(job="backup", kind="failing", at_ms=AT, nominal_ms=AT, channel="ops", problem="no answer"),
    ChannelState(channel="ops", tries=2, problem="no answer", next_ms=AT),
]
SAMPLES: list[tuple[bytes, Record]] = [
    (
        keys.group_key("database"),
        Group(name="database", limit=2, rate=StartRate(30, 60_000), starts=(5, 9), version=3),
    ),
    (key_of(JOB), replace(JOB, progress=NO_PROGRESS)),  # a job is two rows
    (key_of(JOB.progress), JOB.progress),
    *((key_of(record), record) for record in KEYED[1:]),
    (keys.event_key(7), Event(name="TaskRunStarted", at_ms=AT, job="backup", data={"n": 1, "s": "x"})),
    (keys.task_state_key("backup", "dump", "cursor"), TaskState(value="17", updated_ms=AT)),
    (keys.within_staged_state("backup", AT, "dump", 1) + b"cursor", TaskState(value="", is_removed=True)),
    (keys.quarantine_key(b"Jx"), Quarantined(reason="r", at_ms=AT, raw=b"\0\1", size=2)),
    (keys.STORE_META, StoreMeta(format=1, map_size=1 << 20, store_id="s", engine="0.9", created_ms=AT)),
    (keys.JOURNAL_HEAD, Sequence(7)),
    (keys.log_piece_key(key_of(ATTEMPT), "h", 0), LogPiece(b"out\xff\0", AT, 3)),
    (
        keys.log_request_key(key_of(ATTEMPT), "l"),
        LogRequest(job="backup", nominal_ms=AT, task="dump", number=1, host_id="h"),
    ),
]


def of_version(version: int, key: bytes, raw: bytes) -> bytes:
    """The same record as a later version would write it."""
    payload = raw[codec.HEADER.size :]
    checksum = crc32(payload, crc32(key + codec._pack_summed(version, len(payload))))
    return codec.HEADER.pack(version, len(payload), checksum) + payload
