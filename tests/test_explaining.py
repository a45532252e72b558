"""Explanations: what was said, what it speaks for, and what would change the answer, against plain counts."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from consilience import fuse, fuse_views
from tests.planted import planted


@pytest.fixture(scope="module")
def fusion():
    _, base = planted(200, 5, 3, noise=0.35, missing=0.3, seed=1)
    names = np.array(["red", "green", "blue", None], dtype=object)
    frame = pd.DataFrame(names[base], index=[f"p{i}" for i in range(200)], columns=list("abcde"))
    return fuse(frame[frame.notna().any(axis=1)], 3, random_state=0)


def test_shares_are_those_of_the_table(fusion):
    frame = pd.DataFrame(fusion.partitions.decode(fusion.partitions.codes))
    for instance in ("p0", "p7", "p123"):
        found = fusion.explain(instance)
        row = list(fusion.index).index(instance)
        assert found.label == fusion.labels[row]
        assert found.confidence == fusion.confidence[row]
        seen = []
        for said in found.said:
            label = frame[said.source].iloc[row]
            if not isinstance(label, str):
                assert not said.seen
                assert said.label is None
                continue
            assert said.label == label
            with_it = fusion.labels[(frame[said.source] == label).to_numpy()]
            assert_allclose(said.shares, np.bincount(with_it, minlength=3) / len(with_it))
            seen.append(said.shares)
        assert_allclose(found.support, np.mean(seen, axis=0))


def test_turns_are_what_predict_says(fusion):
    n_turns = 0
    for instance in fusion.index[:60]:
        found = fusion.explain(instance)
        said = {said.source: said.label for said in found.said if said.seen}
        assert fusion.predict({name: [label] for name, label in said.items()})[0] == found.by_labels
        for turn in found.turns:
            changed = {**said, turn.source: turn.instead}
            kept = {name: [label] for name, label in changed.items() if label is not None}
            assert fusion.predict(kept)[0] == turn.label != found.by_labels
            n_turns += 1
        if not found.turns and len(said) > 1:
            for name in said:  # nothing would change it
                rest = {other: [label] for other, label in said.items() if other != name}
                assert fusion.predict(rest)[0] == found.by_labels
    assert n_turns > 10


def test_twins_and_those_alike(fusion):
    codes = fusion.partitions.codes
    for row in (3, 50, 111):
        found = fusion.explain(fusion.index[row])
        assert found.n_twins == (codes == codes[row]).all(axis=1).sum() - 1
        for alike in found.alike:
            other = list(fusion.index).index(alike.id)
            both = (codes[row] >= 0) & (codes[other] >= 0)
            assert alike.n_both == both.sum()
            assert alike.n_agreeing == (codes[row] == codes[other])[both].sum() > 0
            assert alike.label == fusion.labels[other]
            assert not (codes[row] == codes[other]).all()


def test_text_starts_with_a_sentence_and_json_is_plain(fusion):
    found = fusion.explain("p0")
    assert str(found).startswith(f"'p0' is in cluster {found.label}, confidence {found.confidence:.2f}")
    assert json.loads(json.dumps(found.as_dict()))["id"] == "p0"


def test_instances_are_found_by_id_or_position(fusion):
    with pytest.raises(ValueError, match=r"there is no instance 'p1000'\. Hint: did you mean 'p10"):
        fusion.explain("p1000")
    plain = fuse([[0, 1], [0, 1], [1, 0], [1, 0]], 2, random_state=0)
    assert plain.explain(2).id == plain.explain("2").id == 2
    with pytest.raises(ValueError, match=r"there is no instance 4\. Hint: give a position from 0 to 3"):
        plain.explain(4)
    numbered = fuse(pd.DataFrame([[0, 1], [0, 1], [1, 0], [1, 0]], index=[10, 20, 30, 40]), 2, random_state=0)
    assert numbered.explain("30").id == numbered.explain(30).id == 30


def test_an_instance_that_nobody_saw_is_explained_too():
    labels = {"a": [0, 0, 1, 1, None], "b": [0, 0, 1, 1, None]}
    found = fuse(labels, 2, unobserved="noise", random_state=0).explain(4)
    assert found.sentences == ("4 is in no cluster: no source saw it.",)
    assert "no source saw it" in str(found)


def test_views_speak_as_one():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], 20)
    views = {name: rng.normal(6 * rng.normal(size=(2, 3))[kind]) for name in ("sound", "sight")}
    views["sound"][0] = np.nan
    found = fuse_views(views, 2, random_state=0).explain(0)
    assert [said.source for said in found.said] == ["sound", "sight"]
    assert [said.seen for said in found.said] == [False, True]


def test_clusters_are_called_by_their_names(fusion):
    named = fusion.rename(["loyal", "new", "lost"])
    for instance in ("p0", "p7", "p123"):
        plain, found = fusion.explain(instance), named.explain(instance)
        assert found.sentences[0].startswith(
            f"{instance!r} is in cluster {found.label} ({named.names[found.label]})"
        )
        assert all(name in str(found) for c, name in enumerate(named.names) if found.support[c] > 0)
        assert not any(name in str(plain) for name in named.names)
        assert len(str(found).splitlines()) == len(str(plain).splitlines())


def test_an_instance_that_nobody_saw_was_put_there():
    found = fuse(
        [["x", "p"], ["x", "p"], ["y", "q"], [None, None]], 2, random_state=0, unobserved="largest"
    ).explain(3)
    assert found.sentences == ("no source saw 3; it was put in cluster 0, the largest, as was asked for.",)
