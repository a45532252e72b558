"""Every estimator in a subpackage's ``__all__``, in the settings in which the common tests run it.

A new method adds its rows here; a test fails if it has none. The third entry names house checks that a
setting cannot pass by its definition, and why.
"""

_ABLATION = "without the joint term the labels follow the diversity term, whose scale depends on n"
_RANDOM = "labels are filled in at random, so another table means another draw"
_PACED = {
    "test_objective_is_recorded_and_falls": "age and rho change between steps; its own tests hold them fixed"
}
_AT_THE_MEAN = "all absent rows of a view are put at one place, and seem to be alike"

INSTANCES = [
    ("IMG", {}, {}),
    ("PVC", {}, {}),
    ("MultiNMF", {}, {}),
    ("MIC", {}, {}),
    ("DAIMC", {}, {}),
    ("SpectralAverage", {}, {}),
    ("SpectralConcat", {}, {}),
    ("SNF", {}, {}),
    ("NEMO", {}, {}),
    ("APMC", {}, {}),
    ("PSE", {}, {}),
    ("EEIMVC", {}, {}),
    ("EEIMVC", {"regularization": 0.0, "kernel": "linear", "prior": None}, {}),
    ("EEIMVC", {"prior": "mkkm", "kernel": "poly"}, {}),
    ("LFIMVC", {}, {}),
    ("OSLFIMVC", {}, {}),
    ("MKKMIK", {}, {}),
    ("MKKM", {}, {}),
    (
        "MKKM",
        {"imputation": "mean", "kernel": "cosine"},
        {
            "test_recovers_what_is_clear": _AT_THE_MEAN,
            "test_frames_are_joined_by_id": _AT_THE_MEAN,
            "test_training_rows_keep_their_clusters": _AT_THE_MEAN,
            "test_any_view_will_do": _AT_THE_MEAN,
        },
    ),
    ("MKKM", {"imputation": "knn", "kernel": "linear"}, {}),
    ("MKKM", {"imputation": "alignment"}, {}),
    ("ACMK", {"max_iter": 3}, {}),
    ("ACMK", {"refine": False, "final": "spectral"}, {}),
    ("ACMK", {"solver": "sparse"}, {}),
    ("ACMK", {"solver": "sparse", "final": "spectral", "filter": "polynomial"}, {}),
    ("DAL", {}, {}),
    ("DAL", {"solver": "scalable"}, {}),
    ("PCE", {}, {}),
    ("PCE", {"self_paced": False}, {}),
    ("PCE", {"diversity": False}, {}),
    (
        "PCE",
        {"imputation": "random"},
        {
            "test_recovers_what_is_clear": _RANDOM,
            "test_fitted_rows_keep_their_clusters_and_are_scored_by_agreement": _RANDOM,
            "test_renaming_labels_changes_nothing": _RANDOM,
            "test_order_of_base_clusterings_changes_nothing": _RANDOM,
            "test_permuting_instances_permutes_the_answer": _RANDOM,
            "test_repeated_rows_change_nothing": _RANDOM,
            "test_column_without_labels_is_ignored": _RANDOM,
        },
    ),
    (
        "PCE",
        {"discretize": "post", "tol": 1e-2},
        {
            "test_finds_the_number_of_clusters": _ABLATION,
            "test_recovers_what_is_clear": _ABLATION,
            "test_renaming_labels_changes_nothing": _ABLATION,
            "test_order_of_base_clusterings_changes_nothing": _ABLATION,
            "test_permuting_instances_permutes_the_answer": _ABLATION,
            "test_repeated_rows_change_nothing": _ABLATION,
        },
    ),
    ("SPCE", {}, _PACED),
    ("SPCE", {"weighting": "fixed"}, _PACED),
    ("SPCE", {"weighting": "none", "theta": 0.1}, _PACED),
    ("LWEA", {}, {}),
    ("LWGP", {}, {}),
    ("LWGP", {"discretize": "rotation"}, {}),
    ("ECCMS", {}, {}),
    ("EAC", {}, {}),
    ("EAC", {"linkage": "single"}, {}),
    ("DREC", {}, {}),
    ("HBGF", {}, {}),
    ("CSPA", {}, {}),
    ("PTA", {}, {}),
    ("PTGP", {}, {}),
    ("ECPCS", {}, {}),
    ("ECPCS", {"form": "hierarchy"}, {}),
    ("MCLA", {}, {}),
    ("TRCE", {}, {}),
    ("KC", {}, {}),
    ("NMFC", {}, {}),
    ("CESHL", {}, {}),
    ("SCCBG", {}, {}),
    ("RSEC", {}, {}),
    ("MVEC", {}, {}),
    ("M2VEC", {}, {}),
    ("KCC", {}, {}),
    ("KCC", {"utility": "entropy", "normalize": True}, {}),
    ("KCC", {"utility": "cosine"}, {}),
    ("SEC", {}, {}),
    ("HGPA", {}, {}),
    ("USENC", {}, {}),
    ("RCE", {}, {}),
    ("BCE", {}, {}),
    ("MixtureConsensus", {}, {}),
]

# scikit-learn's checks that do not fit an estimator of labels, and why.
NOT_FOR_LABELS = {
    "check_clustering": "feeds feature coordinates, which `Partitions` refuses with a hint",
    "check_positive_only_tag_during_fit": "feeds fractions, which are no labels",
    "check_dataframe_column_names_consistency": "columns are matched by name, in any order and number",
}
