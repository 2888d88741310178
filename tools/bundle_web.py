#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles the script and the style of HTML reports: src/web/source and uPlot -> src/web/runtime.

Needs esbuild, npm and the network (Debian packages esbuild and npm); the build of Orrery needs none of them, since
the bundle is committed. `bundle_web.py --uplot DIR` takes an unpacked uplot package instead of npm's.
"""
import argparse
import base64
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/web/source"
TARGET = ROOT / "src/web/runtime"


def fetched(package: str, folder: str) -> pathlib.Path:
    archive = subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True, text=True)
    subprocess.run(["tar", "xzf", archive.stdout.strip()], cwd=folder, check=True)
    return pathlib.Path(folder, "package")


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--uplot", help="folder of the unpacked npm package")
    arguments.add_argument("--output", default=str(TARGET), help="folder of the bundle")
    given = arguments.parse_args()
    version = json.loads((SOURCE / "package.json").read_text())["dependencies"]["uplot"]
    with tempfile.TemporaryDirectory() as folder:
        package = pathlib.Path(given.uplot).resolve() if given.uplot else fetched(f"uplot@{version}", folder)
        modules = pathlib.Path(folder, "node_modules")
        modules.mkdir()
        (modules / "uplot").symlink_to(package)
        subprocess.run(["esbuild", str(SOURCE / "main.js"), "--bundle", "--minify", "--format=iife", "--target=es2022",
                        "--charset=ascii", "--legal-comments=none", f"--outfile={folder}/report.js", "--log-level=warning"],
                       check=True, env={**os.environ, "NODE_PATH": str(modules)})
        licence = (package / "LICENSE").read_text().strip()
        note = f"/* Orrery, Apache-2.0. Contains uPlot {version}:\n{licence}\n*/\n"
        script = note + pathlib.Path(folder, "report.js").read_text().strip().replace("</script", "<\\/script") + "\n"
        style = pathlib.Path(folder, "report.css").read_text().strip() + "\n"
    output = pathlib.Path(given.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "report.js").write_text(script)
    (output / "report.css").write_text(style)
    (output / "policy.txt").write_text("default-src 'none'; base-uri 'none'; form-action 'none'; "
                                       f"script-src '{digest(script)}'; style-src '{digest(style)}'")


if __name__ == "__main__":
    main()
