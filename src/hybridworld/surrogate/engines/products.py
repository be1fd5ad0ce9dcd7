"""Products of small matrices for kernels: a tile of the result stays in registers until all terms are added up.

Loops that numba compiles by itself write each partial sum to memory and ask before each loop whether arrays overlap: with 50
columns they take twice as long. Libraries (BLAS) begin each product with more work than such matrices are.
"""

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

ROWS, COLUMNS = 4, 16
"""Rows and columns of results come in multiples of these."""
LANES = 16 if llvm.get_host_cpu_features().get("avx512f") else 8
"""Numbers in a vector. Twelve of them are sums, which fill the registers of either kind of processor."""


def _tile_of(vectors):
    """out[r : r + ROWS, j : j + vectors * LANES] += a[r : r + ROWS] @ w[:, j : j + vectors * LANES], as an instruction."""

    @intrinsic
    def tile(typing_context, a, w, out, r, j):
        def generate(context, builder, signature, arguments):
            vector = ir.VectorType(ir.FloatType(), LANES)
            given = zip(signature.args[:3], arguments[:3], strict=True)
            a, w, out = (context.make_array(kind)(context, builder, value) for kind, value in given)
            first, column = arguments[3:]

            def place(array, row, column):
                """Pointer to array[row, column]; arrays are contiguous."""
                width = builder.extract_value(array.shape, 1)
                return builder.gep(array.data, [builder.add(builder.mul(row, width), column)])

            def later(value, number):
                return builder.add(value, ir.Constant(value.type, number))

            def vectors_at(array, row):
                columns = [later(column, LANES * k) for k in range(vectors)]
                return [builder.bitcast(place(array, row, each), vector.as_pointer()) for each in columns]

            places = [each for row in range(ROWS) for each in vectors_at(out, later(first, row))]
            sums = [cgutils.alloca_once_value(builder, builder.load(each, align=4)) for each in places]
            with cgutils.for_range(builder, builder.extract_value(w.shape, 0)) as loop:
                terms = [builder.load(each, align=4) for each in vectors_at(w, loop.index)]
                for row in range(ROWS):
                    factor = builder.load(place(a, later(first, row), loop.index))
                    factors = _in_each_lane(builder, factor, vector)
                    for total, term in zip(sums[row * vectors :][:vectors], terms, strict=True):
                        product = builder.fmul(factors, term, flags=("contract",))
                        builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
            for each, total in zip(places, sums, strict=True):
                builder.store(builder.load(total), each, align=4)
            return context.get_dummy_value()

        return types.void(a, w, out, types.intp, types.intp), generate

    return tile


def _in_each_lane(builder, number, vector):
    """A vector that has the number in each lane."""
    empty, zero = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(empty, number, zero), empty, mask)


_three, _one = _tile_of(3), _tile_of(1)


@njit(cache=True, nogil=True, error_model="numpy")
def add_product(a, w, out, rows):
    """out += a[:, : len(w)] @ w for so many rows, rounded up to a multiple of ROWS; all float32, contiguous, and apart."""
    columns = w.shape[1]
    for r in range(0, rows, ROWS):
        j = 0
        while j + 3 * LANES <= columns:
            _three(a, w, out, r, j)
            j += 3 * LANES
        while j < columns:
            _one(a, w, out, r, j)
            j += LANES
