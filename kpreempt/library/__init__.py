"""kpreempt as a library: clusters and questions as Python has them, and the ways that commands share with it.

``kpreempt`` itself has the public names. Nothing here prints, and nothing is kept between calls but in a ``Cluster``.
"""
