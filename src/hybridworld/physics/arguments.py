"""What callers give, checked once and told in one sentence: numbers, texts, states, parameters. Tensors are welcome."""

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.spec import StateSpec


def shown(value: Any) -> str:
    """A value as a message names it."""
    if value is None or isinstance(value, str | bool | int | float):
        return repr(value) if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value).lower()
    shape = getattr(value, "shape", None)
    if shape == ():
        return str(value)
    return f"of type {type(value).__name__}" if shape is None else f"an array of shape {tuple(shape)}"


def as_number(value: Any) -> float | None:
    """The value as a float; None where it is no single real number."""
    if type(value) is float or (type(value) is int and abs(value) < 2**53):  # mostly; and `np.shape` takes its time
        return float(value)
    if isinstance(value, bool | str | bytes) or value is None or np.shape(value) != ():
        return None
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def number(what: str, value: Any, low: float = -inf, high: float = inf) -> float:
    """The value, a real number from `low` to `high`."""
    found = as_number(value)
    if found is None or not low <= found <= high:
        limits = f" from {low:g} to {high:g}" if high < inf else f" of at least {low:g}" if low > -inf else ""
        raise InvalidInput(f"{what} is {shown(value)}: it must be a number{limits}.")
    return found


def whole(what: str, value: Any, low: int = 0) -> int:
    """The value, a whole number of at least `low`."""
    found = as_number(value)
    if found is None or found != np.floor(found) or not low <= found < inf:
        raise InvalidInput(f"{what} is {shown(value)}; it must be a whole number of at least {low}.")
    return int(value)


def checked_seed(value: Any) -> int:
    """The number of a trajectory or of a random draw: files keep it in 64 bits."""
    seed = whole("The seed", value)
    if seed >= 2**63:
        raise InvalidInput(f"The seed is {seed}; it must be below 2^63.")
    return seed


def checked_beginning(value: Any) -> None:
    """Raise unless it says that states begin their trajectories, that they do not, or nothing."""
    if not (value is None or isinstance(value, bool | np.bool_)):
        raise InvalidInput(f"beginning is {shown(value)}: it must be True, False or None, for all states together.")


def checked_text(what: str, value: Any) -> str:
    """The value, a text."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is {shown(value)}: it must be a text.")
    return value


def checked_path(what: str, value: Any) -> Path:
    """The path that a text or a Path names."""
    if not isinstance(value, str | Path) or not str(value):
        raise InvalidInput(f"{what} is {shown(value)}: give a path.")
    return Path(value)


def is_file(path: Path) -> bool:
    """Whether there is such a file; none has a name that the system refuses."""
    try:
        return path.is_file()
    except OSError:
        return False


def as_array(what: str, values: Any) -> np.ndarray:
    """The values as an array in the memory of this machine; gradients of a tensor stay behind."""
    try:
        return np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{what} cannot be read as an array of numbers: {str(error).rstrip('.')}.") from error


def first_non_finite(values: np.ndarray) -> tuple[int, ...] | None:
    """Index of the first value that is nan or infinite."""
    if np.isfinite(values).all():
        return None
    return tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])


def describe_cell(spec: StateSpec, states: np.ndarray, index: tuple[int, ...]) -> str:
    """What is wrong where, for example `density of state 3 is -0.2 at cell (12, 40)`."""
    where = f" at cell {index[2:]}" if len(index) > 2 else ""
    return f"{spec.channels[index[1]]} of state {index[0]} is {states[index]:g}{where}"


def checked_states(spec: StateSpec, states: Any) -> tuple[np.ndarray, bool]:
    """One state or many as finite numbers (batch, channels, *grid), and whether it was one."""
    states, shape = as_array(f"{spec.name}: the state", states), spec.shape
    if shape not in (states.shape, states.shape[1:]):
        raise InvalidInput(
            f"{spec.name}: the states have shape {states.shape}; expected {shape} for one state "
            f"or (batch, {', '.join(map(str, shape))}), with the channels {', '.join(spec.channels)}."
        )
    if not np.issubdtype(states.dtype, np.floating):
        raise InvalidInput(f"{spec.name}: the states have type {states.dtype}; expected floating-point numbers.")
    single = states.shape == shape
    batch = states[None] if single else states
    bad = first_non_finite(batch)
    if bad:
        raise InvalidInput(f"{spec.name}: {describe_cell(spec, batch, bad)}; every value must be finite.")
    return batch, single


def checked_params(spec: StateSpec, params: Any, count: int) -> np.ndarray:
    """Parameters as an array (count, number of spec.params) of values that physics permits; one row may stand for all.

    They may come as a mapping from their names to numbers, or to one number per state.
    """
    names = [parameter.name for parameter in spec.params]
    if isinstance(params, Mapping):
        params = _columns(spec, params, names, count)
    rows = np.zeros((count, 0)) if params is None else as_array(f"{spec.name}: params", params)
    if rows.dtype.kind not in "fiu":
        raise InvalidInput(f"{spec.name}: params have type {rows.dtype}; expected numbers: {', '.join(names) or 'none'}.")
    rows = rows.astype(np.float64)
    if rows.ndim == 1:
        rows = np.broadcast_to(rows, (count, rows.size))
    if rows.shape != (count, len(names)):
        raise InvalidInput(
            f"{spec.name}: params have shape {np.shape(params) if params is not None else 'none'}; "
            f"expected {(count, len(names))}, one row per state with the values of: {', '.join(names) or 'none'}."
        )
    low, high = np.array([parameter.allowed for parameter in spec.params]).reshape(-1, 2).T
    inside = (rows >= low) & (rows <= high)  # so that nan counts as outside
    if not inside.all():
        column = int(inside.all(axis=0).argmin())
        row, parameter = int(inside[:, column].argmin()), spec.params[column]
        raise InvalidInput(
            f"{spec.name}: parameter '{parameter.name}' of state {row} is {rows[row, column]:g}; "
            f"allowed is {low[column]:g} to {high[column]:g} {parameter.unit}."
        )
    return rows


def checked_horizon(horizon: Any, count: int) -> float | np.ndarray:
    """One positive number of frames, or, where `count` is above 0, one for each of so many states."""
    found = as_number(horizon)
    if found is not None:
        values = np.array([found])
    else:
        values = as_array("The horizon", horizon)
        if values.dtype.kind not in "fiu" or values.shape != (count,) or not count:
            several = f", or one for each of {count} states" if count else ""
            raise InvalidInput(f"The horizon is {shown(horizon)}: it must be a positive number of frames{several}.")
    wrong = ~((values > 0) & np.isfinite(values))
    if wrong.any():
        raise InvalidInput(f"The horizon is {values[wrong][0]:g} frames: it must be a positive number.")
    return found if found is not None else values.astype(float)


def _columns(spec: StateSpec, params: Mapping[str, Any], names: list[str], count: int) -> np.ndarray:
    """(count, number of spec.params) from name -> number, or one number per state."""
    unknown = [name for name in params if name not in names]
    if unknown:
        choices = f"there are {', '.join(names)}" if names else "there is none"
        raise InvalidInput(
            f"{spec.name} has no parameter of the dynamics '{unknown[0]}': {choices}.{nearest(str(unknown[0]), names)}"
        )
    rows = np.zeros((count, len(names)))
    for column, name in enumerate(names):
        if name not in params:
            raise InvalidInput(f"{spec.name}: params lack '{name}'; give {', '.join(names)}.")
        values = as_array(f"{spec.name}: parameter '{name}'", params[name])
        if values.dtype.kind not in "fiu" or values.shape not in ((), (count,)):
            raise InvalidInput(
                f"{spec.name}: parameter '{name}' is {shown(params[name])}; expected a number, or one per state ({count})."
            )
        rows[:, column] = values
    return rows
