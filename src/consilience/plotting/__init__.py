"""Pictures of a result: each a function of what was found and an axis, which it returns.

``ax=None`` makes a new figure. A picture of several panels draws them as inset axes inside the axis that was
given, so each fits where one axis fits; they are ``ax.child_axes``. All read tables of a few hundred cells
(:mod:`consilience.diagnostics`), so a million instances are as good as a hundred.

Clusters have one colour in all pictures, chosen with colour-blind readers in mind; where there is space, the
number of the cluster stands beside it.
"""

from consilience.plotting._style import cluster_colors
from consilience.plotting.bases import plot_base_agreement, plot_bases, plot_missing, plot_views
from consilience.plotting.consensus import plot_consensus, plot_dendrogram, plot_membership
from consilience.plotting.convergence import plot_convergence
from consilience.plotting.flow import plot_flow
from consilience.plotting.instances import plot_confidence, plot_embedding
from consilience.plotting.levels import plot_levels
from consilience.plotting.n_clusters import plot_cdf, plot_count, plot_delta_area, plot_pac
from consilience.plotting.rosetta import plot_rosetta
from consilience.plotting.stability import plot_stability
from consilience.plotting.tracking import plot_tracking

__all__ = [
    "cluster_colors",
    "plot_base_agreement",
    "plot_bases",
    "plot_cdf",
    "plot_confidence",
    "plot_consensus",
    "plot_convergence",
    "plot_count",
    "plot_delta_area",
    "plot_dendrogram",
    "plot_embedding",
    "plot_flow",
    "plot_levels",
    "plot_membership",
    "plot_missing",
    "plot_pac",
    "plot_rosetta",
    "plot_stability",
    "plot_tracking",
    "plot_views",
]
