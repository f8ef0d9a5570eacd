"""kernels._topk: the k largest or smallest along a dimension, equal ones by lowest index."""

from ._front import argtopk as argtopk, topk as topk
from ._op import tuned_topk as tuned_topk
