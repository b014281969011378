"""kpreempt as a library: clusters and queries as Python objects, and what commands share with it.

``kpreempt`` itself has the public names. Nothing here prints, and nothing is kept between calls but in a ``Cluster``.
"""
