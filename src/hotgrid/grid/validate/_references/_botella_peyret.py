"""The lid-driven cavity of Botella and Peyret, at a Reynolds number of 1000.

O. Botella and R. Peyret, Benchmark spectral results on the lid-driven cavity flow,
Computers and Fluids 27 (1998) 421-433, tables 9 and 10, at the points of Ghia, Ghia and
Shin. Their lid slides the other way: signs and places are turned to ours.
"""

SOURCE = "Botella and Peyret 1998"
REYNOLDS = 1000

U = (
    *(-0.1812881, -0.2023300, -0.2228955, -0.3004561, -0.3885691, -0.2803696, -0.1081999),
    *(-0.0620561, 0.0570178, 0.1886747, 0.3372212, 0.4723329, 0.5169277, 0.5808359, 0.6644227),
)
"""u along the vertical line through the centre, at the heights of `_ghia.Y`."""

V = (
    *(0.2807056, 0.2962703, 0.3099097, 0.3330442, 0.3769189, 0.3339924, 0.3253592, 0.0257995),
    *(-0.3202137, -0.4264545, -0.5264392, -0.4103754, -0.3553213, -0.2936869, -0.2279225),
)
"""v along the horizontal line through the centre, at the places of `_ghia.X`."""
