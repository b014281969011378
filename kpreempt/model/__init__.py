"""Frozen records of what a scheduler looks at, in the shape of the Kubernetes API.

Field names are the API's in snake case. Only the fields that a scheduler, a report or admission reads are here; the
decoder skips all others, so values of environment variables, commands and Secrets never enter the process's records.
"""
