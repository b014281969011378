"""Recordings: a cluster as it was at one time, and all that changed since, in a folder that is bounded on disk.

``blocks`` frames what is written, ``segments`` are the files of a folder, ``kept`` is the cluster as it stands, as
bytes, ``orders`` the order in which a scheduler's cache has the pods of each node, and ``past`` gives the cluster as it
was at a moment. ``recorder`` makes changes of what watches tell (``snapshot.live.watching``).
"""
