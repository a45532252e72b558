"""What is drawn is what was counted: numbers are read back from the artists of every picture."""

import dataclasses
import re
import runpy
import subprocess
import sys
import tracemalloc
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from consilience import BCE, PCE, Fusion, Partitions, fuse, fuse_views, plotting
from consilience.datasets import load_digits
from consilience.diagnostics import (
    choose_n_clusters,
    cluster_flow,
    consensus_distribution,
    consensus_map,
    membership,
    missing_patterns,
    pairwise_agreement,
    resample_n_clusters,
)
from consilience.generate import base_partitions
from consilience.plotting import (
    cluster_colors,
    plot_base_agreement,
    plot_bases,
    plot_cdf,
    plot_confidence,
    plot_consensus,
    plot_convergence,
    plot_count,
    plot_delta_area,
    plot_dendrogram,
    plot_embedding,
    plot_flow,
    plot_levels,
    plot_membership,
    plot_missing,
    plot_pac,
    plot_rosetta,
    plot_stability,
    plot_tracking,
    plot_views,
)
from tests.planted import planted

ROOT = Path(__file__).parent.parent
HOSTILE = [
    r"$\frac{$",
    "a$b$c",
    "_hidden",
    "<script>=cmd()",
    "two\nlines\x00",
    "long " * 30 + "end",
    "",
    r"\$",
]


@pytest.fixture(autouse=True)
def _no_windows():
    before = plt.get_backend()
    plt.switch_backend("Agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.fixture(scope="module")
def fusion():
    """Twelve clusters, some instances that nobody saw."""
    base = planted(300, 6, 12, noise=0.25, missing=0.3, seed=0)[1]
    base[[7, 8, 9]] = -1
    names = [f"base {j}" for j in range(6)]
    return fuse(dict(zip(names, base.T, strict=True)), 12, method="LWGP", unobserved="noise", random_state=0)


@pytest.fixture(scope="module")
def resampled():
    X, _ = make_blobs(120, centers=4, n_features=3, random_state=2)
    return resample_n_clusters(X, (2, 3, 4, 5), n_resamples=12, random_state=0)


def of_labels(labels, base, **changes):
    """A fusion that says these labels."""
    partitions = Partitions.of(base, unobserved="keep")
    return Fusion(np.asarray(labels), partitions, "by hand", "It is a test.", None, **changes)


def texts(ticks):
    return [tick.get_text() for tick in ticks]


def fused_views():
    """Two views, of which one has a single member of the last cluster."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [12, 11, 10])
    views = {name: rng.normal(6 * rng.normal(size=(3, 4))[truth]) for name in ("size", "$hue$")}
    views["$hue$"][24:] = np.nan
    return fuse_views(views, 3, n_partitions=2, random_state=0)


def everything(fusion, resampled):
    """Each picture as a function of an axis."""
    count = choose_n_clusters(fusion.partitions, random_state=0)
    small = planted(60, 4, 3, noise=0.2, missing=0.2, seed=0)[1]
    model = PCE(n_clusters=3, random_state=0).fit(small)
    stable_of = fuse(small, 3, method="DAL", random_state=0)
    stable = stable_of.stability(n_resamples=2)
    return {
        "plot_consensus": lambda ax=None: plot_consensus(fusion, ax=ax),
        "plot_membership": lambda ax=None: plot_membership(fusion, ax=ax),
        "plot_confidence": lambda ax=None: plot_confidence(fusion, ax=ax),
        "plot_bases": lambda ax=None: plot_bases(fusion, ax=ax),
        "plot_base_agreement": lambda ax=None: plot_base_agreement(fusion, ax=ax),
        "plot_missing": lambda ax=None: plot_missing(fusion, ax=ax),
        "plot_cdf": lambda ax=None: plot_cdf(resampled, ax=ax),
        "plot_delta_area": lambda ax=None: plot_delta_area(resampled, ax=ax),
        "plot_pac": lambda ax=None: plot_pac(resampled, ax=ax),
        "plot_count": lambda ax=None: plot_count(count, ax=ax),
        "plot_tracking": lambda ax=None: plot_tracking([fusion, fusion], ax=ax),
        "plot_embedding": lambda ax=None: plot_embedding(fusion, ax=ax),
        "plot_dendrogram": lambda ax=None: plot_dendrogram(fusion, ax=ax),
        "plot_flow": lambda ax=None: plot_flow(fusion, ["base 0", "base 3"], ax=ax),
        "plot_convergence": lambda ax=None: plot_convergence(model, ax=ax),
        "plot_views": lambda ax=None: plot_views(fused_views(), ax=ax),
        "plot_levels": lambda ax=None: plot_levels(stable_of.levels(), ax=ax),
        "plot_stability": lambda ax=None: plot_stability(stable, ax=ax),
        "plot_rosetta": lambda ax=None: plot_rosetta(fusion, ax=ax),
    }


class TestEveryPicture:
    def test_all_are_tried_here(self, fusion, resampled):
        assert {*everything(fusion, resampled), "cluster_colors"} == set(plotting.__all__)

    def test_draws_into_the_axis_that_is_given_and_opens_no_figure(self, fusion, resampled):
        figure, grid = plt.subplots(4, 5, figsize=(20, 16), layout="constrained")
        pairs = zip(everything(fusion, resampled).items(), grid.flat, strict=False)
        for (name, draw), ax in pairs:
            assert draw(ax) is ax, name
        assert plt.get_fignums() == [figure.number]
        figure.canvas.draw()

    def test_makes_one_figure_where_no_axis_is_given(self, fusion, resampled):
        for draw in everything(fusion, resampled).values():
            ax = draw()
            assert plt.get_fignums() == [ax.figure.number]
            plt.close("all")

    def test_says_what_its_axes_mean(self, fusion, resampled):
        for name, draw in everything(fusion, resampled).items():
            ax = draw()
            labels = [panel.get_xlabel() for panel in (ax, *ax.child_axes)]
            # The names along its axes say it already.
            assert any(labels) or name == "plot_base_agreement", name
            plt.close("all")

    def test_needs_matplotlib_only_when_it_draws(self, fusion, monkeypatch):
        code = (
            "import sys, consilience.plotting as p; p.cluster_colors(30); print('matplotlib' in sys.modules)"
        )
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert shown.stdout.strip() == "False"
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        with pytest.raises(ImportError, match=r"plotting needs matplotlib.*consilience\[plot\]"):
            plot_confidence(fusion)


class TestColors:
    def test_are_distinct_and_begin_alike(self):
        for n in (1, 8, 9, 20, 21, 24, 30, 60):
            colors = cluster_colors(n)
            assert len(set(colors)) == len(colors) == n
            assert all(re.fullmatch("#[0-9A-F]{6}", color) for color in colors)
        assert cluster_colors(20)[:8] == cluster_colors(8)

    @pytest.mark.parametrize(
        "vision",
        [
            np.eye(3),
            [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],  # no red cones
            [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],  # no green cones
            [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],  # no blue cones
        ],
    )
    def test_twenty_stay_apart_for_colour_blind_readers(self, vision):
        # Machado, Oliveira and Fernandes (2009); 2.3 in CIE Lab is a difference that is just noticed.
        seen = [_lab(color, np.array(vision)) for color in (*cluster_colors(20), "#B0B0B0")]
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 4 * 2.3


def _lab(color, vision):
    rgb = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.clip(vision @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1)
    xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]] @ linear
    f = [np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz / [0.9505, 1, 1.089]]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


class TestHeatMaps:
    def test_consensus(self, fusion):
        ax = plot_consensus(fusion, max_cells=50)
        found = consensus_map(fusion.partitions, fusion.labels, max_cells=50)
        shown = ax.images[0].get_array()
        assert_allclose(shown.filled(np.nan), found.coassociation)
        assert ax.get_xlabel() == "297 instances in 50 cells, sorted by cluster"
        strip = ax.child_axes[0]
        assert_array_equal([bar.get_height() for bar in strip.patches], np.bincount(found.cluster))
        assert [to_hex(bar.get_facecolor()).upper() for bar in strip.patches] == cluster_colors(12)

    def test_consensus_says_where_nothing_is_known(self):
        base = [[0, -1], [-1, 0], [1, 1], [1, 1]]
        ax = plot_consensus(of_labels([0, 0, 1, 1], base))
        assert ax.images[0].get_array().mask.sum() == 2
        assert "never seen together" in ax.images[0].colorbar.ax.get_ylabel()

    def test_consensus_with_what_the_bases_said(self, fusion):
        ax = plot_consensus(fusion, max_cells=400, bases=["base 4", "base 1"])
        bars = ax.child_axes[1]
        assert texts(bars.get_yticklabels()) == ["base 4", "base 1"]
        order = np.lexsort([-fusion.diagnostics.item_consensus, fusion.labels])
        order = order[fusion.labels[order] >= 0]
        shown = np.array(bars.images[0].get_array())
        for line, j in zip(shown, (4, 1), strict=True):
            codes = fusion.partitions.codes[:, j]
            for color, code in zip(line, codes[order], strict=True):
                members = fusion.labels[(codes == code) & (fusion.labels >= 0)]
                most = cluster_colors(12)[np.bincount(members).argmax()]
                assert to_hex(color).upper() == (most if code >= 0 else "#FFFFFF")
        assert len(plot_consensus(fusion, bases=True).child_axes[1].get_yticklabels()) == 6
        with pytest.raises(ValueError, match=r"no base clustering 'base4'.*Hint: did you mean 'base 4'"):
            plot_consensus(fusion, bases=["base4"])

    def test_membership(self, fusion):
        ax = plot_membership(fusion, max_cells=50)
        found = membership(fusion.partitions, fusion.labels, max_cells=50)
        assert_allclose(ax.images[0].get_array(), found.support)

    def test_base_agreement_in_an_order_that_its_names_follow(self, fusion):
        names, table = pairwise_agreement(fusion.partitions)
        for result in (fusion, fusion.partitions):
            ax = plot_base_agreement(result)
            rows = [names.index(name) for name in texts(ax.get_yticklabels())]
            assert sorted(rows) == list(range(6))
            assert texts(ax.get_xticklabels()) == texts(ax.get_yticklabels())
            assert_allclose(ax.images[0].get_array(), table[np.ix_(rows, rows)])
            assert_array_equal(texts(ax.texts), [f"{v:.2f}" for v in table[np.ix_(rows, rows)].flat])

    def test_like_bases_are_neighbours(self):
        a, b = np.arange(60) % 3, np.arange(60) // 20
        ax = plot_base_agreement(Partitions.of({"a": a, "b": b, "A": a, "B": b}))
        first, second, third, fourth = (name.lower() for name in texts(ax.get_yticklabels()))
        assert first == second != third == fourth


class TestBars:
    def test_confidence_is_stacked_by_cluster(self, fusion):
        ax = plot_confidence(fusion, bins=10)
        colors = [*cluster_colors(12), "#B0B0B0"]
        heights, bottoms = np.zeros((2, 13, 10))
        for bar in ax.patches:
            place = colors.index(to_hex(bar.get_facecolor()).upper()), round(bar.get_x() * 10)
            heights[place], bottoms[place] = bar.get_height(), bar.get_y()
        for c in range(12):
            mine = fusion.confidence[fusion.labels == c]
            assert_array_equal(heights[c], np.histogram(mine, np.linspace(0, 1, 11))[0])
        assert_array_equal(heights[12], [3] + [0] * 9)
        below = np.cumsum(heights, axis=0) - heights
        assert_array_equal(bottoms[heights > 0], below[heights > 0])
        assert texts(ax.get_legend().get_texts()) == [*map(str, range(12)), "unassigned"]

    def test_bases_from_the_best_down(self, fusion):
        agreement, weight = plot_bases(fusion).child_axes
        shown = [bar.get_width() for bar in agreement.patches]
        names = texts(agreement.get_yticklabels())
        bases = fusion.diagnostics.bases
        place = [bases.names.index(name) for name in names]
        assert_allclose(shown, bases.agreement[place])
        assert_allclose([bar.get_width() for bar in weight.patches], bases.weights[place])
        assert sorted(shown, reverse=True) == shown

    def test_views_against_clusters(self):
        fusion = fused_views()
        ax = plot_views(fusion)
        assert_array_equal(ax.images[0].get_array().filled(np.nan), fusion.model.view_support_)
        assert np.isnan(fusion.model.view_support_[1]).sum() == 1
        assert texts(ax.get_yticklabels()) == ["size", r"\$hue\$"]
        assert texts(ax.get_xticklabels()) == ["0", "1", "2"]
        shown = [text.get_text() for text in ax.texts]
        expected = fusion.model.view_support_.ravel()
        assert shown == ["-" if np.isnan(value) else f"{value:.2f}" for value in expected]

    def test_views_need_a_method_of_views(self, fusion):
        with pytest.raises(TypeError, match=r"LWGP does not say how views support clusters\. Hint"):
            plot_views(fusion)

    def test_missing(self, fusion):
        found = missing_patterns(fusion.partitions, max_patterns=7)
        for result in (fusion, fusion.partitions):
            above, dots, beside = plot_missing(result, max_patterns=7).child_axes
            assert_array_equal([bar.get_height() for bar in above.patches], found.size)
            assert_array_equal([bar.get_width() for bar in beside.patches], found.n_seen)
            unseen, seen = (points.get_offsets().astype(int) for points in dots.collections)
            assert {tuple(point) for point in seen} == {tuple(x) for x in np.argwhere(found.seen)}
            assert {tuple(point) for point in unseen} == {tuple(x) for x in np.argwhere(~found.seen)}
            assert texts(dots.get_yticklabels()) == list(fusion.partitions.names)
            assert f"7 of {found.n_patterns} combinations" in dots.get_xlabel()

    def test_missing_nothing(self):
        above, dots, _ = plot_missing(Partitions.of([[0, 0], [1, 0], [0, 1]])).child_axes
        assert [bar.get_height() for bar in above.patches] == [3]
        assert dots.get_xlabel() == "1 combination"

    def test_large_counts_are_short(self):
        above = plot_missing(Partitions.of(np.zeros((30_000, 1), dtype=int))).child_axes[0]
        above.figure.canvas.draw()
        assert {"0", "10k", "20k", "30k"} <= set(texts(above.get_yticklabels()))


class TestNumbersOfClusters:
    def test_curves_of_resampling(self, resampled):
        curve = resampled.curve
        lines = plot_cdf(resampled).lines
        assert_allclose([line.get_ydata() for line in lines], curve.cdf)
        assert lines[0].get_xdata()[[0, -1]].tolist() == [0, 1]
        pac, delta = plot_pac(resampled).lines[0], plot_delta_area(resampled).lines[0]
        assert_allclose(pac.get_xydata(), np.column_stack([curve.k, curve.pac]))
        assert_allclose(delta.get_xydata(), np.column_stack([curve.k, curve.delta_area])[1:])

    def test_the_chosen_number_is_marked(self, resampled):
        k = resampled.n_clusters
        assert plot_pac(resampled).lines[-1].get_xdata()[0] == k
        assert f"{k} (chosen)" in texts(plot_cdf(resampled).get_legend().get_texts())

    def test_curves_of_tables_made_with_each_number(self):
        X, _ = make_blobs(80, centers=3, random_state=0)
        made = [base_partitions(X, k, 6, subsample=0.8, random_state=0) for k in (4, 2, 3)]
        fusions = [
            fuse(table, k, method="LWGP", random_state=0) for table, k in zip(made, (4, 2, 3), strict=True)
        ]
        found = [consensus_distribution(fusions[place].partitions) for place in (1, 2, 0)]
        assert_allclose([line.get_ydata() for line in plot_cdf(fusions).lines], [one.cdf for one in found])
        pac = plot_pac(fusions).lines[0]
        assert pac.get_xdata().tolist() == [2, 3, 4]
        assert_allclose(pac.get_ydata(), [one.pac for one in found])

    def test_one_table_has_one_curve(self, fusion):
        for result in (fusion, fusion.partitions):
            ax = plot_cdf(result)
            assert_allclose(ax.lines[0].get_ydata(), consensus_distribution(fusion.partitions).cdf)

    def test_fusions_of_one_table_are_refused(self, fusion):
        others = [fusion, fuse(fusion.partitions, 5, method="LWGP", unobserved="noise", random_state=0)]
        for plot in (plot_cdf, plot_pac, plot_delta_area):
            with pytest.raises(ValueError, match=r"one table.*Hint.*plot_tracking"):
                plot(others)
        with pytest.raises(ValueError, match=r"resample_n_clusters or a sequence.*got int.*Hint"):
            plot_pac(3)

    def test_growth_needs_two_numbers(self):
        X, _ = make_blobs(40, centers=2, random_state=0)
        with pytest.raises(ValueError, match="two numbers"):
            plot_delta_area(resample_n_clusters(X, [2], n_resamples=4, random_state=0))

    def test_count_against_chance(self, fusion):
        count = choose_n_clusters(fusion.partitions, random_state=0)
        for result in (count, of_labels(fusion.labels, fusion.partitions, cluster_count=count)):
            curve, null, modularity, chosen = plot_count(result).lines
            assert_allclose(curve.get_xydata(), np.column_stack([count.curve.k, count.curve.eigenvalue]))
            assert_allclose(null.get_ydata(), count.curve.null)
            assert_allclose(modularity.get_ydata(), count.curve.modularity)
            assert chosen.get_xdata()[0] == count.n_clusters
        with pytest.raises(ValueError, match=r'Hint: fuse\(labels, "auto"\)'):
            plot_count(fusion)


class TestTracking:
    def test_ribbons_are_as_wide_as_the_instances_that_clusters_share(self):
        rng = np.random.default_rng(0)
        base = rng.integers(0, 3, (200, 2))
        labels = [rng.integers(-1, k, 200) for k in (2, 4, 3)]
        ax = plot_tracking([of_labels(one, base) for one in labels])
        widths, ends = [], {}
        for path in ax.collections[0].get_paths():
            x, y = path.vertices[:-1].T
            for side in (x.min(), x.max()):
                ends.setdefault(round(side, 2), []).append((y[x == side].min(), y[x == side].max()))
            widths.append(np.ptp(y[x == x.min()]))
            assert_allclose(np.ptp(y[x == x.max()]), widths[-1])
        for pieces in ends.values():
            # Together they fill the column: no gap, nothing drawn twice.
            first, last = np.sort(pieces, axis=0).T
            assert_allclose([0, *last], [*first, 200])
        flows = [
            cluster_flow(np.where(a < 0, a.max() + 1, a), np.where(b < 0, b.max() + 1, b))
            for a, b in pairwise(labels)
        ]
        assert_allclose(sorted(widths), sorted(np.concatenate([flow[flow > 0] for flow in flows])))
        blocks = [bar.get_height() for bar in ax.patches]
        assert blocks == [np.sum(one == c) for one in labels for c in (*range(one.max() + 1), -1)]
        assert texts(ax.get_xticklabels()) == ["2", "4", "3"]

    def test_a_cluster_that_stays_keeps_its_colour(self):
        first = np.repeat([0, 1, 2], 20)
        renumbered = np.array([2, 0, 1])[first]
        split = np.where(np.arange(60) < 10, 3, renumbered)
        base = first[:, None]
        ax = plot_tracking([of_labels(one, base) for one in (first, renumbered, split)])
        colors = [to_hex(bar.get_facecolor()).upper() for bar in ax.patches]
        a, b, c, d = cluster_colors(4)
        assert colors == [a, b, c, b, c, a, b, c, a, d]

    def test_names_of_a_mapping_are_its_columns(self, fusion):
        ax = plot_tracking({"first $x$": fusion, "second": fusion})
        assert texts(ax.get_xticklabels()) == [r"first \$x\$", "second"]

    def test_refuses_fusions_of_other_instances(self, fusion):
        other = of_labels([0, 1], [[0], [1]])
        for given in ([fusion], [fusion, other]):
            with pytest.raises(ValueError, match="at least two fusions of the same instances"):
                plot_tracking(given)


class TestFlow:
    def test_ribbons_and_blocks_are_counts(self, fusion):
        ax = plot_flow(fusion, ["base 2", "base 0"])
        codes = fusion.partitions.codes[:, [2, 0]]
        columns = [*np.where(codes < 0, codes.max(axis=0) + 1, codes).T]
        columns.append(np.where(fusion.labels < 0, 12, fusion.labels))
        flows = [cluster_flow(a, b) for a, b in pairwise(columns)]
        paths = [path.vertices[:-1] for path in ax.collections[0].get_paths()]
        widths = [np.ptp(points[points[:, 0] == points[:, 0].min(), 1]) for points in paths]
        assert_allclose(sorted(widths), sorted(np.concatenate([flow[flow > 0] for flow in flows])))
        heights = [bar.get_height() for bar in ax.patches]
        assert_array_equal(heights, np.concatenate([np.bincount(column) for column in columns]))
        assert texts(ax.get_xticklabels()) == ["base 2", "base 0", "consensus"]

    def test_who_was_not_seen_is_grey_and_below(self, fusion):
        ax = plot_flow(fusion, "base 2")
        n_missing = int((fusion.partitions.codes[:, 2] < 0).sum())
        assert f"not seen ({n_missing})" in texts(ax.texts)
        (grey,) = [b for b in ax.patches if to_hex(b.get_facecolor()) == "#b0b0b0" and b.get_x() < 0]
        assert (grey.get_y(), grey.get_height()) == (300 - n_missing, n_missing)

    def test_the_base_that_agrees_best_unless_one_is_named(self, fusion):
        best = fusion.partitions.names[fusion.agreement.argmax()]
        assert texts(plot_flow(fusion).get_xticklabels()) == [best, "consensus"]
        with pytest.raises(ValueError, match=r"no base clustering 'base9'.*Hint: did you mean 'base"):
            plot_flow(fusion, "base9")
        with pytest.raises(ValueError, match=r"no base clustering\..*Hint: bases="):
            plot_flow(fusion, [])

    def test_two_months(self):
        march = {"ann": 0, "bob": 0, "cleo": 0, "dan": 1, "eve": 1}
        april = {"bob": 0, "cleo": 0, "dan": 1, "eve": 0, "fay": 1, "gus": 1}
        first, second = (fuse({"a": t, "b": t}, 2, random_state=0) for t in (march, april))
        second = second.like(first).rename({0: "old", 1: "young"})
        ax = plot_flow(second, earlier=first)
        assert texts(ax.texts) == ["0 (3)", "1 (2)", "new (2)", "old (3)", "young (3)", "gone (1)"]
        blue, orange = (color.lower() for color in cluster_colors(2))
        colors = [to_hex(bar.get_facecolor()) for bar in ax.patches]
        assert colors == [blue, orange, "#b0b0b0"] * 2
        # Numbers mean nothing across results that were not made alike: colours follow who is shared.
        now = fuse({"a": april}, 2, random_state=0)
        of = dict(zip(now.index.tolist(), now.labels.tolist(), strict=True))
        unlike = plot_flow(
            now, earlier={"bob": of["dan"], "cleo": of["dan"], "dan": of["bob"], "fay": of["bob"]}
        )
        assert [to_hex(bar.get_facecolor()) for bar in unlike.patches][:2] == [orange, blue]
        with pytest.raises(ValueError, match=r"base clusterings or an earlier result.*Hint"):
            plot_flow(second, "a", earlier=first)


class TestDendrogram:
    def test_is_average_linkage_of_coassociation(self):
        # Places on a ruler of which no two pairs are equally far apart; each base clustering cuts it once.
        places = np.array([0, 1, 4, 9, 15, 22, 32, 34])
        base = (places[:, None] > np.arange(34)).astype(int)
        fusion = of_labels([2, 2, 1, 1, 1, 0, 0, 0], base)
        lines = plot_dendrogram(fusion).collections[0].get_segments()
        coassociation = (base[:, None] == base).mean(axis=2)
        expected = linkage(squareform(1 - coassociation), "average")[:, 2]
        assert_allclose(sorted(1 - line[1, 1] for line in lines), expected, atol=1e-12)
        colors = [to_hex(c).upper() for c in plot_dendrogram(fusion).collections[0].get_colors()]
        assert set(colors) <= {*cluster_colors(3), "#B0B0B0"}
        assert colors[-1] == "#B0B0B0"  # the last merge joins different clusters

    def test_branches_rest_on_their_parts(self, fusion):
        ax = plot_dendrogram(fusion, max_leaves=30)
        lines = ax.collections[0].get_segments()
        assert len(lines) == 29
        tops = {((line[1, 0] + line[2, 0]) / 2, line[1, 1]) for line in lines}
        for line in lines:
            for x, y in line[[0, 3]]:
                assert y == 1.0 or (x, y) in tops
        assert ax.child_axes[0].get_xlabel().startswith("297 instances in 30 leaves")

    def test_pairs_never_seen_together(self):
        ax = plot_dendrogram(of_labels([0, 0, 1, 1], [[0, -1], [-1, 0], [1, 1], [1, 1]]))
        assert len(ax.collections[0].get_segments()) == 3


class TestEmbedding:
    def test_coloured_by_confidence_the_doubtful_on_top(self, fusion):
        points = np.random.default_rng(0).normal(size=(300, 2))
        dots = plot_embedding(fusion, points, color="confidence").collections[0]
        shown = dots.get_array().filled()
        assert_array_equal(shown, np.sort(fusion.confidence)[::-1])
        sure = {tuple(point): value for point, value in zip(points, fusion.confidence, strict=True)}
        assert_array_equal([sure[tuple(point)] for point in dots.get_offsets().data], shown)
        own = plot_embedding(fusion, color="confidence").collections[0]  # of those that were seen
        assert_array_equal(own.get_array().filled(), np.sort(fusion.confidence[fusion.labels >= 0])[::-1])

    def test_confidence_of_a_model(self):
        model = PCE(n_clusters=2, random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, -1]] * 5)
        shown = plot_embedding(model, color="confidence").collections[0].get_array().filled()
        assert_array_equal(shown, np.sort(model.confidence_)[::-1])
        with pytest.raises(ValueError, match=r"KMeans has no confidence_.*Hint"):
            plot_embedding(KMeans(2, n_init=1).fit(np.eye(4)), np.eye(4), color="confidence")
        with pytest.raises(ValueError, match="'color'"):
            plot_embedding(model, color="red")

    def test_given_coordinates_and_colours(self, fusion):
        points = np.random.default_rng(0).normal(size=(300, 2))
        drawn = plot_embedding(fusion, points).collections[0]
        palette = np.array([*cluster_colors(12), "#B0B0B0"])
        expected = {(*point, palette[label]) for point, label in zip(points, fusion.labels, strict=True)}
        colors = [to_hex(color).upper() for color in drawn.get_facecolors()]
        assert {
            (*point, color) for point, color in zip(drawn.get_offsets().data, colors, strict=True)
        } == expected

    def test_more_columns_become_principal_components(self, fusion):
        rng = np.random.default_rng(0)
        points = rng.normal(size=(300, 5)) * [1, 9, 1, 3, 0]
        ax = plot_embedding(fusion, points)
        values = np.linalg.eigvalsh(np.cov(points.T))[::-1]
        spread = np.var(ax.collections[0].get_offsets(), axis=0, ddof=1)
        assert_allclose(spread, values[:2])
        assert f"({values[0] / values.sum():.0%})" in ax.get_xlabel()

    def test_the_embedding_of_a_model(self, fusion):
        ax = plot_embedding(fusion)
        shown = [to_hex(color).upper() for color in ax.collections[0].get_facecolors()]
        sizes = np.bincount(fusion.labels[fusion.labels >= 0])  # of those who were seen
        assert {color: shown.count(color) for color in shown} == dict(
            zip(cluster_colors(12), sizes, strict=True)
        )
        model = PCE(n_clusters=2, random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, -1]] * 5)
        assert_allclose(
            np.sort(plot_embedding(model).collections[0].get_offsets(), axis=0),
            np.sort(model.embedding_, axis=0),
        )

    def test_of_many_instances_a_sample_is_drawn(self, fusion):
        points = np.random.default_rng(0).normal(size=(300, 2))
        first, again = (plot_embedding(fusion, points, max_points=50) for _ in range(2))
        shown = first.collections[0].get_offsets()
        assert len(np.unique(shown, axis=0)) == 50
        assert_array_equal(shown, again.collections[0].get_offsets())
        assert first.get_title() == "a sample of 50 of 300 instances"

    def test_one_column(self, fusion):
        ax = plot_embedding(fusion, np.arange(300.0)[:, None])
        assert np.ptp(ax.collections[0].get_offsets()[:, 1]) == 0

    def test_says_what_is_wrong(self, fusion):
        with pytest.raises(ValueError, match=r"DAL makes no embedding.*Hint: pass coordinates"):
            plot_embedding(fuse([[0, 0], [0, 0], [1, 1], [1, -1]] * 5, 2, method="DAL", random_state=0))
        with pytest.raises(ValueError, match=r"PCE has no labels_.*Hint: fit it first"):
            plot_embedding(PCE(n_clusters=2))
        for points in (np.zeros((3, 2)), np.zeros((300, 0)), np.full((300, 2), np.nan)):
            with pytest.raises(ValueError, match=r"coordinates have shape.*300 instances.*Hint"):
                plot_embedding(fusion, points)


class TestConvergence:
    base = planted(80, 5, 3, noise=0.3, missing=0.2, seed=0)[1]

    def test_one_model(self):
        model = BCE(n_clusters=3, random_state=0).fit(self.base)
        ax = plot_convergence(model)
        assert_allclose(ax.lines[0].get_ydata(), model.objective_)
        assert_allclose(ax.lines[0].get_xdata(), np.arange(1, model.n_iter_ + 1))
        assert ax.get_legend() is None

    def test_several_of_one_class_keep_their_numbers(self):
        models = {f"_seed {s}": BCE(n_clusters=3, random_state=s).fit(self.base) for s in range(2)}
        ax = plot_convergence(models)
        for line, model in zip(ax.lines, models.values(), strict=True):
            assert_allclose(line.get_ydata(), model.objective_)
        assert texts(ax.get_legend().get_texts()) == [" _seed 0", " _seed 1"]

    def test_different_classes_are_drawn_as_shares(self):
        models = [method(n_clusters=3, random_state=0).fit(self.base) for method in (BCE, PCE)]
        ax = plot_convergence(models)
        for line, model in zip(ax.lines, models, strict=True):
            y, values = line.get_ydata(), model.objective_
            assert_allclose(values[-1] + y * (values[0] - values[-1]), values)
            assert (y[0], y[-1]) == (1, 0)
        assert texts(ax.get_legend().get_texts()) == ["BCE", "PCE"]

    def test_says_what_is_wrong(self, fusion):
        with pytest.raises(ValueError, match=r"LWGP has no objective_.*Hint"):
            plot_convergence(fusion)
        with pytest.raises(ValueError, match=r"no model.*Hint"):
            plot_convergence([])


class TestHardCases:
    def test_names_are_text_and_nothing_else(self):
        truth, base = planted(120, len(HOSTILE), 3, noise=0.2, missing=0.3, seed=0)
        partitions = Partitions.of(dict(zip(HOSTILE, base.T, strict=True)))
        hostile = of_labels(truth, partitions)
        for ticks in (
            plot_bases(hostile).child_axes[0].get_yticklabels(),
            plot_base_agreement(hostile).get_xticklabels(),
            plot_missing(hostile).child_axes[1].get_yticklabels(),
        ):
            for tick in ticks:
                text, is_math = tick._preprocess_math(tick.get_text())
                assert not is_math
                assert len(text) <= 25
                assert text.isprintable()
            shown = {tick._preprocess_math(tick.get_text())[0] for tick in ticks}
            assert {r"$\frac{$", "a$b$c", " _hidden", "<script>=cmd()", r"\$"} <= shown
            assert any(text.startswith("long ") and text.endswith(" end") for text in shown)
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()

    def test_one_base_and_one_cluster(self):
        for labels, base in (
            ([0, 0, 1, 1, -1], [[0], [0], [1], [1], [-1]]),
            ([0, 0, 0], [[0, 0], [0, 1], [0, 0]]),
            ([0], [[0]]),
        ):
            small = of_labels(labels, base)
            figure, grid = plt.subplots(3, 3)
            plots = (
                *(plot_consensus, plot_membership, plot_confidence, plot_bases, plot_base_agreement),
                *(plot_missing, plot_cdf),
            )
            for plot, ax in zip(plots, grid.flat, strict=False):
                plot(small, ax=ax)
            plot_tracking([small, small], ax=grid[2, 1])
            plot_embedding(small, np.zeros((len(labels), 3)), ax=grid[2, 2])
            figure.canvas.draw()
            figure, grid = plt.subplots(1, 3)
            plot_dendrogram(small, ax=grid[0])
            plot_flow(small, small.partitions.names, ax=grid[1])
            plot_consensus(small, bases=True, ax=grid[2])
            figure.canvas.draw()

    def test_many_clusters_and_bases(self):
        truth, base = planted(300, 62, 47, noise=0.2, missing=0.3, seed=0)
        large = of_labels(truth, base)
        figure, grid = plt.subplots(2, 2)
        assert texts(plot_confidence(large, ax=grid[0, 0]).get_legend().get_texts())[-1] == "and 3 more"
        dots = plot_missing(large, ax=grid[0, 1]).child_axes[1]
        assert texts(dots.get_yticklabels()) == [str(j) for j in range(0, 62, 2)]
        strip = plot_consensus(large, ax=grid[1, 0]).child_axes[0]
        assert len(strip.patches) == 47
        assert np.diff(strip.get_yticks()).min() >= 0.035 * 200
        plot_base_agreement(large, ax=grid[1, 1])
        figure.canvas.draw()
        bars = plot_consensus(large, bases=True).child_axes[1]
        assert len(bars.images[0].get_array()) == 62
        assert len(bars.get_yticklabels()) < 20
        plot_dendrogram(large).figure.canvas.draw()

    def test_a_million_instances_take_no_table_of_pairs(self):
        truth, base = planted(1_000_000, 3, 4, noise=0.2, missing=0.3, seed=0)
        large = of_labels(truth, base)
        tracemalloc.start()
        assert plot_consensus(large).images[0].get_array().shape == (200, 200)
        assert plot_membership(large).images[0].get_array().shape == (200, 4)
        assert sum(bar.get_height() for bar in plot_confidence(large).patches) == 1_000_000
        plot_missing(large)
        plot_cdf(large)
        assert len(plot_dendrogram(large).collections[0].get_segments()) == 59
        plot_flow(large)
        points = plot_embedding(large, np.column_stack([truth, truth])).collections[0].get_offsets()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(points) == 20_000
        assert peak < 400 * 1_000_000  # bytes an instance: a few dozen numbers


class TestStability:
    def test_bars_are_the_figures(self):
        rng = np.random.default_rng(0)
        truth = rng.integers(0, 3, 150)
        names = ["$a", "b", "c", "_d"]
        base = {name: np.where(rng.random(150) < 0.3, rng.integers(0, 3, 150), truth) for name in names}
        found = fuse(base, 3, method="DAL", random_state=0).rename({1: "some"}).stability(n_resamples=3)
        refits, clusters = plot_stability(found).child_axes
        widths = [bar.get_width() for bar in refits.patches]
        assert_allclose(widths, [found.parts[0].ari, *(one.ari for one in found.left_out)])
        assert_allclose(sorted(refits.lines[0].get_xdata()), sorted(one.ari for one in found.refits[:3]))
        held = [min(one.instances, one.sources) for one in found.clusters]
        assert_allclose([bar.get_width() for bar in clusters.patches], held)
        assert [to_hex(bar.get_facecolor()).upper() for bar in clusters.patches] == cluster_colors(3)
        assert [tick.get_text() for tick in clusters.get_yticklabels()] == ["0", "some", "2"]

    def test_sources_that_cannot_be_left_out_are_not_drawn(self):
        truth = np.tile([0.0, 1.0], 30)
        left, right = truth.copy(), truth.copy()
        left[30:], right[:30] = np.nan, np.nan
        fusion = fuse({"left": left, "right": right, "link": truth}, 2, method="DAL", random_state=0)
        refits = plot_stability(fusion.stability(n_resamples=0)).child_axes[0]
        assert len(refits.patches) == 2

    def test_needs_a_stability(self):
        with pytest.raises(TypeError, match="plot_stability needs a Stability, got dict"):
            plot_stability({})


class TestGallery:
    page = (ROOT / "docs" / "gallery.md").read_text()

    def test_shows_every_picture_and_they_are_small(self):
        pictures = sorted((ROOT / "docs" / "gallery").glob("*.png"))
        drawn = {path: f"plot_{path.stem.partition('-')[0]}" for path in pictures}  # and after a dash: how
        assert {*drawn.values()} == {*plotting.__all__} - {"cluster_colors"}
        assert max(path.stat().st_size for path in pictures) < 100_000
        for path, function in drawn.items():
            assert f"(gallery/{path.name})" in self.page
            assert f"{function}(" in self.page
            assert f"gallery/{path.name}" in getattr(plotting, function).__doc__

    def test_its_code_runs(self, monkeypatch):
        few = dataclasses.replace(load_digits(), X=load_digits().X[:200])
        monkeypatch.setattr("consilience.datasets.load_digits", lambda: few)
        monkeypatch.setitem(plt.rcParams, "figure.max_open_warning", 0)  # all of them are counted below
        scope = {}
        monkeypatch.setitem(plt.rcParams, "figure.max_open_warning", 0)
        for block in re.findall(r"```python\n(.*?)```", self.page, flags=re.DOTALL):
            exec(compile(block, "gallery.md", "exec"), scope)
        assert len(plt.get_fignums()) == len(list((ROOT / "docs" / "gallery").glob("*.png")))

    def test_the_example_writes_them(self, tmp_path, capsys):
        main = runpy.run_path(str(ROOT / "examples" / "gallery.py"))["main"]
        main(tmp_path, load_digits().X[:200], range(6, 8))
        written = {path.name for path in tmp_path.glob("*.png")}
        assert written == {path.name for path in (ROOT / "docs" / "gallery").glob("*.png")}
        assert "kB" in capsys.readouterr().out


@pytest.mark.parametrize(
    "function",
    [
        "consensus",
        "membership",
        "confidence",
        "bases",
        "views",
        "dendrogram",
        "flow",
    ],
)
def test_something_else_than_a_result_is_refused_with_a_hint(function):
    with pytest.raises(TypeError, match=r"got list\. Hint"):
        getattr(plotting, f"plot_{function}")([[0, 1], [1, 0]])


def test_one_fusion_cannot_be_tracked(fusion):
    with pytest.raises(ValueError, match=r"at least two fusions .* Hint"):
        plotting.plot_tracking(fusion)


class TestLevels:
    def test_a_line_for_every_cluster_and_split(self):
        _, base = planted(200, 5, 4, noise=0.2, missing=0.1, seed=3)
        levels = fuse(base, 4, method="DAL", random_state=0).levels(k_max=6)
        ax = plot_levels(levels)
        assert len(levels.tree) == 2 * 6 - 1
        assert len(ax.lines) == (2 * 6 - 1) + 5 + 1
        assert len(ax.get_xticklabels()) == 6
        dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
        assert len(dashed) == sum(not split.supported for split in levels.splits)

    def test_needs_levels(self):
        with pytest.raises(TypeError, match="plot_levels needs Levels, got dict"):
            plot_levels({})
