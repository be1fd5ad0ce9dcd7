"""The second-order sweep of `Euler2D`: MUSCL-Hancock, a row at a time (for the formulas see `euler2d.faces_of`).

For each row the states at its four kinds of faces, half a time step later:   x-   x+   y-   y+   (4 primitive layers each)
Fluxes between two rows come from x+ of the one and x- of the next; so two rows of faces are held at a time.

Beyond an open end the gradient is zero, so the state on the far side of the outermost face is that on the near side.
"""

import numpy as np
from numba import njit

from hybridworld.physics.kernels.euler2d_rows import ENERGY, MX, MY, RHO, P, U, V, finish_row

ROOM = 12 + 2 * 16 + 13  # layers: three kinds of fluxes, the faces of two rows, and what leads to faces


@njit(cache=True, nogil=True, error_model="numpy")
def _slopes(before, row, after, shift, first, last, slope):
    """The MC limiter: the mean of two differences, at most twice the smaller one; 0 where their signs differ.

    The neighbours of column j are columns j - shift of `before` and j + shift of `after`.
    """
    zero, half, two = row.dtype.type(0), row.dtype.type(0.5), row.dtype.type(2)
    shift = np.uint64(shift)
    for j in range(np.uint64(first), np.uint64(last)):
        a, b = row[j] - before[j - shift], after[j + shift] - row[j]
        size = min(two * min(abs(a), abs(b)), half * abs(a + b))
        signed = size if b > zero else -size
        slope[j] = signed if a * b > zero else zero


@njit(cache=True, nogil=True, error_model="numpy")
def _predict(row, first, last, kx, ky, gamma, floor, x, y, later, share):
    """Primitive states half a step later from the slopes x and y; share = 1/2, or 0 where a face would fall below `floor`.

    A loop for each layer: together they would be lost for vector instructions.
    """
    zero, half = row.dtype.type(0), row.dtype.type(0.5)
    rho, u, v, p = row[RHO], row[U], row[V], row[P]
    begin, end = np.uint64(first), np.uint64(last)
    for j in range(begin, end):
        later[0, j] = rho[j] - half * (kx * (u[j] * x[0, j] + rho[j] * x[1, j]) + ky * (v[j] * y[0, j] + rho[j] * y[2, j]))
    for j in range(begin, end):
        later[1, j] = u[j] - half * (kx * (u[j] * x[1, j] + x[3, j] / rho[j]) + ky * (v[j] * y[1, j]))
    for j in range(begin, end):
        later[2, j] = v[j] - half * (kx * (u[j] * x[2, j]) + ky * (v[j] * y[2, j] + y[3, j] / rho[j]))
    for j in range(begin, end):
        stiff = gamma * p[j]
        later[3, j] = p[j] - half * (kx * (u[j] * x[3, j] + stiff * x[1, j]) + ky * (v[j] * y[3, j] + stiff * y[2, j]))
    for j in range(begin, end):
        density = later[0, j] - half * max(abs(x[0, j]), abs(y[0, j]))
        pressure = later[3, j] - half * max(abs(x[3, j]), abs(y[3, j]))
        share[j] = half if (density > floor * rho[j]) & (pressure > floor * p[j]) else zero


@njit(cache=True, nogil=True, error_model="numpy")
def _spread(average, later, slope, share, first, last, minus, plus):
    """One layer at the two faces along an axis: later -+ slope / 2, or the average where the share is 0."""
    zero = share.dtype.type(0)
    for j in range(np.uint64(first), np.uint64(last)):
        middle = later[j] if share[j] > zero else average[j]
        minus[j] = middle - share[j] * slope[j]
        plus[j] = middle + share[j] * slope[j]


@njit(cache=True, nogil=True, error_model="numpy")
def _faces(below, row, above, first, last, kx, ky, gamma, floor, slopes, faces):
    """Primitive states at the faces of the cells [first, last), half a step later: x-, x+, y-, y+, four layers each."""
    x, y, later, share = slopes[0:4], slopes[4:8], slopes[8:12], slopes[12]
    for k, layer in enumerate((RHO, U, V, P)):
        _slopes(below[layer], row[layer], above[layer], 0, first, last, x[k])
        _slopes(row[layer], row[layer], row[layer], 1, first, last, y[k])
    _predict(row, first, last, kx, ky, gamma, floor, x, y, later, share)
    for k, layer in enumerate((RHO, U, V, P)):
        _spread(row[layer], later[k], x[k], share, first, last, faces[k], faces[4 + k])
        _spread(row[layer], later[k], y[k], share, first, last, faces[8 + k], faces[12 + k])


@njit(cache=True, nogil=True, error_model="numpy")
def _fluxes(left, right, shift, first, last, normal, gamma, flux):
    """HLL fluxes from primitive states: column k - shift of `left` and column k of `right`; normal 0 for x, 1 for y."""
    number = left.dtype.type
    zero, half, one = number(0), number(0.5), number(1)
    heat = one / (gamma - one)
    along, across = 1 + normal, 2 - normal
    momentum, transverse = MX + normal, MY - normal
    for k in range(np.uint64(first), np.uint64(last)):
        j = k - np.uint64(shift)
        rho_l, u_l, t_l, p_l = left[0, j], left[along, j], left[across, j], left[3, j]
        rho_r, u_r, t_r, p_r = right[0, k], right[along, k], right[across, k], right[3, k]
        a_l, a_r = np.sqrt(gamma * p_l / rho_l), np.sqrt(gamma * p_r / rho_r)
        m_l, m_r = rho_l * u_l, rho_r * u_r
        e_l = heat * p_l + half * rho_l * (u_l * u_l + t_l * t_l)
        e_r = heat * p_r + half * rho_r * (u_r * u_r + t_r * t_r)
        slow = min(min(u_l - a_l, u_r - a_r), zero)
        fast = max(max(u_l + a_l, u_r + a_r), zero)
        share = one / (fast - slow)
        both = slow * fast
        flux[RHO, k] = (fast * m_l - slow * m_r + both * (rho_r - rho_l)) * share
        flux[momentum, k] = (fast * (m_l * u_l + p_l) - slow * (m_r * u_r + p_r) + both * (m_r - m_l)) * share
        flux[transverse, k] = (fast * (m_l * t_l) - slow * (m_r * t_r) + both * (rho_r * t_r - rho_l * t_l)) * share
        flux[ENERGY, k] = (fast * ((e_l + p_l) * u_l) - slow * ((e_r + p_r) * u_r) + both * (e_r - e_l)) * share


@njit(cache=True, nogil=True)
def _hull(windows, begin, end):
    """From the first to the last column of the windows of the rows [begin, end)."""
    first, last = windows[begin]
    for k in range(begin + 1, end):
        first, last = min(first, windows[k, 0]), max(last, windows[k, 1])
    return first, last


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_second(field, new, windows, top, end, kx, ky, gamma, floor, room, fastest):
    """One substep of second order of the rows [top, end); room (ROOM, columns) is for fluxes and faces."""
    rows, columns = field.shape[0] - 2, field.shape[2] - 2
    before, after, within = room[0:4], room[4:8], room[8:12]
    past, now = room[12:28], room[28:44]
    for i in range(top - 1, end + 1):
        past, now = now, past
        first, last = _hull(windows, max(i - 1, top), min(i + 2, end))
        first, last = max(first - 1, 1), min(last + 1, columns + 1)
        if 1 <= i <= rows and first < last:
            _faces(field[i - 1], field[i], field[i + 1], first, last, kx, ky, gamma, floor, room[44:], now)
            if first == 1:
                now[12:16, 0] = now[8:12, 1]
            if last == columns + 1:
                now[8:12, columns + 1] = now[12:16, columns]
            if i == 1:
                past[4:8, first:last] = now[0:4, first:last]
        elif i > rows and first < last:
            now[0:4, first:last] = past[4:8, first:last]
        if i == top - 1:
            continue
        before, after = after, before
        first, last = _hull(windows, max(i - 1, top), min(i + 1, end))
        _fluxes(past[4:8], now[0:4], 0, first, last, 0, gamma, after)
        if i == top:
            continue
        first, last = windows[i - 1]
        if first < last:
            _fluxes(past[12:16], past[8:12], 1, first, last + 1, 1, gamma, within)
        finish_row(field, new, i - 1, first, last, kx, ky, gamma, before, after, within, fastest)
