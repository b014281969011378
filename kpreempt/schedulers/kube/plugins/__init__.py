"""The in-tree plugins, one module each, under their registered names."""
