"""How much Hypothesis tries: little while developing, the same examples every time in CI."""

import os

from hypothesis import HealthCheck, settings

# A deadline per example would make tests depend on how busy the machine is.
settings.register_profile(
    "dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=100, derandomize=True)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
