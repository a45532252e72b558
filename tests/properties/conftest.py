"""How long to look: seconds in `make test`, always at the same examples; in `make fuzz` as it is told."""

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]

settings.register_profile(
    "seconds", max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW
)
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("CONSILIENCE_EXAMPLES", "2000")),
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW,
)
settings.load_profile(os.environ.get("CONSILIENCE_PROFILE", "seconds"))
