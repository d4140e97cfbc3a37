"""A stand-in for the processors that nobody here has: results move by one unit in the last place.

Two processors add in another order, fuse a product and a sum or not, and take exponentials from other libraries, so the
last bit of such a result is not the same on both; what IEEE 754 rounds in one way only (a sum of two, a product, a
quotient, a root) is. `Shaken` moves the former at random and leaves the latter. A printed digit that differs between
the plain run and a shaken one is a digit too many.

In a kernel it is an IPython extension, see `arguments`; the notebook's namespace, its random state and the modes that
it enters know nothing of it. Source: IEEE 754-2019, clauses 5 and 11.
"""

from functools import cache
from typing import NamedTuple

import numpy
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nanlab import formats

_PRODUCTS = """addbmm addmm addmv addr baddbmm bilinear bmm cdist convolution dot einsum inner linalg_eigh
    linalg_eigvals linalg_inv_ex linalg_solve_ex linalg_svd linear matmul mm mv
    scaled_dot_product_flash_attention_for_cpu vdot"""
_SUMS = """binary_cross_entropy binary_cross_entropy_with_logits cross_entropy_loss embedding_dense group_norm
    huber_loss index_add kl_div l1_loss layer_norm linalg_vector_norm log_softmax logsumexp mean mse_loss nansum
    native_batch_norm native_group_norm native_layer_norm nll_loss_forward norm prod rms_norm scatter_add smooth_l1_loss
    softmax std std_mean sum trace var var_mean"""  # not cumsum: its order is given
_FUSED = "addcdiv addcmul fused_adagrad fused_adam fused_adamw fused_sgd lerp"
_FUNCTIONS = """acos acosh asin asinh atan atan2 atanh cos cosh elu erf erfc erfinv exp exp2 expm1 gelu lgamma log log10
    log1p log2 log_sigmoid_forward logaddexp logit mish normal pow randn randn_like rsqrt selu sigmoid silu sin sinh
    softplus tan tanh uniform xlogy"""  # draws of normal numbers are logarithms and cosines, uniform_ scales
_OFTEN = frozenset(f"{_PRODUCTS} {_SUMS} {_FUSED}".split())
_SELDOM = frozenset(_FUNCTIONS.split())

# Of 256 elements, so many move up and as many down.
_MANY = 85
_FEW = 5  # libraries of functions agree in most elements

_ENOUGH = 65_536  # elements: of a larger tensor only the first rows move, or it would take too long
_FORMATS = {getattr(torch, f.torch_name): f for f in formats.FORMATS if f.bits >= 16}
_SIGNED = {16: torch.int16, 32: torch.int32, 64: torch.int64}


class Shaken(TorchDispatchMode):
    """While it is on, elements of each matrix product, reduction, transcendental function and fused update come out one
    unit in the last place larger or smaller, or as they are: forward, backward and in optimizers, on the CPU.

    Which of the three hangs on `seed` and the value's mantissa alone: the same sum comes out the same however often it
    is made, and twice it, or its negative, moves alike, as on a real processor. A third of the elements move each way;
    of functions one in fifty, and as few of products and sums in 16-bit formats, which torch makes in fp32 and rounds
    once. Zeros, subnormals, infinities and nan stay, and so do results that end in zero bits: counts, halves and what
    else comes out exact on any processor. Nothing moves into infinity. No random number is drawn. Entered first it
    stands below all other modes, which see the program's operations and none of its own. Cost: some 60 µs a result.
    """

    supports_higher_order_operators = True

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operation imports the compiler

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        plan = _plan(func)
        share = _MANY if kwargs.get("alpha", 1) != 1 else plan.share  # a factor that may be fused into the sum
        if not share:
            return func(*args, **kwargs)
        written = [args[i] if i < len(args) else kwargs.get(name) for i, name in plan.written]
        before = {id(t): _bits(t).copy() for t in _floats(written)}
        result = func(*args, **kwargs)
        for tensor in {id(t): t for t in _floats((result, written))}.values():
            move(tensor, self.seed, share, before.get(id(tensor)))
        return result


class Plan(NamedTuple):
    """How many elements of 256 move each way in an operation's results, and the arguments that it writes to."""

    share: int
    written: tuple[tuple[int, str], ...]  # position and name


@cache
def _plan(func) -> Plan:
    name = func.__name__.split(".")[0].strip("_").removeprefix("foreach_")
    name = name.removesuffix("_data").removesuffix("_backward")
    arguments = func._schema.arguments if hasattr(func, "_schema") else ()
    written = ((i, a.name) for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write)
    return Plan(_MANY if name in _OFTEN else _FEW if name in _SELDOM else 0, tuple(written))


def _floats(tree: object) -> list[Tensor]:
    """The tensors in `tree` that can be moved."""
    tensors = [t for t in tree_leaves(tree) if isinstance(t, Tensor)]
    return [t for t in tensors if t.dtype in _FORMATS and t.is_cpu and t.layout is torch.strided]


def _bits(tensor: Tensor) -> numpy.ndarray:
    """The bits of `tensor`, in its own memory, as unsigned integers; of a large one the first rows."""
    fmt = _FORMATS[tensor.dtype]
    bits = numpy.atleast_1d(tensor.data.view(_SIGNED[fmt.bits]).numpy().view(f"u{fmt.bits // 8}"))
    return bits[: 1 + _ENOUGH * len(bits) // max(bits.size, 1)]


def move(tensor: Tensor, seed: int, share: int = _MANY, before: numpy.ndarray | None = None) -> None:
    """Move the elements of `tensor`, of a format of 16 to 64 bits, in place by at most one unit in the last place; of
    256 elements about `share` up and as many down. What is as it was `before`, the bits, stays: an update by nothing.

    Shape, strides and version counter stay. NumPy does the work, so that no mode, counter or profiler of torch sees it.
    """
    fmt = _FORMATS[tensor.dtype]
    bits = _bits(tensor)
    kind = bits.dtype
    exponent = kind.type(((1 << fmt.exponent_bits) - 1) << fmt.mantissa_bits)
    low = kind.type((1 << fmt.mantissa_bits // 3) - 1)
    mantissa = bits & kind.type((1 << fmt.mantissa_bits) - 1)
    chance = mantissa * kind.type(_factor(seed) % (1 << fmt.bits)) >> kind.type(fmt.bits - 8)
    share = share if fmt.bits > 16 else share // 16
    moved = bits + (chance < share) - (chance >= 256 - share)
    finite = (bits & exponent != 0) & (bits & exponent != exponent) & (moved & exponent != exponent)
    updated = bits != before if before is not None and before.shape == bits.shape else True
    numpy.copyto(bits, moved, where=finite & (bits & low != 0) & updated)


@cache
def _factor(seed: int) -> int:
    """An odd number of 64 bits; the leading bits of a number times this are as good as random (Knuth, The Art of
    Computer Programming 3, section 6.4, multiplicative hashing)."""
    return int(numpy.random.SeedSequence(seed).generate_state(1, numpy.uint64)[0]) | 1


def arguments(seed: int) -> list[str]:
    """What to add to the command of an IPython kernel so that everything it computes is shaken."""
    return [f"--InteractiveShellApp.extra_extensions={__name__}", f"--Shaken.seed={seed}"]


def load_ipython_extension(shell) -> None:
    """Called by IPython when a kernel that was given `arguments` starts; on from then to the kernel's end."""
    Shaken(int(shell.config.Shaken.seed)).__enter__()
