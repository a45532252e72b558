"""The rule of "auto": which methods are tried on a table of labels, and which answer is taken, and why.

Nothing is fitted here. `plan` says what is tried from a few features of the table, `next_trials` how to go on
after what was found, and `decide` what to take. What the rule was measured on is on the page on `fuse`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from consilience.results.fusion import Candidate

# Methods that "auto" compares, and the most distinct label rows for which it tries them.
CANDIDATES = {
    "DAL": np.inf,
    "LWGP": np.inf,
    "PCE": np.inf,
    "MixtureConsensus": np.inf,
    "LWEA": 5_000,
    "SPCE": 1_000,
}
# Above this many distinct rows methods are compared on a sample of so many instances.
SAMPLE = 5_000
# Base clusterings have about the wanted number of clusters if this share of them is within that distance.
_SHARE_NEAR, _NEAR = 0.9, 0.25
# Where they have not, DAL is taken but for two cases, in which only these methods play a part. Agreement with
# base clusterings of other numbers of clusters is a poor guide to small differences, and a good one to a
# failure: LWEA takes DAL's place if it agrees better by so much.
_MIXED = ("DAL", "LWEA", "MixtureConsensus")
_LEAD = 0.2
# Where base clusterings err independently, the mixture improves whatever it starts from, and its answers are
# better; where they share their errors, as clusterings of the same features do, it hardly moves anything.
# It is believed if it makes DAL agree better by so much, and instances have so many labels on average.
_IMPROVED, _ENOUGH = 0.04, 6.0


class Features(NamedTuple):
    """What the rule knows of a table."""

    n_clusters: int  # the wanted number
    base_clusters: np.ndarray  # numbers of clusters of the base clusterings
    n_rows: int  # distinct label rows
    labels_each: float  # labels of an instance on average, by weight
    base_weights: np.ndarray | None = None


class Plan(NamedTuple):
    """What is tried."""

    methods: tuple[str, ...]
    lead: float  # how far ahead of DAL another method must be; 0: the best is taken
    enough: bool  # whether instances have enough labels for the mixture to be believed
    sampled: bool  # whether methods are compared on a sample

    @property
    def mixed(self) -> bool:
        """Whether base clusterings have other numbers of clusters, and DAL is taken but for two cases."""
        return self.lead > 0.0 and "DAL" in self.methods

    @property
    def n_steps(self) -> int:
        """The most fits that there can be."""
        return 2 * len(self.methods) - ("MixtureConsensus" in self.methods) + self.sampled


class Trials(NamedTuple):
    """Methods to fit, and whether the mixture shall then improve what each found."""

    methods: tuple[str, ...]
    polish: bool


class Decision(NamedTuple):
    """The answer to take, why, and all that were tried, best first."""

    best: Candidate
    reason: str
    ranked: tuple[Candidate, ...]


def plan(features: Features, limits: Mapping[str, float], lead: float | None = None) -> Plan:
    """What to try: the candidates among `limits`, which are the most base clusters that methods take.

    `lead` of None follows from the numbers of base clusters.
    """
    lead = lead_of(features) if lead is None else lead
    n_clusters = features.base_clusters.sum()
    names = [
        name
        for name, most_rows in CANDIDATES.items()
        if features.n_rows <= most_rows and name in limits and n_clusters <= limits[name]
    ]
    if lead > 0.0 and "DAL" in names:
        names = [name for name in names if name in _MIXED]
    return Plan(tuple(names), lead, features.labels_each >= _ENOUGH, features.n_rows > SAMPLE)


def next_trials(chosen: Plan, tried: Sequence[Candidate]) -> Trials | None:
    """What to fit after what was tried; None at the end.

    With a lead, DAL comes first, then LWEA, and the mixture where it is believed: no other could be taken.
    """
    done = {one.method for one in tried}
    if not chosen.mixed:
        return None if done else Trials(chosen.methods, polish=True)
    if not done:
        return Trials(("DAL",), polish=chosen.enough)
    believed = _improves([one for one in tried if one.method == "DAL"])
    others = [name for name in chosen.methods if name == "LWEA" or (believed and name == "MixtureConsensus")]
    left = tuple(name for name in others if name not in done)
    return Trials(left, polish=believed) if left else None


def decide(chosen: Plan, tried: Sequence[Candidate]) -> Decision:
    """The answer to take."""
    best = best_of(tried, chosen.lead)
    lead = chosen.lead if "DAL" in chosen.methods else 0.0
    return Decision(best, _reason(best, lead, chosen.sampled), tuple(sorted(tried, key=_place, reverse=True)))


def _place(candidate: Candidate) -> float:
    """Agreement up to rounding: methods that find the same clusters are told apart by nothing else."""
    return round(candidate.agreement, 9)


def best_of(tried: Sequence[Candidate], lead: float) -> Candidate:
    """The candidate of highest agreement; with a lead, DAL but for the two cases above."""
    plain = {one.method: one for one in tried if not one.polished}
    usual = plain.get("DAL")
    if not lead or usual is None:  # DAL refuses very many base clusters
        return max(tried, key=_place)
    if _improves([one for one in tried if one.method == "DAL"]):
        return max((one for one in tried if one.polished or one.method == "MixtureConsensus"), key=_place)
    rival = plain.get("LWEA", usual)
    return rival if rival.agreement > (1.0 + lead) * usual.agreement else usual


def _improves(tried: Sequence[Candidate]) -> bool:
    """Whether the mixture was let to improve a method, and made it agree so much better."""
    by_mixture = {one.polished: one.agreement for one in tried}
    return True in by_mixture and by_mixture[True] > (1.0 + _IMPROVED) * by_mixture[False]


def _reason(best: Candidate, lead: float, sampled: bool) -> str:
    where = f" on {SAMPLE} instances" if sampled else ""
    if not lead:
        return f"It agrees best with the base clusterings{where} (mean NMI {best.agreement:.3f})."
    numbers = "The base clusterings have other numbers of clusters, and"
    if best.polished or best.method == "MixtureConsensus":
        return (
            f"{numbers} the mixture makes DAL agree better with them by more than {_IMPROVED:.0%}{where}, as "
            f"it does where they err independently; this answer agrees best (mean NMI {best.agreement:.3f})."
        )
    if best.method == "DAL":
        return f"{numbers} neither LWEA nor the mixture agrees much better with them{where}."
    return (
        f"{numbers} it agrees better with them than DAL by more than {lead:.0%}{where} (mean NMI "
        f"{best.agreement:.3f})."
    )


def lead_of(features: Features) -> float:
    """How far ahead of DAL another method must be: 0 where most base clusterings have about `k` clusters."""
    k = features.n_clusters
    near = np.abs(features.base_clusters - k) <= _NEAR * k
    return 0.0 if np.average(near, weights=features.base_weights) >= _SHARE_NEAR else _LEAD
