"""`BlockPool`: which blocks of a paged cache are free."""

from array import array

from hotgrid.errors import ArgumentError


class BlockPool:
    """Hands out the blocks of a paged cache; block 0 is for padding and never handed out.

    Args:
        blocks: How many there are, the first included.
        block: The tokens of a block.

    Raises:
        ArgumentError: There are fewer than 2 blocks.
    """

    def __init__(self, blocks: int, block: int) -> None:
        if blocks < 2:
            raise ArgumentError(f"a cache needs 2 blocks or more, got {blocks}")
        self.blocks, self.block = blocks, block
        self._free = list(range(blocks - 1, 0, -1))

    @property
    def free(self) -> int:
        """How many blocks are free."""
        return len(self._free)

    def needed(self, tokens: int) -> int:
        """Return how many blocks hold a number of tokens."""
        return -(-tokens // self.block)

    def grow(self, blocks: "array[int]", tokens: int) -> bool:
        """Add blocks to an array until it holds that many tokens; False if too few are free."""
        missing = self.needed(tokens) - len(blocks)
        if missing > len(self._free):
            return False
        for _ in range(missing):
            blocks.append(self._free.pop())
        return True

    def release(self, blocks: "array[int]") -> None:
        """Take all blocks of an array back, and empty it."""
        self._free.extend(blocks)
        del blocks[:]
