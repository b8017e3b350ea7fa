"""Rules on guards that say what is usual: between usual and bound is room, on one side, and nothing slides."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.spec.diagnostic import Diagnostic
from chaos.spec.draft import Draft
from chaos.units import Ratio


def usual_without_room(draft: Draft) -> Iterator[Diagnostic]:
    """What is usual lies on the good side of one bound, and leaves room for a bad outcome now and then."""
    for guard in draft.guards:
        g = guard.value
        if g.usual is None or (g.below is None and g.above is None):
            continue
        if g.below is not None and g.above is not None:
            headline, help_text = "`usual` belongs to one bound", "make two guards of it"
        elif g.usual in (0.0, 1.0):
            headline = f"with {Ratio(g.usual)} as usual the first exception would end the run"
            help_text = "write what is usual on a good day, such as 99.5%"
        elif (g.below is not None and not g.below < g.usual) or (g.above is not None and not g.usual < g.above):
            side = f"below {Ratio(g.below)}" if g.below is not None else f"above {Ratio(g.above or 0.0)}"
            headline, help_text = (
                f"{Ratio(g.usual)} as usual would be broken by `{side}`",
                "move the bound away from it",
            )
        elif g.above == 1.0 or g.below == 0.0:
            headline, help_text = "no share is beyond this bound", "tighten the bound"
        else:
            continue
        yield draft.problem("usual-without-room", guard.at("usual"), headline, help_text=help_text)


def over_not_used(draft: Draft) -> Iterator[Diagnostic]:
    """A guard that knows what is usual weighs every outcome; a length of a window would be ignored."""
    for guard in draft.guards:
        if guard.value.usual is not None and guard.at("over") in draft.places.spans:
            headline = "a guard with `usual` slides no window"
            yield draft.problem("over-not-used", guard.at("over"), headline, help_text="remove `over`")


GUARD_RULES = (usual_without_room, over_not_used)
