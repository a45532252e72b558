"""A model and the result made with it place new rows alike; explanations never contradict the label."""

import numpy as np
import pytest

from consilience import fuse
from tests.planted import planted


@pytest.mark.parametrize("unobserved", ["error", "noise", "largest"])
def test_a_row_of_which_nothing_is_known(unobserved):
    _, base = planted(90, 5, 3, noise=0.2, missing=0.2, seed=0)
    base[(base < 0).all(axis=1), 0] = 0
    fusion = fuse(base, 3, method="DAL", unobserved=unobserved, random_state=0)
    new = np.vstack([base[:5], np.full(5, -1)])
    expected = 0 if unobserved == "largest" else -1
    assert fusion.predict(new)[-1] == fusion.model.predict(new)[-1] == expected
    assert fusion.place(new).confidence[-1] == fusion.model.predict_confidence(new)[-1] == 0.0
    np.testing.assert_array_equal(fusion.predict(new), fusion.model.predict(new))


def test_an_explanation_knows_weights_and_contradicts_no_label():
    _, base = planted(120, 4, 3, noise=0.4, missing=0.1, seed=3)
    base[(base < 0).all(axis=1), 0] = 0
    fusion = fuse(base, 3, method="DAL", weights=[6, 1, 1, 1], random_state=0)
    assert fusion.given_weights == (6, 1, 1, 1)
    for row in range(120):
        found = fusion.explain(row)
        assert all(turn.label != found.label for turn in found.turns)
        assert not found.turns or found.by_labels == found.label
        if base[row, 0] >= 0:
            assert "'0' counts 6" in " ".join(found.sentences)
    plain = fuse(base, 3, method="DAL", random_state=0).explain(0)
    assert not any("counts" in sentence for sentence in plain.sentences)


def test_linked_instances_leave_result_and_explanation_whole():
    _, base = planted(60, 4, 3, noise=0.3, missing=0.1, seed=3)
    base[(base < 0).all(axis=1), 0] = 0
    fusion = fuse(base, 3, method="DAL", must_link=[(0, 1), (1, 2)], random_state=0)
    assert len(fusion.labels) == len(fusion.model.labels_) == 60
    assert len(set(fusion.labels[:3].tolist())) == 1
    for row in range(3):
        found = fusion.explain(row)
        assert found.label == fusion.labels[row]
        assert all(turn.label != found.label for turn in found.turns)
