"""Frozen records of the objects that a scheduler reads, in the shape of the Kubernetes API.

Field names are the API's in snake case. Only fields that a scheduler, a report or admission reads are declared; the
decoder skips all others, so values of environment variables, commands and Secrets never become part of the records.
"""
