"""Files that are whole at any moment, whatever interrupts their writing; folders in which one process works at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from hybridworld.errors import InvalidInput

LOCK = ".lock"


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Replace a file so that at any moment either the old or the new one is there, whole."""
    check_no_folder(path)
    aside = path.with_name(f".{path.name}.part")
    with aside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    move_into_place(aside, path)


def move_into_place(aside: Path, path: Path) -> None:
    """Rename a file that is safe on disk, and make the rename safe too."""
    aside.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def make_folder(path: Path) -> Path:
    """The folder, with all above it, made if it is not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "there is a file in its place" if isinstance(error, FileExistsError) else error.strerror or error
        raise InvalidInput(f"The folder {path} cannot be made ({why}): name another one.") from error
    return path


def check_no_folder(path: Path) -> None:
    """Raise where a folder stands in the place of a file."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder: name a file.")


def make_place(path: Path) -> Path:
    """The path of a file that is to be written, in a folder that is there or was made now."""
    check_no_folder(path)
    make_folder(path.parent)
    return path


@contextmanager
def only_one_in(root: Path, who: str) -> Iterator[None]:
    """Keep others of its kind out of a directory; the lock dies with its process."""
    try:
        with FileLock(root / LOCK, timeout=0):
            yield
    except Timeout as error:
        raise InvalidInput(f"Another {who} is at work in {root}: wait for it, or choose another folder.") from error
