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


def _chance(base, labels, i, j, c):
    """P(label of i in base j | cluster c), i itself not counted."""
    k = base[:, j].max() + 1
    members = [p for p in range(len(base)) if p != i and labels[p] == c and base[p, j] >= 0]
    same = sum(base[p, j] == base[i, j] for p in members)
    return (same + 0.5 / k) / (len(members) + 0.5)


def _hard_correlation(base, labels):
    """Mean correlation of surprises inside consensus clusters, pair of bases by pair of bases."""
    n, m = base.shape
    if len(set(labels[labels >= 0])) == 1:
        return 0.0
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
    return min(max(products / squares, 0.0), 1.0) if squares else 0.0


def _soft_correlation(base, q, tables):
    """The same for instances that are in every cluster by a chance."""
    products = squares = 0.0
    for i in range(len(base)):
        seen = [j for j in range(base.shape[1]) if base[i, j] >= 0]
        for z in range(q.shape[1]):
            x = {}
            for j in seen:
                surprise = np.log(tables[j][:, z])
                x[j] = surprise[base[i, j]] - tables[j][:, z] @ surprise
            for j in seen:
                for other in seen:
                    if other != j:
                        products += q[i, z] * x[j] * x[other]
                        squares += q[i, z] * x[j] ** 2
    return min(max(products / squares, 0.0), 1.0) if squares else 0.0


def _joined(base, labels, j, k, n_clusters):
    """Members of every cluster of base j in every consensus cluster."""
    counts = np.zeros((k, n_clusters))
    for i in range(len(base)):
        if base[i, j] >= 0:
            counts[base[i, j], labels[i]] += 1
    return counts


def _ideal(table):
    """What a base without mistakes says of every cluster, and how often it says anything."""
    k, n_clusters = table.shape
    said = table.sum(axis=1) / max(table.sum(), 1)
    stands = np.zeros((k, n_clusters), dtype=bool)
    for v in range(k):
        if table[v].sum():
            near = table[v] / np.sqrt(table.sum(axis=0) + 1)
            stands[v] = near == near.max()
    for z in range(n_clusters):
        if not stands[:, z].any():
            near = table[:, z] / np.sqrt(np.maximum(table.sum(axis=1), 1))
            stands[:, z] = near == near.max()
    ideal = stands * said[:, None]
    return ideal / np.maximum(ideal.sum(axis=0), 1e-12), said


def _skills(base, prior, ideals):
    """Rank-one fit of the agreement of pairs of bases, instance by instance."""
    n, m = base.shape
    vectors = []
    for ideal, said in ideals:
        says = ideal * prior
        says = says / np.maximum(says.sum(axis=1, keepdims=True), 1e-12)
        v = (says - prior) / np.sqrt(np.maximum(prior, 1e-12))
        vectors.append(v - said @ v)
    weight, agreed = np.zeros((m, m)), np.zeros((m, m))
    means = [ideal.T @ v for (ideal, _), v in zip(ideals, vectors, strict=True)]
    expected = np.array([[np.sum(prior[:, None] * a * b) for b in means] for a in means])
    for j in range(m):
        for k in range(m):
            both = [i for i in range(n) if base[i, j] >= 0 and base[i, k] >= 0]
            least = 1e-6 * np.sqrt(expected[j, j] * expected[k, k])
            if j != k and both and expected[j, k] > least:
                weight[j, k] = len(both) * expected[j, k]
                found = sum(vectors[j][base[i, j]] @ vectors[k][base[i, k]] for i in both)
                agreed[j, k] = min(max(found / weight[j, k], 0.0), 1.0)
    linked = weight.sum(axis=1) > 0
    if not linked.any():
        return np.full(m, 0.9)
    u = np.full(m, np.sqrt(max((weight * agreed).sum() / weight.sum(), 1e-6)))
    for _ in range(60):
        new = [(weight[j] * agreed[j]) @ u / max(weight[j] @ u**2, 1e-12) for j in range(m)]
        u = np.sqrt(u * np.clip(new, 0.02, 1.0))
    return np.clip(np.where(linked, u, u[linked].mean()), 0.02, 0.995)


def _coin(ideal, said, members, skill):
    """A base that knows the cluster for a share of its instances and guesses for the others."""
    u = skill * members / (members + 0.5)
    out = np.maximum(u[:, None] * ideal + ((1 - u) * said)[:, None], 1e-9)
    return out / out.sum(axis=0)


def _blend(count, coin):
    """Expected counts and the coin, which is worth as many members as the counts leave it."""
    k, total = len(count), count.sum(axis=0)
    expected = total * coin
    chi = np.sum((count - expected) ** 2 / np.maximum(expected, 1e-9))
    chi /= max((k - 1) * np.sum(total > 0.5), 1)
    typical = np.sum(total**2) / max(total.sum(), 1)
    worth = np.clip((typical - 1) / max(chi - 1, 1e-6) - 1, 1, 1e4)
    return (count + worth * coin + 0.5 / k) / (total + worth + 0.5)


def plain_posterior(base, labels):
    """q of every assigned instance, and the dependence: five steps from the one-coin tables, twice."""
    sizes, n_clusters = [np.sum(labels == c) for c in range(labels.max() + 1)], labels.max() + 1
    prior = np.array(sizes) / sum(sizes)
    k = [base[:, j].max() + 1 for j in range(base.shape[1])]
    base = base[labels >= 0]
    labels = labels[labels >= 0]
    n, m = base.shape
    counts = [_joined(base, labels, j, k[j], n_clusters) for j in range(m)]
    ideals = [_ideal(count) for count in counts]
    skills = _skills(base, prior, ideals)
    coins = [_coin(*ideals[j], counts[j].sum(axis=1), skills[j]) for j in range(m)]

    def chances(tables, shares, dependence):
        q = np.zeros((n, n_clusters))
        for i in range(n):
            seen = [j for j in range(m) if base[i, j] >= 0]
            power = 1 / (1 + max(len(seen) - 1, 0) * dependence)
            for z in range(n_clusters):
                q[i, z] = shares[z] * np.prod([tables[j][base[i, j], z] for j in seen]) ** power
        return q / q.sum(axis=1, keepdims=True)

    def common(rho):
        return m * rho / (1 + (m - 1) * rho)

    def steps(dependence):
        tables, shares = coins, prior
        for _ in range(5):
            q = chances(tables, shares, dependence)
            expected = [[q[base[:, j] == v].sum(axis=0) for v in range(k[j])] for j in range(m)]
            tables = [_blend(np.array(count), coin) for count, coin in zip(expected, coins, strict=True)]
            shares = q.mean(axis=0)
        return chances(tables, shares, dependence), tables

    soft = _soft_correlation(base, *steps(0.0))
    dependence = common(min(_hard_correlation(base, labels), soft))
    return steps(dependence)[0], dependence


def plain_judgement(base, labels):
    """The posterior and the average overlap, mixed by the dependence: confidence, margin, alternative, and
    the chance of every cluster."""
    n, m = base.shape
    n_clusters = labels.max() + 1
    prior = np.array([np.sum(labels == c) for c in range(n_clusters)]) / np.sum(labels >= 0)
    posterior, mix = plain_posterior(base, labels)
    likely = np.zeros((n, n_clusters))
    likely[labels >= 0] = posterior
    out, margin, alternative = np.zeros(n), np.zeros(n), np.full(n, -1)
    chances = np.tile(prior, (n, 1))
    for i in range(n):
        z = labels[i]
        if z < 0:
            continue
        seen = [j for j in range(m) if base[i, j] >= 0]
        if not seen:
            out[i], margin[i] = prior[z], 0.5
            continue
        chance, known = np.zeros(n_clusters), np.zeros(n_clusters, dtype=bool)
        for c in range(n_clusters):
            opinions = []
            for j in seen:
                alike = [p for p in range(n) if p != i and base[p, j] == base[i, j] and labels[p] >= 0]
                in_cluster = sum(labels[p] == c for p in alike)
                others = sum(labels[p] == c and base[p, j] >= 0 and p != i for p in range(n))
                share = (in_cluster + prior[c]) / (len(alike) + 1)
                opinions.append(np.sqrt(share * in_cluster / max(others, 1)))
                known[c] |= in_cluster > 0
            chance[c] = (1 - mix) * likely[i, c] + mix * np.mean(opinions)
        out[i] = chance[z]
        if len(seen) == 1:
            alike = [p for p in range(n) if base[p, seen[0]] == base[i, seen[0]] and labels[p] >= 0]
            out[i] = min(out[i], np.mean([labels[p] == z for p in alike]))
        rest = sum(chance[c] for c in range(n_clusters) if c != z)
        for c in range(n_clusters):
            chances[i, c] = chance[c] = out[i] if c == z else (1 - out[i]) * chance[c] / rest
        rivals = [c for c in range(n_clusters) if c != z and known[c] and chance[c] > 0]
        if rivals:
            alternative[i] = max(rivals, key=lambda c: chance[c])
        second = chance[alternative[i]] if rivals else 0.0
        margin[i] = out[i] / (out[i] + second) if out[i] + second > 0 else 0.5
    return out, margin, alternative, chances


def plain_confidence(base, labels):
    """The confidence alone."""
    return plain_judgement(base, labels)[0]


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
