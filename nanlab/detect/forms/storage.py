"""Operations that move, allocate and fill memory: nothing is computed, so they have facts and no rules."""

from nanlab.detect.forms.known import note

note("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", unwritten=True)
note("set_", "resize_", "resize_as_", "_unsafe_view", "alias", "_reshape_alias", relabels=True)
note("copy_", "fill_", "zero_", "normal_", "uniform_", "set_", "random_", "exponential_", "bernoulli_", overwrites=True)
note("full", "full_like", "new_full", "new_tensor", "fill", "fill_diagonal_", "tensor", "as_tensor", "asarray",
     "scalar_tensor", "where", "masked_fill", "index_fill", "scatter", "pad", "constant_pad_nd", "clamp", "nan_to_num",
     "__setitem__", "zeros_like", "ones_like", "zeros", "ones", "detach", "lift_fresh", fills=True)  # fmt: skip
note("where", "masked_fill", "full", "fill", "scalar_tensor", "copy", carries=True)
