"""Exact solution of the one-dimensional Riemann problem of an ideal gas (Toro, chapter 4)."""

import numpy as np
from scipy.optimize import brentq

GAMMA = 1.4


def riemann(left, right, speed):
    """(rho, u, p) along the rays x/t = speed, for left and right states (rho, u, p)."""
    (rho_l, u_l, p_l), (rho_r, u_r, p_r) = left, right
    a_l, a_r = np.sqrt(GAMMA * p_l / rho_l), np.sqrt(GAMMA * p_r / rho_r)

    def jump(p, rho_k, p_k, a_k):
        """Change of velocity across the wave that leads from the pressure p_k to p."""
        if p > p_k:  # shock
            return (p - p_k) * np.sqrt(2 / ((GAMMA + 1) * rho_k) / (p + (GAMMA - 1) / (GAMMA + 1) * p_k))
        return 2 * a_k / (GAMMA - 1) * ((p / p_k) ** ((GAMMA - 1) / (2 * GAMMA)) - 1)  # rarefaction

    p = brentq(lambda p: jump(p, rho_l, p_l, a_l) + jump(p, rho_r, p_r, a_r) + u_r - u_l, 1e-9, 1e3)
    u = (u_l + u_r + jump(p, rho_r, p_r, a_r) - jump(p, rho_l, p_l, a_l)) / 2

    mirrored = speed > u  # solve the right half as the mirror image of a left half
    answer = np.empty((3, len(speed)))
    for side, (rho_k, u_k, p_k, a_k), star, rays in (
        (~mirrored, (rho_l, u_l, p_l, a_l), u, speed),
        (mirrored, (rho_r, -u_r, p_r, a_r), -u, -speed),
    ):
        answer[:, side] = _left_half(rho_k, u_k, p_k, a_k, p, star, rays[side])
    answer[1, mirrored] *= -1
    return answer


def _left_half(rho, u, p, a, p_star, u_star, speed):
    ratio, g = p_star / p, (GAMMA - 1) / (GAMMA + 1)
    before, after = np.array([rho, u, p])[:, None], np.empty((3, 1))
    if ratio > 1:
        after[:, 0] = rho * (ratio + g) / (g * ratio + 1), u_star, p_star
        shock = u - a * np.sqrt((GAMMA + 1) / (2 * GAMMA) * ratio + (GAMMA - 1) / (2 * GAMMA))
        return np.where(speed < shock, before, after)
    after[:, 0] = rho * ratio ** (1 / GAMMA), u_star, p_star
    a_star = a * ratio ** ((GAMMA - 1) / (2 * GAMMA))
    factor = 2 / (GAMMA + 1) + g / a * (u - speed)  # sound speed inside the fan, over a
    fan = np.stack(
        [
            rho * np.maximum(factor, 1e-12) ** (2 / (GAMMA - 1)),
            2 / (GAMMA + 1) * (a + (GAMMA - 1) / 2 * u + speed),
            p * np.maximum(factor, 1e-12) ** (2 * GAMMA / (GAMMA - 1)),
        ]
    )
    return np.where(speed < u - a, before, np.where(speed > u_star - a_star, after, fan))
