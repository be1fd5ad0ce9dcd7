"""Every trust signal by its name. A new one is a file with a class, and a line here.

The class has `name`, `cost` and a call (`trust.signal.TrustSignal`), and `offers`: which signals it makes of what is given.
"""

from collections.abc import Callable
from functools import cache

from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.arguments import checked_text
from hybridworld.trust.disagreement import Combined, Ensemble, GradientMagnitude, ManySplits, RandomAugmentation, Symmetric
from hybridworld.trust.fitted import ErrorHead, LocalConformal
from hybridworld.trust.novelty import DensityGuard, InputAmplitude
from hybridworld.trust.physical import ConservationResidual, Richardson
from hybridworld.trust.signal import Ingredients, Makers, TrustSignal
from hybridworld.trust.step_doubling import StepDoubling

SIGNALS: tuple[Callable[[Ingredients], Makers], ...] = (
    StepDoubling.offers,
    ManySplits.offers,
    Symmetric.offers,
    Combined.offers,
    RandomAugmentation.offers,
    GradientMagnitude.offers,
    Ensemble.offers,
    ErrorHead.offers,
    LocalConformal.offers,
    InputAmplitude.offers,
    DensityGuard.offers,
    ConservationResidual.offers,
    Richardson.offers,
)


def signals_for(given: Ingredients) -> dict[str, Callable[[], TrustSignal]]:
    """Name -> how to make it, for every signal that applies; what is fitted is fitted when it is made, and once."""
    return {name: cache(make) for offers in SIGNALS for name, make in offers(given).items()}


def find_signal(name: str, given: Ingredients) -> TrustSignal:
    """The signal of that name, or several joined by `+`, whose maps are then combined."""
    parts, known = (
        [part.strip() for part in checked_text("The signal", name).split("+")],
        dict[str, Callable[[], TrustSignal]](),
    )
    for offers in SIGNALS:
        if not known.keys() >= set(parts):  # some ask the solver what they can offer
            known |= offers(given)
    for part in parts:
        if part not in known:
            choices = ", ".join(f"'{each}'" for each in known)  # some names have commas
            raise InvalidInput(
                f"There is no signal '{part}' for the model of {given.surrogate.spec.name}: choose {choices}, "
                f"or several of them joined by ' + '{'' if given.system else '; its system, which some need, is not known'}."
                f"{nearest(part, known)}"
            )
    signals = [known[part]() for part in parts]
    return signals[0] if len(signals) == 1 else Combined(*signals)
