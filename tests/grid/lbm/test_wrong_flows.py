"""Parts of a flow that do not fit together: refused before anything runs."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation, lbm


def flow(*boundaries: Any, **parts: Any) -> Simulation:
    model = lbm.Flow(boundaries=boundaries, **parts)
    return Simulation(model, size=(8, 8), compiled=False, device="cpu")


def wall(velocity: Any) -> Simulation:
    return flow(lbm.Wall("y-", velocity=velocity), lbm.Wall("y+"))


def opening(first: Any) -> Simulation:
    return flow(first, lbm.ExtrapolationOutlet("x+"))


def started(start: Any) -> Simulation:
    return flow(start=start)


BALL = lbm.ball((4, 4), 2)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: lbm.Flow(boundaries=lbm.Wall("y-")), r"is a list .* got Wall\(face='y-'"),
        (lambda: lbm.Flow(boundaries=["y-"]), r"`boundaries` is a list .* got \['y-'\]"),
        (lambda: lbm.Flow(boundaries=[lbm.HalfWay]), "`boundaries` is a list of boundaries"),
        (lambda: lbm.Flow(force=(0.1,)), r"`force` is one number .* \(y, x\) on D2Q9, .*0.1,"),
        (lambda: lbm.Flow(force=0.1), "`force` is one number for each axis, .* got 0.1"),
        (lambda: lbm.Flow(force="x"), "`force` is one number for each axis, .* got 'x'"),
        (lambda: lbm.Flow(force=(None, 1)), "`force` must be a number, .* got None"),
        (lambda: flow(force=(0, "viscosty")), "`viscosty`, which .* did you mean `viscosity`"),
        (lambda: wall((0.1,)), r"`velocity` is one number for each axis, .* got \(0.1,\)"),
        (lambda: wall(0.1), "`velocity` is one number for each axis, .* got 0.1"),
        (lambda: wall((0, "speed")), "`velocity` names the parameter `speed`, which the model"),
        (
            lambda: opening(lbm.ZouHeVelocity("x-", velocity=(0, 0, 0.1))),
            r"`velocity` is one number for each axis, .* got \(0, 0, 0.1\)",
        ),
        (lambda: opening(lbm.ZouHePressure("x-", density=None)), "`density` must be a number"),
        (lambda: opening(lbm.ZouHePressure("x-", density="rho")), "the parameter `rho`"),
        (lambda: flow(lbm.HalfWay(None)), "`solid` must be a tensor .*, got None"),
        (lambda: flow(lbm.HalfWay("ball")), "`solid` must be a tensor .*, got 'ball'"),
        (lambda: flow(lbm.HalfWay(BALL, velocity=(1,))), "`velocity` is one number for each"),
        (lambda: flow(lbm.HalfWay(lbm.ball((1, 2, 3), 2))), "3 coordinates, but .* 2 dims"),
        (lambda: flow(lbm.HalfWay(lbm.box((1,), (2,)))), r"`low` \(1,\) has 1 coordinates"),
        (lambda: lbm.ball(3, 2), "`centre` must be one number for each axis, .* got 3"),
        (lambda: lbm.ball((1, 1), "2"), "`radius` must be a number, got '2'"),
        (lambda: lbm.box((1,), (2, 3)), "must have as many coordinates"),
        (lambda: lbm.Curved(None), "`distance` must be a function of the size and"),
        (lambda: flow(lbm.Curved(lambda y, x: y)), r"the arguments distance\(size, y, x\)"),
        (lambda: lbm.from_image(torch.zeros(3, 3), threshold="a"), "`threshold` must be a num"),
        (lambda: lbm.Flow(lattice=9), "`lattice` 9 is unknown; use one of D2Q9"),
        (lambda: lbm.Flow(collision=None), "`collision` None is unknown; use one of bgk"),
        (
            lambda: lbm.Flow(collision=lbm.BGK),
            r"`collision` is the class BGK; make .*`BGK\(\)`",
        ),
        (lambda: lbm.TRT(magic="a"), "`magic` must be a number, got 'a'"),
        (lambda: lbm.Smagorinsky("a"), "`constant` must be a number, got 'a'"),
        (lambda: started(torch.ones(8, 8)), "`start` must be a function of size and generator"),
        (lambda: started(lambda size, g: torch.ones(size)), "must begin with .* got Tensor"),
        (
            lambda: started(lambda size, g: (-1.0, (0.0, 0.0))),
            "begins with a density of -1; exp",
        ),
        (lambda: started(lambda size, g: (0, (0.0, 0.0))), "begins with a density of 0; exp"),
        (
            lambda: Simulation(lbm.PorousMedium("square", porosity=0.99), size=(8, 8)),
            r"`porosity` of 0.99 leaves no solid cell on \(8, 8\); take a larger `size`",
        ),
        (lambda: started(torch.ones(8, 8)), r"got Tensor \(8, 8\) of torch.float32$"),
        (lambda: started([torch.ones(8)] * 9), r"got \[(Tensor \(8,\) of \S+, ){4}\.\.\.\]$"),
        (lambda: started(lambda size, g: (torch.ones(size), [1.0])), r"a velocity of \[1.0\]"),
        (
            lambda: started(lambda size, g: (torch.ones(3), [torch.zeros(size)] * 2)),
            r"`density` has the shape \(3,\), but the grid is \(8, 8\)",
        ),
        (lambda: flow(viscosity_map="x"), "`viscosity_map` must be a tensor .*, got 'x'"),
        (lambda: lbm.Units("1", 3, 1, 1), "`length` must be a number, got '1'"),
        (lambda: lbm.frequency(3), "`history` must be a list of numbers, got 3"),
        (lambda: lbm.frequency(["a"]), r"`history` must be numbers, got \['a'\]"),
        (lambda: lbm.frequency([0.0, 1.0], 0), "`every` must be at least 1, got 0"),
        (lambda: lbm.SchaeferTurek.grid(2.5), "`rows` must be a whole number, got 2.5"),
    ],
)
def test_it_is_refused_with_a_clear_message(make: Callable[[], Any], said: str):
    with pytest.raises(ArgumentError, match=said):
        make()


def test_the_density_of_solid_cells_does_not_count():
    def begun(inside: float, outside: float) -> Callable[..., Any]:
        solid = BALL((8, 8))
        density = torch.where(solid, inside, outside)
        return lambda size, g: (density, (0.0, 0.0))

    flow(lbm.HalfWay(BALL), start=begun(-5.0, 1.0))
    with pytest.raises(ArgumentError, match="begins with a density of -1; "):
        flow(lbm.HalfWay(BALL), start=begun(-5.0, -1.0))


def test_a_flow_may_begin_with_numbers():
    begun = [
        started(start).state["f"]
        for start in (
            lambda size, g: (1.0, [0.0, 0.1]),
            lambda size, g: (
                torch.ones(size),
                torch.tensor([0.0, 0.1]).view(2, 1, 1).expand(2, *size),
            ),
        )
    ]
    torch.testing.assert_close(*begun)
    assert begun[0].abs().max() > 0.01


def test_numbers_of_all_kinds_are_numbers():
    centre = torch.tensor([4.0, 4.0])
    assert torch.equal(lbm.ball(centre, 2)((8, 8)), BALL((8, 8)))
    assert lbm.Flow(force=torch.zeros(2).numpy()).force == (0, 0)
    assert lbm.Flow(force=[]).force == ()
