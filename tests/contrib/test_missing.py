"""Without its framework a tie says what to install."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "framework", "says"),
    [
        ("disque_trio.contrib.flask", "flask", r'needs Flask: pip install "disque-trio\[flask\]"'),
        ("disque_trio.contrib.otel", "opentelemetry", r"disque-trio\[otel\]"),
        ("disque_trio.contrib.sentry", "sentry_sdk", r"disque-trio\[sentry\]"),
        ("disque_trio.contrib.encryption", "cryptography.exceptions", r"disque-trio\[encryption\]"),
    ],
)
def test_a_missing_framework_is_named(
    module: str, framework: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, framework, None)

    with pytest.raises(ImportError, match=says):
        importlib.import_module(module)


def test_so_is_django(monkeypatch: pytest.MonkeyPatch) -> None:
    package = importlib.import_module("disque_trio.contrib.django")
    for name in [name for name in sys.modules if name.startswith("disque_trio.contrib.django.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asgiref.sync", None)

    with pytest.raises(ImportError, match=r"disque_trio.contrib.django needs asgiref.sync: pip"):
        _ = package.Backend
