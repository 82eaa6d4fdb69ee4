"""How much Hypothesis tries, how processes share the tests, and what must be left of them.

Little while developing, the same examples every time in CI.
"""

import gc
import os
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests import survivors

# A deadline per example would make tests depend on how busy the machine is.
settings.register_profile(
    "dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


class _OneOfEach(LoadScopeScheduling):  # type: ignore[misc]
    """Each test goes to whoever is free, but those of a file that shares a browser or a cluster to
    one process, and the files that share a Spark, or the syntax trees of all files."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/pipeline/"):
            return "tests/pipeline/"
        if nodeid.startswith(("tests/test_layers", "tests/test_style", "tests/test_tidy")):
            return "tests/trees"
        if nodeid.startswith(("tests/web/chromium/", "tests/cluster/")):
            return nodeid.partition("::")[0]
        return nodeid


def pytest_configure(config: pytest.Config) -> None:
    """Whoever leads the run looks for what is left of it."""
    survivors.watch(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test with the mark `sample(n)` all but every n-th are slow."""
    turns = Counter[str]()
    for item in items:
        if mark := item.get_closest_marker("sample"):
            test = item.nodeid.partition("[")[0]
            if turns[test] % mark.args[0]:
                item.add_marker(pytest.mark.slow)
            turns[test] += 1


def pytest_collection() -> None:
    """Tests are no garbage: collections of it would take a third of the time of making them."""
    gc.disable()


def pytest_collection_finish() -> None:
    """No collection of garbage has to traverse the tests, which are a gigabyte."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Asked with `-n` only."""
    return _OneOfEach(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What tests log may hold lone surrogates, which xdist cannot send."""
    report = yield
    report.sections = [(name, _sendable(text)) for name, text in report.sections]
    if isinstance(report.longrepr, str):
        report.longrepr = _sendable(report.longrepr)
    return report


def _sendable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
