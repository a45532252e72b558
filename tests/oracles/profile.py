"""Effect sizes of columns by textbook formulas, a column at a time. Slow on purpose."""

import numpy as np
from scipy.stats import chi2_contingency, f_oneway, kruskal, rankdata


def plain_number_effect(values, labels):
    """Root of epsilon squared of the ranks, from the F of an analysis of variance."""
    seen = ~np.isnan(values)
    values, labels = values[seen], labels[seen]
    clusters = np.unique(labels)
    n, k = len(values), len(clusters)
    ranks = rankdata(values)
    f = f_oneway(*(ranks[labels == c] for c in clusters)).statistic
    return np.sqrt(max((k - 1) * (f - 1) / ((k - 1) * f + n - k), 0.0))


def plain_kruskal(values, labels):
    """The p-value of the test of Kruskal and Wallis."""
    seen = ~np.isnan(values)
    values, labels = values[seen], labels[seen]
    return kruskal(*(values[labels == c] for c in np.unique(labels))).pvalue


def crossed(values, labels):
    """The table of two columns, without what is missing (None) in the first."""
    pairs = [(value, c) for value, c in zip(values, labels, strict=True) if value is not None]
    rows, columns = (sorted(set(side)) for side in zip(*pairs, strict=True))
    return np.array([[sum(pair == (a, c) for pair in pairs) for c in columns] for a in rows])


def plain_category_effect(values, labels):
    """Cramer's V with Bergsma's correction."""
    table = crossed(values, labels)
    n, (r, k) = table.sum(), table.shape
    phi = chi2_contingency(table, correction=False).statistic / n
    phi = max(phi - (r - 1) * (k - 1) / (n - 1), 0)
    return np.sqrt(phi / min(r - (r - 1) ** 2 / (n - 1) - 1, k - (k - 1) ** 2 / (n - 1) - 1))


def plain_chi_square(values, labels):
    """The p-value of the chi-square test."""
    return chi2_contingency(crossed(values, labels), correction=False).pvalue
