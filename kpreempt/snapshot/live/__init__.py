"""The live cluster as a source: a connection like kubectl's, and lists read raw, in pages, several at once.

Only GET requests and, with ``check --server-dry-run``, dry runs are sent. Tokens, keys and passwords only reach headers
and TLS, never a message or a file. Modules that send requests are imported on demand: loading ``urllib3`` takes as long
as reading a small cluster.
"""
