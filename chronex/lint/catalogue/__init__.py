"""Every rule by its code: what it is about, a bad and a good example. The pages in docs/rules are made from it."""

from __future__ import annotations

from functools import lru_cache

from chronex.lint.catalogue.rule import Example, Rule


@lru_cache(maxsize=1)
def rules() -> dict[str, Rule]:
    from chronex.lint.catalogue import expressions, files, job_files

    listed = (*expressions.RULES, *files.RULES, *job_files.RULES)
    return {rule.code: rule for rule in sorted(listed)}


def title_of(code: str) -> str:
    rule = rules().get(code)
    return rule.title if rule else code


def text_of_rule(code: str) -> str:
    rule = rules().get(code)
    return rule.text if rule else ""


__all__ = ["Example", "Rule", "rules", "text_of_rule", "title_of"]
