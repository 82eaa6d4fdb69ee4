"""docs/worker-outbox.md: its program runs."""

import re
import sys
from types import ModuleType
from typing import Any, Final

import pytest

pytest.importorskip("sqlalchemy")

from disque_trio.testing.inline.kit import Inline
from tests.trees import HOME

PAGE: Final = (HOME / "docs" / "worker-outbox.md").read_text("utf-8")
FILES: Final = dict(
    re.findall(r"^```python\n# (\w+)\.py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
)


def test_the_program_adds_the_jobs_of_committed_orders(
    disque_inline: Inline,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    page: Any = ModuleType("orders")
    monkeypatch.setitem(sys.modules, "orders", page)  # SQLAlchemy looks names up there
    exec(compile(FILES["orders"], "orders.py", "exec"), vars(page))
    page.Base.metadata.create_all(page.engine)

    page.place("ada@example.org")
    assert page.relay.drain() == 1
    disque_inline.blocking.run_all(page.app)

    assert capsys.readouterr().out == "confirms order 1 to ada@example.org\n"
    page.engine.dispose()


def test_the_settings_of_django_are_accepted() -> None:
    pytest.importorskip("django")
    from disque_trio.contrib.django.backend import Backend  # noqa: PLC0415

    names: dict[str, Any] = {}
    exec(compile(FILES["settings"], "settings.py", "exec"), names)
    assert Backend("default", names["TASKS"]["default"]).app.queues == ["default"]
