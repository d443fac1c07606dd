"""Did you mean: the nearest known word, when it is near enough to be what the user wanted."""

from __future__ import annotations

from collections.abc import Iterable

_SEPARATORS = str.maketrans(" -", "__")


def distance_within_two(wrong: str, right: str) -> int:
    """Edits (insert, delete, replace, swap of neighbours) between two words; 3 stands for "many"."""
    if abs(len(wrong) - len(right)) > 2:
        return 3
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for i, a in enumerate(wrong, 1):
        current = [i]
        for j, b in enumerate(right, 1):
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and wrong[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > 2:
            return 3
        before, previous = previous, current
    return min(previous[-1], 3)


def is_respelling(old: str, new: str) -> bool:
    """Do two words differ in nothing but case and in what joins their parts (`new york`, `New-York`, `New_York`)?

    Beside a digit a minus may be a sign, so that only the case may differ there.
    """
    old, new = old.strip("\"'").casefold(), new.strip("\"'").casefold()
    if any(character.isdigit() for character in old + new):
        return old == new
    return old.translate(_SEPARATORS) == new.translate(_SEPARATORS)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word closest to `word` regardless of case: one edit away, or two for a long word."""
    lowered = word.lower()
    allowed = 1 if len(word) < 7 else 2
    letters = set(lowered)
    best: tuple[int, str] | None = None
    for candidate in known:
        if (
            abs(len(word) - len(candidate)) > allowed
            or len(letters.symmetric_difference(candidate.lower())) > 2 * allowed
        ):
            continue  # each edit changes one letter, or trades one for another
        distance = distance_within_two(lowered, candidate.lower())
        if distance <= allowed and (best is None or distance < best[0]):
            best = (distance, candidate)
    return best[1] if best else None
