# SPDX-License-Identifier: Apache-2.0
"""The wheel: what CMake installs of component `python`, with the shipped configurations.

    pip wheel . --no-build-isolation --no-index --no-deps

ORRERY_BUILD names a build folder to take it from; without, build/wheel is configured and built.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
VERSION = re.search(r"project\(orrery VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


class BuildWithCMake(build_py):
    def run(self):
        build = pathlib.Path(os.environ.get("ORRERY_BUILD") or ROOT / "build/wheel").resolve()
        if not (build / "CMakeCache.txt").exists():
            subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release",
                            "-DORRERY_UNITY=ON", "-DORRERY_TESTS=OFF", "-DORRERY_MPI=OFF", "-DORRERY_PYTHON=ON",
                            f"-DPython_EXECUTABLE={sys.executable}"], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "python_package"], check=True)
        package = pathlib.Path(self.build_lib, "orrery")
        shutil.rmtree(package, ignore_errors=True)
        shutil.copytree(build / "python/orrery", package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "configs", package / "share/orrery/configs")
        shutil.copytree(ROOT / "docs/schema", package / "share/orrery/docs/schema")  # where configs name it


class Native(Distribution):
    """The wheel is of this interpreter and platform."""

    def has_ext_modules(self):
        return True


setup(name="orrery", version=VERSION, packages=["orrery"], package_dir={"orrery": "src/python/orrery"},
      description="Simulator and planner for training and serving large models on many accelerators",
      license="Apache-2.0", python_requires=">=3.9", extras_require={"arrays": ["numpy"]},
      entry_points={"console_scripts": ["orrery = orrery.__main__:main"]},
      cmdclass={"build_py": BuildWithCMake}, distclass=Native)
