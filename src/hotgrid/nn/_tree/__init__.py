"""The tree of a module, and path expressions that select from it."""
