#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what a release is made of as an SPDX 2.3 document (JSON) on standard output.

    tools/make_sbom.py FOLDER --version VERSION --date SECONDS

Packages: the files of FOLDER with their SHA-256; the Debian packages that the .deb files depend on, with the versions
installed where they were built; what is bundled in reports. Every package has its licence as Debian's copyright files or
package.json say it, NOASSERTION where they say it in words only.
"""
import argparse
import datetime
import hashlib
import json
import pathlib
import re
import subprocess

BUNDLED = [("uplot", "1.6.32", "MIT", "pkg:npm/uplot@1.6.32")]  # src/web/runtime/report.js


def field(package: pathlib.Path, name: str) -> str:
    return subprocess.run(["dpkg-deb", "--field", package, name], capture_output=True, text=True, check=True).stdout.strip()


def dependencies(folder: pathlib.Path) -> list[str]:
    """Names of what the packages depend on, without themselves."""
    names = set()
    for package in folder.glob("*.deb"):
        for alternative in re.split(r"[,|]", field(package, "Depends")):
            name = alternative.split("(")[0].strip().split(":")[0]
            if name and "orrery" not in name:
                names.add(name)
    return sorted(names)


def installed_version(name: str) -> str:
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True)
    return asked.stdout if asked.returncode == 0 and asked.stdout else "NOASSERTION"


def identifier(name: str) -> str:
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def entry(name: str, version: str, licence: str, **more) -> dict:
    return {"SPDXID": identifier(name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
            "copyrightText": "NOASSERTION", **more}


def document(folder: pathlib.Path, version: str, date: int) -> dict:
    files = sorted(file for file in folder.iterdir() if file.suffix in (".deb", ".whl", ".gz"))
    packages, relations = [], []
    for file in files:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        packages.append(entry(file.name, version, "Apache-2.0",
                              checksums=[{"algorithm": "SHA256", "checksumValue": digest}]))
        relations.append({"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                          "relatedSpdxElement": identifier(file.name)})
    main = next((file.name for file in files if file.name.startswith("orrery_")), files[0].name)
    for name in dependencies(folder):
        found = installed_version(name)
        packages.append(entry(name, found, "NOASSERTION", externalRefs=[
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
             "referenceLocator": f"pkg:deb/debian/{name}@{found}"}]))
        relations.append({"spdxElementId": identifier(main), "relationshipType": "DEPENDS_ON",
                          "relatedSpdxElement": identifier(name)})
    for name, found, licence, locator in BUNDLED:
        packages.append(entry(name, found, licence, externalRefs=[
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]))
        relations.append({"spdxElementId": identifier(main), "relationshipType": "CONTAINS",
                          "relatedSpdxElement": identifier(name)})
    content = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(date, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"orrery-{version}",
            "documentNamespace": f"urn:orrery:spdx:{version}:{content}",
            "creationInfo": {"created": created, "creators": ["Tool: orrery-make_sbom"]},
            "packages": packages, "relationships": relations}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--date", type=int, required=True, help="seconds since 1970, as SOURCE_DATE_EPOCH")
    given = parser.parse_args()
    print(json.dumps(document(given.folder, given.version, given.date), indent=2))


if __name__ == "__main__":
    main()
