"""Shards are read by those alone whose bytes are those of the manifest: hashed on first read, remembered by size and time."""

import json
import threading
from contextlib import suppress
from pathlib import Path

from hybridworld.data.atomic import write_atomically
from hybridworld.data.manifest import Manifest, fault_of
from hybridworld.errors import InvalidInput

FILE = ".verified.json"
"""Path -> size, time of the last change and sha256 of the shards that were found whole."""


class Verified:
    """The shards of a dataset that were found whole; a directory without a manifest has nothing to compare with."""

    def __init__(self, root: Path) -> None:
        self._root, self._manifest = root, Manifest.load(root)
        self._whole: set[Path] = set()  # in this process
        self._lock = threading.Lock()

    def check(self, path: Path) -> None:
        """Raise unless the file is whole; it is hashed at most once as long as it does not change."""
        if self._manifest is None or path in self._whole:
            return
        with self._lock:
            name = path.relative_to(self._root).as_posix()
            entry = self._manifest.shards.get(name)
            if entry is None:
                raise InvalidInput(f"{path} is not in the manifest of {self._root}: delete it, or move it elsewhere.")
            known = self._remembered()
            now = [path.stat().st_size, path.stat().st_mtime_ns, entry["sha256"]] if path.exists() else None
            if now is None or known.get(name) != now:
                fault = fault_of(path, entry)
                if fault:
                    raise InvalidInput(f"{path} {fault}; delete it and run `hybridworld generate` again: it is made anew.")
                with suppress(OSError):  # a folder that cannot be written to is hashed again next time
                    write_atomically(self._root / FILE, json.dumps(self._remembered() | {name: now}).encode())
            self._whole.add(path)

    def _remembered(self) -> dict[str, list[object]]:
        try:
            return dict(json.loads((self._root / FILE).read_text()))
        except (OSError, ValueError, TypeError):
            return {}
