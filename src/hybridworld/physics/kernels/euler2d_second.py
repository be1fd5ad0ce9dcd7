"""The second-order sweep of `Euler2D`: MUSCL-Hancock, a row at a time (for the formulas see `euler2d.faces_of`).

For each row the states at its four kinds of faces, half a time step later:   x-   x+   y-   y+   (4 primitive layers each)
Fluxes between two rows come from x+ of the one and x- of the next; so two rows of faces are held at a time.

Beyond an open end the gradient is zero, so the state on the far side of the outermost face is that on the near side.
"""

import numpy as np
from numba import njit

from hybridworld.physics.euler2d import FLOOR
from hybridworld.physics.kernels.euler2d_rows import ENERGY, MX, MY, RHO, P, U, V, finish_row

ROOM = 12 + 2 * 16  # layers: three kinds of fluxes, and the faces of two rows


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _limited(before, after, zero, half, two):
    """The MC limiter: the mean of two differences, at most twice the smaller one; 0 where their signs differ."""
    size = min(two * min(abs(before), abs(after)), half * abs(before + after))
    signed = size if after > zero else -size
    return signed if before * after > zero else zero


@njit(cache=True, nogil=True, error_model="numpy")
def _faces(below, row, above, first, last, kx, ky, gamma, faces):
    """Primitive states at the faces of the cells [first, last), half a step later: x-, x+, y-, y+, four layers each."""
    number = row.dtype.type
    zero, half, one, two, floor = number(0), number(0.5), number(1), number(2), number(FLOOR)
    step = np.uint64(1)
    for j in range(np.uint64(first), np.uint64(last)):
        rho, u, v, p = row[RHO, j], row[U, j], row[V, j], row[P, j]
        rho_x = _limited(rho - below[RHO, j], above[RHO, j] - rho, zero, half, two)
        u_x = _limited(u - below[U, j], above[U, j] - u, zero, half, two)
        v_x = _limited(v - below[V, j], above[V, j] - v, zero, half, two)
        p_x = _limited(p - below[P, j], above[P, j] - p, zero, half, two)
        rho_y = _limited(rho - row[RHO, j - step], row[RHO, j + step] - rho, zero, half, two)
        u_y = _limited(u - row[U, j - step], row[U, j + step] - u, zero, half, two)
        v_y = _limited(v - row[V, j - step], row[V, j + step] - v, zero, half, two)
        p_y = _limited(p - row[P, j - step], row[P, j + step] - p, zero, half, two)
        inverse = one / rho
        rho_t = rho - half * (kx * (u * rho_x + rho * u_x) + ky * (v * rho_y + rho * v_y))
        u_t = u - half * (kx * (u * u_x + p_x * inverse) + ky * (v * u_y))
        v_t = v - half * (kx * (u * v_x) + ky * (v * v_y + p_y * inverse))
        p_t = p - half * (kx * (u * p_x + gamma * p * u_x) + ky * (v * p_y + gamma * p * v_y))
        safe = (rho_t - half * max(abs(rho_x), abs(rho_y)) > floor * rho) & (p_t - half * max(abs(p_x), abs(p_y)) > floor * p)
        share = half if safe else zero
        rho_t, u_t = rho_t if safe else rho, u_t if safe else u
        v_t, p_t = v_t if safe else v, p_t if safe else p
        faces[0, j], faces[4, j] = rho_t - share * rho_x, rho_t + share * rho_x
        faces[1, j], faces[5, j] = u_t - share * u_x, u_t + share * u_x
        faces[2, j], faces[6, j] = v_t - share * v_x, v_t + share * v_x
        faces[3, j], faces[7, j] = p_t - share * p_x, p_t + share * p_x
        faces[8, j], faces[12, j] = rho_t - share * rho_y, rho_t + share * rho_y
        faces[9, j], faces[13, j] = u_t - share * u_y, u_t + share * u_y
        faces[10, j], faces[14, j] = v_t - share * v_y, v_t + share * v_y
        faces[11, j], faces[15, j] = p_t - share * p_y, p_t + share * p_y


@njit(cache=True, nogil=True, error_model="numpy")
def _fluxes(left, right, shift, first, last, normal, gamma, flux):
    """HLL fluxes between primitive states: of column k - shift in `left` and of column k in `right`; normal 0 for x, 1 for y."""
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
def sweep_second(field, new, windows, top, end, kx, ky, gamma, room, fastest):
    """One substep of second order of the rows [top, end); room (ROOM, columns) is for fluxes and faces."""
    rows, columns = field.shape[0] - 2, field.shape[2] - 2
    before, after, within = room[0:4], room[4:8], room[8:12]
    past, now = room[12:28], room[28:44]
    for i in range(top - 1, end + 1):
        past, now = now, past
        first, last = _hull(windows, max(i - 1, top), min(i + 2, end))
        first, last = max(first - 1, 1), min(last + 1, columns + 1)
        if 1 <= i <= rows and first < last:
            _faces(field[i - 1], field[i], field[i + 1], first, last, kx, ky, gamma, now)
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
