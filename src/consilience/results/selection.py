"""The rule of "auto": which methods are tried on a table of labels, and which answer is taken, and why.

Nothing is fitted here. `plan` says what is tried from a few features of the table, and `decide` what to take
of what was found. What the rule was measured on is on the page on `fuse`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from consilience.results.fusion import Candidate

# Methods that are compared by agreement, and the most distinct label rows for which each is tried.
CANDIDATES = {
    "DAL": np.inf,
    "LWGP": np.inf,
    "PCE": np.inf,
    "MixtureConsensus": np.inf,
    "LWEA": 5_000,
    "SPCE": 1_000,
}
# Methods that are compared by likelihood.
LIKELY = ("HBGF", "MixtureConsensus")
# Where base clusterings are one clustering at several resolutions; the rival also where more clusters are
# wanted than sources have: mixtures then split clusters at will.
USUAL, RIVAL = "DAL", "LWEA"
# Above this many distinct rows methods are compared on a sample of so many instances.
SAMPLE = 5_000
# Base clusterings have about the wanted number of clusters if this share of them is within that distance.
_SHARE_NEAR, _NEAR = 0.9, 0.25
# A base clustering goes its own way if it follows from the others by at most so much. Clusterings of the same
# features by one program follow by .6 and more, people, views and columns by .5 and less.
_OWN_WAY = 0.55
# So large a share of them must: one of few sources, and not one bad run of many.
_SHARE_OWN_WAY = 0.125
# Agreement with base clusterings of other numbers of clusters is a poor guide to small differences, and a
# good one to a failure: LWEA takes DAL's place if it agrees better by so much.
_LEAD = 0.2

Rule = Literal["agreement", "likelihood", "finer", "DAL"]


class Features(NamedTuple):
    """What the rule knows of a table."""

    n_clusters: int  # the wanted number
    base_clusters: np.ndarray  # numbers of clusters of the base clusterings
    n_rows: int  # distinct label rows
    shared: np.ndarray | None = None  # how far each follows from the others, where it is known
    base_weights: np.ndarray | None = None


class Plan(NamedTuple):
    """What is tried, and by what the answer is chosen."""

    methods: tuple[str, ...]
    rule: Rule
    sampled: bool = False  # whether methods are compared on a sample
    least_shared: float = float("nan")  # of all base clusterings

    @property
    def polish(self) -> bool:
        """Whether the mixture shall improve what each method found."""
        return self.rule != "DAL"

    @property
    def n_steps(self) -> int:
        """How many fits there are."""
        n_polished = self.polish * (len(self.methods) - ("MixtureConsensus" in self.methods))
        return len(self.methods) + n_polished + self.sampled


class Decision(NamedTuple):
    """The answer to take, why, and all that were tried, by agreement."""

    best: Candidate
    reason: str
    ranked: tuple[Candidate, ...]


def plan(features: Features, limits: Mapping[str, float], rule: Rule | None = None) -> Plan:
    """What to try: methods among `limits`, which are the most base clusters that each of them takes.

    A `rule` of None follows from the features.
    """
    n_clusters, sampled = features.base_clusters.sum(), features.n_rows > SAMPLE
    taking = {name for name, most in limits.items() if n_clusters <= most}
    small = [name for name, most in CANDIDATES.items() if name in taking and features.n_rows <= most]
    rule = rule_of(features) if rule is None else rule
    if rule in ("likelihood", "finer"):
        least = float(np.nanmin(features.shared))  # type: ignore[arg-type]
        if rule == "finer" and RIVAL in small:
            return Plan((RIVAL,), rule, sampled, least)
        return Plan(tuple(name for name in LIKELY if name in taking), "likelihood", sampled, least)
    if rule == "DAL" and USUAL in taking:
        return Plan(tuple(name for name in small if name in (USUAL, RIVAL)), rule, sampled)
    return Plan(tuple(small), "agreement", sampled)  # DAL refuses very many base clusters


def rule_of(features: Features) -> Rule:
    """By what an answer is chosen."""
    if own_ways(features):
        mean = np.average(features.base_clusters, weights=features.base_weights)
        return "finer" if features.n_clusters > (1.0 + _NEAR) * mean else "likelihood"
    return "DAL" if mixed(features) else "agreement"


def own_ways(features: Features) -> bool:
    """Whether base clusterings do not follow from each other, as runs of one program on one table would."""
    shared = features.shared
    if shared is None or np.isnan(shared).all():
        return False
    known, weights = ~np.isnan(shared), features.base_weights
    own_way = shared[known].round(9) <= _OWN_WAY
    share = np.average(own_way, weights=None if weights is None else weights[known])
    return bool(share >= _SHARE_OWN_WAY)


def mixed(features: Features) -> bool:
    """Whether base clusterings have other numbers of clusters than the wanted one."""
    k = features.n_clusters
    near = np.abs(features.base_clusters - k) <= _NEAR * k
    return bool(np.average(near, weights=features.base_weights) < _SHARE_NEAR)


def decide(chosen: Plan, tried: Sequence[Candidate]) -> Decision:
    """The answer to take."""
    best = best_of(tried, chosen.rule)
    ranked = sorted(tried, key=_agreement, reverse=True)
    return Decision(best, _reason(best, chosen), tuple(ranked))


def best_of(tried: Sequence[Candidate], rule: Rule, lead: float = _LEAD) -> Candidate:
    """The candidate of highest agreement or likelihood; or DAL's unless LWEA's is far ahead.

    Only answers of the mixture have a likelihood.
    """
    if rule == "agreement":
        return max(tried, key=_agreement)
    if rule in ("likelihood", "finer"):
        return min((one for one in tried if one.surprise is not None), key=_surprise)
    by_name = {one.method: one for one in tried}
    usual, rival = by_name[USUAL], by_name.get(RIVAL, by_name[USUAL])
    return rival if rival.agreement > (1.0 + lead) * usual.agreement else usual


# Up to rounding: methods that find the same clusters are told apart by nothing else.


def _agreement(candidate: Candidate) -> float:
    return round(candidate.agreement, 9)


def _surprise(candidate: Candidate) -> float:
    assert candidate.surprise is not None
    return round(candidate.surprise, 9)


def _reason(best: Candidate, chosen: Plan) -> str:
    where = f" on {SAMPLE} instances" if chosen.sampled else ""
    if chosen.rule == "agreement":
        return f"It agrees best with the base clusterings{where} (mean NMI {best.agreement:.3f})."
    sources = (
        "The base clusterings do not all follow from each other, as runs of one program would (one by "
        f"{chosen.least_shared:.0%} only)"
    )
    if chosen.rule == "likelihood":
        return f"{sources}; this answer makes their labels most likely{where}."
    if chosen.rule == "finer":
        return f"{sources}, and have fewer clusters than are wanted: LWEA suits these."
    numbers = "The base clusterings have other numbers of clusters, and"
    if best.method == RIVAL:
        return (
            f"{numbers} it agrees better with them than DAL by more than {_LEAD:.0%}{where} (mean NMI "
            f"{best.agreement:.3f})."
        )
    rival = f"; LWEA does not agree much better with them{where}" if RIVAL in chosen.methods else ""
    return f"{numbers} follow from each other, as runs of one program do: DAL suits these{rival}."
