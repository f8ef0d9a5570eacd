"""`Coded`: a matrix in one of the forms, as tensors, and how to decode it.

| form | codes | table | scale |
|---|---|---|---|
| `rows` | uint8 `[rows]`: ids | int8 `[k, cols]`: centroids | f32 `[k]` |
| `pq`, width 1 | uint8 `[rows, groups, 32]` | int8 `[16]`: levels | f32 `[rows]` |
| `pq`, wider | uint8 `[blocks, tables, 16]` | f32 `[books, width, 16]` | f32 `[rows]` |
| `int4` | uint8 `[rows, groups, 32]` | | bf16 `[rows, groups]` |
| `int8` | int8 `[rows, cols]` | | f32 `[rows]` |

Groups are 64 columns: byte j holds column j in its low half and column j + 32 in the high
one. Blocks are 32 rows: byte j of table t holds row j and row j + 16. Table `b * parts + m`
belongs to book b and sub-vector m; tables are padded to a multiple of 4. Where the columns
of `pq` are rotated there are signs, int8 `[cols]`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

GROUP = 64
BLOCK = 32

PARTS = ("codes", "scale", "table", "signs")
"""The names of the tensors of a coded matrix, in the order in which products take them."""


@dataclass(frozen=True)
class Coded:
    """A matrix `[rows, cols]` in one of the forms.

    Attributes:
        form: `rows`, `pq`, `int4` or `int8`.
        cols: Its columns, without padding.
        codes: See the table above, as for the rest.
        scale: See the table.
        table: See the table, or None.
        signs: See the table, or None.
    """

    form: str
    cols: int
    codes: Tensor
    scale: Tensor
    table: Tensor | None = None
    signs: Tensor | None = None

    @property
    def rows(self) -> int:
        """The rows of the matrix."""
        return self.scale.shape[0] if self.form == "pq" else self.codes.shape[0]

    @property
    def parts(self) -> list[tuple[str, Tensor | None]]:
        """Its tensors, each with its name."""
        return [(name, getattr(self, name)) for name in PARTS]

    @property
    def bytes(self) -> int:
        """Its size in bytes."""
        held = [part for _, part in self.parts if part is not None]
        return sum(part.numel() * part.element_size() for part in held)

    @property
    def bits(self) -> float:
        """Bits for each weight, everything counted."""
        return 8 * self.bytes / max(1, self.rows * self.cols)

    def fault(self) -> str | None:
        """Describe what is wrong with parts from outside; kernels do not check them."""
        wrong = self.misfit()
        if wrong is None and self.form == "rows" and self.codes.numel():
            last, count = int(self.codes.max()), self.scale.shape[0]
            if last >= count:
                return f"`codes` name row {last} of {count}"
        return wrong

    def misfit(self) -> str | None:
        """Describe what is wrong with types and shapes."""
        if self.cols < 1:
            return "a matrix has at least one column"
        if self.codes.ndim == 0 or self.scale.ndim == 0:
            return "`codes` or `scale` is a single number"
        layout = self._layout()
        for name, part in self.parts:
            dtype, shape = layout.get(name, (None, None))
            if part is None and (shape is None or name == "signs"):
                continue
            if part is None or shape is None or part.shape != shape:
                found = "missing" if part is None else f"of shape {tuple(part.shape)}"
                return f"`{name}` is {found}, which does not match the form `{self.form}`"
            # `module.to(dtype)` casts them, so any floating type is allowed.
            if part.dtype != dtype if dtype else not part.is_floating_point():
                return f"`{name}` is {part.dtype}, which does not match the form `{self.form}`"
            if _without_memory(part):
                return f"the memory of `{name}` has been taken away"
        return None

    def _layout(self) -> dict[str, tuple[torch.dtype | None, tuple[int, ...]]]:
        """The type and shape of each part as `rows` and `cols` demand them."""
        rows, cols, groups = self.rows, self.cols, -(-self.cols // GROUP)
        nibbles = torch.uint8, (rows, groups, GROUP // 2)
        if self.form == "rows":
            k = self.scale.shape[0]
            return {
                "codes": (torch.uint8, (rows,)),
                "scale": (None, (k,)),
                "table": (torch.int8, (k, cols)),
            }
        if self.form == "int8":
            return {"codes": (torch.int8, (rows, cols)), "scale": (None, (rows,))}
        if self.form == "int4":
            return {"codes": nibbles, "scale": (None, (rows, groups))}
        shared = {"scale": (None, (rows,)), "signs": (torch.int8, (cols,))}
        if self.table is None or self.table.ndim != 3:
            return {"codes": nibbles, "table": (torch.int8, (16,)), **shared}
        books, width, _ = self.table.shape
        blocks, tables = -(-rows // BLOCK), -(-books * (cols // max(1, width)) // 4) * 4
        whole = width > 0 and cols % width == 0
        return {
            "codes": (torch.uint8, (blocks, tables, BLOCK // 2)),
            "table": (None, (books, width, 16) if whole else ()),
            **shared,
        }

    def decoded(self) -> Tensor:
        """Return the matrix in f32, `[rows, cols]`."""
        if self.form == "int8":
            return self.codes.float() * self.scale.float()[:, None]
        if self.form == "rows":
            return self.centroids()[self.codes.long()]
        if self.form == "int4":
            values = (unpacked(self.codes) - 8).float() * self.scale.float()[:, :, None]
            return values.flatten(1)[:, : self.cols]
        scaled = self._subvectors() * self.scale.float()[:, None]
        return scaled if self.signs is None else unrotated(scaled, self.signs)

    def centroids(self) -> Tensor:
        """Return the rows that `rows` repeats, in f32, `[k, cols]`."""
        assert self.table is not None  # noqa: S101  the form has one
        return self.table.float() * self.scale.float()[:, None]

    def _subvectors(self) -> Tensor:
        assert self.table is not None  # noqa: S101  the form has one
        if self.table.ndim == 1:
            levels = self.table.float()[unpacked(self.codes).long()]
            return levels.flatten(1)[:, : self.cols]
        books, width, _ = self.table.shape
        parts = self.cols // width
        codes = unblocked(self.codes)[: self.rows, : books * parts].long()
        whole = torch.zeros(
            (self.rows, parts, width), dtype=torch.float32, device=self.codes.device
        )
        for book, its in zip(self.table.float(), codes.split(parts, 1), strict=True):
            whole = whole + book.T[its]
        return whole.flatten(1)


def _without_memory(part: Tensor) -> bool:
    """Whether its storage is smaller than its shape needs; a kernel would crash."""
    if type(part) is not Tensor or not part.is_cpu or not part.numel():
        return False
    last = sum((size - 1) * step for size, step in zip(part.shape, part.stride(), strict=True))
    needed = (part.storage_offset() + last + 1) * part.element_size()
    return part.untyped_storage().nbytes() < needed


def packed(codes: Tensor) -> Tensor:
    """Pack codes 0 to 15 `[rows, cols]` into `[rows, groups, 32]`, columns padded with 0."""
    rows, cols = codes.shape
    groups = -(-cols // GROUP)
    whole = torch.zeros((rows, groups * GROUP), dtype=torch.uint8, device=codes.device)
    whole[:, :cols] = codes
    low, high = whole.view(rows, groups, 2, 32).unbind(2)
    return low | (high << 4)


def unpacked(codes: Tensor) -> Tensor:
    """Undo `packed`: `[rows, groups, 64]`, int16."""
    return torch.cat([codes & 15, codes >> 4], -1).short()


def blocked(codes: Tensor) -> Tensor:
    """Pack codes `[rows, tables]` into `[blocks, tables, 16]`, both padded with 0."""
    rows, tables = codes.shape
    blocks = -(-rows // BLOCK)
    whole = torch.zeros(
        (blocks * BLOCK, -(-tables // 4) * 4), dtype=torch.uint8, device=codes.device
    )
    whole[:rows, :tables] = codes
    low, high = whole.view(blocks, 2, 16, -1).unbind(1)
    return (low | (high << 4)).mT.contiguous()


def unblocked(codes: Tensor) -> Tensor:
    """Undo `blocked`: `[padded rows, padded tables]`."""
    rows = torch.stack([codes & 15, codes >> 4], 1)  # [blocks, 2, tables, 16]
    return rows.transpose(2, 3).flatten(0, 2)


def rotated(x: Tensor, signs: Tensor) -> Tensor:
    """Rotate the last dim of `x`: random signs, then a Hadamard matrix on blocks.

    It spreads outliers and keeps lengths.
    """
    return _butterflies(x * signs.to(x.dtype))


def unrotated(x: Tensor, signs: Tensor) -> Tensor:
    """Undo `rotated`. A product of two rotated sides equals the plain product."""
    return _butterflies(x) * signs.to(x.dtype)


def _butterflies(x: Tensor) -> Tensor:
    shape, cols, half = x.shape, x.shape[-1], 1
    block = cols & -cols  # the largest power of two that divides the columns
    while half < block:
        pairs = x.reshape(*shape[:-1], -1, 2, half)
        a, b = pairs.unbind(-2)
        x = torch.stack([a + b, a - b], -2).reshape(shape)
        half *= 2
    return x * block**-0.5
