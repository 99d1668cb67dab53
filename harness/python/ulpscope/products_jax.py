"""Products of JAX in the words of the case language: dot_general and convolutions, as methods of primitives_jax.Walk."""

import math

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Products:
    def _dot_general(self, of, params):
        """matmul if it is one, or if another dtype of the sum is requested; else einsum, with operands and dimensions
        in JAX's order."""
        (left, right), (left_batch, right_batch) = params["dimension_numbers"]
        a, b = (var.aval for var in self._equation.invars)
        wanted = params["preferred_element_type"]
        of = [self.tensor(each) for each in of]
        if a.dtype != b.dtype:
            of = self._widened(of, [a.dtype, b.dtype], self._equation.outvars[0].aval.dtype)
            attrs = {}
        else:
            attrs = {} if wanted is None or wanted == a.dtype else {"preferred_element_type": str(wanted)}
        batch = tuple(range(len(left_batch)))
        plain = tuple(left_batch) == tuple(right_batch) == batch and tuple(left) == (a.ndim - 1, ) and a.ndim >= 1
        if plain and tuple(right) == (len(batch), ) and b.ndim == len(batch) + (2 if batch or b.ndim == 2 else 1):
            if a.ndim == b.ndim or not batch:
                return self.add("matmul", of, **attrs)
        if attrs:
            return self._turned_matmul(of, params["dimension_numbers"], attrs)
        letters = iter(_LETTERS)
        first = [next(letters) for _ in range(a.ndim)]
        second = [""] * b.ndim
        for i, j in [*zip(left, right), *zip(left_batch, right_batch)]:
            second[j] = first[i]
        second = [each or next(letters) for each in second]
        out = [first[i] for i in left_batch] + [each for i, each in enumerate(first) if i not in (*left, *left_batch)]
        out += [each for i, each in enumerate(second) if i not in (*right, *right_batch)]
        return self.add("einsum", of, equation=f"{''.join(first)},{''.join(second)}->{''.join(out)}")

    def _widened(self, of, dtypes, due):
        """Operands of two dtypes as JAX multiplies them: both in the dtype of the result, if that holds either of them."""
        import jax.numpy
        if jax.numpy.promote_types(*dtypes) != due:
            self.refuse(f"operands of two dtypes ({dtypes[0]} and {dtypes[1]}) with a result in {due}, which does not hold both")
        return [each if dtype == due else self.add("cast", [each], dtype=str(due)) for each, dtype in zip(of, dtypes)]

    def _turned_matmul(self, of, numbers, attrs):
        """A product as matmul, of operands that are transposed and reshaped to matmul's order of dimensions."""
        (left, right), (left_batch, right_batch) = numbers
        first, rows = self._sided(of[0], self.shape(0), left_batch, left, -1)
        second, columns = self._sided(of[1], self.shape(1), right_batch, right, 0)
        product = self.add("matmul", [first, second], **attrs)
        made = [*(self.shape(0)[axis] for axis in left_batch), rows, columns]
        return product if made == self.due() else self.add("reshape", [product], shape=self.due())

    def _sided(self, value, shape, batch, summed, side):
        """(an operand as [batch, free, summed], or [batch, summed, free] for the `side` 0; the extent of free)"""
        free = [axis for axis in range(len(shape)) if axis not in (*summed, *batch)]
        groups = [free, list(summed)] if side else [list(summed), free]
        dims = [int(axis) for axis in (*batch, *groups[0], *groups[1])]
        extents = [shape[axis] for axis in batch] + [math.prod(shape[axis] for axis in group) for group in groups]
        if dims != sorted(dims):
            value = self.add("permute", [value], dims=dims)
        if [shape[axis] for axis in dims] != extents:
            value = self.add("reshape", [value], shape=extents)
        return value, math.prod(shape[axis] for axis in free)

    def _conv_general_dilated(self, of, params):
        numbers, spatial = params["dimension_numbers"], len(params["window_strides"])
        straight = tuple(range(spatial + 2))
        pads = [tuple(each) for each in params["padding"]]
        if {tuple(numbers.lhs_spec), tuple(numbers.rhs_spec), tuple(numbers.out_spec)} != {straight} or spatial > 2 \
                or any(low != high for low, high in pads) or set(params["lhs_dilation"]) != {1} or params["batch_group_count"] != 1 \
                or params["preferred_element_type"] not in (None, self._equation.invars[0].aval.dtype):
            self.refuse("a layout, a padding or a dilation that conv1d and conv2d do not have")
        attrs = {"stride": list(params["window_strides"]), "padding": [low for low, _ in pads], "dilation": list(params["rhs_dilation"])}
        attrs = {key: value for key, value in attrs.items() if set(value) != ({0} if key == "padding" else {1})}
        if params["feature_group_count"] != 1:
            attrs["groups"] = int(params["feature_group_count"])
        return self.add(f"conv{spatial}d", [self.tensor(each) for each in of], **attrs)
