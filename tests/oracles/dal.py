"""DAL by its definition: all instances, all pairs, dense one-hot tables, plain loops."""

import numpy as np


def one_hot(codes):
    columns = [(column[:, None] == np.arange(column.max() + 1)) for column in codes.T]
    return np.hstack(columns).astype(float)


def certainty(codes, theta):
    found = []
    for column in codes.T:
        for c in range(column.max() + 1):
            entropies = []
            for other in codes.T:
                labels = other[(column == c) & (other >= 0)]
                if len(labels):
                    share = np.unique(labels, return_counts=True)[1] / len(labels)
                    entropies.append(-(share * np.log2(share)).sum())
            found.append(np.exp(-np.mean(entropies) / theta))
    return np.array(found)


def similarity(codes, theta):
    """P_i G P_j^T scaled to a unit diagonal, P the certainties of a row's clusters as shares."""
    z = one_hot(codes) * certainty(codes, theta)
    s = z.sum(axis=1)
    p = z / s[:, None]
    m = p.T @ (s[:, None] * p)
    d = m.sum(axis=1)
    t = p @ (m / np.outer(d, d)) @ p.T
    return t / np.sqrt(np.outer(np.diag(t), np.diag(t)))


def link(s):
    """Groups of instances after every merge of average linkage, from n groups to one."""
    groups = [[i] for i in range(len(s))]
    stages = [[list(g) for g in groups]]
    while len(groups) > 1:
        mean = np.array([[s[np.ix_(a, b)].mean() if a is not b else -np.inf for b in groups] for a in groups])
        a, b = np.unravel_index(mean.argmax(), mean.shape)
        groups[a] = groups[a] + groups[b]
        del groups[b]
        stages.append([list(g) for g in groups])
    return stages


def choose(stages, n, k, min_share):
    enough = max(1.0, min_share * n / k)
    counting = [sum(len(g) >= enough for g in stage) for stage in stages[: n - k + 1]]
    for fits in (lambda count: count == k, lambda count: count > k, lambda count: True):
        good = [stage for stage, count in zip(stages, counting, strict=False) if fits(count)]
        if good:
            return sorted(good[-1], key=len, reverse=True)[:k]
    raise AssertionError("some cut always fits")


def assign(s, groups, max_iter=30):
    """Every instance to the group of highest mean similarity, until none moves."""
    k = len(groups)
    labels = np.full(len(s), -1)
    for c, group in enumerate(groups):
        labels[group] = c
    mean = np.column_stack([s[:, labels == c].mean(axis=1) for c in range(k)])
    labels = np.where(labels < 0, mean.argmax(axis=1), labels)
    for _ in range(max_iter):
        mean = np.column_stack([s[:, labels == c].mean(axis=1) for c in range(k)])
        new = mean.argmax(axis=1)
        for c in set(range(k)) - set(new):
            new[labels == c] = c
        if (new == labels).all():
            break
        labels = new
    return labels


def modularity(s, labels):
    """Similarity inside clusters, of all pairs of different instances, minus what sizes let one expect."""
    inside, total, degree = 0.0, 0.0, dict.fromkeys(labels.tolist(), 0.0)
    for i in range(len(s)):
        for j in range(len(s)):
            if i != j:
                total += s[i, j]
                inside += s[i, j] * (labels[i] == labels[j])
                degree[int(labels[i])] += s[i, j]
    return inside / total - sum((d / total) ** 2 for d in degree.values())
