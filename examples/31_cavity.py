"""The lid-driven cavity: a box of fluid stirred by its lid, compared with Ghia 1982.

The picture shows the speed with its stream lines, the large eddy and small ones in the corners;
and the velocity along the middle line, which approaches the published points.
Run it with `python examples/31_cavity.py [--out DIR] [--size N]`.
"""

import argparse
from pathlib import Path

import torch

import hotgrid as hg

# U. Ghia, K. N. Ghia and C. T. Shin, Journal of Computational Physics 48 (1982) 387-411,
# table I: u along the vertical line through the middle, Reynolds number 400.
GHIA_Y = [0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5]
GHIA_Y += [0.6172, 0.7344, 0.8516, 0.9531, 0.9609, 0.9688, 0.9766]
GHIA_U = [-0.08186, -0.09266, -0.10338, -0.14612, -0.24299, -0.32726, -0.17119, -0.11477]
GHIA_U += [0.02135, 0.16256, 0.29093, 0.55892, 0.61756, 0.68439, 0.75837]


def u_in_the_middle(sim: hg.Simulation) -> torch.Tensor:
    """Return u over that of the lid, `[y]`; the middle is between two columns."""
    n = sim.size[0]
    u = sim.view("velocity_x")[:, (n - 1) // 2 : n // 2 + 1].mean(1)
    return u / sim.model.parameters["velocity"]


def largest_error(u: torch.Tensor) -> float:
    """The largest distance from Ghia's points, read between the cells."""
    import numpy as np

    y = (np.arange(len(u)) + 0.5) / len(u)
    return float(np.abs(np.interp(GHIA_Y, y, u.numpy()) - GHIA_U).max())


def draw(sim: hg.Simulation, profiles: dict[int, torch.Tensor], file: Path) -> None:
    import numpy as np
    from matplotlib.figure import Figure

    n = sim.size[0]
    y = (np.arange(n) + 0.5) / n
    figure = Figure(figsize=(12, 5.4), layout="constrained")
    box, profile = figure.subplots(1, 2)
    flow = [sim.view(name).numpy() for name in ("velocity_x", "velocity_y")]
    box.imshow(sim.view("speed").numpy(), cmap="viridis", origin="lower", extent=(0, 1, 0, 1))
    box.streamplot(y, y, *flow, color="w", density=1.4, linewidth=0.5, arrowsize=0.6)
    box.set(title="speed and stream lines", xlabel="x", ylabel="y", xlim=(0, 1), ylim=(0, 1))
    for shade, (passes, u) in enumerate(profiles.items()):
        last = shade == len(profiles) - 1
        colour = "C3" if last else str(0.85 - 0.6 * shade / len(profiles))
        profile.plot(u.numpy(), y, color=colour, label=f"after {passes} passes of the lid")
    profile.plot(GHIA_U, GHIA_Y, "ko", ms=5, mfc="none", label="Ghia, Ghia and Shin 1982")
    profile.set(title="along the vertical middle line", xlabel="u", ylabel="y")
    profile.grid(color="0.9")
    profile.legend()
    figure.suptitle("Lid-driven cavity, Reynolds number 400", fontweight="bold")
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=96, help="cells along a side")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    model = hg.lbm.Cavity(reynolds=400, velocity=0.2)
    sim = hg.Simulation(model, size=(options.size, options.size))
    profiles = {}
    for passes in (1, 4, 8, 16, 32) if options.size >= 64 else (1, 2):  # a look at toy grids
        sim.run(round(passes * options.size / 0.2) - sim.step_count)
        profiles[passes] = u_in_the_middle(sim)
        error = largest_error(profiles[passes])
        print(f"after {passes:2} passes of the lid: {error:.3f} from Ghia's points at most")
    draw(sim, profiles, options.out / "cavity.png")
    print(f"the picture is in {options.out / 'cavity.png'}")


if __name__ == "__main__":
    main()
