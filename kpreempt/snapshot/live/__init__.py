"""The live cluster as a source: a connection as kubectl makes it, and lists read raw, in pages, several at once.

Nothing is ever sent but GET. Tokens, keys and passwords reach headers and TLS only, never a message or a file.
What sends requests is imported when it is first asked for: ``urllib3`` takes as long as a small cluster does.
"""
