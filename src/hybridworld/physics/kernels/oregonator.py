"""Compiled form of `Oregonator.advance_numpy`: the same operations in the same order, so the same bits.

The team takes turns at two jobs and meets after each. Reaction: rows are dealt out in turn, since quiet rows cost less than
fronts. Diffusion: each member takes all substeps of a frame on a copy of its strip of rows, with a halo as wide as they
reach; the copy stays in the core's cache.

The reaction runs on blocks of cells: a block is done when its last cell is, so quiet regions cost one Newton step. A cell
that has converged is left alone while its block goes on, so its answer does not depend on where it lies: shifting the field
shifts the answer, bit for bit.

Columns are counted in unsigned integers: a signed index may be negative, which numba then has to ask about in each cell, and
the loop is lost for vector instructions.
"""

import numpy as np
from numba import njit

from hybridworld.physics.kernels.team import run_team, wait

BLOCK = 32


@njit(cache=True, nogil=True, error_model="numpy")
def _react(u_row, v_row, tau, eps, f, q, newton_steps, tolerance, u_max, v_max, u_old, v_old, moving):
    """One implicit Euler step of length tau on a row; for the formulas see `oregonator.react`."""
    number = u_row.dtype.type
    zero, one, two = number(0), number(1), number(2)
    k, c = tau / eps, one / (one + tau)
    kfc, two_q = k * f * c, two * q
    columns = np.uint64(u_row.size)
    for start in range(np.uint64(0), columns, np.uint64(BLOCK)):
        size = min(np.uint64(BLOCK), columns - start)
        excited = 0
        for j in range(size):
            u_old[j], v_old[j], moving[j] = u_row[start + j], v_row[start + j], True
            excited += (u_old[j] != zero) | (v_old[j] != zero)
            u_row[start + j] = min(max(u_old[j], zero), u_max)
        if excited == 0:  # u = v = 0 stays as it is
            continue
        for _ in range(newton_steps):
            far = 0
            for j in range(size):
                u = u_row[start + j]
                w = v_old[j] + tau * u
                square, mixed = (u + q) * (u + q), (u + q) * (u - q)
                value = (u - u_old[j] - k * (u * (one - u))) * square + kfc * (w * mixed)
                slope = (one - k * (one - two * u)) * square + kfc * (tau * mixed + two_q * w)
                new = min(max(u - value / slope, zero), u_max)
                new = new if moving[j] else u
                moving[j] = abs(new - u) > tolerance
                far += moving[j]
                u_row[start + j] = new
            if far == 0:
                break
        for j in range(size):
            v_row[start + j] = min(max(c * (v_old[j] + tau * u_row[start + j]), zero), v_max)


@njit(cache=True, nogil=True, error_model="numpy")
def _react_rosenbrock(u_row, v_row, tau, eps, f, q, u_max, v_max, gamma):
    """One step of ROS2 of length tau on a row; for the formulas see `oregonator.react_rosenbrock`."""
    number = u_row.dtype.type
    zero, one, two, three = number(0), number(1), number(2), number(3)
    a, c, half, two_qf = gamma * tau, one + gamma * tau, tau / two, two * q * f
    af = a * f
    for j in range(np.uint64(u_row.size)):
        u_old, v_old = u_row[j], v_row[j]
        inverse = one / (u_old + q)
        share = (u_old - q) * inverse
        slope = (one - two * u_old - two_qf * (v_old * inverse * inverse)) / eps
        d, b = one - a * slope, af * share / eps
        scale = one / (d * c + a * b)
        k, m = (u_old * (one - u_old) - f * (v_old * share)) / eps, u_old - v_old
        k, m = (c * k - b * m) * scale, (d * m + a * k) * scale
        u, v = max(u_old + tau * k, zero), max(v_old + tau * m, zero)
        k2, m2 = (u * (one - u) - f * (v * ((u - q) / (u + q)))) / eps - two * k, u - v - two * m
        k2, m2 = (c * k2 - b * m2) * scale, (d * m2 + a * k2) * scale
        u_row[j] = min(max(u_old + half * (three * k + k2), zero), u_max)
        v_row[j] = min(max(v_old + half * (three * m + m2), zero), v_max)


@njit(cache=True, nogil=True, error_model="numpy")
def _diffuse(above, row, below, new, kx, ky):
    """One FTCS step of a row; its first and last entry are the periodic images of the cells at the other end."""
    row[0], row[-1] = row[-2], row[1]
    one, two = np.uint64(1), row.dtype.type(2)
    for j in range(one, np.uint64(row.size - 1)):
        twice = two * row[j]
        new[j] = row[j] + (kx * (above[j] + below[j] - twice) + ky * (row[j - one] + row[j + one] - twice))


@njit(cache=True, nogil=True, error_model="numpy")
def _advance_member(
    u, u_next, v, frames, tau, kx, ky, substeps, eps, f, q, newton_steps, tolerance, u_max, v_max, ros_steps, gamma,
    saved, rank, size, barrier,
):  # fmt: skip
    """`frames` frames, the part of member `rank`. The answer for u stands in `u` after an even number of frames.

    Each frame is copied to `saved` if that has room for them.
    """
    rows, columns = u.shape
    top, end = rows * rank // size, rows * (rank + 1) // size
    height = end - top + 2 * substeps
    strip = np.empty((height, columns + 2), u.dtype)
    strip_next = np.empty((height, columns + 2), u.dtype)
    u_old, v_old, moving = np.empty(BLOCK, u.dtype), np.empty(BLOCK, u.dtype), np.empty(BLOCK, np.bool_)
    number = u.dtype.type  # float32 arithmetic stays in float32
    ros_tau = number(tau / max(ros_steps, 1))
    tau, kx, ky, eps, f, q = number(tau), number(kx), number(ky), number(eps), number(f), number(q)
    tolerance, u_max, v_max, gamma = number(tolerance), number(u_max), number(v_max), number(gamma)
    for frame in range(frames + 1):
        for half in range(2):  # the second half step of one frame, then the first of the next
            if (frame > 0 or half == 1) and (frame < frames or half == 0):
                for r in range(rank, rows, size):
                    for _ in range(ros_steps):
                        _react_rosenbrock(u[r], v[r], ros_tau, eps, f, q, u_max, v_max, gamma)
                    if ros_steps == 0:
                        _react(u[r], v[r], tau, eps, f, q, newton_steps, tolerance, u_max, v_max, u_old, v_old, moving)
                    if half == 0 and len(saved) > 0:
                        saved[0, frame, r] = u[r]
                        saved[1, frame, r] = v[r]
        if frame == frames:
            break
        wait(barrier, size)
        for r in range(height):
            strip[r, 1:-1] = u[(top - substeps + r) % rows]
        for step in range(1, substeps + 1):
            for r in range(step, height - step):
                _diffuse(strip[r - 1], strip[r], strip[r + 1], strip_next[r], kx, ky)
            strip, strip_next = strip_next, strip
        u_next[top:end] = strip[substeps:-substeps, 1:-1]
        wait(barrier, size)
        u, u_next = u_next, u


def advance(
    state, frames, tau, kx, ky, substeps, eps, f, q, newton_steps, tolerance, u_max, v_max, ros_steps, gamma,
    threads, saved=None,
):  # fmt: skip
    """One state (2, nx, ny) after `frames` frames. Per diffusion substep, kx = D dt / dx^2 and ky = D dt / dy^2.

    `ros_steps`: steps of ROS2 per half step; with 0 the reaction takes one step of implicit Euler instead.
    `saved`: a float32 array (2, 1 + frames, nx, ny); its frames after the first are filled on the way.
    """
    u, v = state.copy()
    u_next = np.empty_like(u)
    saved = np.empty((0, 0, *u.shape), np.float32) if saved is None else saved

    def member(rank, size, barrier):
        _advance_member(
            u, u_next, v, frames, tau, kx, ky, substeps, eps, f, q,
            newton_steps, tolerance, u_max, v_max, ros_steps, gamma, saved, rank, size, barrier,
        )  # fmt: skip

    run_team(member, threads)
    return np.stack([u_next if frames % 2 else u, v])
