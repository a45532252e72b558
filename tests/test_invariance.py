"""The same evidence, the same answer: whatever names, order of rows and columns, and counts it comes with."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from consilience import Partitions, compare, consensus, diagnostics, fuse, fuse_views, metrics
from consilience.inference.posterior import gather_evidence
from tests.instances import INSTANCES
from tests.planted import planted

RANDOM_IMPUTATION = {"imputation": "random"}  # draws a label for every entry of the table as it comes

LABEL_METHODS = [
    (name, settings)
    for name, settings, _ in INSTANCES
    if name in consensus.__all__ and settings != RANDOM_IMPUTATION
]
every_label_method = pytest.mark.parametrize(
    ("name", "settings"),
    LABEL_METHODS,
    ids=lambda value: value if isinstance(value, str) else str(value or "default"),
)


def fitted(name, settings, table, n_clusters=20):
    model = getattr(consensus, name)(random_state=0, **{"n_clusters": n_clusters, **settings})
    return model.fit(table)


@pytest.fixture(scope="module")
def many():
    """Twenty clusters, ten base clusterings, a fifth of the labels missing, and hardly two rows alike."""
    return planted(150, 10, 20, noise=0.2, missing=0.2, seed=5)[1]


@pytest.fixture(scope="module")
def other(many):
    """The same table under other names, with rows and columns in another order."""
    rng = np.random.default_rng(8)
    rows, columns = rng.permutation(len(many)), rng.permutation(many.shape[1])
    names = [[*(f"{rng.integers(1000)}-{c}" for c in range(20)), None] for _ in columns]
    renamed = [[names[j][many[p, j]] for j in columns] for p in rows]
    return rows, columns, renamed


@pytest.fixture(scope="module")
def fits(many):
    """The answer for the table as it is, made once a method."""
    known = {}

    def fit(name, settings):
        key = name, str(settings)
        if key not in known:
            known[key] = fitted(name, settings, many)
        return known[key]

    return fit


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@every_label_method
class TestEveryLabelMethod:
    def test_names_and_order_change_nothing(self, name, settings, fits, other):
        rows, columns, renamed = other
        model, again = fits(name, settings), fitted(name, settings, renamed)
        assert_array_equal(again.labels_, model.labels_[rows])
        assert_array_equal(again.confidence_, model.confidence_[rows])
        if hasattr(model, "base_weights_"):
            assert_array_equal(again.base_weights_, model.base_weights_[columns])

    def test_counted_rows_are_repeated_rows(self, name, settings, many):
        repeated = Partitions.of(np.repeat(many[:80], np.arange(80) % 4 + 1, axis=0))
        one_each = fitted(name, settings, repeated, n_clusters=5)
        counted = fitted(name, settings, repeated.distinct, n_clusters=5)
        assert_array_equal(counted.labels_[repeated.inverse], one_each.labels_)
        assert_allclose(counted.confidence_[repeated.inverse], one_each.confidence_, atol=1e-12)


class TestFuse:
    def test_names_and_order_change_nothing(self, many, other):
        rows, _, renamed = other
        first, second = fuse(many, 20, random_state=0), fuse(renamed, 20, random_state=0)
        assert first.method == second.method
        assert_array_equal(second.labels, first.labels[rows])

    def test_counted_rows_are_repeated_rows(self, many):
        repeated = Partitions.of(np.repeat(many, np.arange(len(many)) % 4 + 1, axis=0))
        whole, counted = fuse(repeated, 20, random_state=0), fuse(repeated.distinct, 20, random_state=0)
        assert whole.method == counted.method
        assert_array_equal(counted.labels[repeated.inverse], whole.labels)
        first, second = whole.diagnostics.as_dict(), counted.diagnostics.as_dict()
        assert first.keys() == second.keys()
        assert_same(first, second)
        assert whole.summary() == counted.summary()

    def test_a_sample_does_not_depend_on_order(self, many, other, monkeypatch):
        monkeypatch.setattr("consilience.results.selection.SAMPLE", 100)
        rows, _, renamed = other
        first, second = fuse(many, 20, random_state=0), fuse(renamed, 20, random_state=0)
        assert_array_equal(second.labels, first.labels[rows])

    def test_compare_takes_counted_rows(self, many):
        repeated = Partitions.of(np.repeat(many[:60], 3, axis=0))
        settings = {"methods": ["DAL", "LWGP"], "n_resamples": 2, "random_state": 0}
        whole, counted = (compare(table, 5, **settings) for table in (repeated, repeated.distinct))
        for first, second in zip(whole.rows, counted.rows, strict=True):
            assert first.method == second.method
            assert_allclose(first[2:5], second[2:5])


# --- functions of a table, or of a table and a consensus ----------------------------------------------------

# What takes neither a table nor a table and labels.
OTHER = {"cluster_flow", "profile", "resample_n_clusters"}
OF_TWO_LABELINGS = {
    name for name in metrics.__all__ if "labels_true" in inspect.signature(getattr(metrics, name)).parameters
}


class TestFuseViews:
    @pytest.fixture
    def views(self):
        """Three kinds in two dense tables and a sparse one, some rows absent and some twice."""
        rng = np.random.default_rng(3)
        kind = np.repeat([0, 1, 2], 20)
        size, colour = (rng.normal(1.5 * rng.normal(size=(3, d))[kind]) for d in (3, 11))
        words = rng.poisson(0.5 + 2.0 * rng.random((3, 15))[kind]).astype(float)
        absent = rng.random(60)
        size[absent < 0.2], colour[absent > 0.7] = np.nan, np.nan
        twice = np.r_[np.arange(60), np.arange(0, 60, 12)]
        return {"size": size[twice], "colour": colour[twice], "words": sp.csr_array(words[twice])}

    @pytest.mark.parametrize(
        "settings",
        [
            {"method": "APMC"},
            {"method": "SNF"},
            {"method": "labels"},
            {"clusterer": "kmeans"},
            {"method": "NEMO"},
        ],
        ids=str,
    )
    def test_order_of_rows_and_views(self, views, settings):
        settings = {"n_clusters": 3, "n_partitions": 6, "random_state": 0, **settings}
        rows = np.random.default_rng(4).permutation(65)
        first = fuse_views(views, **settings)
        again = fuse_views({name: views[name][rows] for name in ("words", "size", "colour")}, **settings)
        assert_array_equal(again.labels, first.labels[rows])
        assert_allclose(again.confidence, first.confidence[rows], atol=1e-9)
        assert_allclose(again.margin, first.margin[rows], atol=1e-9)


def assert_same(first, second):
    """Equal up to rounding, through dicts and sequences."""
    assert type(first) is type(second)
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for key in first:
            assert_same(first[key], second[key])
    elif isinstance(first, list | tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            assert_same(one, other)
    elif isinstance(first, float):
        assert first == pytest.approx(second, rel=1e-9, abs=1e-12, nan_ok=True)
    else:
        assert first == second


def functions(module):
    public = {name: getattr(module, name) for name in module.__all__}
    return [name for name, it in public.items() if inspect.isfunction(it) and name not in OTHER]


@pytest.fixture(scope="module")
def tables(many):
    """A table with repeated rows and a consensus, and its distinct rows with the consensus of each."""
    times = np.arange(50) % 4 + 1
    repeated = Partitions.of(np.repeat(many[:50], times, axis=0))
    labels = np.repeat(np.arange(50) % 5, times)
    per_row = np.empty(repeated.distinct.n_rows, dtype=int)
    per_row[repeated.inverse] = labels
    return repeated, labels, repeated.distinct, per_row


class TestFunctionsOfCountedRows:
    @pytest.mark.parametrize(
        "function", [*(getattr(diagnostics, name) for name in functions(diagnostics)), gather_evidence]
    )
    def test_diagnostics(self, tables, function):
        repeated, labels, counted, per_row = tables
        parameters = inspect.signature(function).parameters
        more = {key: value for key, value in (("random_state", 0), ("max_cells", 10)) if key in parameters}
        wants_labels = "labels" in parameters
        whole = function(repeated, *[labels] * wants_labels, **more)
        short = function(counted, *[per_row] * wants_labels, **more)
        self.compare(whole, short, repeated)

    @pytest.mark.parametrize("name", sorted(set(functions(metrics)) - OF_TWO_LABELINGS))
    def test_metrics(self, tables, name):
        repeated, labels, counted, per_row = tables
        function = getattr(metrics, name)
        wants_labels = "labels" in inspect.signature(function).parameters
        whole = function(labels, repeated) if wants_labels else function(repeated)
        short = function(per_row, counted) if wants_labels else function(counted)
        self.compare(whole, short, repeated)

    def compare(self, whole, short, repeated):
        """Values per instance are those of its row; everything else is equal."""
        if whole is None:
            assert short is None
        elif isinstance(whole, np.ndarray) and whole.shape[:1] == (repeated.n_rows,):
            assert_allclose(short[repeated.inverse], whole, atol=1e-12)
        elif isinstance(whole, np.ndarray | float | int):
            assert_allclose(short, whole, atol=1e-12)
        else:
            fields = whole._asdict() if hasattr(whole, "_asdict") else vars(whole)
            for name in fields.keys() - {"counts"}:
                value, other = getattr(whole, name), getattr(short, name)
                if (
                    isinstance(value, np.ndarray | float | int)
                    or hasattr(value, "_asdict")
                    or hasattr(value, "as_dict")
                ):
                    self.compare(value, other, repeated)
                else:
                    assert value == other
