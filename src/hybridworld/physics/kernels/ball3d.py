"""Compiled forms of `Ball3D.advance_numpy` and of the exact solution.

The three axes never meet, so each is a ball between two walls. After k substeps of free flight

    v_k = v + k g dt,    x_k = x + k v dt + g dt^2 k (k + 1) / 2,

hence the substep that first ends inside a wall has a closed form, and the work is one jump per bounce, whatever the number
of substeps between.
"""

import numpy as np
from numba import njit

SLOWEST = 1e-9  # m/s: below this a bouncing ball lies still (exact solution; its bounces pile up in finite time)


@njit(cache=True, nogil=True)
def _flight(x, v, g, dt, k):
    """Position and velocity after k substeps of free flight."""
    return x + k * (v * dt) + g * dt * dt * (k * (k + 1.0) / 2.0), v + k * (g * dt)


@njit(cache=True, nogil=True)
def _strikes(x, v, low, high):
    """Inside a wall and moving outward?"""
    return (x < low and v < 0.0) or (x > high and v > 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _substeps_to_wall(x, v, g, dt, low, high, limit):
    """The first substep that ends inside a wall while moving outward, or `limit` + 1 if none does by then; g <= 0."""
    if g == 0.0:
        if v == 0.0:
            return limit + 1
        k = ((high if v > 0.0 else low) - x) / (v * dt)
    else:
        a, b = g * dt * dt / 2.0, v * dt + g * dt * dt / 2.0  # x_k = x + b k + a k^2
        rise = b * b - 4.0 * a * (x - high)
        up = -2.0 * (x - high) / (b + np.sqrt(max(rise, 0.0))) if rise >= 0.0 and b > 0.0 else np.inf
        if v + up * g * dt > 0.0:
            k = up  # the ceiling comes before the top of the flight
        else:
            k = (-b - np.sqrt(max(b * b - 4.0 * a * (x - low), 0.0))) / (2.0 * a)
    if not k <= limit + 1:
        return limit + 1
    k = max(np.floor(k) - 1.0, 1.0)  # the root to within rounding; the test itself decides
    while k <= limit:
        x_k, v_k = _flight(x, v, g, dt, k)
        if _strikes(x_k, v_k, low, high):
            return int(k)
        k += 1.0
    return limit + 1


@njit(cache=True, nogil=True)
def _advance_axis(x, v, g, e, low, high, dt, substeps):
    left = substeps
    while left > 0:
        k = _substeps_to_wall(x, v, g, dt, low, high, left)
        if k > left:
            return _flight(x, v, g, dt, float(left))
        x, v = _flight(x, v, g, dt, float(k))
        x, v = (low if v < 0.0 else high), -e * v
        left -= k
    return x, v


@njit(cache=True, nogil=True)
def _exact_axis(x, v, g, e, low, high, time):
    while time > 0.0:
        if v > 0.0 and v * v > -2.0 * g * (high - x):  # reaches the upper wall
            wall = high
            hit = 2.0 * (high - x) / (v + np.sqrt(v * v + 2.0 * g * (high - x)))
        elif g < 0.0:
            wall = low
            hit = (v + np.sqrt(v * v - 2.0 * g * (x - low))) / -g
        elif v < 0.0:
            wall = low
            hit = (low - x) / v
        else:
            return x, v
        if hit >= time:
            return x + v * time + g * time * time / 2.0, v + g * time
        x, v = wall, -e * (v + g * hit)
        time -= hit
        if g < 0.0 and wall == low and v < SLOWEST:
            return low, 0.0
    return x, v


@njit(cache=True, nogil=True)
def advance(states, params, low, high, dt, substeps):
    """States (batch, 9) moved on by `substeps` substeps in place; params = (restitution, gravity)."""
    for n in range(len(states)):
        e, g = params[n]
        for axis in range(3):
            states[n, axis], states[n, 3 + axis] = _advance_axis(
                states[n, axis], states[n, 3 + axis], g if axis == 2 else 0.0, e, low[axis], high[axis], dt, substeps
            )


@njit(cache=True, nogil=True)
def exact(states, params, low, high, time):
    """States (batch, 9) moved on by `time` in place, from bounce to bounce."""
    for n in range(len(states)):
        e, g = params[n]
        for axis in range(3):
            states[n, axis], states[n, 3 + axis] = _exact_axis(
                states[n, axis], states[n, 3 + axis], g if axis == 2 else 0.0, e, low[axis], high[axis], time
            )
