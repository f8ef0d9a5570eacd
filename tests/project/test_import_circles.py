"""No module imports itself through others, not even for type checkers alone."""

import graphlib

import grimp


def test_there_is_no_circle_of_imports():
    graph = grimp.build_graph("hotgrid", cache_dir=None)
    imported = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    order = [*graphlib.TopologicalSorter(imported).static_order()]
    assert len(order) == len(graph.modules) > 300
