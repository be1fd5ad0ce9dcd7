"""One row of `Euler2D` at a time: what its schemes of first and second order share, and the first-order sweep.

A field here is (rows, 8 layers, columns) with a rim of ghost cells. Layers: density, momenta, energy (conserved);
velocities, pressure, sound speed (derived). A row runs along y at fixed x.

Columns are counted in unsigned integers: a signed index may be negative, which numba then has to ask about in each cell, and
the loop is lost for vector instructions.
"""

import numpy as np
from numba import njit

RHO, MX, MY, ENERGY, U, V, P, A = range(8)


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
def update(row, new, first, last, kx, ky, before, after, within):
    """Conserved layers of a row: q - dt/dx (difference of x-fluxes) - dt/dy (difference of y-fluxes)."""
    for layer in range(4):
        for j in range(np.uint64(first), np.uint64(last)):
            new[layer, j] = (
                row[layer, j]
                - kx * (after[layer, j] - before[layer, j])
                - ky * (within[layer, j + np.uint64(1)] - within[layer, j])
            )


@njit(cache=True, nogil=True, error_model="numpy")
def derive(row, first, last, gamma, fastest):
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
def widen(field, windows, windows_new, top, end, far):
    """Widen windows_new of the rows [top, end) to all cells within `far` steps of a cell that is changing now."""
    rows, columns = field.shape[0] - 2, field.shape[2] - 2
    for i in range(max(top - far, 1), min(end + far, rows + 1)):
        first, last = windows[i]
        while first < last and not _changing(field, i, first):
            first += 1
        while first < last and not _changing(field, i, last - 1):
            last -= 1
        if first < last:
            for k in range(max(top, i - far), min(end, i + far + 1)):
                reach = far - abs(i - k)
                windows_new[k, 0] = min(windows_new[k, 0], max(first - reach, 1))
                windows_new[k, 1] = max(windows_new[k, 1], min(last + reach, columns + 1))


@njit(cache=True, nogil=True)
def close_rim(field, i):
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
def finish_row(field, new, i, first, last, kx, ky, gamma, before, after, within, fastest):
    """The new row i from the fluxes through its faces, with its rim, and its fastest waves."""
    if first < last:
        update(field[i], new[i], first, last, kx, ky, before, after, within)
        derive(new[i], first, last, gamma, fastest)
        close_rim(new, i)
    for j in (max(first - 1, 0), last):  # the cells beside the window speak for all outside of it
        fastest[0, j] = max(fastest[0, j], abs(new[i, U, j]) + new[i, A, j])
        fastest[1, j] = max(fastest[1, j], abs(new[i, V, j]) + new[i, A, j])


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_first(field, new, windows, top, end, kx, ky, gamma, room, fastest):
    """One substep of first order of the rows [top, end); room (12, columns) is for the fluxes of a row."""
    before, after, within = room[0:4], room[4:8], room[8:12]
    for i in range(top - 1, end):
        first, last = windows[max(i, top)]
        following = windows[min(i + 1, end - 1)]
        before, after = after, before
        _fluxes(field[i], field[i + 1], 0, min(first, following[0]), max(last, following[1]), 0, after)
        if i < top:
            continue
        if first < last:
            _fluxes(field[i], field[i], 1, first, last + 1, 1, within)
        finish_row(field, new, i, first, last, kx, ky, gamma, before, after, within, fastest)
