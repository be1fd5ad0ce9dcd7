"""Compiled form of `Euler2D.advance_numpy`: one pass over the field per substep, strips of rows shared by a team.

A substep reads the old field (rows, 8 layers, columns) and writes the new one row by row:

    fluxes from this row to the next, fluxes within the row -> conserved layers of the row -> its derived layers,
                                                               and the fastest wave of each column

so every conversion is made once, and the team meets once per substep.

A cell that equals all cells on which its change depends cannot change, whatever the time step, and the news of a change travels
as many cells per substep as the order of the scheme. So each row has a window [first, last) that holds all cells which may
change during the next `PATIENCE` substeps, and only windows are computed. Windows never shrink: the old and the new field agree
outside of them.
"""

import numpy as np
from numba import njit

from hybridworld.physics.kernels.euler2d_rows import close_rim, derive, sweep_first, widen
from hybridworld.physics.kernels.euler2d_second import ROOM, sweep_second
from hybridworld.physics.kernels.team import run_team, wait

DONE, NO_TIME_STEP = 0, 1
SMALLEST_STEP = 1e-9  # of a frame: below it the state has left physics, and stepping on would never end
PATIENCE = 4  # substeps between two looks for cells that begin to change


@njit(cache=True, nogil=True, error_model="numpy")
def _advance_strip(
    field, new, windows, windows_new, speeds, frames, frame_step, dx, dy, gamma, floor, cfl, order, saved, rank, size, barrier
):
    """`frames` frames of the rows of member `rank`, each copied to `saved` if that has room for them.

    Returns how it ended, and the number of substeps.
    """
    rows, columns = field.shape[0] - 2, field.shape[2] - 2
    top, end = 1 + rows * rank // size, 1 + rows * (rank + 1) // size
    number = field.dtype.type  # float32 arithmetic stays in float32
    room = np.empty((ROOM, columns + 2), field.dtype)
    fastest = np.zeros((2, columns + 2), field.dtype)

    for i in range(top, end):
        derive(field[i], 1, columns + 1, number(gamma), fastest)
        close_rim(field, i)
        new[i] = field[i]
        close_rim(new, i)
    speeds[0, rank, 0], speeds[0, rank, 1] = fastest[0].max(), fastest[1].max()

    steps = 0
    for frame in range(frames):
        left = frame_step
        while left > 0:
            wait(barrier, size)
            dt = cfl / (speeds[steps % 2, :, 0].max() / dx + speeds[steps % 2, :, 1].max() / dy)
            if not dt > SMALLEST_STEP * frame_step:
                return NO_TIME_STEP, steps
            dt = min(dt, left)
            left -= dt
            if steps % PATIENCE == 0:
                if steps > 0:
                    windows_new[top:end] = windows[top:end]
                widen(field, windows, windows_new, top, end, order * PATIENCE)
                windows, windows_new = windows_new, windows
            steps += 1

            fastest[:] = 0
            kx, ky = number(dt / dx), number(dt / dy)
            if order == 1:
                sweep_first(field, new, windows, top, end, kx, ky, number(gamma), room, fastest)
            else:
                sweep_second(field, new, windows, top, end, kx, ky, number(gamma), number(floor), room, fastest)
            speeds[steps % 2, rank, 0], speeds[steps % 2, rank, 1] = fastest[0].max(), fastest[1].max()
            field, new = new, field
        for layer in range(len(saved)):
            for i in range(top, end):
                saved[layer, frame + 1, i - 1] = field[i, layer, 1:-1]
    return DONE, steps


def advance(state, frames, frame_step, dx, dy, gamma, floor, cfl, order, threads, saved=None):
    """One state (4, nx, ny) after `frames` frames, by the scheme of order 1 or 2; None where the time step collapsed.

    `floor` is the least share of a cell's own density and pressure at its faces (second order).

    `saved`: a float32 array (4, 1 + frames, nx, ny); its frames after the first are filled on the way.
    """
    _, nx, ny = state.shape
    fields = np.empty((2, nx + 2, 8, ny + 2), state.dtype)
    fields[0, 1:-1, :4, 1:-1] = state.transpose(1, 0, 2)
    windows = np.empty((2, nx + 2, 2), np.int64)
    windows[0], windows[1] = (1, ny + 1), (ny + 1, 1)  # look everywhere at first; nothing found yet
    speeds = np.zeros((2, threads, 2))
    saved = np.empty((0, 0, nx, ny), np.float32) if saved is None else saved

    def member(rank, size, barrier):
        return _advance_strip(
            fields[0], fields[1], windows[0], windows[1], speeds,
            frames, frame_step, dx, dy, gamma, floor, cfl, order, saved, rank, size, barrier,
        )  # fmt: skip

    how, steps = run_team(member, threads)[0]
    return fields[steps % 2, 1:-1, :4, 1:-1].transpose(1, 0, 2) if how == DONE else None
