"""Rules by which `fuse` could choose, compared afterwards: a fit keeps its agreement with the base labels."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.record import design

LEADS = (0.05, 0.1, 0.15, 0.2, 0.3)
IMPROVEMENTS = (0.02, 0.03, 0.04, 0.05, 0.1)  # of DAL by the mixture, from which on the mixture is believed
MIXTURES = ("DAL, polished", "LWEA, polished", "MixtureConsensus")
ENOUGH = 6.0  # labels a row, without which it never is
WHO = {
    "any other": (
        "DAL, polished",
        "LWEA",
        "LWEA, polished",
        "LWGP",
        "PCE",
        "PCE, polished",
        "MixtureConsensus",
    ),
    "LWEA": ("LWEA",),
    "LWEA or LWEA, polished": ("LWEA", "LWEA, polished"),
    "LWEA, polished": ("LWEA, polished",),
}
METRIC = "nmi_sqrt"


class Rule(NamedTuple):
    """Means of the answers that a rule takes, on the pools in two parts."""

    name: str
    eight: float
    three: float
    all: float  # of any data sets
    chosen: str = ""  # where it is the best


def held_out(rows: pd.DataFrame) -> list[Rule]:
    """Every rule on both parts; the best of each part is marked, to be read off the other."""
    rows = rows[rows["error"] == ""]
    index = ["data", "draw", "bases", "missing"]
    score, agreement = (
        rows.pivot_table(index=index, columns="method", values=v) for v in (METRIC, "agreement")
    )
    needed = ["DAL", *WHO["any other"]]
    if any(name not in score for name in needed):
        return []
    score = score.dropna(subset=needed)
    agreement = agreement.loc[score.index]
    found = {"DAL, always": score["DAL"]}
    for who, methods in WHO.items():
        for lead in LEADS:
            found[f"{who}, if ahead by {lead:.0%}"] = taken(score, agreement, methods, lead)
    for gain in IMPROVEMENTS:
        found[f"LWEA by 20%; the mixture, if it improves DAL by {gain:.0%}"] = improved(
            score, agreement, gain
        )
    means = {}
    for name, values in found.items():
        cells = values.groupby(["data", "bases", "missing"]).mean()  # some have more draws than others
        pools = cells.groupby("data").mean()
        parts = (design.EIGHT, design.THREE, pools.index)
        means[name] = [float(pools[pools.index.isin(part)].mean()) for part in parts]
    best = [max(means, key=lambda name, i=i: means[name][i]) for i in (0, 1)]
    said = {
        name: " and ".join(n for n, b in zip(("eight", "three"), best, strict=True) if b == name)
        for name in means
    }
    return [Rule(name, *figures, said[name]) for name, figures in means.items()]


def taken(score: pd.DataFrame, agreement: pd.DataFrame, methods: tuple[str, ...], lead: float) -> pd.Series:
    """Scores of what a rule takes: the best agreement of these methods if so far ahead of DAL, else DAL."""
    best = agreement[list(methods)].to_numpy().argmax(axis=1)
    rows = np.arange(len(best))
    ahead = agreement[list(methods)].to_numpy()[rows, best] > (1.0 + lead) * agreement["DAL"].to_numpy()
    other = score[list(methods)].to_numpy()[rows, best]
    return pd.Series(np.where(ahead, other, score["DAL"].to_numpy()), index=score.index)


def improved(score: pd.DataFrame, agreement: pd.DataFrame, gain: float) -> pd.Series:
    """Scores of what `fuse` takes: mixtures where polishing improves DAL by so much, LWEA if far ahead."""
    index = score.index.to_frame()
    enough = (index["bases"] * (1.0 - index["missing"])).round(9) >= ENOUGH
    believed = enough & (agreement["DAL, polished"] > (1.0 + gain) * agreement["DAL"])
    best = agreement[list(MIXTURES)].to_numpy().argmax(axis=1)
    mixture = score[list(MIXTURES)].to_numpy()[np.arange(len(best)), best]
    return taken(score, agreement, ("LWEA",), 0.2).where(~believed, pd.Series(mixture, index=score.index))
