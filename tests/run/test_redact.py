"""Secrets never come out, however the stream is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronex.run.attempt_log import REDACTED, Redactor


def in_pieces(secrets: list[bytes], pieces: list[bytes]) -> bytes:
    redactor = Redactor(secrets)
    return b"".join([*(redactor.feed(piece) for piece in pieces), redactor.finish()])


def byte_by_byte(secrets: list[bytes], text: bytes) -> bytes:
    return in_pieces(secrets, [text[i : i + 1] for i in range(len(text))])


def by_marking_every_byte(secrets: list[bytes], text: bytes) -> bytes:
    """The same, slowly: mark the bytes of every occurrence; neighbours are one where an occurrence joins them."""
    covered, joined = [False] * len(text), [False] * len(text)
    for secret in secrets:
        for start in range(len(text)):
            if secret and text.startswith(secret, start):
                for i in range(start, start + len(secret)):
                    covered[i] = True
                    joined[i] = joined[i] or i > start
    shown = b""
    for i in range(len(text)):
        if not covered[i]:
            shown += text[i : i + 1]
        elif not joined[i]:
            shown += REDACTED
    return shown


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        ([b"hunter2"], b"password hunter2 ok", b"password [redacted] ok"),
        ([b"hunter2"], b"hunter hunter3 hunte", b"hunter hunter3 hunte"),
        ([b"hunter2"], b"hunterhunter2", b"hunter[redacted]"),
        ([b"abc", b"abcdef"], b"abcdef abcde", b"[redacted] [redacted]de"),
        ([b"abc123", b"123xyz"], b"abc123xyz", b"[redacted]"),
        ([b"abab"], b"ababab.", b"[redacted]."),
        ([b"s\n"], b"the s itself", b"the [redacted] it[redacted]elf"),
        ([b"two\nlines"], b"two\nlines!", b"[redacted]!"),
        ([b"\xff\x00"], b"a\xff\x00b", b"a[redacted]b"),
        ([b""], b"nothing to hide", b"nothing to hide"),
    ],
)
def test_every_byte_of_a_secret_is_replaced(secrets: list[bytes], text: bytes, shown: bytes) -> None:
    assert in_pieces(secrets, [text]) == shown
    assert byte_by_byte(secrets, text) == shown


_SMALL = st.binary(min_size=1, max_size=5).map(lambda raw: bytes(97 + b % 3 for b in raw))


@given(st.lists(_SMALL, min_size=1, max_size=3), st.lists(_SMALL, max_size=12))
def test_the_cuts_of_the_stream_do_not_matter(secrets: list[bytes], pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert in_pieces(secrets, pieces) == by_marking_every_byte(secrets, whole)
    assert in_pieces(secrets, [whole]) == byte_by_byte(secrets, whole)


def test_no_more_than_a_secret_is_held_back() -> None:
    redactor = Redactor([b"a" * 20])
    for _ in range(10):
        redactor.feed(b"a" * 1000)
        assert len(redactor._held) < 20
