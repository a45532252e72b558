"""Sources that use the same names: the solver in plain loops, its laws, and crowds that are planted."""

import numpy as np
import pytest

import consilience
from consilience import fuse
from consilience._support.errors import InputError
from consilience.inference.annotators import gain_by_permuting, name_instances


def crowd(m, labels_each, low=0.4, high=0.8, seed=0, n=400, k=5):
    """Classes and labels of annotators with accuracies and confusions of their own."""
    rng = np.random.default_rng([seed, m, labels_each])
    y = rng.integers(0, k, n)
    accuracy, other = rng.uniform(low, high, m), rng.dirichlet(np.full(k, 0.5), (m, k))
    table = np.full((n, m), -1)
    for i in range(n):
        for j in rng.choice(m, labels_each, replace=False):
            table[i, j] = y[i] if rng.random() < accuracy[j] else rng.choice(k, p=other[j, y[i]])
    return y, table


def plain(table, k, sweeps=50):
    """The same from its definition, label by label."""
    m = table.shape[1]
    q = np.array([[np.sum(row == z) for z in range(k)] for row in table], dtype=float)
    seen = q.any(axis=1)
    q[seen] /= q[seen].sum(axis=1, keepdims=True)
    for _ in range(sweeps):
        before, theta = q.copy(), np.zeros((m, k, k))
        for i, j in np.argwhere(table >= 0):
            theta[j, :, table[i, j]] += q[i]
        for j in range(m):
            accuracy = (np.trace(theta[j]) + 0.7 * 2 * k) / (theta[j].sum() + 2 * k)
            for z in range(k):
                for name in range(k):
                    theta[j, z, name] += 2 * k * (accuracy if z == name else (1 - accuracy) / (k - 1))
                theta[j, z] /= theta[j, z].sum()
        shares = (q.sum(axis=0) + 1) / (seen.sum() + k)
        for i in np.flatnonzero(seen):
            score = np.log(shares)
            for j in np.flatnonzero(table[i] >= 0):
                score = score + np.log(theta[j, :, table[i, j]])
            q[i] = np.exp(score - score.max())
            q[i] /= q[i].sum()
        if np.abs(q - before).max() < 1e-4:
            break
    return q


def test_the_solver_is_the_model():
    _, table = crowd(6, 2, n=80)
    np.testing.assert_allclose(name_instances(table, 5).chances, plain(table, 5), atol=1e-9)


def test_rows_with_counts_are_rows_repeated():
    _, table = crowd(6, 2, n=80)
    counts = np.random.default_rng(0).integers(1, 4, 80)
    often = name_instances(np.repeat(table, counts, axis=0), 5).chances
    np.testing.assert_allclose(
        np.repeat(name_instances(table, 5, counts).chances, counts, axis=0), often, atol=1e-8
    )


def accuracy(y, fusion):
    return np.mean(
        np.array(fusion.names, dtype=object)[fusion.labels] == np.array([str(c) for c in y], object)
    )


def votes(table, k, seed=0):
    counts = np.array([[np.sum(row == z) for z in range(k)] for row in table], dtype=float)
    return (counts + 1e-3 * np.random.default_rng(seed).random(counts.shape)).argmax(axis=1)


def test_many_thin_sources_beat_votes():
    gains = []
    for seed in range(3):
        y, table = crowd(40, 2, seed=seed)
        fusion = fuse(table, "auto", same_names=True)
        gains.append(accuracy(y, fusion) - np.mean(votes(table, 5) == y))
    assert np.mean(gains) > 0.03


def test_sources_that_share_no_instance():
    y, table = crowd(4, 1, low=0.7, high=0.9)
    with pytest.raises(InputError):
        fuse(table, 5)
    assert accuracy(y, fuse(table, 5, same_names=True)) > 0.7


def test_order_changes_nothing():
    _, table = crowd(8, 3)
    fusion = fuse(table, 5, same_names=True)
    rows, columns = np.random.default_rng(0).permutation(400), np.random.default_rng(1).permutation(8)
    other = fuse(table[rows][:, columns], 5, same_names=True)
    one = np.array(fusion.names, dtype=object)[fusion.labels][rows]
    np.testing.assert_array_equal(one, np.array(other.names, dtype=object)[other.labels])


def test_permuted_names_are_refused():
    _, table = crowd(4, 3, low=0.7, high=0.9, n=600)
    assert np.nanmax(gain_by_permuting(table, 5)) < 0.1
    table[:, 2] = np.where(table[:, 2] < 0, -1, (table[:, 2] + 1) % 5)
    with pytest.raises(InputError, match="source '2' does not use the names as others do"):
        fuse(table, 5, same_names=True)
    assert fuse(table, 5, random_state=0).n_clusters == 5


def test_the_number_of_clusters_is_that_of_names():
    _, table = crowd(4, 3)
    with pytest.raises(InputError, match="use 5 names"):
        fuse(table, 3, same_names=True)
    with pytest.raises(InputError, match="knows no weights"):
        fuse(table, 5, same_names=True, weights=[1, 1, 2, 1])
    with pytest.raises(InputError, match="link the sources already"):
        fuse(table, 5, same_names=True, views={"v": np.ones((400, 2))})


def test_living_with_it(tmp_path):
    y, table = crowd(10, 3, low=0.6, high=0.9)
    names = np.array(["ant", "bee", "cat", "dog", "eel"], dtype=object)
    said = {f"w{j}": [None if c < 0 else names[c] for c in table[:300, j]] for j in range(10)}
    fusion = fuse(said, "auto", same_names=True)
    assert set(fusion.names) == set(names)
    fusion.save(tmp_path / "crowd.consilience")
    again = consilience.load(tmp_path / "crowd.consilience")
    new = {f"w{j}": [None if c < 0 else names[c] for c in table[300:, j]] for j in range(10)}
    placed = again.place(new)
    right = np.array(fusion.names, dtype=object)[placed.labels] == names[y[300:]]
    assert right.mean() > 0.8
    np.testing.assert_allclose(placed.chances.sum(axis=1), 1.0)
    np.testing.assert_allclose(placed.chances.max(axis=1), placed.confidence)
    assert fusion.model.accuracy_.shape == (10,)
    assert "same names" in fusion.summary()
    assert fusion.explain(0).label == fusion.labels[0]
    empty = fuse({**said, "w0": [*said["w0"][:-1], None]}, "auto", same_names=True, unobserved="noise")
    assert empty.n_clusters == 5


def test_at_the_shell(tmp_path, capfd):
    from consilience.cli.main import run

    _, table = crowd(5, 3, n=120)
    lines = [",".join("" if c < 0 else f"n{c}" for c in row) for row in table]
    path = tmp_path / "crowd.csv"
    path.write_text("\n".join(["id," + ",".join("abcde"), *(f"{i},{line}" for i, line in enumerate(lines))]))
    out = tmp_path / "out.csv"
    assert run(["fuse", str(path), "--id", "id", "--same-names", "-o", str(out)]) == 0
    assert "same names" in capfd.readouterr().err
    assert "n0" in out.read_text()
