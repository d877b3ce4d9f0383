"""Softmax classification of entailment pairs (Reimers & Gurevych, 2019; Wang et al., 2023, §5.2;
method-softmax-nli in the book).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.losses.given import check_column, check_real, check_rows
from repro.types import InputError, one_of

CLASSES = 3


def nli_features(u: Tensor, v: Tensor, *, difference: str = "abs") -> Tensor:
    """Features [u; v; |u − v|] of pairs (B, 3d), or [u; v; u − v] with `difference="signed"`, as
    Wang et al. print it.

    With the signed difference every logit is a part from u plus a part from v: no similarity can be
    expressed.
    """
    one_of(difference, ("abs", "signed"), "difference")
    check_rows("one embedding per side (B, d)", u=u, v=v)
    delta = u - v
    return torch.cat([u, v, delta.abs() if difference == "abs" else delta], dim=-1)


def softmax_nli(
    u: Tensor,
    v: Tensor,
    labels: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    difference: str = "abs",
) -> Tensor:
    """Mean cross-entropy of the three classes, logits V[u; v; |u − v|] + c; embeddings are not
    normalised.

    Premises u and hypotheses v are (B, d), labels (B,) integers 0, 1 or 2, V = `weight` (3, 3d) and
    c = `bias` (3,); `difference` is that of `nli_features`. InputError for a label outside 0 … 2,
    or for shapes or precisions that do not fit.
    """
    features = nli_features(u, v, difference=difference)
    check_column("labels", labels, len(u), each="pair")
    if len(bad := labels[(labels < 0) | (labels >= CLASSES)]):
        raise InputError(f"label {bad[0]}: expected 0, 1 or 2 (contradiction, entailment, neutral)")
    classifier = {"weight": weight}
    if bias is not None:
        classifier["bias"] = bias
    check_real(u=u, **classifier)
    expected = {"weight": (CLASSES, features.shape[1]), "bias": (CLASSES,)}
    for name, tensor in classifier.items():
        if tensor.shape != expected[name]:
            raise InputError(f"{name} has shape {tuple(tensor.shape)}: expected {expected[name]}")
    logits = F.linear(features.to(weight.dtype), weight, bias)
    return F.cross_entropy(logits.float(), labels.to(logits.device).long())
