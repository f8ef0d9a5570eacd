"""`HaloExchange`: fills the margins of a block with the cells of its neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.cluster._block import Block, per_axis
from hotgrid.cluster._communicator import Communicator, Message, Pending
from hotgrid.cluster._handles import named
from hotgrid.cluster._mesh import Mesh
from hotgrid.errors import ArgumentError

from ._parcel import Parcel
from ._trips import Trip, trips_at_once, trips_by_axis

Needs = Mapping[tuple[int, int], Sequence[int]]
"""Components needed in a margin, by its axis and side: `{(0, -1): (2, 5, 6)}`; all others
are needed in full."""


@dataclass
class Traffic:
    """Counts of what a rank has sent.

    Attributes:
        exchanges: How often margins were filled or folded.
        messages: How many messages were sent to other ranks.
        bytes: Their bytes.
    """

    exchanges: int = 0
    messages: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class _Leg:
    """A trip with the buffers for what leaves and what arrives."""

    trip: Trip
    leaving: Parcel
    arriving: Parcel


class HaloExchange:
    """Fills the margins of padded blocks, in place.

    A buffer is `[*batch, components, *space]`, its space a block together with its margins
    (`Block.padded`). After an exchange every margin, corners included, holds what the
    neighbours own. Several buffers travel together, in one message for each trip.

    Trips go axis by axis: 2 messages for an axis, and corners come by way of two
    neighbours. `at_once` sends to every neighbour directly instead, diagonal ones
    included: 8 messages in 2-D and 26 in 3-D, but all of them are sent between
    `start` and `finish`. The bytes are the same. Messages cost more than bytes in most
    places, so axis by axis is the rule.

    Args:
        communicator: The ranks.
        mesh: Their layout over the grid.
        size: Cells of the whole grid.
        margin: Cells at every cut side; a sequence has one number per axis, and an axis
            of one rank then repeats its own far end.
        periodic: Whether an axis is periodic, for all or for each. At an end that is
            bounded a block has no margin.
        components: For each buffer, which components are needed in which margin; None
            for all. In a corner those that both its margins need hold.
        at_once: Send to diagonal neighbours too, in one round.

    Attributes:
        block: What this rank owns.
        padded: The same with its margins: the space of buffers.
        periodic: Whether each axis is periodic.
        traffic: What was sent so far.

    Raises:
        ArgumentError: Mesh, size, margin and ranks do not fit; the message says what would.

    Example:
        >>> halo = HaloExchange(SingleRank(), "1x1", (2, 3), margin=(1, 0))
        >>> buffer = torch.zeros(4, 3)
        >>> buffer[1:-1] = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> halo.exchange(buffer)
        >>> buffer[0], buffer[-1]
        (tensor([4., 5., 6.]), tensor([1., 2., 3.]))
    """

    def __init__(
        self,
        communicator: Communicator,
        mesh: Mesh | str | int | Sequence[int],
        size: Sequence[int],
        margin: int | Sequence[int],
        periodic: bool | Sequence[bool] = True,
        *,
        components: Sequence[Needs | None] | None = None,
        at_once: bool = False,
    ) -> None:
        self.communicator = communicator
        self.mesh = Mesh(mesh).over(len(size))
        self.mesh.check_ranks(communicator.size)
        self.mesh.check_margin(size, margin)
        self.block = self.mesh.block(communicator.rank, size)
        if isinstance(margin, int):
            margin = tuple(margin * (parts > 1) for parts in self.mesh.shape)
        self.margin = per_axis("margin", margin, len(size))
        self.periodic = per_axis("periodic", periodic, len(size))
        self.padded = self.block.padded(self.margin, periodic)
        self.traffic = Traffic()
        self.name = named(self)
        self._needs = None if components is None else tuple(components)
        plan = trips_at_once if at_once else trips_by_axis
        self._rounds = plan(self.mesh, communicator.rank, self.block, self.margin, periodic)
        self._legs: dict[object, list[list[_Leg]]] = {}
        self._flight: tuple[Sequence[Tensor], list[list[_Leg]], Pending | None] | None = None

    @property
    def inside(self) -> tuple[slice, ...]:
        """The slices of the owned cells in the space of a buffer: `buffer[(..., *inside)]`."""
        return tuple(
            slice(own - all_, own - all_ + count)
            for own, all_, count in zip(
                self.block.offset, self.padded.offset, self.block.size, strict=True
            )
        )

    def exchange(self, *buffers: Tensor) -> None:
        """Fill the margins of buffers, `[*batch, components, *padded.size]` each.

        Raises:
            ArgumentError: A buffer has another size than the padded block.
            HotgridError: Another rank was lost.
        """
        self.start(*buffers)
        self.finish()

    @torch.no_grad()
    def start(self, *buffers: Tensor) -> None:
        """Send what can be sent at once: the first axis, or everything with `at_once`.

        Until `finish`, owned cells may be read and must not be written.

        Raises:
            ArgumentError: A buffer has another size, or an exchange is running.
        """
        if self._flight is not None:
            raise ArgumentError("an exchange is running: call `finish` before `start`")
        rounds = self._freight(buffers, self.padded)
        self._flight = buffers, rounds, self._depart(rounds[0], buffers) if rounds else None

    @torch.no_grad()
    def finish(self) -> None:
        """Wait for what was started, do the other axes, and fill the margins.

        Raises:
            ArgumentError: Nothing was started.
            HotgridError: Another rank was lost.
        """
        if self._flight is None:
            raise ArgumentError("no exchange is running: call `start` before `finish`")
        buffers, rounds, pending = self._flight
        self._flight = None
        for legs in rounds:
            (pending or self._depart(legs, buffers)).wait()
            pending = None
            for leg in legs:
                if leg.trip.source is not None:
                    leg.arriving.unpack(buffers, leg.trip.arrives)
        self.traffic.exchanges += 1

    @torch.no_grad()
    def extend(self, x: Tensor) -> Tensor:
        """Return owned cells, `[..., *block.size]`, with filled margins around them.

        Components that no neighbour sends are 0 in the margins. Without a gradient;
        `halo_exchange` is the function that has one.

        Raises:
            ArgumentError: `x` has another size than the block.
        """
        before = self._before(x, self.block)
        fresh = x.new_empty if self._needs is None else x.new_zeros
        out = fresh((*before, *self.padded.size))
        out[(..., *self.inside)] = x
        self.exchange(out)
        return out

    @torch.no_grad()
    def fold(self, x: Tensor) -> Tensor:
        """Return owned cells with every margin added where it was copied from.

        The transpose of `extend`: `[..., *padded.size]` in, `[..., *block.size]` out.

        Raises:
            ArgumentError: `x` has another size than the padded block.
        """
        buffers = (x.clone(memory_format=torch.contiguous_format),)
        for legs in reversed(self._freight(buffers, self.padded)):
            self._depart(legs, buffers, back=True).wait()
            for leg in legs:
                if leg.trip.target is not None:
                    leg.leaving.add(buffers, leg.trip.leaves)
        self.traffic.exchanges += 1
        return buffers[0][(..., *self.inside)].clone(memory_format=torch.contiguous_format)

    def _depart(
        self, legs: Sequence[_Leg], buffers: Sequence[Tensor], *, back: bool = False
    ) -> Pending:
        """Pack and post; in the transpose, source and destination are exchanged."""
        sends, receives = [], []
        for leg in legs:
            trip, out, into = leg.trip, leg.leaving, leg.arriving
            target, source, region = trip.target, trip.source, trip.leaves
            if back:
                out, into, target, source = into, out, source, target
                region = trip.arrives
            if target is not None:
                out.pack(buffers, region)
            if target == self.communicator.rank:
                into.bytes.copy_(out.bytes)
                continue
            if target is not None and out.bytes.numel():
                sends.append(Message(out.bytes, target, trip.tag))
            if source is not None and into.bytes.numel():
                receives.append(Message(into.bytes, source, trip.tag))
        self.traffic.messages += len(sends)
        self.traffic.bytes += sum(each.tensor.numel() for each in sends)
        return self.communicator.post(sends, receives)

    def _freight(self, buffers: Sequence[Tensor], space: Block) -> list[list[_Leg]]:
        """The legs for buffers of this kind, with staging that is made only once."""
        kinds = tuple([(x.dtype, self._before(x, space)) for x in buffers])
        self.communicator.agree("halo_exchange", kinds)
        kind = kinds, buffers[0].device if buffers else None
        if kind not in self._legs:
            needs = (None,) * len(buffers) if self._needs is None else self._needs
            if len(needs) != len(buffers) or not buffers:
                raise ArgumentError(
                    f"`components` is for {len(needs)} buffers, got {len(buffers)}"
                )
            self._legs[kind] = [
                [_leg(trip, buffers, needs) for trip in trips] for trips in self._rounds
            ]
        return self._legs[kind]

    def _before(self, x: Tensor, space: Block) -> tuple[int, ...]:
        """The dims before the space, which must be that of a block."""
        axes = len(space.size)
        if tuple(x.shape[x.ndim - axes :]) != space.size:
            raise ArgumentError(
                f"rank {self.communicator.rank} expects {space.size} cells, the "
                f"{'block' if space is self.block else 'block with its margins'}, in the last "
                f"{axes} dims; got a tensor of {tuple(x.shape)}"
            )
        return tuple(x.shape[: x.ndim - axes])


def _leg(trip: Trip, buffers: Sequence[Tensor], needs: Sequence[Needs | None]) -> _Leg:
    chosen = [_components(trip.direction, each) for each in needs]
    return _Leg(
        trip,
        Parcel(buffers, trip.leaves, chosen),
        Parcel(buffers, trip.arrives if trip.source is not None else trip.leaves, chosen),
    )


def _components(direction: Sequence[int], needs: Needs | None) -> list[int] | None:
    """The components that all margins on the far side of a direction need; None for all."""
    wanted = [
        needs[axis, -step]
        for axis, step in enumerate(direction)
        if step and needs is not None and (axis, -step) in needs
    ]
    if not wanted:
        return None
    return [each for each in wanted[0] if all(each in others for others in wanted[1:])]
