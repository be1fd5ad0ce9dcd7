"""`python -m tests.wheel out/dist`: do sdist and wheel hold what is in the repository?"""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def tracked(folder):
    """Files of the repository below a folder of it."""
    return set(subprocess.check_output(["git", "ls-files", folder], cwd=ROOT, text=True).split())


def check(folder):
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    package = tracked("src/hybridworld")
    inside = {f"src/{name}" for name in zipfile.ZipFile(wheel).namelist() if name.startswith("hybridworld/")}
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    assert inside == package, f"the wheel differs from the package by {sorted(inside ^ package)}"
    lacking = package | {"README.md", "LICENSE", "pyproject.toml"}
    assert not lacking - sources, f"the sdist lacks {sorted(lacking - sources)}"
    for path in (wheel, sdist):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    check(Path(sys.argv[1]))
