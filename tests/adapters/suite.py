"""A suite that a maker publishes: where it is, how it is run against ours, and what came of it."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

PLUGINS = Path(__file__).parent / "plugins"
ROOT = Path(__file__).parents[2]
UNPACKED = ROOT / ".adapters" / "sdists"
SUITE_SECONDS = 900
SOURCES = "RECOLLECT_TEST_SOURCES"


@dataclass(frozen=True)
class Suite:
    """Tests of a source distribution, which stay as they are; a plugin replaces the fixture that builds what they test.

    The plugin is a module of `plugins`, loaded by pytest before the tests are. Where the makers put no tests into their
    source distribution, they come from a checkout of their repository: see `of_checkout`.
    """

    sdist: str
    sha256: str
    files: tuple[str, ...]
    plugin: str
    options: tuple[str, ...] = ()
    deselected: Mapping[str, str] = field(default_factory=dict)
    """Tests that do not concern ours, by node id, each with the reason; they are told as skipped."""

    checkout: str | None = None
    """A folder of the repository that the user has, in place of the source distribution."""

    @classmethod
    def of_checkout(cls, folder: str, files: tuple[str, ...], plugin: str, **more: Any) -> "Suite":
        """Tests of a repository that `make adapters SOURCES=...` has a checkout of, in this folder of it."""
        return cls("", "", files, plugin, checkout=folder, **more)

    def why_not(self) -> str | None:
        """Why it cannot be run here; None if it can."""
        if self.checkout is None:
            return None
        if SOURCES not in os.environ:
            return (
                "its makers publish no tests on the package index. Check out their repository into a folder, and name "
                f"it: make adapters SOURCES=FOLDER, where FOLDER/{self.checkout} is."
            )
        if missing := [name for name in self.files if not (self.folder() / name).exists()]:
            return f"there is no {self.folder() / missing[0]}"
        return None

    def folder(self) -> Path:
        """Where the tests are."""
        return self.unpacked() if self.checkout is None else Path(os.environ[SOURCES], self.checkout).absolute()

    def unpacked(self) -> Path:
        """The folder with the source distribution, fetched from the package index the first time."""
        folder = UNPACKED / self.sdist.replace("==", "-")
        if not folder.exists():
            with TemporaryDirectory() as downloads:
                self._fetch(Path(downloads))
                [archive] = Path(downloads).glob("*.tar.gz")
                with tarfile.open(archive) as packed:
                    packed.extractall(downloads, filter="data")
                [top] = [path for path in Path(downloads).iterdir() if path.is_dir()]
                folder.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["mv", str(top), str(folder)], check=True)
        return folder

    def _fetch(self, downloads: Path) -> None:
        wanted = downloads / "wanted.txt"
        wanted.write_text(f"{self.sdist} --hash=sha256:{self.sha256}\n")
        pip = [str(ROOT / ".tools/bin/python"), "-m", "pip", "download", "-q", "--disable-pip-version-check"]
        options = ["--no-deps", "--no-binary", ":all:", "--require-hashes", "-r", str(wanted), "-d", str(downloads)]
        subprocess.run([*pip, *options], check=True)

    def run(self) -> "Outcome":
        """Run the tests in a process of their own, with a memory of its own."""
        folder = self.folder()
        with TemporaryDirectory() as home:
            Path(home).chmod(0o755)
            report = Path(home) / "report.xml"
            options = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", self.plugin]
            options += [f"--deselect={node}" for node in self.deselected]
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *self.options, *self.files],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(PLUGINS), "RECOLLECT_DATA_DIR": str(Path(home) / "data")},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SUITE_SECONDS,
                check=False,
            )
            return Outcome.read(report, done.stdout, dict(self.deselected))


@dataclass(frozen=True)
class Outcome:
    """What a suite said of ours."""

    passed: int
    failed: list[str]
    skipped: dict[str, str]
    output: str

    @classmethod
    def read(cls, report: Path, output: str, skipped: dict[str, str]) -> "Outcome":
        """From the report that pytest wrote; without one nothing was tested."""
        if not report.exists():
            return cls(0, ["the suite did not run"], skipped, output)
        passed, failed = 0, []
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(name)
            elif (skip := case.find("skipped")) is not None:
                skipped[name] = skip.get("message") or "no reason given"
            else:
                passed += 1
        return cls(passed, failed, skipped, output)

    def lines(self, name: str) -> list[str]:
        """What to tell of it: counts, and every skipped test with the reason."""
        told = [f"{name}: {self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"]
        told += [f"  skipped {node}: {' '.join(why.split())}" for node, why in self.skipped.items()]
        return told + [f"  FAILED {node}" for node in self.failed]
