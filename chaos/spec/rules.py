"""Cross-field rules: what is wrong between parts of a file that are each right alone.

One small function a rule, one code a rule. A rule reads the draft and yields diagnostics; it never needs another rule
to have run, and it says nothing where the part it would judge could not be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chaos.spec.diagnostic import Diagnostic
from chaos.spec.draft import Draft
from chaos.spec.rules_claims import CLAIM_RULES
from chaos.spec.rules_controls import CONTROL_RULES
from chaos.spec.rules_guards import GUARD_RULES
from chaos.spec.rules_harm import HARM_RULES
from chaos.spec.rules_names import NAME_RULES

Rule = Callable[[Draft], Iterator[Diagnostic]]

RULES: tuple[Rule, ...] = (*NAME_RULES, *HARM_RULES, *CLAIM_RULES, *CONTROL_RULES, *GUARD_RULES)


def broken_rules(draft: Draft) -> tuple[Diagnostic, ...]:
    """What every rule has to say about a draft."""
    return tuple(diagnostic for rule in RULES for diagnostic in rule(draft))
