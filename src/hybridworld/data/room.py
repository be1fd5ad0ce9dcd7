"""Is there room for what was asked, in memory and on disk?"""

import os
import shutil
from pathlib import Path

from hybridworld.errors import InvalidInput


def size_in_words(count: float) -> str:
    """A number of bytes in words, for example `1.3 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def check_memory(needed: float, what: str, instead: str) -> None:
    """Raise where `what` would take more bytes than this machine has; `instead` says what to do."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return
    if needed > memory:
        raise InvalidInput(
            f"{what} would take {size_in_words(needed)} of memory, and there are {size_in_words(memory)}: {instead}."
        )


def check_disk(needed: float, folder: Path, what: str, instead: str) -> None:
    """Raise where `what` takes more bytes than the disk of an existing folder has left."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise InvalidInput(
            f"{what} needs {size_in_words(needed)} more, and the disk of {folder} has {size_in_words(free)} free: {instead}."
        )
