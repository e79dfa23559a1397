"""Labels of exchangeable makers, and engines that sum labels out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from tests.posterior.fault import Fault
from tests.posterior.label_mixtures import Datum, Mixture, bias, center, coin, count, die, real
from venture_lite.engines.known_parameters import KnownParameters
from venture_lite.kernels.label_rows import BodyWatch

Patch = pytest.MonkeyPatch


def rows(*values: Sequence[float]) -> tuple[Datum, ...]:
    """The data of label 1, then those of label 2, and so on: one of each feature."""
    return tuple([Datum(n, number, x) for n, row in enumerate(values, 1) for number, x in enumerate(row)])


COINS = rows((1, 1, 0, 1), (0, 1, 1, 0), (1, 0, 0, 1), (0, 0, 1, 1))
REALS = rows((-1.2, 0.3), (0.1, 1.4), (1.9, -0.8), (0.4, 0.2))


def coins(labels: int, features: int) -> tuple[Datum, ...]:
    return tuple([datum for datum in COINS if datum.label <= labels and datum.feature < features])


def one_maker_for_all(patch: Patch) -> None:
    """All families of a fresh class have the same empty maker, where their arguments are equal."""
    patch.setattr(BodyWatch, "make", lambda self, record, *values: self._plans.previews.maker(record, 1, values))


MAKERS_OF_A_CLASS = Fault(
    name="collapsed makers of equal arguments in one class",
    cases=(Mixture(3, (coin(),) * 4, coins(3, 4)).case("four_equal_coins_of_a_class", "(gibbs z each 1)"),),
    siblings=(
        Mixture(4, (coin(),) * 4, COINS).case("four_labels_of_four_equal_coins", "(gibbs z each 1)", "(gibbs z one 4)"),
        Mixture(4, (coin(),) * 2, coins(4, 2), in_loops=True).case("two_equal_coins_in_loops", "(gibbs z each 1)"),
        Mixture(4, (coin(), coin(2, 1), coin()), coins(4, 3)).case(
            "two_of_three_coins_are_equal", "(gibbs z each 1)", "(mh z each 2)", "(split_merge z 2)"
        ),
        Mixture(4, (die(0.5, 3),) * 2, rows((0, 2), (2, 2), (0, 1), (1, 1)), 0.8, 0.3).case(
            "two_equal_dice_of_a_class_of_pitman_yor", "(gibbs z each 1)", "(gibbs z one 3)", "(pgibbs z ordered 4 2)"
        ),
        Mixture(4, (real(0, 0.5, 3, 1),) * 2, REALS, known={2: 5}, forced={1: 3}).case(
            "two_equal_normals_of_a_class_and_an_observed_label", "(gibbs z each 1)", "(mh z one 6)"
        ),
        Mixture(
            4,
            (count(1, 1), coin(), count(1, 1)),
            rows((0, 1, 2), (3, 1, 1), (0, 0, 4), (2, 1, 0)),
            forgotten=(Datum(2, 0, 7), Datum(4, 2, 5)),
        ).case("equal_counts_first_and_last", "(gibbs z each 1)"),
        # the first label has two data of one coin, the last one none
        Mixture(4, (coin(),) * 2, (*coins(3, 2), Datum(1, 1, 0))).case(
            "labels_of_three_two_and_no_coins", "(gibbs z each 1)"
        ),
        Mixture(4, (coin(), bias(), coin()), coins(4, 3)).case(
            "a_parameter_between_two_equal_coins", "(do (gibbs z each 1) (mh default one 4))"
        ),
    ),
    broken=one_maker_for_all,
)


def of_present_labels(patch: Patch) -> None:
    """Of a class those parameters move that its present members read; of one without members, those of one label."""
    open_class = KnownParameters.open

    def by_one_label(self: KnownParameters, label: int, nodes: Iterable[int]) -> None:
        if label not in self._of_class:
            open_class(self, label, list(nodes)[:1])
            # whatever is drawn later is taken for a parameter of the class that was opened last
            self._opening = label

    patch.setattr(KnownParameters, "open", by_one_label)


def of_two_features(*data: Datum, **given: Any) -> Mixture:
    """Of the first feature some labels have data, of the second others."""
    return Mixture(max(datum.label for datum in data), (center(0, 1, 1),) * 2, data, **given)


SLICING = "(slice default all 4 1 'weights 1)"
SPLITTING = "(slice default all 4 1 'weights 'splits 8 1)"
PARAMETERS_OF_LABELS = Fault(
    name="labels summed out that differ in which parameters of a class they read",
    cases=(of_two_features(Datum(1, 0, 0.5), Datum(2, 1, 2.5), alpha=0.3).case("one_mean_for_each_label", SPLITTING),),
    siblings=(
        of_two_features(Datum(1, 0, 1.5), Datum(2, 1, 2)).case("one_mean_for_each_of_few_labels", SLICING),
        Mixture(2, (center(0, 1, 1),), (Datum(1, 0, 0.5, 1), Datum(2, 0, 2.5, 2)), 0.3).case(
            "a_mean_for_each_key", SLICING, SPLITTING
        ),
        Mixture(2, (center(0, 1, 1),), (Datum(1, 0, 0.5, 1), Datum(2, 0, 2.5, 2)), 0.3, in_loops=True).case(
            "a_mean_for_each_key_in_a_loop", SPLITTING
        ),
        # the odd label is the first, the last, and the one in the middle
        of_two_features(Datum(1, 1, 1.5), Datum(2, 0, 1.5), Datum(3, 0, 1.2), alpha=0.3).case(
            "the_first_label_reads_another_mean", SLICING, SPLITTING
        ),
        of_two_features(Datum(1, 0, 1.5), Datum(2, 0, 1.5), Datum(3, 1, 1.2), alpha=0.3).case(
            "the_last_label_reads_another_mean", SLICING, SPLITTING
        ),
        of_two_features(Datum(1, 0, 1.5), Datum(2, 0, 1.5), Datum(2, 1, 1), Datum(3, 0, 1.2), alpha=0.3).case(
            "the_label_in_the_middle_reads_two_means", SLICING, SPLITTING
        ),
        of_two_features(Datum(1, 0, 1.5), Datum(2, 1, 1.5), Datum(3, 0, 1.2), alpha=0.3, known={1: 4}).case(
            "an_observed_label_reads_another_mean", f"(cycle ((gibbs z each 1) {SPLITTING}) 1)"
        ),
    ),
    broken=of_present_labels,
    is_long=True,
)
FAULTS: tuple[Fault, ...] = (MAKERS_OF_A_CLASS, PARAMETERS_OF_LABELS)
