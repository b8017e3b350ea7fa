"""series.json, the shape that other programs read: additions are free, a changed meaning raises `version`.

The runs stand in it by name; what each of them found is in its own verdict.json, which is there as long as the series
is. `null` in a list of values is one that never came.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chaos.series.order import SEED_RULE, Order, Series
from chaos.series.pool import Pooled, Repeated, Tally, pool
from chaos.verdict.document import finite

VERSION = 1


class NotASeries(ValueError):
    """A document that is not a series of a version we read."""


def to_json(series: Series) -> dict[str, Any]:
    """The document as plain JSON values."""
    pooled, order = pool(series), series.order
    return {
        "version": VERSION,
        "series": series.name,
        **_asked(order),
        "verdict": pooled.verdict,
        "exit_code": pooled.exit_code,
        "why": pooled.why,
        "to_settle": pooled.to_settle,
        **_counts(pooled.tally),
        "first_refuted": series.first_refuted.number if series.first_refuted else None,
        "runs": _runs(series),
        "cut_short": list(series.cut_short),
        "hypotheses": _hypotheses(pooled),
    }


def to_text(series: Series) -> str:
    """The document as it stands in series.json."""
    return json.dumps(to_json(series), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _asked(order: Order) -> dict[str, Any]:
    return {
        "experiment": order.experiment,
        "title": order.title,
        "path": order.path,
        "seed": order.seed,
        "seeds": SEED_RULE,
        "asked": order.most,
        "until_refuted": order.hunt,
        "keep": order.keep,
        "profile": order.profile,
        "weaknesses": list(order.weaknesses),
        "set": list(order.set_),
    }


def _runs(series: Series) -> list[dict[str, Any]]:
    return [
        {
            "number": entry.number,
            "seed": entry.seed,
            "run": entry.verdict.run,
            "dir": entry.folder,
            "whole": entry.whole,
            "verdict": entry.verdict.verdict,
            "exit_code": entry.verdict.exit_code,
            "why": entry.verdict.why,
        }
        for entry in series.entries
    ]


def _counts(tally: Tally) -> dict[str, Any]:
    interval = tally.interval()
    return {
        "upheld": tally.upheld,
        "refuted": tally.refuted,
        "inconclusive": tally.inconclusive,
        "held": tally.upheld / tally.decided if tally.decided else None,
        "held_interval": list(interval) if interval else None,
    }


def _hypotheses(pooled: Pooled) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "measure": one.measure,
            "unit": one.unit,
            "window": one.window,
            "bound": dict(one.bound),
            **_counts(one.tally),
            **_found(one),
        }
        for one in pooled.hypotheses
    ]


def _found(one: Repeated) -> dict[str, Any]:
    together = one.together
    return {
        "values": [finite(value) for value in one.values],
        "typical": finite(one.typical),
        "interval": [finite(side) for side in one.interval] if one.interval else None,
        "worst": finite(one.worst),
        "together": {"value": together.value, "interval": list(together.interval), "n": together.n}
        if together
        else None,
    }


def order_of(document: Mapping[str, Any]) -> Order:
    """What was asked. Raises NotASeries."""
    if document.get("version") != VERSION:
        raise NotASeries(f"series version {document.get('version')!r}, this program reads {VERSION}")
    try:
        return Order(
            experiment=str(document["experiment"]),
            title=str(document["title"]),
            path=str(document["path"]),
            seed=int(document["seed"]),
            most=int(document["asked"]),
            hunt=bool(document["until_refuted"]),
            keep=document["keep"],
            profile=str(document["profile"]),
            weaknesses=tuple(document["weaknesses"]),
            set_=tuple(document["set"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NotASeries(f"not a series: {type(error).__name__}: {error}") from error
