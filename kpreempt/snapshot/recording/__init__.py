"""Recordings: a cluster at one time and every change since then, in a directory of limited size.

``segments`` handles the files of a directory, ``changes`` defines their content and the current cluster as bytes,
``orders`` tracks the order in which a scheduler's cache has the pods of each node, and ``past`` rebuilds the cluster at
a point in time. ``recorder`` converts what watches report (``snapshot.live.watching``) to changes.
"""
