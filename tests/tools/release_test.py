# SPDX-License-Identifier: Apache-2.0
"""What a release says of itself: one version everywhere, and a list of contents that holds every file."""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTROL = "Package: {}\nVersion: 1.2.3\nArchitecture: all\nMaintainer: Nobody <a@b.c>\nDepends: {}\nDescription: made\n"


class Release(unittest.TestCase):
    def test_every_place_has_the_same_version(self):
        version = re.search(r"project\(orrery VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertIn(f"\nversion: {version}\n", (ROOT / "CITATION.cff").read_text())
        self.assertTrue((ROOT / "packaging/changelog").read_text().startswith(f"orrery ({version}) "))

    def package(self, folder: pathlib.Path, name: str, depends: str) -> None:
        made = folder / "made" / name
        (made / "DEBIAN").mkdir(parents=True)
        (made / "DEBIAN/control").write_text(CONTROL.format(name, depends))
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", made, folder / f"{name}_1.2.3_all.deb"], check=True,
                       capture_output=True)

    def test_the_list_of_contents_names_files_dependencies_and_what_is_bundled(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.package(folder, "orrery", "bash (>= 5), libc6 | libc6-other")
            self.package(folder, "orrery-dev", "orrery (= 1.2.3)")
            (folder / "orrery-1.2.3.whl").write_bytes(b"wheel")
            made = [sys.executable, "-B", ROOT / "tools/make_sbom.py", folder, "--version", "1.2.3", "--date", "86400"]
            text = subprocess.run(made, capture_output=True, text=True, check=True).stdout
            self.assertEqual(text, subprocess.run(made, capture_output=True, text=True, check=True).stdout)
            document = json.loads(text)
            self.assertEqual(document["spdxVersion"], "SPDX-2.3")
            self.assertEqual(document["creationInfo"]["created"], "1970-01-02T00:00:00Z")
            packages = {package["name"]: package for package in document["packages"]}
            self.assertEqual(packages["orrery-1.2.3.whl"]["checksums"][0]["checksumValue"],
                             hashlib.sha256(b"wheel").hexdigest())
            self.assertEqual({"bash", "libc6", "libc6-other", "uplot"} - packages.keys(), set())
            self.assertTrue(packages["bash"]["externalRefs"][0]["referenceLocator"].startswith("pkg:deb/debian/bash@"))
            identifiers = {package["SPDXID"] for package in document["packages"]} | {"SPDXRef-DOCUMENT"}
            for relation in document["relationships"]:
                self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, identifiers)


if __name__ == "__main__":
    unittest.main()
