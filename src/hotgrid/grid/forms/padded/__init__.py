"""padded: the form of the CPU, over padded buffers, and the sweeps of the native core."""
