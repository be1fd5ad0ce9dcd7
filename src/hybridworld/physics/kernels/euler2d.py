"""Compiled form of `Euler2D.advance_numpy`: one pass over the field per substep, strips of rows shared by a team.

A field here is (rows, 8 layers, columns) with a rim of ghost cells. Layers: density, momenta, energy (conserved);
velocities, pressure, sound speed (derived). A row runs along y at fixed x. A substep reads the old field and writes the
new one row by row:

    fluxes from this row to the next, fluxes within the row -> conserved layers of the row -> its derived layers,
                                                               and the fastest wave of each column

so every conversion is made once, and the team meets once per substep.

A cell that equals its four neighbours cannot change, whatever the time step, and the news of a change travels one cell per
substep. So each row has a window [first, last) that holds all cells which may change during the next `PATIENCE` substeps,
and only windows are computed. Windows never shrink: the old and the new field agree outside of them.

Columns are counted in unsigned integers: a signed index may be negative, which numba then has to ask about in each cell, and
the loop is lost for vector instructions.
"""

import numpy as np
from numba import njit

from hybridworld.physics.kernels.team import run_team, wait

RHO, MX, MY, ENERGY, U, V, P, A = range(8)
DONE, NO_TIME_STEP = 0, 1
SMALLEST_STEP = 1e-9  # of a frame: below it the state has left physics, and stepping on would never end
PATIENCE = 4  # substeps between two looks for cells that begin to change


@njit(cache=True, nogil=True, error_model="numpy")
def _fluxes(left, right, shift, first, last, normal, flux):
    """HLL fluxes through the left faces of the cells [first, last) of row `right`, from the cells `shift` before in `left`.

    normal = 0 for x, 1 for y. With s = min(u - a, 0) over both sides and S = max(u + a, 0):
        F = (S F_left - s F_right + s S (q_right - q_left)) / (S - s)
    """
    momentum, transverse, velocity = MX + normal, MY - normal, U + normal
    zero, one = left.dtype.type(0), left.dtype.type(1)
    for k in range(np.uint64(first), np.uint64(last)):
        j = k - np.uint64(shift)
        u_l, m_l, t_l = left[velocity, j], left[momentum, j], left[transverse, j]
        u_r, m_r, t_r = right[velocity, k], right[momentum, k], right[transverse, k]
        e_l, p_l, a_l = left[ENERGY, j], left[P, j], left[A, j]
        e_r, p_r, a_r = right[ENERGY, k], right[P, k], right[A, k]
        slow = min(min(u_l - a_l, u_r - a_r), zero)
        fast = max(max(u_l + a_l, u_r + a_r), zero)
        share = one / (fast - slow)
        both = slow * fast
        flux[RHO, k] = (fast * m_l - slow * m_r + both * (right[RHO, k] - left[RHO, j])) * share
        flux[momentum, k] = (fast * (m_l * u_l + p_l) - slow * (m_r * u_r + p_r) + both * (m_r - m_l)) * share
        flux[transverse, k] = (fast * (t_l * u_l) - slow * (t_r * u_r) + both * (t_r - t_l)) * share
        flux[ENERGY, k] = (fast * ((e_l + p_l) * u_l) - slow * ((e_r + p_r) * u_r) + both * (e_r - e_l)) * share


@njit(cache=True, nogil=True, error_model="numpy")
def _update(row, new, first, last, kx, ky, before, after, within):
    """Conserved layers of a row: q - dt/dx (difference of x-fluxes) - dt/dy (difference of y-fluxes)."""
    for layer in range(4):
        for j in range(np.uint64(first), np.uint64(last)):
            new[layer, j] = (
                row[layer, j]
                - kx * (after[layer, j] - before[layer, j])
                - ky * (within[layer, j + np.uint64(1)] - within[layer, j])
            )


@njit(cache=True, nogil=True, error_model="numpy")
def _derive(row, first, last, gamma, fastest):
    """Derived layers of a row; |u| + a and |v| + a go into the running maxima `fastest`, column by column."""
    one, half = row.dtype.type(1), row.dtype.type(0.5)
    for j in range(np.uint64(first), np.uint64(last)):
        inverse = one / row[RHO, j]
        u, v = row[MX, j] * inverse, row[MY, j] * inverse
        p = (gamma - one) * (row[ENERGY, j] - half * (u * row[MX, j] + v * row[MY, j]))
        a = np.sqrt(gamma * p * inverse)
        row[U, j], row[V, j], row[P, j], row[A, j] = u, v, p, a
        fastest[0, j] = max(fastest[0, j], abs(u) + a)
        fastest[1, j] = max(fastest[1, j], abs(v) + a)


@njit(cache=True, nogil=True)
def _changing(field, i, j):
    """Does cell (i, j) differ from a neighbour?"""
    i, j, one = np.uint64(i), np.uint64(j), np.uint64(1)
    differs = False
    for layer in range(4):
        q = field[i, layer, j]
        differs |= (
            (q != field[i, layer, j - one])
            | (q != field[i, layer, j + one])
            | (q != field[i - one, layer, j])
            | (q != field[i + one, layer, j])
        )
    return differs


@njit(cache=True, nogil=True)
def _widen(field, windows, windows_new, top, end):
    """Widen windows_new of the rows [top, end) to all cells within PATIENCE steps of a cell that is changing now."""
    rows, columns = field.shape[0] - 2, field.shape[2] - 2
    for i in range(max(top - PATIENCE, 1), min(end + PATIENCE, rows + 1)):
        first, last = windows[i]
        while first < last and not _changing(field, i, first):
            first += 1
        while first < last and not _changing(field, i, last - 1):
            last -= 1
        if first < last:
            for k in range(max(top, i - PATIENCE), min(end, i + PATIENCE + 1)):
                reach = PATIENCE - abs(i - k)
                windows_new[k, 0] = min(windows_new[k, 0], max(first - reach, 1))
                windows_new[k, 1] = max(windows_new[k, 1], min(last + reach, columns + 1))


@njit(cache=True, nogil=True)
def _close_rim(field, i):
    """Zero gradient: ghost cells beside row i, and the ghost row beyond it where i is the first or the last."""
    rows, columns = field.shape[0] - 2, field.shape[2] - 2
    for layer in range(8):
        field[i, layer, 0] = field[i, layer, 1]
        field[i, layer, columns + 1] = field[i, layer, columns]
    if i == 1:
        field[0] = field[1]
    if i == rows:
        field[rows + 1] = field[rows]


@njit(cache=True, nogil=True, error_model="numpy")
def _advance_strip(
    field, new, windows, windows_new, speeds, frames, frame_step, dx, dy, gamma, cfl, saved, rank, size, barrier
):
    """`frames` frames of the rows of member `rank`, each copied to `saved` if that has room for them.

    Returns how it ended, and the number of substeps.
    """
    rows, columns = field.shape[0] - 2, field.shape[2] - 2
    top, end = 1 + rows * rank // size, 1 + rows * (rank + 1) // size
    number = field.dtype.type  # float32 arithmetic stays in float32
    before = np.empty((4, columns + 2), field.dtype)
    after = np.empty((4, columns + 2), field.dtype)
    within = np.empty((4, columns + 2), field.dtype)
    fastest = np.zeros((2, columns + 2), field.dtype)

    for i in range(top, end):
        _derive(field[i], 1, columns + 1, number(gamma), fastest)
        _close_rim(field, i)
        new[i] = field[i]
        _close_rim(new, i)
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
                _widen(field, windows, windows_new, top, end)
                windows, windows_new = windows_new, windows
            steps += 1

            fastest[:] = 0
            for i in range(top - 1, end):
                first, last = windows[max(i, top)]
                following = windows[min(i + 1, end - 1)]
                before, after = after, before
                _fluxes(field[i], field[i + 1], 0, min(first, following[0]), max(last, following[1]), 0, after)
                if i < top:
                    continue
                if first < last:
                    _fluxes(field[i], field[i], 1, first, last + 1, 1, within)
                    _update(field[i], new[i], first, last, number(dt / dx), number(dt / dy), before, after, within)
                    _derive(new[i], first, last, number(gamma), fastest)
                    _close_rim(new, i)
                for j in (max(first - 1, 0), last):  # the cells beside the window speak for all outside of it
                    fastest[0, j] = max(fastest[0, j], abs(new[i, U, j]) + new[i, A, j])
                    fastest[1, j] = max(fastest[1, j], abs(new[i, V, j]) + new[i, A, j])
            speeds[steps % 2, rank, 0], speeds[steps % 2, rank, 1] = fastest[0].max(), fastest[1].max()
            field, new = new, field
        for layer in range(len(saved)):
            for i in range(top, end):
                saved[layer, frame + 1, i - 1] = field[i, layer, 1:-1]
    return DONE, steps


def advance(state, frames, frame_step, dx, dy, gamma, cfl, threads, saved=None):
    """One state (4, nx, ny) after `frames` frames of `frame_step`; None where the time step collapsed.

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
            frames, frame_step, dx, dy, gamma, cfl, saved, rank, size, barrier,
        )  # fmt: skip

    how, steps = run_team(member, threads)[0]
    return fields[steps % 2, 1:-1, :4, 1:-1].transpose(1, 0, 2) if how == DONE else None
