"""The decision core a second time: slow, by the book, sharing no code with chronex.decision.

Local time comes from zoneinfo, numbers are Fractions or Decimals of 120 digits, and the normal curve is
inverted by bisecting over the seconds of the window. `python -m tests.decision.reference` fills in what
the rows of specs/vectors/decision-*.json must give.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

VECTORS = Path(__file__).parent.parent.parent / "specs" / "vectors"
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
MONTHS = ["", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DEFAULTS: dict[str, dict[str, str]] = {
    "uniform": {},
    "skewEarly": {"s": "2"},
    "skewLate": {"s": "2"},
    "normal": {"mu": "mid", "sigma": "window/6"},
    "exponential": {"lambda": "1", "dir": "early"},
}
UNITS = {"h": 3600, "m": 60, "s": 1}


def draws(digest: str) -> Callable[[], Fraction]:
    state = int.from_bytes(bytes.fromhex(digest)[:8], "big")

    def draw() -> Fraction:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        z = z ^ (z >> 31)
        return Fraction(z // 2048, 2**53)

    return draw


def to_decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def power(u: Fraction, s: Fraction) -> Fraction:
    if s.denominator == 1:
        return u ** int(s)
    return Fraction((to_decimal(s) * to_decimal(u).ln()).exp()) if u else Fraction(0)


def exponential(u: Fraction, rate: Fraction) -> Fraction:
    lam = to_decimal(rate)
    return Fraction(-(1 - to_decimal(u) * (1 - (-lam).exp())).ln() / lam)


def erf_sum(z: Fraction) -> Decimal:
    """The integral of exp(-t*t/2) from 0 to z, by the alternating series."""
    x = to_decimal(max(min(z, Fraction(15)), Fraction(-15)))
    total = power_term = x
    n = 0
    while abs(power_term) > Decimal(10) ** -100:
        n += 1
        power_term *= -x * x / (2 * n)
        total += power_term / (2 * n + 1)
    return total


def normal_second(u: Fraction, mu: Fraction, sigma: Fraction, width: int) -> int:
    """The last second k whose start has at most the share u of the window's mass below it."""
    low, high = erf_sum(-mu / sigma), erf_sum((width + 1 - mu) / sigma)
    target = low + to_decimal(u) * (high - low)
    first, last = 0, width
    while first < last:
        middle = (first + last + 1) // 2
        if erf_sum((middle - mu) / sigma) <= target:
            first = middle
        else:
            last = middle - 1
    return first


def sample(name: str, params: dict[str, str], u: Fraction, width: int, nominal: int) -> int:
    if name == "normal":
        half = Fraction(1, 2)
        anchors = {"nominal": nominal + half, "start": half, "mid": (width + 1) * half, "end": width + half}
        text = params["sigma"]
        if text.startswith("window/"):
            sigma = width / Fraction(text.removeprefix("window/"))
        else:
            sigma = Fraction(text[:-1]) * UNITS[text[-1]]
        return normal_second(u, anchors[params["mu"]], sigma, width)
    x = {
        "uniform": lambda: u,
        "skewEarly": lambda: power(u, Fraction(params["s"])),
        "skewLate": lambda: 1 - power(1 - u, Fraction(params["s"])),
        "exponential": lambda: (
            exponential(u, Fraction(params["lambda"]))
            if params["dir"] == "early"
            else 1 - exponential(1 - u, Fraction(params["lambda"]))
        ),
    }[name]()
    return min(int(x * (width + 1)), width)


def value_set(kind: str, entries: str) -> set[Any]:
    found: set[Any] = set()
    for entry in entries.split(","):
        if kind in {"date", "dates"}:
            first, _, last = entry.partition("..")
            day, stop = date.fromisoformat(first), date.fromisoformat(last or first)
            while day <= stop:
                found.add(day.toordinal())
                day += timedelta(days=1)
            continue
        low, _, high = entry.upper().partition("-")
        found |= set(range(number(kind, low), number(kind, high or low) + 1))
    return {v % 7 for v in found} if kind == "dow" else found


def number(kind: str, word: str) -> int:
    if kind == "between":
        return int(word[:-3]) * 60 + int(word[-2:])
    names = {"dow": DAYS, "months": MONTHS}.get(kind, [])
    return names.index(word) if word in names else int(word)


def clauses(text: str) -> dict[str, set[Any]]:
    found: dict[str, set[Any]] = {}
    for clause in text.replace(" ", "").split(";"):
        kind, _, entries = clause.partition("=")
        if kind:
            family = "dates" if kind == "date" else kind
            found.setdefault(family, set()).update(value_set(kind, entries))
    return found


def canonical(kind: str, values: set[Any]) -> str:
    label: Callable[[Any], str] = {
        "dow": lambda v: DAYS[v % 7],
        "months": lambda v: MONTHS[v],
        "between": lambda v: f"{v // 60:02}:{v % 60:02}",
        "dates": lambda v: date.fromordinal(v).isoformat(),
    }.get(kind, str)
    ordered = sorted(v or 7 for v in values) if kind == "dow" else sorted(values)
    runs = [[v for _, v in g] for _, g in groupby(enumerate(ordered), lambda pair: pair[1] - pair[0])]
    dash = ".." if kind == "dates" else "-"
    single = kind in {"hours", "dow", "dom", "months"}
    texts = [label(run[0]) if single and len(run) == 1 else f"{label(run[0])}{dash}{label(run[-1])}" for run in runs]
    return f"{kind}={','.join(texts)}"


def field_values(local: datetime) -> dict[str, int]:
    return {
        "hours": local.hour,
        "dow": local.isoweekday() % 7,
        "dom": local.day,
        "months": local.month,
        "between": local.hour * 60 + local.minute,
        "dates": local.toordinal(),
    }


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def decide(request: dict[str, Any]) -> dict[str, Any]:
    with localcontext() as context:
        context.prec = 120
        return _decide(request)


def _decide(request: dict[str, Any]) -> dict[str, Any]:
    nominal = datetime.fromisoformat(request["nominal_time"]).astimezone(UTC)
    zone = ZoneInfo(request.get("timezone", "UTC"))
    name = request.get("distribution", "uniform")
    mode = request.get("window_mode", "after")
    centred = {"mu": "nominal"} if name == "normal" and mode in {"around", "center"} else {}
    params = DEFAULTS[name] | centred | request.get("distribution_params", {})
    start, end = window(nominal, mode, Fraction(request.get("window_duration", "0")))
    local = nominal.astimezone(zone)
    second = nominal.replace(microsecond=0)
    year, week, _ = local.isocalendar()
    keys = {"stable": iso(second), "daily": f"{local:%Y-%m-%d}", "weekly": f"{year}-W{week:02}"}
    key = keys[request.get("seed_strategy", "stable")]
    digest = sha256("\n".join((request["identity"], key, request.get("salt", ""))).encode()).hexdigest()
    rules = {
        side: [(kind, values, 0) for kind, values in sorted(clauses(request.get(side, "")).items(), key=kind_order)]
        for side in ("only", "avoid")
    }
    draw = draws(digest)
    chosen = None
    width = int((end - start).total_seconds())
    attempts = 0
    while chosen is None and attempts < (64 if width else 1):
        attempts += 1
        offset = sample(name, params, draw(), width, int((nominal - start).total_seconds())) if width else 0
        candidate = start + timedelta(seconds=offset)
        if not reject(rules, field_values(candidate.astimezone(zone))):
            chosen = candidate
    return {
        "period_id": iso(second),
        "nominal_time": iso(nominal),
        "window_start": iso(start),
        "window_end": iso(end),
        "chosen_time": chosen and iso(chosen),
        "seed_hash": digest,
        "distribution": name,
        "distribution_params": params,
        "constraint_meta": {
            side: [{"clause": canonical(kind, values), "rejected": n} for kind, values, n in listed]
            for side, listed in rules.items()
        },
        "unschedulable": chosen is None,
        "reason": "" if chosen else "no candidate accepted within MaxAttempts",
        "attempts": attempts if width else 0,
        "period_key": key,
        "decision_version": "2.0.0",
    }


def kind_order(item: tuple[str, object]) -> int:
    return ["hours", "dow", "dom", "months", "between", "dates"].index(item[0])


def window(nominal: datetime, mode: str, duration: Fraction) -> tuple[datetime, datetime]:
    """Whole seconds before and after the nominal time itself, so that its fraction stays in both ends."""
    before = {"after": Fraction(0), "before": duration}.get(mode, duration / 2)
    return (
        nominal + timedelta(seconds=(-before).__floor__()),
        nominal + timedelta(seconds=(duration - before).__floor__()),
    )


def reject(rules: dict[str, list[tuple[str, set[Any], int]]], values: dict[str, int]) -> bool:
    rejected = False
    for side, listed in rules.items():
        for index, (kind, allowed, count) in enumerate(listed):
            if (values[kind] in allowed) == (side == "avoid"):
                listed[index] = (kind, allowed, count + 1)
                rejected = True
    return rejected


def main() -> None:
    for path in sorted(VECTORS.glob("decision-*.json")):
        rows = json.loads(path.read_text())
        for row in rows["rows"]:
            if "error" not in row and "request" in row:
                row["expected"] = decide(row["request"])
        path.write_text(page(rows))


def page(content: dict[str, Any]) -> str:
    """JSON with one row to a line, so that a change shows as the rows it touches."""
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in content["rows"])
    return f'{{"about": {json.dumps(content["about"])}, "rows": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    main()
