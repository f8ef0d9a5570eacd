"""blt.view: the sphere of a corpus as a page that can be turned.

    with SphereApp(Sphere("corpus")).serve() as server:
        server.wait()

Needs the extra `hotgrid[view]`.
"""

from ._app import SphereApp as SphereApp
