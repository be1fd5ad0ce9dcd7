"""Compiled form of `Surrogate.answer` for networks of the class `Objects`: the same function, to rounding.

Scenes go through in blocks: products of matrices take the objects of a block as their rows, so that weights are read once for
all of them, and pairs are formed scene by scene in memory that stays in the cache. What depends on one object of a pair alone
is computed per object: of an approach only the nearest point and two distances are left to each pair.

Matrices come with columns filled up to a multiple of COLUMNS with zeros; `Weights` says what they hold.
Columns are counted in unsigned integers, as in the kernels of the solvers.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from hybridworld.surrogate.engines.products import ROWS, add_product

BLOCK = ROWS
"""Scenes that go through together."""
FAST = {"contract", "reassoc", "nsz", "arcp"}  # all but what would lose values that are not finite

_HALF, _UNIT, _TINY, _EPS = np.float32(0.5), np.float32(1), np.float32(1e-6), np.float32(1e-5)
_LOG2E, _LN2_HIGH, _LN2_LOW = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
_FAR = np.float32(87)


class Scales(NamedTuple):
    """What normalises states, and what is known of their channels; arrays, since a kernel takes them as they are."""

    mean: np.ndarray  # (channels,)
    std: np.ndarray  # (channels,)
    param_mean: np.ndarray  # (params,)
    param_std: np.ndarray  # (params,)
    horizons: np.ndarray  # (horizons,) binary logarithms
    changes: np.ndarray  # (horizons, channels)
    places: np.ndarray  # (places,) channels that move freely
    speeds: np.ndarray  # (places,) the channels of their rates
    low: np.ndarray  # (places,) walls
    high: np.ndarray  # (places,)
    sizes: np.ndarray  # channels of the extent, at whose smallest a wall stops a body; none where there is none
    driven: np.ndarray  # (sets, 2): column of the action, and channel that it sets
    marker: np.ndarray  # (2,): channel and value that mark a driven object
    frame_step: np.ndarray  # (1,)


class Weights(NamedTuple):
    """Matrices (inputs, outputs) and biases; those of rounds are stacked. Affine parts of norms are in what follows them."""

    rates: np.ndarray  # of the waves that tell a horizon
    told: np.ndarray
    told_bias: np.ndarray
    condition: np.ndarray
    condition_bias: np.ndarray
    film: np.ndarray  # for each round: gain and shift of what is heard, gain and shift before the mlp
    film_bias: np.ndarray
    stem: np.ndarray
    stem_bias: np.ndarray
    stem_out: np.ndarray
    stem_out_bias: np.ndarray
    hear: np.ndarray  # mine, others, bend
    hear_bias: np.ndarray
    body: np.ndarray  # between, at_mine, at_others, and the end of an approach
    near: np.ndarray  # the nearest point of an approach, and its two distances
    message: np.ndarray
    message_bias: np.ndarray
    out: np.ndarray
    out_bias: np.ndarray
    norm: np.ndarray  # (rounds, 2, width): before the mlp
    mlp: np.ndarray
    mlp_bias: np.ndarray
    mlp_out: np.ndarray
    mlp_out_bias: np.ndarray
    head_norm: np.ndarray  # (2, width)
    head: np.ndarray
    head_bias: np.ndarray


@njit(inline="always")
def _exp(x):
    """e^x for |x| < 88, to single precision: 2^n times a polynomial, which vector instructions can compute."""
    n = np.floor(x * _LOG2E + _HALF)
    f = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * f + np.float32(1.3981999507e-3)
    p = p * f + np.float32(8.3334519073e-3)
    p = p * f + np.float32(4.1665795894e-2)
    p = p * f + np.float32(1.6666665459e-1)
    p = p * f + np.float32(5.0000001201e-1)
    p = (p * f) * f + f + _UNIT
    return p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(inline="always")
def _silu(x):
    return x / (_UNIT + _exp(min(max(-x, -_FAR), _FAR)))


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _filled(out, bias, rows):
    """The bias in each row."""
    for r in range(np.uint64(rows)):
        for j in range(np.uint64(bias.size)):
            out[r, j] = bias[j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _add(out, more, rows):
    for r in range(np.uint64(rows)):
        for j in range(np.uint64(out.shape[1])):
            out[r, j] += more[r, j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _silu_all(x, rows):
    for r in range(np.uint64(rows)):
        for j in range(np.uint64(x.shape[1])):
            x[r, j] = _silu(x[r, j])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _normed(h, width, out, rows):
    """Each row of h less its mean, over its deviation."""
    for r in range(np.uint64(rows)):
        total = np.float32(0)
        for j in range(np.uint64(width)):
            total += h[r, j]
        mean, squares = total / np.float32(width), np.float32(0)
        for j in range(np.uint64(width)):
            squares += (h[r, j] - mean) * (h[r, j] - mean)
        share = _UNIT / np.sqrt(squares / np.float32(width) + _EPS)
        for j in range(np.uint64(width)):
            out[r, j] = (h[r, j] - mean) * share


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _conditions(horizons, params, scales, weights, waves, hidden, films):
    """What horizons and parameters of a block make of gains and shifts."""
    count, known = len(horizons), len(weights.rates)
    for s in range(count):
        place = np.log2(horizons[s])
        for k in range(known):
            waves[s, k], waves[s, known + k] = np.sin(place * weights.rates[k]), np.cos(place * weights.rates[k])
        for k in range(params.shape[1]):
            waves[s, 2 * known + k] = (params[s, k] - scales.param_mean[k]) / scales.param_std[k]
    _filled(hidden, weights.told_bias, count)
    add_product(waves, weights.told, hidden, count)
    _silu_all(hidden, count)
    vector = np.empty((hidden.shape[0], weights.condition.shape[1]), np.float32)
    _filled(vector, weights.condition_bias, vector.shape[0])
    add_product(hidden, weights.condition, vector, count)
    _filled(films, weights.film_bias, count)
    add_product(vector, weights.film, films, count)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _begun(states, horizons, params, scales, parts, z, seen, paths, free):
    """Normalised objects, as rows: as they are, as the network sees them, where free motion leads in each part and at last."""
    count, channels, objects = states.shape
    for s in range(count):
        for i in range(objects):
            row = s * objects + i
            for c in range(channels):
                z[row, c] = (states[s, c, i] - scales.mean[c]) / scales.std[c]
                seen[row, c] = z[row, c]
            marker = int(scales.marker[0])
            if len(scales.driven) and abs(states[s, marker, i] - scales.marker[1]) < _HALF:
                for k in range(len(scales.driven)):
                    c = scales.driven[k, 1]
                    seen[row, c] = (params[s, scales.driven[k, 0]] - scales.mean[c]) / scales.std[c]
            room = np.float32(0)
            for k in range(len(scales.sizes)):
                c = scales.sizes[k]
                size = seen[row, c] * scales.std[c] + scales.mean[c]
                room = size if k == 0 else min(room, size)
            for p in range(len(scales.places)):
                c, v = scales.places[p], scales.speeds[p]
                here, speed = seen[row, c] * scales.std[c] + scales.mean[c], seen[row, v] * scales.std[v] + scales.mean[v]
                low, high = scales.low[p] + room, scales.high[p] - room
                step = scales.frame_step[0] / np.float32(parts)
                for k in range(parts):
                    there = here + np.float32(k + 1) * step * horizons[s] * speed
                    paths[k, row, p] = (min(max(there, low), high) - scales.mean[c]) / scales.std[c]
                there = here + scales.frame_step[0] * horizons[s] * speed
                free[row, p] = (min(max(there, low), high) - scales.mean[c]) / scales.std[c] - seen[row, c]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _approaches(first, objects, here, there, ways):
    """What is left to each pair of a scene, whose objects begin at row `first`, in a row per pair: (to, from)."""
    places = here.shape[1]
    for i in range(objects):
        for k in range(objects):
            me, other, row = first + i, first + k, i * objects + k
            along, length, far, close = np.float32(0), _TINY, _TINY, _TINY
            for p in range(places):
                before, after = here[other, p] - here[me, p], there[other, p] - there[me, p]
                along -= before * (after - before)
                length += (after - before) * (after - before)
                far += after * after
            share = min(max(along / length, np.float32(0)), _UNIT)
            for p in range(places):
                before, after = here[other, p] - here[me, p], there[other, p] - there[me, p]
                ways[row, p] = before + share * (after - before)
                close += ways[row, p] * ways[row, p]
            ways[row, places], ways[row, places + 1] = np.sqrt(far), np.sqrt(close)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _pairs(first, objects, half, hear, body, gain, out):
    """What pairs of a scene, whose objects begin at row `first`, know but for `_approaches`: a row per pair, (to, from)."""
    first, objects, half = np.uint64(first), np.uint64(objects), np.uint64(half)
    twice, thrice = half + half, half + half + half
    for me in range(first, first + objects):
        for j in range(half):
            hear[me, j] = gain[j] * hear[me, j] + gain[half + j] - body[me, thrice + j]
            hear[me, half + j] += body[me, thrice + j]
    for i in range(objects):
        for k in range(objects):
            me, other, row = first + i, first + k, i * objects + k
            for j in range(half):
                products = (body[other, j] - body[me, j]) * (body[me, half + j] + body[other, twice + j])
                out[row, j] = hear[me, j] + hear[other, half + j] + products


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _add_up(first, objects, half, sent, heard):
    """What each object of a scene hears: the sum of silu(sent) over those that send, itself among them."""
    first, objects = np.uint64(first), np.uint64(objects)
    for i in range(objects):
        for j in range(np.uint64(half)):
            heard[first + i, j] = _silu(sent[i * objects, j])
        for pair in range(i * objects + np.uint64(1), (i + np.uint64(1)) * objects):
            for j in range(np.uint64(half)):
                heard[first + i, j] += _silu(sent[pair, j])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _steered(first, objects, width, norm, gain, normed):
    """The affine part of a norm, and FiLM, on the objects of a scene."""
    for row in range(np.uint64(first), np.uint64(first + objects)):
        for j in range(np.uint64(width)):
            value = norm[0, j] * normed[row, j] + norm[1, j]
            normed[row, j] = gain[j] * value + gain[np.uint64(width) + j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _unit(horizon, scales, unit):
    """change(h), as `Surrogate.unit_of_change` has it."""
    known, place = scales.horizons, np.log2(horizon)
    above = 0
    for k in range(len(known)):
        above += known[k] < place
    above = min(max(above, 1), len(known) - 1)
    below = max(above - 1, 0)
    share = (place - known[below]) / max(known[above] - known[below], _TINY)
    share = min(max(share, np.float32(0)), _UNIT)
    shorter = min(np.exp2(place - known[0]), _UNIT)
    for c in range(len(unit)):
        unit[c] = (scales.changes[below, c] + share * (scales.changes[above, c] - scales.changes[below, c])) * shorter


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def answer(states, horizons, params, scales, weights, half, width, out):
    """The states (batch, channels, objects) `horizons` (batch,) later, into `out`; params (batch, n)."""
    batch, channels, objects = states.shape
    places, depth = len(scales.places), len(weights.hear)
    block = min(BLOCK, batch)
    rows, pairs = -(-block * objects // ROWS) * ROWS, -(-objects * objects // ROWS) * ROWS
    waves, hidden = np.zeros((BLOCK, len(weights.told)), np.float32), np.zeros((BLOCK, weights.told.shape[1]), np.float32)
    films = np.zeros((BLOCK, weights.film.shape[1]), np.float32)
    z, seen = np.zeros((rows, channels), np.float32), np.zeros((rows, channels), np.float32)
    paths, free = np.zeros((depth, rows, places), np.float32), np.zeros((rows, places), np.float32)
    here, there = np.zeros((rows, places), np.float32), np.zeros((rows, places), np.float32)
    start, h = np.zeros((rows, len(weights.stem)), np.float32), np.zeros((rows, weights.stem.shape[1]), np.float32)
    normed, hear = np.zeros_like(h), np.zeros((rows, weights.hear.shape[2]), np.float32)
    both, body = np.zeros((rows, weights.body.shape[1]), np.float32), np.zeros((rows, weights.body.shape[2]), np.float32)
    formed = np.zeros((pairs, weights.message.shape[2]), np.float32)
    sent, heard = np.zeros_like(formed), np.zeros((rows, weights.message.shape[2]), np.float32)
    inner, last = np.zeros((rows, weights.mlp.shape[2]), np.float32), np.zeros((rows, weights.head.shape[1]), np.float32)
    ways, unit = np.zeros((pairs, weights.near.shape[1]), np.float32), np.zeros(channels, np.float32)
    each = 2 * half + 2 * width
    for begin in range(0, batch, block):
        count = min(block, batch - begin)
        now, some = states[begin : begin + count], horizons[begin : begin + count]
        used = count * objects
        given = params[begin : begin + count]
        _conditions(some, given, scales, weights, waves, hidden, films)
        _begun(now, some, given, scales, depth, z, seen, paths, free)
        for row in range(used):
            for c in range(channels):
                start[row, c] = both[row, c] = seen[row, c]
            for p in range(places):
                here[row, p] = seen[row, scales.places[p]]
                for k in range(depth):
                    start[row, channels + k * places + p] = paths[k, row, p] - here[row, p]
        _filled(normed, weights.stem_bias, rows)
        add_product(start, weights.stem, normed, used)
        _silu_all(normed, used)
        _filled(h, weights.stem_out_bias, rows)
        add_product(normed, weights.stem_out, h, used)
        for k in range(depth):
            _normed(h, width, normed, used)
            _filled(hear, weights.hear_bias[k], used)
            add_product(normed, weights.hear[k], hear, used)
            for row in range(used):
                for p in range(places):
                    there[row, p] = paths[k, row, p] + hear[row, 2 * half + p]
                    both[row, channels + p] = there[row, p]
            body[:] = 0
            add_product(both, weights.body[k], body, used)
            for s in range(count):
                first, gain = s * objects, films[s, k * each : (k + 1) * each]
                _pairs(first, objects, half, hear, body, gain, formed)
                _approaches(first, objects, here, there, ways)
                add_product(ways, weights.near[k], formed, objects * objects)
                _silu_all(formed, objects * objects)
                _filled(sent, weights.message_bias[k], pairs)
                add_product(formed, weights.message[k], sent, objects * objects)
                _add_up(first, objects, half, sent, heard)
            _filled(normed, weights.out_bias[k], used)
            add_product(heard, weights.out[k], normed, used)
            _add(h, normed, used)
            _normed(h, width, normed, used)
            for s in range(count):
                gain = films[s, k * each + 2 * half : (k + 1) * each]
                _steered(s * objects, objects, width, weights.norm[k], gain, normed)
            _filled(inner, weights.mlp_bias[k], used)
            add_product(normed, weights.mlp[k], inner, used)
            _silu_all(inner, used)
            _filled(normed, weights.mlp_out_bias[k], used)
            add_product(inner, weights.mlp_out[k], normed, used)
            _add(h, normed, used)
            here[:] = there
        _normed(h, width, normed, used)
        for row in range(np.uint64(used)):
            for j in range(np.uint64(width)):
                normed[row, j] = _silu(weights.head_norm[0, j] * normed[row, j] + weights.head_norm[1, j])
        _filled(last, weights.head_bias, used)
        add_product(normed, weights.head, last, used)
        for s in range(count):
            _unit(some[s], scales, unit)
            for i in range(objects):
                row = s * objects + i
                for p in range(places):
                    z[row, scales.places[p]] += free[row, p]
                for c in range(channels):
                    out[begin + s, c, i] = (z[row, c] + unit[c] * last[row, c]) * scales.std[c] + scales.mean[c]
