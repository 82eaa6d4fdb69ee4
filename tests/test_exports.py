"""The public names of the packages that users import: listed for shells, and importable."""

import re
from importlib import import_module
from typing import Final

import pytest

import disque_trio
from tests.client.test_imports import loaded
from tests.trees import HOME

LAZY: Final = ("disque_trio.client", "disque_trio.testing", "disque_trio.worker")
"""They import what a name needs when it is first used."""
PUBLIC: Final = (
    *LAZY,
    "disque_trio",
    "disque_trio.contrib",
    "disque_trio.contrib.django",
    "disque_trio.contrib.encryption",
    "disque_trio.contrib.flask",
    "disque_trio.contrib.otel",
    "disque_trio.contrib.outbox.django",
    "disque_trio.contrib.outbox.sqlalchemy",
    "disque_trio.contrib.sentry",
    "disque_trio.contrib.starlette",
)


@pytest.mark.parametrize("package", PUBLIC)
def test_each_public_name_is_listed_and_can_be_imported(package: str) -> None:
    module = import_module(package)

    assert module.__all__
    assert set(module.__all__) <= set(dir(module))
    assert set(vars(module)) <= set(dir(module))
    for name in module.__all__:
        exec(f"from {package} import {name}", {})


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_and_shells_know_the_same_names(package: str) -> None:
    source = (HOME / package.replace(".", "/") / "__init__.py").read_text("utf-8")
    named = re.findall(r"import (\w+) as \1$", source, re.MULTILINE)

    assert sorted(named) == import_module(package).__all__


@pytest.mark.parametrize("package", LAZY)
def test_a_list_of_the_names_imports_none_of_them(package: str) -> None:
    ours = {each for each in loaded(f"import {package}; dir({package})") if package in each}

    assert ours == {package}


@pytest.mark.parametrize("package", PUBLIC[:5])
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module '{package}' has no attribute 'nothing'$"):
        import_module(package).nothing  # noqa: B018


def test_a_shell_completes_from_the_package_on() -> None:
    assert {"client", "contrib", "testing", "worker"} <= set(dir(disque_trio))
    assert "BlockingClient" in dir(disque_trio.client)
