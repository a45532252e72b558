"""Files that earlier versions saved are read for ever; ``tests/saved/write.py`` says how they were made."""

import json
from pathlib import Path

import numpy as np
import pytest

import consilience
from consilience.results.saving import VERSION
from tests.saved.write import describe

SAVED = sorted((Path(__file__).parent / "saved").glob("*.consilience"))


def test_every_version_has_its_files():
    kinds = ("labels", "views")
    expected = [f"v{number}-{kind}.consilience" for number in range(1, VERSION + 1) for kind in kinds]
    assert [path.name for path in SAVED] == expected


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_a_file_holds_what_it_held(path):
    fusion = consilience.load(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    found = describe(fusion, expected["new"])
    assert set(found) == set(expected)
    for name, value in expected.items():
        if name in ("confidence", "placed_confidence"):
            now, then = np.array(found[name], float), np.array(value, float)
            told = ~np.isnan(then)  # of newcomers of views, nothing was told at first
            np.testing.assert_allclose(now[told], then[told], atol=1e-9)
        else:
            assert found[name] == value, name


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_a_file_can_be_lived_with(path, tmp_path):
    fusion = consilience.load(path)
    first = fusion.index[3] if fusion.index is not None else 3
    assert fusion.explain(first).label == fusion.labels[3]
    assert "clusters of" in fusion.summary()
    assert fusion.like(fusion).changes.n_moved == 0
    fusion.save(tmp_path / "again.consilience")
    assert consilience.load(tmp_path / "again.consilience").labels.tolist() == fusion.labels.tolist()
