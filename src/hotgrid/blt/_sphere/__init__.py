"""Points on shells around a centre: how far out, and what a cone sees."""
