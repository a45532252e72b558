"""The diagnostics by loops over instances and pairs of instances. Slow on purpose."""

import numpy as np


def plain_support(base, labels):
    """s[i, c]: share of agreement of i with the other members of c, over the bases that saw both."""
    n, m = base.shape
    s = np.zeros((n, labels.max() + 1))
    for i in range(n):
        if labels[i] < 0:
            continue
        for c in range(s.shape[1]):
            agree = pairs = 0
            for other in range(n):
                if other == i or labels[other] != c:
                    continue
                for j in range(m):
                    if base[i, j] >= 0 and base[other, j] >= 0:
                        pairs += 1
                        agree += base[i, j] == base[other, j]
            s[i, c] = agree / pairs if pairs else 0.0
    return s


def plain_margin(s, labels):
    out = np.zeros(len(s))
    for i, z in enumerate(labels):
        if z >= 0:
            others = [s[i, c] for c in range(s.shape[1]) if c != z]
            second = max(others, default=0.0)
            out[i] = s[i, z] / (s[i, z] + second) if s[i, z] + second > 0 else 0.5
    return out


def _chance(base, labels, i, j, c):
    """P(label of i in base j | cluster c), i itself not counted."""
    k = base[:, j].max() + 1
    members = [p for p in range(len(base)) if p != i and labels[p] == c and base[p, j] >= 0]
    same = sum(base[p, j] == base[i, j] for p in members)
    return (same + 0.5 / k) / (len(members) + 0.5)


def plain_dependence(base, labels):
    """Spearman-Brown of the mean correlation of surprises, pair of bases by pair of bases."""
    n, m = base.shape
    x = np.full((n, m), np.nan)
    for i in range(n):
        for j in range(m):
            if base[i, j] >= 0 and labels[i] >= 0:
                x[i, j] = np.log(_chance(base, labels, i, j, labels[i]))
    for c in range(labels.max() + 1):
        for j in range(m):
            rows = (labels == c) & ~np.isnan(x[:, j])
            if rows.any():
                x[rows, j] -= x[rows, j].mean()
    products = squares = 0.0
    for i in range(n):
        seen = [j for j in range(m) if not np.isnan(x[i, j])]
        for j in seen:
            for other in seen:
                if other != j:
                    products += x[i, j] * x[i, other]
                    squares += 0.5 * (x[i, j] ** 2 + x[i, other] ** 2)
    rho = min(max(products / squares, 0.0), 1.0) if squares else 0.0
    return m * rho / (1 + (m - 1) * rho)


def plain_confidence(base, labels):
    """Naive Bayes and average overlap, mixed by the dependence."""
    n, m = base.shape
    n_clusters = labels.max() + 1
    prior = np.array([np.sum(labels == c) for c in range(n_clusters)]) / np.sum(labels >= 0)
    mix = plain_dependence(base, labels)
    out = np.zeros(n)
    for i in range(n):
        z = labels[i]
        if z < 0:
            continue
        seen = [j for j in range(m) if base[i, j] >= 0]
        if not seen:
            out[i] = prior[z]
            continue
        odds = prior.copy()
        for c in range(n_clusters):
            for j in seen:
                odds[c] *= _chance(base, labels, i, j, c)
        bayes = odds[z] / odds.sum()
        opinions, purities = [], []
        for j in seen:
            alike = [p for p in range(n) if base[p, j] == base[i, j] and labels[p] >= 0]
            in_cluster = sum(labels[p] == z for p in alike)
            others = sum(labels[p] == z and base[p, j] >= 0 for p in range(n)) - 1
            share = (in_cluster - 1 + prior[z]) / len(alike)
            opinions.append(np.sqrt(share * (in_cluster - 1) / max(others, 1)))
            purities.append(in_cluster / len(alike))
        out[i] = (1 - mix) * bayes + mix * np.mean(opinions)
        if len(seen) == 1:
            out[i] = min(out[i], purities[0])
    return out


def plain_never_together(base):
    seen = base >= 0
    return np.mean([[not (a & b).any() for b in seen] for a in seen])


def plain_components(base):
    """Component of every instance by repeated merging; -1 for an instance without labels."""
    n, m = base.shape
    which = np.arange(n)
    for i in range(n):
        for other in range(i):
            if any(base[i, j] >= 0 and base[i, j] == base[other, j] for j in range(m)):
                which[which == which[i]] = which[other]
    return np.where((base >= 0).any(axis=1), which, -1)


def plain_mask_link(base):
    seen = (base >= 0).astype(float)
    seen = seen[seen.any(axis=1)]
    scale = np.diag(1 / np.sqrt(seen.sum(axis=0)))
    matrix = scale @ seen.T @ np.diag(1 / seen.sum(axis=1)) @ seen @ scale
    return 1 - np.sort(np.linalg.eigvalsh(matrix))[-2]


def plain_eigenvalues(base):
    """Squared singular values of the normalised incidence of instances and clusters, largest first."""
    columns = [base[:, j] == c for j in range(base.shape[1]) for c in range(base[:, j].max() + 1)]
    incidence = np.column_stack(columns).astype(float)
    incidence /= np.sqrt(incidence.sum(axis=1, keepdims=True)) * np.sqrt(incidence.sum(axis=0))
    return np.linalg.svd(incidence, compute_uv=False) ** 2
