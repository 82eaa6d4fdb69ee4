"""Puts the compiled form into a wheel, if the environment has ``DISQUE_FORM=compiled``.

hatchling calls this as it builds a wheel. The wheel then holds the package as it is, native modules
beside the Python ones, which Python prefers, and a tag for this Python on this kind of machine.
Without that variable it is the pure wheel. What cannot be compiled fails the build.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledForm(BuildHookInterface[Any]):
    """`[tool.hatch.build.targets.wheel.hooks.custom]`."""

    def dependencies(self) -> list[str]:
        """What the build needs: the compiler, and the types of what the package imports."""
        core = self.metadata.core
        extras = core.optional_dependencies
        server = [each for each in extras["server"] if not each.startswith(core.name)]
        needed = [*core.dependencies, *extras["compiled"], *server]
        return needed if _is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add the native modules. An editable install stays pure."""
        if not _is_wanted() or version == "editable":
            return
        path = os.pathsep.join(filter(None, [self.root, os.environ.get("PYTHONPATH")]))
        built = subprocess.run(
            [sys.executable, "-m", "compiling.build"],
            check=False,
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": path},
        )
        if built.returncode:
            self.app.abort("No wheel was built. Without DISQUE_FORM=compiled it would be pure.")
        form = Path(self.root, "build", "compiled")
        natives = [*form.rglob("*.so"), form / "disque_trio" / "plain_records.py"]
        build_data["force_include"] |= {str(each): str(each.relative_to(form)) for each in natives}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _is_wanted() -> bool:
    return os.environ.get("DISQUE_FORM") == "compiled"
