"""A result of views speaks of views; what needs labels says so where there are none."""

import matplotlib
import numpy as np
import pytest

from consilience import PSE, fuse_views, load, multiview, plotting
from consilience.multiview.scaling import learn_scaling, recognise
from consilience.report import render, summarize

matplotlib.use("Agg")
METHODS = ("PSE", "DAIMC", "SNF", "APMC")


def _views(k=3, n=90, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % k
    views = {name: rng.normal(5 * rng.normal(size=(k, 4))[kind]) for name in ("size", "hue")}
    views["hue"][:10] = np.nan
    return kind, views


@pytest.fixture(scope="module", params=METHODS)
def fusion(request):
    _, views = _views()
    method = request.param
    if method == "SNF":
        views["hue"][:10] = 0.0
    return fuse_views(views, 3, method=method, random_state=0)


def test_sources_are_views(fusion):
    assert [source.name for source in fusion.sources] == ["size", "hue"]
    assert {source.kind for source in fusion.sources} == {"table"}
    assert all(source.agreement > 0.5 for source in fusion.sources)
    assert np.shape([source.support for source in fusion.sources]) == (2, 3)
    np.testing.assert_allclose(fusion.agreement, [source.agreement for source in fusion.sources])
    np.testing.assert_allclose(fusion.weights, [source.weight for source in fusion.sources])


def test_no_base_clusterings_are_made_up(fusion):
    assert fusion.partitions.n_partitions == 0
    assert fusion.partitions.n_instances == len(fusion.labels)
    for said in (fusion.summary(), fusion._repr_html_(), repr(fusion.partitions)):
        assert "from 2 views" in said or "Partitions(" in said
        assert "40" not in said
    assert "base clustering" not in fusion.summary()


@pytest.mark.parametrize("what", ["imputed", "completed"])
def test_what_needs_labels_says_so(fusion, what):
    with pytest.raises(TypeError, match=r"needs labels, and there are none: .* Hint: fuse_views"):
        getattr(fusion, what)
    with pytest.raises(TypeError, match=r"needs labels"):
        fusion.named_after("size")


def test_plots_of_base_clusterings_say_so(fusion):
    for draw in (plotting.plot_bases, plotting.plot_consensus, plotting.plot_base_agreement):
        with pytest.raises(TypeError, match=r"shows base clusterings, and there are none"):
            draw(fusion)
    assert plotting.plot_views(fusion) is not None
    assert plotting.plot_missing(fusion) is not None


def test_confidence_and_next_cluster_come_from_the_views(fusion):
    assert fusion.confidence.min() >= 0
    assert fusion.confidence.max() <= 1
    assert fusion.confidence.mean() > 0.5
    following = fusion.diagnostics.alternative
    assert (following[following >= 0] != fusion.labels[following >= 0]).all()
    assert "ranks" in fusion.headline.reading


@pytest.mark.parametrize("method", METHODS)
def test_equal_instances_are_told_the_same(method):
    """Which of two copies is among the nearest of a third row is a toss-up, and must not show."""
    rng = np.random.default_rng(1)
    views = {name: rng.integers(0, 4, (30, 3)).astype(float) for name in ("size", "hue")}
    twice = {name: np.vstack([x, x]) for name, x in views.items()}
    found = fuse_views(twice, 3, method=method, random_state=0)
    same = found.labels[:30] == found.labels[30:]
    assert same.sum() > 20
    np.testing.assert_allclose(found.confidence[:30][same], found.confidence[30:][same], atol=1e-12)
    said = found.opinions.codes
    np.testing.assert_array_equal(said[:30], said[30:])


def test_the_page_and_the_file_and_placing_work(fusion, tmp_path):
    _, views = _views()
    assert "2 views" in render(summarize(fusion))
    fusion.save(tmp_path / "a.consilience")
    again = load(tmp_path / "a.consilience")
    assert again.headline.as_dict() == fusion.headline.as_dict()
    new = {"size": views["size"][20:50]}
    np.testing.assert_array_equal(again.predict(new), fusion.predict(new))
    assert (fusion.predict(new) == fusion.labels[20:50]).mean() > 0.9
    assert fusion.explain(15).label == fusion.labels[15]
    assert [said.source for said in fusion.explain(15).said] == ["size", "hue"]
    assert fusion.explain(3).said[1].seen == bool(fusion.view_diagnostics.observed_[3, 1])
    assert list(fusion.to_frame().columns) == ["label", "confidence", "margin", "coverage", "alternative"]


def test_the_default_confidence_is_the_share_of_neighbours_in_the_cluster():
    _, views = _views()
    views["hue"][:10] = 0.0
    model = multiview.SpectralConcat(3, random_state=0).fit(views)
    fusion = fuse_views(views, 3, method="SpectralConcat", random_state=0)
    told, labels = fusion.view_diagnostics, fusion.view_diagnostics.labels_
    expected = np.zeros(90)
    for v in range(2):
        view = told.in_view(v)
        weight = view.graph.toarray()
        for i, row in enumerate(view.rows):
            same = labels[view.rows] == labels[row]
            expected[row] += weight[i, same].sum() / weight[i].sum() / 2
    np.testing.assert_allclose(fusion.confidence, expected)
    assert len(model.labels_) == 90


def test_base_clusterings_of_merged_views_are_real_and_told_by_view():
    _, views = _views()
    fusion = fuse_views(views, 3, method="labels", n_partitions=4, random_state=0)
    assert fusion.partitions.n_partitions == 8
    assert fusion.imputed.shape == (90, 8)
    assert [source.name for source in fusion.sources] == ["size", "hue"]
    assert fusion.sources[1].n_instances == 80
    assert fusion.summary().startswith("3 clusters of 90 instances from 2 views, 6% of the rows absent.")


@pytest.mark.filterwarnings("ignore:.*not reliably")
def test_a_view_of_weight_zero_has_no_influence_on_the_number():
    _, views = _views(k=4, n=160)
    noise = np.random.default_rng(5).normal(size=(160, 6))
    found = [
        fuse_views({**views, "noise": x}, "auto", view_weights={"noise": 0.0}, random_state=0).n_clusters
        for x in (noise, noise[::-1] ** 3)
    ]
    assert found == [4, 4]


def test_a_misspelt_method_is_answered_with_methods_of_views():
    _, views = _views()
    with pytest.raises(ValueError, match=r"Got 'DIAMC' instead\. Hint: did you mean DAIMC"):
        fuse_views(views, 3, method="DIAMC")


@pytest.mark.filterwarnings("ignore::consilience.multiview.pse.DoubtfulWarning")
def test_what_a_view_is_is_decided_once():
    rng = np.random.default_rng(0)
    for filled in (0.05, 0.15, 0.3):
        x = rng.poisson(3, (50, 40)) * (rng.random((50, 40)) < filled).astype(float)
        kind = recognise(x, np.ones(50, bool))
        assert (kind == "measurements") == (filled == 0.3)
        scaled = learn_scaling(x, np.ones(50, bool), "auto").kind
        assert scaled == {"measurements": "standard", "counts": "tfidf"}[kind]
        model = PSE(3, random_state=0).fit([x, x])
        assert {reading.kind for reading in model.view_readings_.values()} == {kind}
