"""Blocks as people write them, which the tests capture. test_capture.py looks at line breaks and names."""
import torch
import torch.nn.functional as F
from torch import nn


class SwiGlu(nn.Module):
    """A Llama-like MLP: RMSNorm in float32, gate and up, down, the residual."""
    def __init__(self, width=16, hidden=24, dtype=torch.bfloat16):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False, dtype=dtype)
        self.up = nn.Linear(width, hidden, bias=False, dtype=dtype)
        self.down = nn.Linear(hidden, width, bias=False, dtype=dtype)
        self.norm = nn.Parameter(1 + torch.randn(width, dtype=dtype) / 8)

    def forward(self, x):
        wide = x.float()
        variance = wide.pow(2).mean(-1, keepdim=True)
        h = (wide * torch.rsqrt(variance + 1e-6)).to(x.dtype) * self.norm
        g = F.silu(self.gate(h))
        y = self.down(g * self.up(h))
        return x + y


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Attention(nn.Module):
    """Attention by hand: one product for query, key and value, rotary positions, a causal mask, softmax in float32."""
    def __init__(self, width=16, heads=2, dtype=torch.bfloat16):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, dtype=dtype)
        self.out = nn.Linear(width, width, bias=False, dtype=dtype)

    def forward(self, x, cos, sin):
        length, width = x.shape
        q, k, v = self.qkv(x).view(length, 3, self.heads, -1).permute(1, 2, 0, 3).unbind(0)
        q = rotate(q, cos, sin)
        k = rotate(k, cos, sin)
        scores = q @ k.transpose(-1, -2) / (width // self.heads)**0.5
        seen = torch.tril(torch.ones(length, length, dtype=torch.bool))
        scores = scores.masked_fill(~seen, float("-inf"))
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(x.dtype)
        mixed = (weights @ v).transpose(0, 1).contiguous().view(length, width)
        return self.out(mixed)


def mixed_precision(x, weight):
    """An autocast region with one inside it that is off."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = x @ weight
        with torch.autocast("cpu", enabled=False):
            normed = F.layer_norm(product.float(), (weight.shape[1], ))
        again = normed @ weight.t()
    return again, normed


def in_place(x):
    """Writes into a copy that nothing else reads, and into one that a view shows."""
    total = x.clone()
    total.add_(1).mul_(x)
    shown = x.clone()
    row = shown[0]
    shown.mul_(3)
    return total + row, shown.max(-1)


def classifier(tokens, table, weight, labels):
    """Embedding, a float16 product, cross-entropy."""
    hidden = F.embedding(tokens, table)
    logits = hidden @ weight
    return F.cross_entropy(logits.float(), labels)


class Patches(nn.Module):
    """A vision transformer's first layer."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 4, 4)
        self.first = nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, image):
        patches = self.conv(image).flatten(2).transpose(1, 2)
        return torch.cat((self.first.expand(image.shape[0], -1, -1), patches), 1)


def adamw(weight, gradient, mean, square):
    """A step of AdamW as optimisers do it, in place."""
    weight.mul_(1 - 1e-5)
    mean.lerp_(gradient, 0.1)
    square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    divisor = (square.sqrt() / 0.03).add_(1e-8)
    weight.addcdiv_(mean, divisor, value=-1e-3)
    return weight, mean, square


def buffers(x, weight, order):
    """out=, a number first, rows in another order, the largest two."""
    buffer = torch.empty(x.shape[0], weight.shape[1])
    torch.mm(x, weight, out=buffer)
    rest = 1 - buffer
    return rest[order], rest.topk(2).values


def masked(x, seen):
    """A mask among the arguments, each row of `x` twice."""
    return torch.where(seen, x, 0.5).repeat_interleave(2, 0)


def turned(x, weight):
    """An op that has no reference, between two that have one."""
    first = x @ weight
    back = torch.special.i0e(first)
    scores = back.t().softmax(-1)
    return scores @ first


def random_mask(x):
    return F.dropout(x, 0.5)


def branches(x):
    if x.sum() > 0:
        return x * 2
    return x


def second_result(x):
    return torch.kthvalue(x, 2)[1]


def picked(table, ids, scores, target):
    """Rows by a table of indices, and one score of each row."""
    tokens = table[ids]
    likely = torch.log_softmax(scores, -1)[torch.arange(scores.shape[0]), target]
    return tokens.sum(-1), likely


def options(logits, labels, weight, share, padded):
    """Losses as people use them: some targets are none, classes weigh, smoothing; a gated half, edges shown again."""
    lost = F.cross_entropy(logits, labels, label_smoothing=0.1) + F.cross_entropy(logits, labels, weight)
    spread = F.cross_entropy(logits, share, reduction="sum") + F.nll_loss(F.log_softmax(logits, -1), labels.clamp(min=0), ignore_index=5)
    edges = F.pad(padded, (1, 2), mode="reflect") + F.pad(padded, (1, 2), mode="circular") + F.pad(padded, (1, 2), value=0.5)
    return lost, spread, F.glu(edges.flip(-1)[..., :-1]), torch.nan_to_num(padded / padded.trunc(), posinf=2.0)


def combined(a, b, c):
    """Three operands of einsum, a cosine, bounds that are tensors."""
    mixed = torch.einsum("ij,kj,jl->il", a, b, c)
    likeness = F.cosine_similarity(a, b, dim=-1)
    return mixed, likeness, a.clamp_min(0), a.clamp(min=b - 1, max=b), likeness.expand_as(mixed.t())


def weighed(table, ids, row, column, w):
    """Rows of a table by two dimensions of numbers, single elements by two lists: each row is taken several times."""
    return (table[ids] * w).sum() + (table[row, column] * w[0, 0, 0]).sum()
